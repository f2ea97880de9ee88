"""What a chart that `scripts/lib/chart.py` made shows: its texts, and the corners of its lines."""

import chart

SVG = "{http://www.w3.org/2000/svg}"


def texts(document):
    """All texts, in their order."""
    return [node.text for node in document.iter(SVG + "text")]


def lines(document):
    """Corners of each line of a panel, by its colour, in the order of the panels. The legend's are left out."""
    found = {}
    panels = (node for node in document.iter(SVG + "g") if (node.get("id") or "").startswith("axes_"))
    for path in (path for panel in panels for path in panel.iter(SVG + "path")):
        style = path.get("style") or ""
        colour = next((colour for colour in chart.COLOURS if f"stroke: {colour}" in style), None)
        # What is filled marks a point.
        if colour and "fill: none" in style and path.get("clip-path"):
            numbers = [float(word) for word in path.get("d").split() if word not in ("M", "L")]
            found.setdefault(colour, []).append(list(zip(numbers[::2], numbers[1::2])))
    return found
