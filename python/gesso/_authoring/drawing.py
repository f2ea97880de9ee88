"""A pipeline for people: as a table, as a picture's description, as HTML."""

import html

from . import arguments, schema


def _meaning(argument, value):
    """A value as a program writes it: numbers of enumerations by their names."""
    enum = arguments.ENUMS.get(argument.type) if argument else None
    try:
        return enum(value).name if enum else value
    except ValueError:
        # A file may hold any number.
        return value


def _values(operator):
    known = getattr(schema.find(operator["name"]), "arguments", {})
    shown = {
        name: [_meaning(known.get(name), value) for value in values] for name, values in operator["arguments"].items()
    }
    shown = {name: values[0] if len(values) == 1 else values for name, values in shown.items()}
    parts = [f"{name}={value}" for name, value in shown.items() if not name.startswith("_")]
    parts += [f"{name}={edge}" for name, edge in operator["argument_inputs"].items()]
    text = ", ".join(parts)
    return text if len(text) <= 80 else text[:77] + "..."


def rows(description):
    """(instance, operator, device, inputs, arguments) of each operator, inputs of the pipeline first."""
    for source in description["inputs"]:
        yield source["name"], "input", source["device"], "", source.get("layout") or ""
    for operator in description["operators"]:
        yield (
            operator["instance"],
            operator["name"],
            operator["device"],
            ", ".join(operator["inputs"]),
            _values(operator),
        )


def as_text(description):
    """A table."""
    table = [("name", "operator", "device", "inputs", "arguments"), *rows(description)]
    widths = [max(len(row[i]) for row in table) for i in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)) + "  " + row[4] for row in table]
    outputs = ", ".join(f"{output['name']} ({output['device']})" for output in description["outputs"])
    return "\n".join(line.rstrip() for line in lines) + f"\noutputs: {outputs}"


def as_html(description):
    """A table."""
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows(description)
    )
    head = "".join(f"<th>{name}</th>" for name in ("name", "operator", "device", "inputs", "arguments"))
    outputs = html.escape(", ".join(output["name"] for output in description["outputs"]))
    return f"<table><tr>{head}</tr>{cells}</table><p>outputs: {outputs}</p>"


def as_dot(description, show_tensors=False, use_colors=False):
    """A graph in the language of Graphviz."""
    makers, lines = {}, ["digraph pipeline {", "  node [shape=box];"]

    def quoted(text):
        return text.replace("\\", "\\\\").replace('"', '\\"')

    def node(name, label, device):
        name = quoted(name)
        colour = f' style=filled fillcolor="{"#cfe2f3" if device == "cpu" else "#d9ead3"}"' if use_colors else ""
        lines.append(f'  "{name}" [label="{label}\\n{name}"{colour}];')

    for source in description["inputs"]:
        makers[source["edge"]] = source["name"]
        node(source["name"], "input", source["device"])
    for operator in description["operators"]:
        node(operator["instance"], operator["name"], operator["device"])
        makers.update({edge: operator["instance"] for edge in operator["outputs"]})
        edges = [(edge, "") for edge in operator["inputs"]]
        edges += [(edge, name) for name, edge in operator["argument_inputs"].items()]
        for edge, name in edges:
            label = name or (edge if show_tensors else "")
            label = f' [label="{quoted(label)}"];' if label else ";"
            lines.append(f'  "{quoted(makers[edge])}" -> "{quoted(operator["instance"])}"{label}')
    for i, output in enumerate(description["outputs"]):
        lines.append(f'  "output {i}" [shape=ellipse];')
        lines.append(f'  "{quoted(makers[output["name"]])}" -> "output {i}";')
    return "\n".join([*lines, "}", ""])
