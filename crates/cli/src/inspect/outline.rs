//! The operators of a pipeline as a person would tell them: conditionals become choices between alternatives, with what
//! splits, merges and selects left out. It must not know how that is shown.
//!
//! ```text
//! leq > Split > [0] > leq > Split > ...        choice: 3 alternatives, 2 conditions
//!             > [1] > Flip   ... > Merge         Constant, TensorSubscript, Rotate
//!                                                Brightness
//!                                                Flip
//! ```

use std::collections::{BTreeMap, HashMap};

use gesso::pipeline::{Description, OperatorDescription};

const SPLIT: &str = "_conditional__Split";
const MERGE: &str = "_conditional__Merge";

/// Levels of conditionals that are followed; what lies deeper is shown at this level.
const MAX_DEPTH: usize = 64;

/// One thing in a pipeline.
pub(crate) enum Item {
    /// An operator, by its number.
    Operator(usize),
    /// A conditional, or several in one another that choose between alternatives.
    Choice(Choice),
}

/// Alternatives, of which a sample takes one.
#[derive(Default)]
pub(crate) struct Choice {
    /// The edge that the outermost condition is.
    pub(crate) predicate: String,
    /// What each alternative does, in the order of the file.
    pub(crate) alternatives: Vec<Vec<Item>>,
    /// Conditions.
    pub(crate) conditions: usize,
    /// Operators that split, merge and select.
    pub(crate) plumbing: Vec<usize>,
}

impl Choice {
    /// Every operator in it.
    pub(crate) fn operators(&self) -> Vec<usize> {
        let mut all = self.plumbing.clone();
        for item in self.alternatives.iter().flatten() {
            match item {
                Item::Operator(number) => all.push(*number),
                Item::Choice(choice) => all.extend(choice.operators()),
            }
        }
        all
    }
}

/// Where an operator stands: under which conditions, and in which branch of each.
type BranchPath = Vec<(String, usize)>;

/// A conditional as the file has it.
#[derive(Default)]
struct If {
    plumbing: Vec<usize>,
    branches: [Block; 2],
}

#[derive(Default)]
struct Block {
    /// Operators and, by their predicate, conditionals, in the order in which they begin.
    order: Vec<Entry>,
    ifs: HashMap<String, If>,
}

enum Entry {
    Operator(usize),
    If(String),
}

/// The operators of `description`, told.
pub(crate) fn outline(description: &Description) -> Vec<Item> {
    let places = places(&description.operators);
    let mut root = Block::default();
    for (number, (op, place)) in description.operators.iter().zip(&places).enumerate() {
        let predicate = op.argument_inputs.get("predicate");
        match predicate.filter(|_| is_plumbing(op)) {
            Some(predicate) => root.at(place).conditional(predicate).plumbing.push(number),
            None => root.at(place).order.push(Entry::Operator(number)),
        }
    }
    let selects = selecting(&description.operators);
    root.items(&selects)
}

/// Every operator by itself, in the order of the file.
pub(crate) fn flat(description: &Description) -> Vec<Item> {
    (0..description.operators.len()).map(Item::Operator).collect()
}

fn is_plumbing(op: &OperatorDescription) -> bool {
    op.name == SPLIT || op.name == MERGE
}

fn edges(op: &OperatorDescription) -> impl Iterator<Item = &String> {
    op.inputs.iter().chain(op.argument_inputs.values())
}

/// Where each operator stands.
fn places(operators: &[OperatorDescription]) -> Vec<BranchPath> {
    let mut of_edge: HashMap<&str, BranchPath> = HashMap::new();
    let mut places = Vec::with_capacity(operators.len());
    for op in operators {
        let deepest = edges(op).filter_map(|edge| of_edge.get(edge.as_str())).max_by_key(|place| place.len());
        let mut place = deepest.cloned().unwrap_or_default();
        let predicate = op.argument_inputs.get("predicate");
        if let (Some(predicate), MERGE) = (predicate, op.name.as_str()) {
            place = of_edge.get(predicate.as_str()).cloned().unwrap_or_default();
        }
        for (branch, output) in op.outputs.iter().enumerate() {
            let mut after = place.clone();
            if let (Some(predicate), SPLIT, ..MAX_DEPTH) = (predicate, op.name.as_str(), place.len()) {
                after.push((predicate.clone(), branch.min(1)));
            }
            of_edge.insert(output, after);
        }
        places.push(place);
    }
    sink_sources(operators, &mut places);
    places
}

/// Moves what reads nothing, such as constants, to where it is used, behind the splits on its way.
fn sink_sources(operators: &[OperatorDescription], places: &mut [BranchPath]) {
    let mut used: HashMap<&str, BranchPath> = HashMap::new();
    for (op, place) in operators.iter().zip(places.iter_mut()).rev() {
        let uses: Vec<&BranchPath> = op.outputs.iter().filter_map(|edge| used.get(edge.as_str())).collect();
        let meet =
            uses.split_first().map(|(first, rest)| rest.iter().fold((*first).clone(), |a, b| common(&a, b)));
        if op.inputs.is_empty() && op.argument_inputs.is_empty() {
            *place = meet.clone().unwrap_or_default();
        }
        // A split hands on; what it is used for is what comes behind it.
        let place = if op.name == SPLIT { meet.unwrap_or_default() } else { place.clone() };
        for edge in op.inputs.iter().chain(op.argument_inputs.values()) {
            let met = used.get(edge.as_str()).map_or_else(|| place.clone(), |other| common(other, &place));
            used.insert(edge, met);
        }
    }
}

fn common(a: &BranchPath, b: &BranchPath) -> BranchPath {
    a.iter().zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a.clone()).collect()
}

/// Operators that only make conditions.
fn selecting(operators: &[OperatorDescription]) -> Vec<bool> {
    let mut other: HashMap<&str, bool> = HashMap::new();
    for op in operators {
        for edge in &op.inputs {
            other.insert(edge, true);
        }
        for (keyword, edge) in &op.argument_inputs {
            *other.entry(edge).or_default() |= keyword != "predicate";
        }
    }
    let only = |edge: &String| other.get(edge.as_str()) == Some(&false);
    operators.iter().map(|op| !op.outputs.is_empty() && op.outputs.iter().all(only)).collect()
}

impl Block {
    fn at(&mut self, place: &BranchPath) -> &mut Block {
        place.iter().fold(self, |block, (predicate, branch)| {
            let [then, otherwise] = &mut block.conditional(predicate).branches;
            if *branch == 0 { then } else { otherwise }
        })
    }

    fn conditional(&mut self, predicate: &str) -> &mut If {
        if !self.ifs.contains_key(predicate) {
            self.order.push(Entry::If(predicate.to_owned()));
        }
        self.ifs.entry(predicate.to_owned()).or_default()
    }

    fn items(mut self, selects: &[bool]) -> Vec<Item> {
        let order = std::mem::take(&mut self.order);
        let item = |entry| match entry {
            Entry::Operator(number) => Some(Item::Operator(number)),
            Entry::If(predicate) => {
                let conditional = self.ifs.remove(&predicate)?;
                let mut choice = Choice { predicate, ..Choice::default() };
                conditional.flatten(selects, &mut choice);
                choice.plumbing.sort_unstable();
                Some(Item::Choice(choice))
            }
        };
        order.into_iter().filter_map(item).collect()
    }

    /// The only conditional of a block that does nothing but choose further.
    fn only_if(&mut self, selects: &[bool]) -> Option<(If, Vec<usize>)> {
        let mut selecting = Vec::new();
        for entry in &self.order {
            match entry {
                Entry::Operator(number) if selects.get(*number) == Some(&true) => selecting.push(*number),
                Entry::Operator(_) => return None,
                Entry::If(_) => {}
            }
        }
        if self.ifs.len() != 1 {
            return None;
        }
        let inner = self.ifs.drain().next().map(|(_, inner)| inner)?;
        Some((inner, selecting))
    }
}

impl If {
    fn flatten(self, selects: &[bool], choice: &mut Choice) {
        choice.conditions += 1;
        choice.plumbing.extend(self.plumbing);
        for mut block in self.branches {
            match block.only_if(selects) {
                Some((inner, selecting)) => {
                    choice.plumbing.extend(selecting);
                    inner.flatten(selects, choice);
                }
                None => choice.alternatives.push(block.items(selects)),
            }
        }
    }
}

/// How often each operator occurs, most often first.
pub(crate) fn counts(description: &Description, of: impl Iterator<Item = usize>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for op in of.filter_map(|number| description.operators.get(number)) {
        *counts.entry(short_name(op)).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// The name as a person writes it: modules with dots, no leading underscore, the function for arithmetic.
pub(crate) fn short_name(op: &OperatorDescription) -> String {
    if op.name.ends_with("ArithmeticGenericOp")
        && let Some(gesso::pipeline::ArgumentValue::Strings(texts)) = op.arguments.get("expression_desc")
        && let Some((function, _)) = texts.first().and_then(|text| text.split_once('('))
    {
        return function.to_owned();
    }
    op.name.trim_start_matches('_').replace("__", ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(name: &str, inputs: &[&str], predicate: Option<&str>, outputs: &[&str]) -> OperatorDescription {
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        OperatorDescription {
            name: name.to_owned(),
            instance: outputs.first().copied().unwrap_or_default().to_owned(),
            device: "cpu".to_owned(),
            inputs: own(inputs),
            argument_inputs: predicate
                .map(|edge| ("predicate".to_owned(), edge.to_owned()))
                .into_iter()
                .collect(),
            outputs: own(outputs),
            arguments: BTreeMap::new(),
            unsupported: None,
            input_devices: Vec::new(),
            output_devices: Vec::new(),
            argument_input_devices: BTreeMap::new(),
            logical_id: None,
            bookkeeping: BTreeMap::new(),
            stored: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    fn description(operators: Vec<OperatorDescription>) -> Description {
        Description {
            format: "",
            max_batch_size: None,
            num_threads: None,
            device_id: None,
            seed: None,
            enable_checkpointing: None,
            executor_type: None,
            executor_flags: None,
            prefetch_queue_depth_cpu: None,
            prefetch_queue_depth_gpu: None,
            bytes_per_sample_hint: None,
            inputs: Vec::new(),
            operators,
            outputs: Vec::new(),
        }
    }

    #[test]
    fn nested_conditionals_become_one_choice() {
        let told = outline(&description(vec![
            op("Less", &["i"], None, &["p"]),
            op(SPLIT, &["x"], Some("p"), &["x0", "x1"]),
            op(SPLIT, &["i"], Some("p"), &["i0", "i1"]),
            op("Less", &["i0"], None, &["q"]),
            op(SPLIT, &["x0"], Some("q"), &["x00", "x01"]),
            op("Constant", &[], None, &["c"]),
            op(SPLIT, &["c"], Some("p"), &["c0", "c1"]),
            op(SPLIT, &["c0"], Some("q"), &["c00", "c01"]),
            op("Rotate", &["x00", "c00"], None, &["r"]),
            op(MERGE, &["r", "x01"], Some("q"), &["m"]),
            op("Flip", &["x1"], None, &["f"]),
            op(MERGE, &["m", "f"], Some("p"), &["out"]),
            op("Cast", &["out"], None, &["y"]),
        ]));
        let [Item::Operator(0), Item::Choice(choice), Item::Operator(12)] = told.as_slice() else {
            panic!("{} items", told.len());
        };
        assert_eq!((choice.conditions, choice.predicate.as_str()), (2, "p"));
        let plain: Vec<Vec<usize>> = choice
            .alternatives
            .iter()
            .map(|items| {
                items.iter().map(|item| if let Item::Operator(n) = item { *n } else { 99 }).collect()
            })
            .collect();
        assert_eq!(plain, [vec![5, 8], vec![], vec![10]]);
        assert_eq!(choice.plumbing, [1, 2, 3, 4, 6, 7, 9, 11]);
        assert_eq!(choice.operators().len(), 11);
    }

    #[test]
    fn every_operator_is_told_once() {
        // A merge without a split, an edge from nowhere, a predicate that is never made.
        let operators = vec![
            op(MERGE, &["a", "b"], Some("p"), &["m"]),
            op(SPLIT, &["m"], Some("q"), &["m0", "m1", "m2"]),
            op("X", &["m2"], None, &["x"]),
            op(SPLIT, &["x"], None, &["y"]),
        ];
        let told = outline(&description(operators));
        let mut seen: Vec<usize> = told
            .iter()
            .flat_map(|item| match item {
                Item::Operator(number) => vec![*number],
                Item::Choice(choice) => choice.operators(),
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3]);
    }
}
