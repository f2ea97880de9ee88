//! Decoders of H.265 between two videos. One that takes another over decodes as if it were new: it begins with a key
//! picture, and its own parameters replace all that the other one knew. It must not know how pictures are decoded.

use std::collections::BTreeMap;

use rusty_h265::Stats;
use rusty_h265::nal::{NalHeader, NalType};

use super::h265_kept::{Shape, error};
use crate::error::Result;

/// Bytes of units of parameters that are kept until the first picture. Usual ones are of a hundred.
const MOST_BYTES: usize = 16 << 10;

/// Bytes of a decoder beside its pictures and parameters.
const DECODER: usize = 8 << 10;

/// Bytes of the parameters of one name, once they are read, at most: 64 sets of 16 references.
const PARAMETERS: usize = 24 << 10;

/// What parameters are of, with their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    Sequence(u8),
    Pictures(u8),
}

/// Parameters that a decoder knows, with their units up to the first picture.
#[derive(Default)]
pub(super) struct Known {
    units: BTreeMap<Name, Vec<u8>>,
    bytes: usize,
}

impl Known {
    /// Notes parameters of which the decoder knows from here on.
    pub(super) fn add(&mut self, name: Name, unit: &[u8]) {
        self.bytes = self.bytes.saturating_add(unit.len());
        let unit = if self.bytes > MOST_BYTES { Vec::new() } else { unit.to_vec() };
        self.units.insert(name, unit);
    }

    fn forget_units(&mut self) {
        self.units.values_mut().for_each(|unit| *unit = Vec::new());
    }
}

/// A decoder without a video.
pub(super) struct Between {
    inner: rusty_h265::Decoder,
    known: Known,
    /// How large the pictures are whose memory it has.
    first: Shape,
    /// How many there are at most.
    pub(super) pictures: usize,
}

/// Whether a decoder may take another one over at this slice, its first: everything that is counted begins anew there.
pub(super) fn begins_anew(head: &NalHeader, is_first: bool) -> bool {
    let kind: NalType = head.nal_type;
    is_first && head.temporal_id == 0 && (kind.is_idr() || kind.is_bla() || kind.is_cra())
}

impl Between {
    /// What `inner` is after all pictures of its video; `None` where it may hold more than `pictures`.
    pub(super) fn of(
        inner: rusty_h265::Decoder,
        mut known: Known,
        first: Shape,
        pictures: usize,
    ) -> Option<Self> {
        // Pictures that are made up are not among those that are counted.
        let is_counted = pictures > 0 && inner.stats.generated_refs == 0 && inner.dpb().is_empty();
        known.forget_units();
        is_counted.then_some(Self { inner, known, first, pictures })
    }

    /// Whether a decoder that knows `known`, of pictures that are as large as `first`, may take it over.
    pub(super) fn fits(&self, known: &Known, first: Shape) -> bool {
        let replaced = |name: &Name| known.units.contains_key(name);
        self.first.coded == first.coded && known.bytes <= MOST_BYTES && self.known.units.keys().all(replaced)
    }

    /// Bytes of its pictures, which count for who takes it over.
    pub(super) fn held(&self) -> usize {
        self.first.held(self.pictures)
    }

    /// All of its bytes, at most. Small pictures take less than what a stream says of them.
    pub(super) fn bytes(&self) -> usize {
        self.held() + DECODER + PARAMETERS * self.known.units.len()
    }

    /// The decoder, which knows `known` and nothing else from here on.
    ///
    /// # Errors
    /// Damaged parameters.
    pub(super) fn begin(mut self, known: &Known) -> Result<rusty_h265::Decoder> {
        self.inner.stats = Stats::default();
        known.units.values().try_for_each(|unit| self.inner.push_nal(unit, None).map_err(error))?;
        Ok(self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Shape = Shape { size: [60, 40], coded: [64, 48], kept: 6 };

    fn known(names: &[Name]) -> Known {
        let mut known = Known::default();
        names.iter().for_each(|&name| known.add(name, &[0; 30]));
        known
    }

    fn between(names: &[Name]) -> Between {
        Between::of(rusty_h265::Decoder::new(), known(names), FIRST, 3).unwrap()
    }

    #[test]
    fn all_that_a_decoder_knew_is_replaced() {
        let [one, other] = [Name::Sequence(0), Name::Pictures(1)];
        assert!(between(&[one]).fits(&known(&[one, other]), FIRST));
        assert!(!between(&[one, other]).fits(&known(&[one]), FIRST));
        assert!(between(&[one]).fits(&known(&[one]), Shape { kept: 9, ..FIRST }));
        assert!(!between(&[one]).fits(&known(&[one]), Shape { coded: [64, 64], ..FIRST }));
        assert!(!between(&[other]).fits(&known(&[Name::Sequence(1)]), FIRST));
    }

    #[test]
    fn units_that_are_too_many_are_not_kept() {
        let name = Name::Pictures(0);
        let mut many = Known::default();
        many.add(name, &[0; MOST_BYTES]);
        assert!(between(&[name]).fits(&many, FIRST));
        many.add(name, &[0]);
        assert!(!between(&[name]).fits(&many, FIRST));
        assert!(many.units.values().all(Vec::is_empty));
    }

    #[test]
    fn parameters_count_where_pictures_are_small() {
        let [one, other] = [Name::Sequence(0), Name::Pictures(1)];
        assert_eq!(between(&[one, other]).bytes() - between(&[one]).bytes(), PARAMETERS);
        assert!(between(&[one]).bytes() > PARAMETERS + between(&[one]).held());
    }

    #[test]
    fn a_decoder_that_had_no_picture_is_not_kept() {
        assert!(Between::of(rusty_h265::Decoder::new(), Known::default(), FIRST, 0).is_none());
    }
}
