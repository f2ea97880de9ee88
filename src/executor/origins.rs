//! Where samples come from, handed on from the inputs of an operator to its outputs, by DALI's rules: an operator that
//! mixes samples says it itself, and where several inputs come from different places nothing is known.

use std::sync::Arc;

use crate::operator::{Inputs, Operator};
use crate::tensor::{Batch, Origins};

/// Gives what an operator `made` of inputs the origins of these; `operator` is none for a copy.
pub(super) fn hand_on(
    operator: Option<&dyn Operator>,
    inputs: &Inputs<'_>,
    regular: &[&Batch<'_>],
    made: &mut [Batch<'_>],
) {
    let knows = |input: &&Batch<'_>| input.origins().is_some();
    if !regular.is_empty() && !regular.iter().any(knows) {
        return;
    }
    if let Some(operator) = operator.filter(|operator| operator.is_view()) {
        for (output, batch) in made.iter_mut().enumerate() {
            let origin = |i: usize| {
                let (input, source) = operator.source(output, i);
                regular.get(input).map_or("", |batch| batch.origin(source))
            };
            let all = (0..batch.len()).map(|i| origin(i).into()).collect();
            batch.come_from(Some(all));
        }
        return;
    }
    let common = common(regular);
    for (output, batch) in made.iter_mut().enumerate() {
        let own = operator.and_then(|operator| operator.origins(inputs, output));
        batch.come_from(own.or_else(|| common.clone()));
    }
}

/// The origins that inputs have in common; `None` where two of one sample differ, or inputs have other numbers of
/// samples.
fn common(regular: &[&Batch<'_>]) -> Option<Origins> {
    let (first, rest) = regular.split_first()?;
    if rest.iter().any(|input| input.len() != first.len()) {
        return None;
    }
    let mut origins: Vec<Arc<str>> = Vec::with_capacity(first.len());
    for i in 0..first.len() {
        let mut known = regular.iter().map(|input| input.origin(i)).filter(|origin| !origin.is_empty());
        let origin = known.next().unwrap_or_default();
        if known.any(|other| other != origin) {
            return None;
        }
        origins.push(origin.into());
    }
    Some(origins.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{BatchDesc, DType, Layout, Sample, Shape};

    fn batch(origins: &[&str]) -> Batch<'static> {
        let desc = BatchDesc::new(DType::U8, Layout::NONE, vec![Shape::from([0]); origins.len()]);
        let origins = origins.iter().map(|&origin| origin.into()).collect();
        Batch::new(desc, vec![Sample::Missing; 2]).unwrap().coming_from(Some(origins))
    }

    #[test]
    fn inputs_from_one_place_say_it_and_others_nothing() {
        let [files, unknown, others] = [["a", "b"], ["", "b"], ["a", "c"]].map(|names| batch(&names));
        let of = |inputs: &[&Batch<'_>]| -> Option<Vec<String>> {
            common(inputs).map(|all| all.iter().map(ToString::to_string).collect())
        };
        assert_eq!(of(&[&files, &unknown]), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(of(&[&unknown]), Some(vec![String::new(), "b".to_owned()]));
        assert_eq!(of(&[&files, &others]), None);
    }
}
