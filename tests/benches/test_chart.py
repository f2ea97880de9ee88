"""Charts: what is drawn of series, and that it is a document."""

import xml.etree.ElementTree as tree

import chart
import pytest
from chart import Panel

SVG = "{http://www.w3.org/2000/svg}"
BATCHES = [1, 2, 8, 128, 1024]
SERIES = {
    "1 lane": [(x, 100 * x / (x + 9)) for x in BATCHES],
    "<8> & more": [(x, 800 * x / (x + 9)) for x in BATCHES[2:]],
}


def drawn(*panels, **options):
    return tree.fromstring(chart.panels("A & B <C>", list(panels), **options))


def texts(document):
    return [node.text for node in document.iter(SVG + "text")]


def lines(document):
    """Corners of each line, by its colour, in the order of the panels."""
    found = {}
    for node in document.iter(SVG + "polyline"):
        corners = [tuple(map(float, corner.split(","))) for corner in node.get("points").split()]
        found.setdefault(node.get("stroke"), []).append(corners)
    return found


@pytest.mark.parametrize("log_y", [False, True])
def test_lines_have_their_points_and_go_as_the_figures_go(log_y):
    document = drawn(Panel("sizes", "batch", "images/s", SERIES, log_y))
    (first,), (second,) = lines(document).values()
    assert [len(first), len(second)] == [5, 3]
    for corners in (first, second):
        across, up = zip(*corners)
        assert sorted(set(across)) == list(across)
        assert sorted(set(up), reverse=True) == list(up), "more is higher"
    assert [x for x, _ in first[2:]] == [x for x, _ in second], "equal x are one above the other"
    doubled = first[1][0] - first[0][0]
    assert first[2][0] - first[1][0] == pytest.approx(2 * doubled, abs=0.2), "2 to 8 is twice as far as 1 to 2"
    width, height = float(document.get("width")), float(document.get("height"))
    assert all(0 < x < width and 0 < y < height for x, y in first + second)


def test_points_are_sorted_by_x():
    document = drawn(Panel("", "", "", {"a": SERIES["1 lane"][::-1]}))
    assert lines(document) == lines(drawn(Panel("", "", "", {"a": SERIES["1 lane"]})))


def test_names_and_labels_stand_there_once():
    found = texts(drawn(Panel("sizes", "batch <b>", "images/s", SERIES)))
    for text in ("A & B <C>", "sizes", "batch <b>", "images/s", *SERIES, *map(str, BATCHES)):
        assert found.count(text) == 1, text


def test_a_series_has_one_colour_and_one_line_of_the_legend():
    document = drawn(Panel("left", "x", "y", SERIES), Panel("right", "x", "y", dict(reversed(SERIES.items()))))
    found = lines(document)
    assert [list(map(len, corners)) for corners in found.values()] == [[5, 5], [3, 3]]
    assert texts(document).count("1 lane") == 1
    left, right = found[chart.COLOURS[0]]
    assert left[0][0] < right[0][0] and left[0][1] == right[0][1], "one beside the other"
    above, below = lines(drawn(Panel("", "", "", SERIES), Panel("", "", "", SERIES), columns=1))[chart.COLOURS[0]]
    assert above[0][0] == below[0][0] and above[0][1] < below[0][1]


def test_eight_series_have_a_colour_each_and_nine_are_too_many():
    series = {f"a name that is long enough for several rows {i}": [(1, i + 1), (2, i + 2)] for i in range(8)}
    assert len(lines(drawn(Panel("", "", "", series)))) == 8
    with pytest.raises(ValueError, match="at most 8 series, found 9"):
        drawn(Panel("", "", "", series | {"one more": []}))


@pytest.mark.parametrize(
    "least, most, expected",
    [
        (3, 40, [2, 5, 10, 20, 50]),
        (10, 1000, [10, 20, 50, 100, 200, 500, 1000]),
        (7, 7, [5, 10]),
        (5, 5, [5, 10]),
        (0.03, 0.2, [0.02, 0.05, 0.1, 0.2]),
    ],
)
def test_ticks_of_a_log_axis_enclose_the_figures(least, most, expected):
    assert chart.log_ticks(least, most) == expected


@pytest.mark.parametrize(
    "most, expected",
    [
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (230, [0, 50, 100, 150, 200, 250]),
        (0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (6e5, [0, 1e5, 2e5, 3e5, 4e5, 5e5, 6e5]),
    ],
)
def test_ticks_of_a_linear_axis_begin_at_0(most, expected):
    assert chart.linear_ticks(most) == pytest.approx(expected)


@pytest.mark.parametrize("series", [{}, {"none": []}, {"one": [(16, 3)]}, {"zero": [(1, 0), (2, 0)]}])
def test_few_points_are_a_document_too(series):
    document = drawn(Panel("few", "x", "y", series), Panel("none", "x", "y", {}, log_y=True))
    assert [len(corners[0]) for corners in lines(document).values() if corners[0]] == [
        len(line) for line in series.values() if line
    ]
