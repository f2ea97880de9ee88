//! A pipeline as a picture: Graphviz's text, or an SVG whose boxes stand in levels, inputs on top. It must not know how
//! a pipeline is read.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;

use gesso::pipeline::Description;
use gesso::tensor::DType;

use super::outline::{Item, short_name};
use crate::terminal::clean;

/// Characters of a name in a box.
const NAME: usize = 30;
const BOX_HEIGHT: usize = 38;
const LEVEL_HEIGHT: usize = 78;
const GAP: usize = 24;
const CHARACTER: usize = 8;
const MARGIN: usize = 20;

/// A box of the picture.
struct Node {
    name: String,
    /// Under the name.
    note: String,
    colour: &'static str,
}

#[derive(Default)]
struct Drawing {
    nodes: Vec<Node>,
    /// From and to, each once.
    edges: Vec<(usize, usize)>,
}

fn colour(device: &str) -> &'static str {
    match device {
        "gpu" => "#c9e7c1",
        "mixed" => "#e4efb5",
        _ => "#d5e3f3",
    }
}

impl Drawing {
    fn new(description: &Description, told: &[Item]) -> Self {
        let mut drawing = Self::default();
        let mut producer: HashMap<&str, usize> = HashMap::new();
        for input in &description.inputs {
            producer.insert(&input.edge, drawing.nodes.len());
            let note = input.dtype.map_or("", DType::name).to_owned();
            drawing.nodes.push(Node { name: input.name.clone(), note, colour: "#f4e3c5" });
        }
        let mut members = Vec::new();
        for item in told {
            let (node, operators) = match item {
                Item::Operator(number) => {
                    let Some(op) = description.operators.get(*number) else { continue };
                    let note = op.device.clone();
                    (Node { name: short_name(op), note, colour: colour(&op.device) }, vec![*number])
                }
                Item::Choice(choice) => {
                    let operators = choice.operators();
                    let name = format!("1 of {}", choice.alternatives.len());
                    let note = format!("{} operators", operators.len());
                    (Node { name, note, colour: "#ead9ee" }, operators)
                }
            };
            let operators: Vec<_> = operators.iter().filter_map(|&n| description.operators.get(n)).collect();
            for edge in operators.iter().flat_map(|op| &op.outputs) {
                producer.insert(edge, drawing.nodes.len());
            }
            members.push((drawing.nodes.len(), operators));
            drawing.nodes.push(node);
        }
        let mut seen = HashSet::new();
        let mut edges = Vec::new();
        for (to, operators) in members {
            for edge in operators.iter().flat_map(|op| op.inputs.iter().chain(op.argument_inputs.values())) {
                let from = producer.get(edge.as_str()).copied().filter(|&from| from != to);
                edges.extend(from.map(|from| (from, to)).filter(|&edge| seen.insert(edge)));
            }
        }
        for output in &description.outputs {
            let to = drawing.nodes.len();
            edges.extend(producer.get(output.name.as_str()).map(|&from| (from, to)));
            let note = output.device.clone();
            drawing.nodes.push(Node { name: output.name.clone(), note, colour: "#f4e3c5" });
        }
        drawing.edges = edges;
        drawing
    }

    /// For each box: those that it reads.
    fn above(&self) -> Vec<Vec<usize>> {
        let mut above = vec![Vec::new(); self.nodes.len()];
        for &(from, to) in &self.edges {
            if let Some(above) = above.get_mut(to) {
                above.push(from);
            }
        }
        above
    }

    /// The level of each box: one below the lowest box that it reads. What reads nothing stands just above its first
    /// reader.
    fn levels(&self, above: &[Vec<usize>]) -> Vec<usize> {
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); above.len()];
        for &(from, to) in &self.edges {
            if let Some(readers) = readers.get_mut(from) {
                readers.push(to);
            }
        }
        // A choice stands where its first operator does, so that boxes which feed it may come after it. Those go first
        // that read nothing which is still to come; in a circle, as of one condition that is asked twice, the first of
        // the file.
        let mut waits: Vec<usize> = above.iter().map(Vec::len).collect();
        let mut open: BTreeSet<usize> = (0..above.len()).collect();
        let mut ready: BTreeSet<usize> =
            open.iter().copied().filter(|&node| waits.get(node) == Some(&0)).collect();
        let mut levels: Vec<usize> = vec![0; above.len()];
        while let Some(node) = ready.pop_first().or_else(|| open.first().copied()) {
            open.remove(&node);
            let reads = above.get(node).into_iter().flatten().filter(|from| !open.contains(from));
            let lowest = reads.filter_map(|&from| levels.get(from)).max().copied();
            if let (Some(level), Some(lowest)) = (levels.get_mut(node), lowest) {
                *level = lowest + 1;
            }
            for &reader in readers.get(node).into_iter().flatten() {
                let Some(waits) = waits.get_mut(reader) else { continue };
                *waits = waits.saturating_sub(1);
                if *waits == 0 && open.contains(&reader) {
                    ready.insert(reader);
                }
            }
        }
        let mut first_reader = vec![usize::MAX; above.len()];
        for (to, reads) in above.iter().enumerate() {
            let level = levels.get(to).copied().unwrap_or_default();
            for &from in reads {
                if let Some(first) = first_reader.get_mut(from) {
                    *first = level.min(*first);
                }
            }
        }
        for ((level, reads), first) in levels.iter_mut().zip(above).zip(first_reader) {
            if reads.is_empty() && first != usize::MAX {
                *level = first.saturating_sub(1);
            }
        }
        levels
    }
}

/// The picture as Graphviz reads it.
pub(super) fn dot(description: &Description, told: &[Item]) -> String {
    let drawing = Drawing::new(description, told);
    let quoted = |text: &str| clean(text, NAME).replace('\\', "\\\\").replace('"', "\\\"");
    let mut text = "digraph pipeline {\n  node [shape=box style=filled fontname=\"sans-serif\"]\n".to_owned();
    for (i, node) in drawing.nodes.iter().enumerate() {
        let label = format!("{}\\n{}", quoted(&node.name), quoted(&node.note));
        // Writing to a text does not fail.
        let _ = writeln!(text, "  n{i} [label=\"{label}\" fillcolor=\"{}\"]", node.colour);
    }
    for (from, to) in &drawing.edges {
        let _ = writeln!(text, "  n{from} -> n{to}");
    }
    text + "}\n"
}

/// A box with its place.
struct Placed {
    x: usize,
    y: usize,
    width: usize,
}

/// The picture as SVG.
pub(super) fn svg(description: &Description, told: &[Item]) -> String {
    let drawing = Drawing::new(description, told);
    let placed = place(&drawing);
    let right = placed.iter().map(|p| p.x + p.width).max().unwrap_or_default() + MARGIN;
    let bottom = placed.iter().map(|p| p.y + BOX_HEIGHT).max().unwrap_or_default() + MARGIN;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {right} {bottom}\" width=\"{right}\" height=\"{bottom}\" \
         font-family=\"sans-serif\" text-anchor=\"middle\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for &(from, to) in &drawing.edges {
        let (Some(from), Some(to)) = (placed.get(from), placed.get(to)) else { continue };
        let (x0, y0, x1, y1) = (from.x + from.width / 2, from.y + BOX_HEIGHT, to.x + to.width / 2, to.y);
        let bend = LEVEL_HEIGHT / 2;
        let _ = writeln!(
            text,
            "<path d=\"M{x0} {y0} C{x0} {} {x1} {} {x1} {y1}\" fill=\"none\" stroke=\"#777\"/>",
            y0 + bend,
            y1.saturating_sub(bend)
        );
    }
    for (node, place) in drawing.nodes.iter().zip(&placed) {
        let (x, y, middle) = (place.x, place.y, place.x + place.width / 2);
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{BOX_HEIGHT}\" rx=\"4\" fill=\"{}\" stroke=\"#777\"/>\
             <text x=\"{middle}\" y=\"{}\" font-size=\"13\">{}</text>\
             <text x=\"{middle}\" y=\"{}\" font-size=\"10\" fill=\"#555\">{}</text>",
            place.width,
            node.colour,
            y + 17,
            escaped(&node.name),
            y + 31,
            escaped(&node.note)
        );
    }
    text + "</svg>\n"
}

/// Boxes of a level stand in the order of those above them that they read, each level in the middle.
fn place(drawing: &Drawing) -> Vec<Placed> {
    let above = drawing.above();
    let levels = drawing.levels(&above);
    let width = |node: &Node| {
        let longest = clean(&node.name, NAME).chars().count().max(node.note.chars().count());
        longest * CHARACTER + 20
    };
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); levels.iter().max().map_or(0, |max| max + 1)];
    for (node, &level) in levels.iter().enumerate() {
        if let Some(row) = rows.get_mut(level) {
            row.push(node);
        }
    }
    let mut placed: Vec<Placed> =
        drawing.nodes.iter().map(|node| Placed { x: 0, y: 0, width: width(node) }).collect();
    let extent = |row: &[usize], placed: &[Placed]| -> usize {
        row.iter().filter_map(|&node| placed.get(node)).map(|p| p.width + GAP).sum()
    };
    let widest = rows.iter().map(|row| extent(row, &placed)).max().unwrap_or_default();
    for (level, row) in rows.iter_mut().enumerate() {
        row.sort_by_cached_key(|&node| {
            let reads = above.get(node).map(Vec::as_slice).unwrap_or_default();
            let middles: Vec<usize> =
                reads.iter().filter_map(|&from| placed.get(from)).map(|p| p.x + p.width / 2).collect();
            middles.iter().sum::<usize>().checked_div(middles.len()).unwrap_or(usize::MAX)
        });
        let mut x = MARGIN + (widest - extent(row, &placed)) / 2;
        for &node in row.iter() {
            if let Some(place) = placed.get_mut(node) {
                (place.x, place.y) = (x, MARGIN + level * LEVEL_HEIGHT);
                x += place.width + GAP;
            }
        }
    }
    placed
}

fn escaped(text: &str) -> String {
    clean(text, NAME).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
