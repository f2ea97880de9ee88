//! What most samples of a batch are, the batch is; others fail alone. So one client's odd sample does not fail those of
//! others.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;

use crate::error::Error;
use crate::operator::Inputs;
use crate::tensor::Shape;

/// The most frequent value; of several, the one that comes first.
pub(crate) fn most<T: Copy + Eq + Hash>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: HashMap<T, (usize, Reverse<usize>)> = HashMap::new();
    for (place, value) in values.enumerate() {
        counts.entry(value).or_insert((0, Reverse(place))).0 += 1;
    }
    counts.into_iter().max_by_key(|(_, rank)| *rank).map(|(value, _)| value)
}

/// The shapes of a batch, all of one rank; those of failed samples have no elements.
pub(crate) fn of_one_rank(inputs: &Inputs<'_>, shapes: Vec<Option<Shape>>) -> Vec<Shape> {
    let ndim = most(shapes.iter().flatten().map(|shape| shape.len())).unwrap_or(0);
    let of_rank = |(i, shape): (usize, Option<Shape>)| match shape {
        Some(shape) if shape.len() == ndim => shape,
        other => {
            if let Some(shape) = other {
                let text = format!("shape {shape} does not have {ndim} dimensions as others of the batch");
                inputs.fail(i, Error::invalid(text));
            }
            Shape::new(vec![0; ndim])
        }
    };
    shapes.into_iter().enumerate().map(of_rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Failures;

    #[test]
    fn the_most_frequent_wins_and_the_first_of_equals() {
        assert_eq!(most([3, 1, 2, 2, 1].into_iter()), Some(1));
        assert_eq!(most([3, 2, 2].into_iter()), Some(2));
        assert_eq!(most(std::iter::empty::<u8>()), None);
    }

    #[test]
    fn an_odd_sample_that_comes_first_fails_alone() {
        let failures = Failures::none(4);
        let name = "op".into();
        let inputs = Inputs::new(&name, &[], &[], &failures);
        let shapes = vec![Some(Shape::from([5])), Some(Shape::from([2, 3])), None, Some(Shape::from([1, 1]))];
        let shapes = of_one_rank(&inputs, shapes);
        assert_eq!(shapes, [[0, 0], [2, 3], [0, 0], [1, 1]].map(Shape::from));
        assert_eq!([0, 1, 2, 3].map(|i| failures.get(i).is_some()), [true, false, false, false]);
    }
}
