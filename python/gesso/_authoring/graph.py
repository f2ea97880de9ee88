"""From what a definition returned to a graph in order: outputs checked, operators collected, producers first."""

from .. import _context
from ..data_node import DataNode, _check
from .constants import Constant, ScalarConstant
from .operator import constant_input


def _holds_node(value):
    return isinstance(value, (list, tuple)) and any(isinstance(x, DataNode) or _holds_node(x) for x in value)


def as_outputs(returned):
    """The outputs of a pipeline as nodes; constants become operators."""
    outputs = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    for i, value in enumerate(outputs):
        if isinstance(value, ScalarConstant):
            outputs[i] = constant_input(value, "cpu", i, "output")
        elif _holds_node(value):
            message = (
                f"output {i} is a sequence with `DataNode`s in it, expected one `DataNode`: "
                "unpack what an operator with several outputs returns (`*`)"
            )
            raise TypeError(_context.add_words(message))
        elif not isinstance(value, DataNode):
            try:
                outputs[i] = Constant(value, device="cpu")
            except TypeError:
                message = (
                    f"output {i} is a `{type(value)}`, expected a `DataNode`, or what `types.Constant` takes: a number, a list or an array of "
                    "numbers"
                )
                raise TypeError(_context.add_words(message)) from None
        _check(outputs[i])
    return outputs


def collect(edges):
    """The operators that `edges` need, each behind those it reads; in the order in which DALI's files have them."""
    done, ordered = set(), []
    for edge in edges:
        # A stack of its own: deep graphs are longer than Python's. `path` has the operators that wait for what they
        # read.
        path = {}
        stack: list[tuple] = [(edge.source, None)]
        while stack:
            node, remaining = stack.pop()
            if remaining is None:
                if node is None:
                    raise RuntimeError(
                        "an input of an operator comes from nowhere: the operator behind its edge is missing"
                    )
                if id(node) in path:
                    raise RuntimeError(
                        f"The graph has a cycle: each of these operators needs what the next one makes: {_cycle(path, node)}."
                    )
                if id(node) in done:
                    continue
                path[id(node)] = node
                node.check_required()
                remaining = iter([*node.inputs, *node.tensors.values()])
            following = next(remaining, None)
            if following is None:
                del path[id(node)]
                done.add(id(node))
                ordered.append(node)
            else:
                stack.append((node, remaining))
                stack.append((following.source, None))
    return ordered


def _cycle(path, node):
    """The operators of a cycle that `node` closes."""
    inside = list(path.values())
    return [*inside[inside.index(node) :], node]


def require_unique_names(pipeline, operators):
    """Raises if two operators have the same name."""
    by_name = {}
    for operator in operators:
        by_name.setdefault(operator.name, []).append(operator)
    duplicates = {name: found for name, found in by_name.items() if len(found) > 1}
    if not duplicates:
        return
    text = f"two operators of the pipeline have one name, expected a name of its own for each:\n{duplicates}"
    if any(operator.pipeline is not pipeline for found in duplicates.values() for operator in found):
        text += "\nA graph that was made while another pipeline was the current one does that, as inside of another definition.\n"
    raise RuntimeError(text)


def forbid_foreign(pipeline, operators):
    """Raises if an operator belongs to another pipeline."""
    foreign = [operator for operator in operators if operator.is_foreign(pipeline)]
    if foreign:
        raise RuntimeError(
            f"The pipeline uses what operators of another pipeline make: {foreign}. Operators belong to the pipeline whose "
            "definition made them; make them again in this one."
        )


def require_own(pipeline, operators, message):
    """Raises if operators were made outside of the pipeline's definition."""
    foreign = [operator.name for operator in operators if operator.pipeline is not pipeline]
    if foreign:
        message = (
            f"{message}, as these of its operators belong to no pipeline or to another:\n{foreign}\n"
            "Operators belong to the pipeline that is the current one when they are made; in a function that `@pipeline_def` marks that is "
            "its own."
        )
        raise RuntimeError(_context.add_words(message))
