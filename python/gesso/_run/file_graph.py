"""A graph from a file, as the author's definition made it."""

import dataclasses
from types import SimpleNamespace
from typing import Any

from .. import ops
from .._authoring import schema as _schema
from .._authoring import serialization
from .._authoring.arguments import TypedValue
from .._authoring.video_input import TARGET
from .._readers.file_read import Read
from .._readers.of_library import TFRecord
from .._readers.registry import OLD_NAMES, READERS
from .._readers.video import OlderVideo, VideoResize
from .._tensors.enums import DALIDataType
from ..data_node import DataNode

# Where DALI's files have other names than its functions.
_HIDDEN = {TFRecord.schema.alias: TFRecord}
_CLASSES: dict[str, Any] = {**READERS, **OLD_NAMES, **_HIDDEN}


class FileNode:
    """An operator of a file, with what its graph needs of a `Node`."""

    def __init__(self, pipeline, name, schema, device, entry, group):
        self.pipeline, self.name, self.schema, self.device, self.group = pipeline, name, schema, device, group
        self.origin = _origin(entry.get("bookkeeping", {}))
        self.values = {"device": TypedValue("string", False, [device]), **_values(entry)}
        self.inputs, self.tensors, self.outputs = [], {}, []
        self.layout = ""
        self.operator: Any = SimpleNamespace(display=_display(entry, name), schema=schema)

    def values_of(self, keyword, default=None):
        """The value of an argument, else `default`."""
        value = self.values.get(keyword)
        return default if value is None else value.value

    def is_foreign(self, pipeline):
        """Whether it was made in another pipeline."""
        return self.pipeline is not pipeline

    def __repr__(self):
        return f'{self.operator.display} "{self.name}" of a file'


def _origin(bookkeeping):
    """Where the author's program made it, if the file says so."""
    keys = [f"_origin_stack_{part}" for part in ("filename", "lineno", "name")]
    return list(zip(*(bookkeeping.get(key, ()) for key in keys)))


def _display(entry, name):
    given = [
        (entry.get("bookkeeping", {}).get(key) or entry["arguments"].get(key) or [""])[0]
        for key in ("_module", "_display_name")
    ]
    return ".".join(given) if all(given) else entry.get("name", name)


def _values(entry):
    """The arguments with their types, as the file has them."""
    given, found = {**entry.get("arguments", {}), **entry.get("bookkeeping", {})}, {}
    for stored in entry["stored"]:
        if stored["name"] in given:
            found[stored["name"]] = TypedValue(stored["type"], stored.get("list", False), list(given[stored["name"]]))
    return found


def _schema_of(name):
    found = _schema.find(name)
    if found is None:
        # The library says why it does not run it.
        return _schema.Schema(name, ("cpu", "gpu", "mixed"), 0, 99, 1, {})
    # The name that the file has stays.
    return dataclasses.replace(found, name=name, alias="")


def _reader(node):
    """Makes what runs a node in the interpreter."""
    kind = _CLASSES[node.schema.name]
    kind = OlderVideo if kind is VideoResize else kind
    own = kind.schema.arguments
    keywords = {name: value.value for name, value in node.values.items() if name in own}
    operator = kind(device=node.device, **keywords)
    operator.display = node.operator.display
    node.operator = operator
    if kind is not Read:
        node.schema = dataclasses.replace(kind.schema, name=node.schema.name)


def _resize_of(node, entry, edges):
    """Makes the operator behind a reader that resizes; the reader gives it frames."""
    resize = FileNode(node.pipeline, f"{node.name}_resize", _schema.find("Resize"), node.device, entry, object())
    (resize.values, node.values), (resize.tensors, node.tensors) = map(VideoResize.divided, (node.values, node.tensors))
    resize.values["device"] = node.values["device"]
    given, frames = node.outputs[0], DataNode(f"{node.name}_frames", node.outputs[0].device, node, 0)
    resize.inputs, node.outputs[0] = [frames], frames
    resize.outputs = [DataNode(given.name, given.device, resize, 0)]
    edges[entry["outputs"][0]] = resize.outputs[0]
    return resize


def _input(pipeline, entry, edges):
    takes_videos = entry.get("operator") == TARGET
    schema = _schema.find(TARGET if takes_videos else serialization.SOURCE)
    node = FileNode(pipeline, entry["name"], schema, entry["device"], entry, ("input", entry["name"]))
    if takes_videos:
        keywords = {name: value.value for name, value in node.values.items() if name in schema.arguments}
        display, node.operator = node.operator.display, ops.experimental.inputs.Video(**keywords)
        node.operator.display = display
    else:
        _declare(node, entry)
    # An edge of another name than its input's is in files made by hand only.
    edges[entry["edge"]] = DataNode(entry["name"], _made_on(node), node, 0)
    node.outputs = [edges[entry["edge"]]]
    return node


def _declare(node, entry):
    """Gives an input the arguments that say what it is fed."""
    for name, value in (("dtype", entry["dtype"]), ("ndim", entry["ndim"])):
        if value is not None:
            value = int(DALIDataType[_NUMBERS[value]]) if name == "dtype" else value
            node.values[name] = TypedValue("int64", False, [value])
    if entry["layout"]:
        node.values["layout"] = TypedValue("string", False, [entry["layout"]])
    node.layout = entry["layout"]


def _made_on(node):
    """Where the outputs are that a file says nothing of."""
    return "gpu" if node.device in ("gpu", "mixed") else "cpu"


# Types as descriptions name them > as `DALIDataType` does.
_NUMBERS = {
    serialization._dtype_name(dtype): dtype.name for dtype in list(DALIDataType)[1:13] if dtype.name != "STRING"
}


def _operator(pipeline, entry, edges, place):
    name = entry["instance"] or f"operator_{place}"
    group = ("group", entry["logical_id"]) if entry["logical_id"] is not None else ("operator", place)
    node = FileNode(pipeline, name, _schema_of(entry["name"]), entry["device"], entry, group)
    wanted = entry.get("input_devices") or ["gpu" if node.device == "gpu" else "cpu"] * len(entry["inputs"])
    try:
        node.inputs = [_on(edges[edge], device) for edge, device in zip(entry["inputs"], wanted)]
        node.tensors = {keyword: _on(edges[edge], "cpu") for keyword, edge in entry["argument_inputs"].items()}
    except KeyError as error:
        raise RuntimeError(
            f"operator `{entry['name']}` (`{name}`): nothing before it makes its input {error}"
        ) from None
    devices = entry.get("output_devices") or [_made_on(node)] * len(entry["outputs"])
    for i, (edge, device) in enumerate(zip(entry["outputs"], devices)):
        edges[edge] = DataNode(edge, device, node, i)
        node.outputs.append(edges[edge])
    return node


def _on(edge, device):
    return edge if edge.device == device else DataNode(edge.name, device, edge.source, edge.index)


def graph(pipeline, described):
    """(operators, outputs) of a file."""
    edges = {}
    inputs = sorted(described["inputs"], key=lambda entry: entry["place"] or 0)
    nodes = [_input(pipeline, entry, edges) for entry in inputs]
    for place, entry in enumerate(described["operators"]):
        node = _operator(pipeline, entry, edges, place)
        nodes.append(node)
        if entry["name"] not in _CLASSES:
            continue
        if _CLASSES[entry["name"]] is VideoResize and node.outputs:
            nodes.append(_resize_of(node, entry, edges))
        _reader(node)
    missing = next((output["name"] for output in described["outputs"] if output["name"] not in edges), None)
    if missing is not None:
        raise RuntimeError(f"nothing in the file makes its output `{missing}`")
    return nodes, [_on(edges[output["name"]], output["device"]) for output in described["outputs"]]
