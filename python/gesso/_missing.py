"""Operators of DALI that there are not: their names are there, and say so when they are called."""

from . import _context, _naming

NAMES = """
VideoReaderResize readers__VideoResize
""".split()


def stand_ins(name):
    """(class, function) that raise when they are called."""
    modules, class_name = _naming.split(name)
    function_name = _naming.snake_case(class_name)

    def refuse(*_, **__):
        path = ".".join((*modules, function_name))
        raise NotImplementedError(f"Gesso has no operator `{_context.package}.fn.{path}`. docs/operators.md lists those that it has.")

    def function(*inputs, **keywords):
        refuse()

    function.__name__ = function.__qualname__ = function_name
    function.__doc__ = "Not there: raises when it is called."
    function._schema_name = name
    return type(class_name, (), {"__init__": refuse, "__doc__": function.__doc__, "schema_name": name}), function
