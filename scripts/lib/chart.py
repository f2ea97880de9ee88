"""Line charts as SVG, by matplotlib: panels side by side, x on a log2 axis, one legend for all of them. The same
figures make the same bytes.

matplotlib is imported when something is drawn: a machine that only measures need not have it. `.venv` has it
(scripts/requirements-tests.txt).
"""

import importlib.util
import io
from typing import NamedTuple

# Told apart by eyes that see colours differently, and on white (Okabe and Ito, grey in place of yellow).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#888888")
# Of a panel, in inches, and of the title and the legend above all of them.
WIDTH, HEIGHT, HEAD = 5.5, 3.0, 0.7
# Entries of the legend in a row, for each column of panels.
ENTRIES = 3
SETTINGS = {
    # Text stays text, and what is named by a hash of random bytes is named by this one.
    "svg.fonttype": "none",
    "svg.hashsalt": "gesso",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
}


class Panel(NamedTuple):
    """One chart. `series` has the points of each line by its name, `log_y` a log10 axis, on which y is above 0; x
    always is."""

    title: str
    x_label: str
    y_label: str
    series: dict[str, list[tuple[float, float]]]
    log_y: bool = False


def can_draw():
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def panels(title, panels, columns=2):
    """An SVG document with these panels, row by row; a series has the same colour in all of them."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    if len(names) > len(COLOURS):
        raise ValueError(f"expected at most {len(COLOURS)} series, found {len(names)}")
    colours = dict(zip(names, COLOURS))
    columns = max(1, min(columns, len(panels)))
    rows = -(-len(panels) // columns)
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(columns * WIDTH, rows * HEIGHT + HEAD), layout="constrained")
        FigureCanvasSVG(figure)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, panels):
            _draw(axes, panel, colours)
        for axes in grid[len(panels) :]:
            axes.remove()
        lines = [Line2D([], [], color=colour, marker="o") for colour in colours.values()]
        settings = {"ncols": ENTRIES * columns, "frameon": False, "alignment": "left", "title_fontsize": 12}
        figure.legend(lines, names, loc="outside upper left", title=title, **settings)
        out = io.StringIO()
        # A date would differ each time, the version of matplotlib on each machine.
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _draw(axes, panel, colours):
    """The lines of a panel and its axes."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    for name, points in panel.series.items():
        if points:
            axes.plot(*zip(*sorted(points)), marker="o", color=colours[name], label=name)
    xs = sorted({x for points in panel.series.values() for x, _ in points})
    if not xs:
        return
    axes.set_xscale("log", base=2)
    axes.xaxis.set(major_locator=FixedLocator(xs), minor_locator=NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(_number))
    if panel.log_y:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(_number))


def _number(value, _place):
    return f"{value:,.10g}"
