"""The report of scripts/soak --long: a page of figures, and plots beside it."""

from soak_client import Counter

WIDTH, HEIGHT, LEFT, GAP, POINTS = 860, 110, 70, 44, 400
COLOURS = ("#1f6feb", "#d1242f")


def write(path, rows, sums, events, looks, faults, gpu):
    """Writes the page at `path` and the plots beside it as `.svg`; returns the page's text. `gpu` is the name of the
    one that was used."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".svg").write_text(plots(rows))
    early, late = looks
    bins = sums[Counter.LATENCIES :]
    quantiles = ", ".join(
        f"{name} {1e3 * Counter.quantile(bins, share):.1f} ms"
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.99", 0.9999))
    )
    seconds, where = rows[-1][0], f"on an {gpu}" if gpu else "on the host"
    lines = [
        "# Soak",
        "",
        f"Made by `scripts/soak --long{' --gpu' if gpu else ''}`; not edited by hand. A model that decodes, resizes and normalizes, in a real server, {where};",
        "requests of 1 to 4 images of 16 to 96 pixels over HTTP, every twentieth broken; clients that are killed, and a model that is unloaded and loaded, all the while.",
        "",
        "| | |",
        "| --- | --- |",
        f"| requests | {sums[: Counter.WRONG + 1].sum():,} in {seconds:,.0f} s |",
        f"| answered as alone | {sums[Counter.RIGHT]:,} |",
        f"| broken ones, refused | {sums[Counter.REFUSED]:,} |",
        f"| refused by the server while the model was away | {sums[Counter.AWAY]:,} |",
        f"| wrong | {sums[Counter.WRONG]:,} |",
        f"| reloads of the model, clients killed | {events['reload']}, {events['kill']} |",
        f"| latency | {quantiles} |",
        f"| memory of the server, first and last third after warming up | {early.memory / 1e6:.0f} MB, {late.memory / 1e6:.0f} MB |",
        *(
            [f"| memory of the GPU in use, likewise | {early.device / 1e6:.0f} MB, {late.device / 1e6:.0f} MB |"]
            if gpu
            else []
        ),
        f"| threads | {early.threads:.0f}, {late.threads:.0f} |",
        f"| open files | {early.files:.0f}, {late.files:.0f} |",
        f"| verdict | {'; '.join(faults) or 'nothing grew, nothing was wrong'} |",
        "",
        f"![memory, latency, threads and open files over time]({path.with_suffix('.svg').name})",
    ]
    text = "\n".join(lines) + "\n"
    path.write_text(text)
    return text


def plots(rows):
    """Four plots over minutes, one below the other."""
    step = max(len(rows) // POINTS, 1)
    rows = rows[::step]
    minutes = [row[0] / 60 for row in rows]
    series = [
        ("memory, MB", [[row[1].memory / 1e6 for row in rows]]),
        ("latency, ms: p50, p99", [[1e3 * row[3] for row in rows], [1e3 * row[4] for row in rows]]),
        ("threads", [[row[1].threads for row in rows]]),
        ("open files", [[row[1].files for row in rows]]),
    ]
    if any(row[1].device for row in rows):
        series.append(("memory of the GPU in use, MB", [[row[1].device / 1e6 for row in rows]]))
    height = len(series) * (HEIGHT + GAP) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">'
    ]
    parts.append(f'<rect width="{WIDTH}" height="{height}" fill="white"/>')
    for number, (title, lines) in enumerate(series):
        parts += plot(title, minutes, lines, number * (HEIGHT + GAP) + 24)
    return "\n".join([*parts, "</svg>", ""])


def plot(title, minutes, lines, top):
    most = 1.1 * max(max(line) for line in lines) or 1
    right, bottom = WIDTH - 20, top + HEIGHT
    yield f'<text x="{LEFT}" y="{top - 6}">{title}</text>'
    yield f'<path d="M{LEFT} {top}V{bottom}H{right}" fill="none" stroke="#888"/>'
    for share in (0, 0.5, 1):
        yield f'<text x="{LEFT - 6}" y="{bottom - share * HEIGHT + 4:.0f}" text-anchor="end">{share * most:.0f}</text>'
    yield f'<text x="{right}" y="{bottom + 14}" text-anchor="end">{minutes[-1]:.0f} min</text>'
    for line, colour in zip(lines, COLOURS):
        points = " ".join(
            f"{LEFT + (right - LEFT) * x / max(minutes[-1], 1e-9):.1f},{bottom - HEIGHT * y / most:.1f}"
            for x, y in zip(minutes, line)
        )
        yield f'<polyline points="{points}" fill="none" stroke="{colour}"/>'
