"""Files of pipelines from programs: finds the pipeline that a program marks, and writes it."""

import inspect
import runpy


def _marked(module, seen):
    """Functions that `triton.autoserialize` marked, in a module and those that it imports."""
    found = []
    for _, value in inspect.getmembers(module):
        if inspect.ismodule(value):
            if id(value) not in seen:
                seen.add(id(value))
                found += _marked(value, seen)
        elif inspect.isfunction(value) and getattr(value, "_is_autoserialize", False):
            found.append(value)
    return found


def _only(found):
    unique = list({id(function): function for function in found}.values())
    if len(unique) != 1:
        what = f"Found {len(unique)}: {unique}." if unique else "Found none."
        raise RuntimeError(f"expected one function marked by `autoserialize` in the module. {what}")
    return unique[0]


def invoke_autoserialize(head_module, filename):
    """Writes the pipeline that `head_module`, or a module that it imports, marks with `@autoserialize`."""
    _only(_marked(head_module, {id(head_module)}))().serialize(filename=filename)


def of_script(path, name=None):
    """The pipeline of a script: the function `name`, else the one that is marked, else the only one with
    `pipeline_def`."""
    names = runpy.run_path(path, run_name="__gesso__")
    functions = {key: value for key, value in names.items() if getattr(value, "_is_pipeline_def", False)}
    if name is not None:
        if name not in functions:
            raise RuntimeError(f"{path} has no pipeline definition `{name}`; it has {sorted(functions)}.")
        return functions[name]()
    marked = [function for function in functions.values() if getattr(function, "_is_autoserialize", False)]
    return _only(marked or list(functions.values()))()
