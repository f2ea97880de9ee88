"""Charts: the lines that are drawn of series, what stands beside them, and that the same figures are the same bytes."""

import subprocess
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

import chart
import pytest
from chart import Panel
from drawing import lines, texts

pytest.importorskip("matplotlib")

BATCHES = [1, 2, 8, 128, 1024]
SERIES = {
    "1 lane": [(x, 100 * x / (x + 9)) for x in BATCHES],
    "<8> & more": [(x, 800 * x / (x + 9)) for x in BATCHES[2:]],
}


def drawn(*panels, **options):
    return tree.fromstring(chart.panels("A & B <C>", list(panels), **options))


@pytest.mark.parametrize("log_y", [False, True])
def test_lines_have_their_points_and_go_as_the_figures_go(log_y):
    (first,), (second,) = lines(drawn(Panel("sizes", "batch", "images/s", SERIES, log_y))).values()
    assert [len(first), len(second)] == [5, 3]
    for corners in (first, second):
        across, up = zip(*corners)
        assert sorted(set(across)) == list(across)
        assert sorted(set(up), reverse=True) == list(up), "more is higher"
    assert [x for x, _ in first[2:]] == pytest.approx([x for x, _ in second]), "equal x are one above the other"
    doubled = first[1][0] - first[0][0]
    assert first[2][0] - first[1][0] == pytest.approx(2 * doubled, abs=0.2), "2 to 8 is twice as far as 1 to 2"


def test_points_are_sorted_by_x():
    document = drawn(Panel("", "", "", {"a": SERIES["1 lane"][::-1]}))
    assert lines(document) == lines(drawn(Panel("", "", "", {"a": SERIES["1 lane"]})))


def test_names_and_labels_stand_there_once():
    found = texts(drawn(Panel("sizes", "batch <b>", "images/s", SERIES)))
    for text in ("A & B <C>", "sizes", "batch <b>", "images/s", *SERIES, "1", "2", "8", "128", "1,024"):
        assert found.count(text) == 1, text


def test_a_series_has_one_colour_and_one_line_of_the_legend():
    document = drawn(Panel("left", "x", "y", SERIES), Panel("right", "x", "y", dict(reversed(SERIES.items()))))
    found = lines(document)
    assert [list(map(len, found[colour])) for colour in chart.COLOURS[:2]] == [[5, 5], [3, 3]]
    assert texts(document).count("1 lane") == 1
    left, right = found[chart.COLOURS[0]]
    assert left[0][0] < right[0][0] and left[0][1] == pytest.approx(right[0][1]), "one beside the other"


def test_eight_series_have_a_colour_each_and_nine_are_too_many():
    series = {f"a name that is long enough for several rows {i}": [(1, i + 1), (2, i + 2)] for i in range(8)}
    assert len(lines(drawn(Panel("", "", "", series)))) == 8
    with pytest.raises(ValueError, match="at most 8 series, found 9"):
        drawn(Panel("", "", "", series | {"one more": []}))


@pytest.mark.parametrize("series", [{}, {"none": []}, {"one": [(16, 3)]}, {"zero": [(1, 0), (2, 0)]}])
def test_few_points_are_a_document_too(series):
    found = texts(drawn(Panel("few", "x", "y", series), Panel("none", "x", "y", {}, log_y=True)))
    assert {"few", "none", *series} <= set(found)


def test_the_same_figures_are_the_same_bytes_in_another_process():
    program = (
        "import chart, sys; sys.stdout.write(chart.panels('t', [chart.Panel('p', 'x', 'y', {'a': [(1, 2), (4, 3)]})]))"
    )
    folder = Path(chart.__file__).parent
    made = [subprocess.check_output([sys.executable, "-c", program], cwd=folder) for _ in range(2)]
    assert made[0] == made[1] and b"dc:date" not in made[0]
