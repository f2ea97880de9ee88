"""The picture of a trace: what stands in it, where, and that the guide shows the recorded one."""

import json
import xml.etree.ElementTree as tree

import pytest
from trace_picture import LEFT, PICTURE, RIGHT, TRACE, picture, spans, step

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def entries():
    return json.loads(TRACE.read_text())


def test_spans_are_the_servers_and_then_those_of_gesso_in_the_order_of_time(entries):
    found = spans(entries)
    names = [each.name for each in found]
    assert names == [
        "whole request", "queue", "compute", "gather", "decoders__Image + Resize", "CropMirrorNormalize", "answer",
    ]  # fmt: skip
    assert [each.owner for each in found] == ["server"] * 3 + ["gesso"] * 4
    request, queue, compute, *own = found
    assert request.start == 0 <= queue.start
    assert queue.end == compute.start <= own[0].start and own[-1].end <= compute.end <= request.end
    assert all(before.end <= after.start for before, after in zip(own, own[1:]))


def test_bars_stand_where_their_times_are(entries):
    found, document = spans(entries), tree.fromstring(picture(entries))
    bars = [each for each in document.iter(f"{SVG}rect") if each.get("class") in ("server", "gesso")][2:]
    assert len(bars) == len(found)
    scale = (RIGHT - LEFT) / max(each.end for each in found)
    for bar, each in zip(bars, found):
        assert bar.get("class") == each.owner
        assert float(bar.get("x")) == pytest.approx(LEFT + scale * each.start, abs=0.1)
        assert float(bar.get("width")) == pytest.approx(max(scale * (each.end - each.start), 1), abs=0.1)
    texts = [each.text for each in document.iter(f"{SVG}text")]
    for each in found:
        assert each.name in texts and f"{each.end - each.start:,.0f} µs" in texts


def test_a_second_request_and_names_of_operators_do_no_harm(entries):
    expected = spans(entries)
    later = [entry | {"id": entries[0]["id"] + 1} for entry in entries]
    assert spans([*entries, *later]) == expected
    start, end = ({"name": f"<a> & b_{edge}", "ns": entries[1]["timestamps"][0]["ns"]} for edge in ("START", "END"))
    document = tree.fromstring(picture([*entries, {"id": entries[0]["id"], "timestamps": [start, end]}]))
    assert "<a> & b" in [each.text for each in document.iter(f"{SVG}text")]


def test_a_trace_without_times_is_told_so(entries):
    with pytest.raises(ValueError, match="expected a trace with level TIMESTAMPS, found none of COMPUTE_END"):
        spans(entries[:1])


@pytest.mark.parametrize("longest, expected", [(1, 1), (10, 1), (11, 2), (21, 5), (999, 100), (1_001, 200)])
def test_a_scale_has_round_numbers(longest, expected):
    assert step(longest) == expected


def test_the_guide_shows_the_recorded_trace(entries):
    assert PICTURE.read_text(encoding="utf-8") == picture(entries)
