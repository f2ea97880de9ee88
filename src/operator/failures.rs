//! Which samples of a batch failed, and why. It must not know what failed.

use std::sync::{Arc, OnceLock};

use crate::error::Error;

/// The first error of every sample of a batch; a sample without one is live.
#[derive(Debug, Default, Clone)]
pub struct Failures {
    slots: Arc<[OnceLock<Error>]>,
    /// For a part of the batch: which samples of the batch are in it.
    members: Option<Arc<[usize]>>,
    /// For frames of sequences: which samples of the batch they are of, as those who wait know them.
    waited_for: Option<Arc<[usize]>>,
    /// Where samples of the batch come from, for messages; empty where an error says it itself.
    origins: Arc<[String]>,
}

impl Failures {
    /// No failure among `len` samples.
    pub fn none(len: usize) -> Self {
        Self::of(len, Vec::new())
    }

    /// No failure among `len` samples, of which number i comes from `origins[i]`: the error of one will begin with it.
    /// There may be fewer.
    pub fn of(len: usize, origins: Vec<String>) -> Self {
        let slots = (0..len).map(|_| OnceLock::new()).collect();
        Self { slots, members: None, waited_for: None, origins: origins.into() }
    }

    /// The failures of those samples that `samples` names, in that order: a failure of one of them is one of the whole.
    #[must_use]
    pub fn part(&self, samples: &[usize]) -> Self {
        let members = samples.iter().filter_map(|&i| self.member(i)).collect();
        Self { members: Some(members), ..self.clone() }
    }

    /// The failures of the whole batch, of which these may be a part.
    #[must_use]
    pub fn whole(&self) -> Self {
        Self { members: None, ..self.clone() }
    }

    /// No failure among frames, of which each is one of the sample that `samples` has for it.
    #[must_use]
    pub fn of_frames(&self, samples: impl Iterator<Item = usize>) -> Self {
        let waited_for: Arc<[usize]> = samples.map(|i| self.waited_for(i).unwrap_or(usize::MAX)).collect();
        Self { waited_for: Some(Arc::clone(&waited_for)), ..Self::none(waited_for.len()) }
    }

    /// Which sample of the whole batch they wait for who wait for sample `i`.
    pub fn waited_for(&self, i: usize) -> Option<usize> {
        let i = self.member(i)?;
        self.waited_for.as_ref().map_or(Some(i), |samples| samples.get(i).copied())
    }

    /// Which sample of the whole batch sample `i` is, if there is one.
    pub fn member(&self, i: usize) -> Option<usize> {
        self.members.as_ref().map_or(Some(i), |members| members.get(i).copied())
    }

    fn slot(&self, i: usize) -> Option<&OnceLock<Error>> {
        self.slots.get(self.member(i)?)
    }

    /// Marks sample `i` as failed; the first error stays.
    pub fn fail(&self, i: usize, error: Error) {
        if let Some(slot) = self.slot(i).filter(|slot| slot.get().is_none()) {
            let origin = self.member(i).and_then(|i| self.origins.get(i)).filter(|origin| !origin.is_empty());
            let _ = slot.set(match origin {
                Some(origin) => error.context(origin.clone()),
                None => error,
            });
        }
    }

    /// The error of sample `i`, if it failed.
    pub fn get(&self, i: usize) -> Option<&Error> {
        self.slot(i).and_then(OnceLock::get)
    }

    /// Whether every sample failed: nothing is left to do.
    pub fn all_failed(&self) -> bool {
        !self.is_empty() && !self.any_live()
    }

    /// Whether a sample is left to work on.
    pub fn any_live(&self) -> bool {
        (0..self.len()).any(|i| self.get(i).is_none())
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.members.as_ref().map_or(self.slots.len(), |members| members.len())
    }

    /// Whether the batch has no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_where_samples_come_from() {
        let failures = Failures::of(4, vec!["file a".to_owned(), String::new(), "file c".to_owned()]);
        let part = failures.part(&[2, 3]);
        [0, 1].into_iter().for_each(|i| part.fail(i, Error::invalid("damaged")));
        [1, 2].into_iter().for_each(|i| failures.fail(i, Error::invalid("late")));
        let texts: Vec<Option<String>> = (0..4).map(|i| failures.get(i).map(ToString::to_string)).collect();
        let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
        assert_eq!(texts, [None, Some("late"), Some("file c: damaged"), Some("damaged")]);
    }
}
