"""Line charts as SVG, without a library: panels side by side, x on a log2 axis, one legend for all of them."""

import math
from typing import NamedTuple
from xml.sax.saxutils import escape

# Told apart by eyes that see colours differently, and on white (Okabe and Ito, grey in place of yellow).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#888888")
# Of a panel and, inside it, around its plot.
WIDTH, HEIGHT, LEFT, RIGHT, ABOVE, BELOW = 440, 270, 82, 16, 28, 46
# Of the document's head: its title, and each line of the legend.
TITLE, LINE, MARGIN, SAMPLE = 30, 20, 14, 22
FONT, LETTER, RADIUS = 12, 7, 2.5
MOST_TICKS = 12


class Panel(NamedTuple):
    """One chart. `series` has the points of each line by its name, `log_y` a log10 axis, on which y is above 0; x
    always is."""

    title: str
    x_label: str
    y_label: str
    series: dict[str, list[tuple[float, float]]]
    log_y: bool = False


def panels(title, panels, columns=2):
    """A document with these panels, row by row; a series has the same colour in all of them."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    if len(names) > len(COLOURS):
        raise ValueError(f"expected at most {len(COLOURS)} series, found {len(names)}")
    colours = dict(zip(names, COLOURS))
    columns = max(1, min(columns, len(panels)))
    width = 2 * MARGIN + columns * WIDTH
    entries, top = legend(colours, width)
    height = top + -(-len(panels) // columns) * HEIGHT + MARGIN
    size = f'width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="{FONT}">',
        f'<rect {size} fill="white"/>',
        text(MARGIN, TITLE - 8, title, size=16),
        *entries,
    ]
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        parts += plot(panel, colours, MARGIN + column * WIDTH, top + row * HEIGHT)
    return "\n".join([*parts, "</svg>", ""])


def legend(colours, width):
    """A sample of each line and its name, in as many rows as it takes; and where they end."""
    parts, x, y = [], MARGIN, TITLE + LINE / 2
    for name, colour in colours.items():
        needed = SAMPLE + 6 + LETTER * len(name) + MARGIN
        if x > MARGIN and x + needed > width:
            x, y = MARGIN, y + LINE
        parts.append(f'<path d="M{x} {y:.0f}h{SAMPLE}" stroke="{colour}" stroke-width="2"/>')
        parts.append(text(x + SAMPLE + 6, y + 4, name))
        x += needed
    return parts, int(y + LINE / 2) + 6


def plot(panel, colours, left, top):
    """A panel whose upper left corner is there: its axes, their ticks, and the lines."""
    points = [point for line in panel.series.values() for point in line]
    xs, ys = sorted({x for x, _ in points}) or [1], [y for _, y in points] or [1]
    x0, x1, y0, y1 = left + LEFT, left + WIDTH - RIGHT, top + HEIGHT - BELOW, top + ABOVE
    ticks = log_ticks(min(ys), max(ys)) if panel.log_y else linear_ticks(max(ys))
    across = scale(math.log2, xs[0], xs[-1], x0 + 10, x1 - 10)
    up = scale(math.log10 if panel.log_y else float, ticks[0], ticks[-1], y0, y1)
    yield text((x0 + x1) / 2, top + 16, panel.title, "middle", size=13)
    for y in shown(ticks) if panel.log_y else ticks:
        yield f'<path d="M{x0} {up(y):.1f}H{x1}" stroke="#ddd"/>'
        yield text(x0 - 6, up(y) + 4, f"{y:,.10g}", "end")
    yield f'<path d="M{x0} {y1}V{y0}H{x1}" fill="none" stroke="#888"/>'
    free = -math.inf
    for x in xs:
        yield f'<path d="M{across(x):.1f} {y0}v4" stroke="#888"/>'
        # A label that would run into the last one is left out.
        half = LETTER * len(str(x)) / 2
        if across(x) - half >= free:
            yield text(across(x), y0 + 17, str(x), "middle")
            free = across(x) + half + 2
    yield text((x0 + x1) / 2, y0 + 35, panel.x_label, "middle")
    yield text(left + 14, (y0 + y1) / 2, panel.y_label, "middle", turned=True)
    for name, line in panel.series.items():
        places = [(across(x), up(y)) for x, y in sorted(line)]
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline points="{corners}" fill="none" stroke="{colours[name]}" stroke-width="1.5"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" fill="{colours[name]}"/>' for x, y in places)


def scale(function, low, high, start, end):
    """From values between `low` and `high`, which `function` makes even, to pixels; the middle where there is one value
    alone."""
    first, length = function(low), function(high) - function(low)
    return lambda value: start + (end - start) * ((function(value) - first) / length if length else 0.5)


def linear_ticks(most):
    """From 0 to `most` or more, in steps of 1, 2 or 5 times a power of ten; four to seven of them."""
    most = most if most > 0 else 1
    step = next(step for step in steps(most / 100, most) if step * 6 >= most)
    return [i * step for i in range(math.ceil(most / step) + 1)]


def log_ticks(least, most):
    """1, 2 and 5 times powers of ten, from the last that is not above `least` to the first that is not below `most`."""
    made = steps(least / 10, most * 10)
    low = max(step for step in made if step <= least)
    high = min(step for step in made if step >= most and step > low)
    return [step for step in made if low <= step <= high]


def steps(low, high):
    """1, 2 and 5 times powers of ten, some below `low` to some above `high`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]


def shown(ticks):
    """Of many ticks the powers of ten alone."""
    return ticks if len(ticks) <= MOST_TICKS else [tick for tick in ticks if f"{tick:e}".startswith("1.0")]


def text(x, y, what, anchor="start", size=FONT, turned=False):
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{turn}>{escape(str(what))}</text>'
