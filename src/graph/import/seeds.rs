//! Seeds for operators with random numbers, from the pipeline's. How operators use them, it must not know.

use std::collections::{BTreeMap, HashMap};

use crate::cpu::random::operator_seeds;
use crate::graph::proto::PipelineDef;
use crate::operator::SEED;
use crate::operator::args::Value;

/// Seeds for the operators of a pipeline that has one: by their order in the file, one for each that can be seeded and
/// is not.
pub(super) struct Seeds {
    all: Vec<u32>,
    given: usize,
    /// Operators with the same logical number share a seed.
    shared: HashMap<i32, u32>,
}

impl Seeds {
    /// `None` for a pipeline without a seed, whose operators seed themselves.
    pub(super) fn new(def: &PipelineDef) -> Option<Self> {
        let seed = def.seed.filter(|&seed| seed >= 0)?;
        Some(Self { all: operator_seeds(seed), given: 0, shared: HashMap::new() })
    }

    /// The seed of the next operator.
    fn next(&mut self, logical_id: Option<i32>) -> u32 {
        let seed = self.all.get(self.given % self.all.len()).copied().unwrap_or_default();
        self.given += 1;
        match logical_id.filter(|&id| id >= 0) {
            Some(id) => *self.shared.entry(id).or_insert(seed),
            None => seed,
        }
    }
}

/// Gives an operator its seed, if it takes one and has none; takes one away that old versions write for every operator.
pub(super) fn give(
    seeds: &mut Option<Seeds>,
    is_random: bool,
    logical_id: Option<i32>,
    values: &mut BTreeMap<String, Value>,
) {
    if !is_random {
        values.remove(SEED);
    } else if let (Some(seeds), false) = (seeds, values.contains_key(SEED)) {
        values.insert(SEED.to_owned(), Value::Ints(vec![i64::from(seeds.next(logical_id))]));
    }
}
