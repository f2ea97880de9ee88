"""Nodes of `torchdata.nodes` that read by dynamic mode."""

import numpy as np
import pytest

pytest.importorskip("torchdata")

from gesso import dynamic as d
from gesso.plugin.pytorch import nodes
from torchdata.nodes import Loader


def test_a_loader_of_a_reader(tmp_path):
    for i in range(6):
        (tmp_path / f"{i}.bin").write_bytes(bytes([i] * 4))
    (tmp_path / "list").write_text("".join(f"{i}.bin {i}\n" for i in range(6)))
    facts = {"file_root": str(tmp_path), "file_list": str(tmp_path / "list")}
    reader = nodes.Reader(d.readers.File, batch_size=2, **facts)
    loader = Loader(nodes.ToTorch(nodes.DictMapper(reader, lambda files: files * 2)))
    for _ in range(2):
        found = [(data, label.flatten().tolist()) for data, label in loader]
        assert [label for _, label in found] == [[0, 1], [2, 3], [4, 5]]
        assert np.array_equal(found[1][0], [[4] * 4, [6] * 4])
    assert reader.get_metadata()["epoch_size"] == 6
    with pytest.raises(ValueError, match="names"):
        nodes.Reader(d.readers.File, batch_size=2, output_names=["one"], **facts)
