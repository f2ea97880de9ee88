//! What the crate `rusty_h265` keeps to make pictures from, and what it makes up in place of missing ones (ITU-T H.265,
//! 8.3.2 and 8.3.3). It must not know how pictures are decoded.

use rusty_h265::Error as Cause;
use rusty_h265::bits::BitReader;
use rusty_h265::decoder::{DpbEntry, RefMark};
use rusty_h265::nal::{NalHeader, NalType};
use rusty_h265::pic::Motion;
use rusty_h265::ps::{Pps, Sps, parse_pps, parse_sps};
use rusty_h265::slice::{SliceHeader, parse_slice_header};

use super::decoder::{check_size, damaged};
use super::nal;
use crate::error::{Error, Result};

/// The crate's error in our words.
pub(super) fn error(error: Cause) -> Error {
    match error {
        Cause::Unsupported(what) => Error::unsupported(format!("H.265: {what}")),
        other => damaged(other),
    }
}

/// Pictures that one may be made from.
const MOST_REFERENCES: usize = 16;
/// Pictures that are passed over behind one that all numbers begin anew with.
const MOST_PASSED: usize = 4_096;
/// Bytes at the front of a slice that its header lies in.
const HEADER: usize = 8_192;
/// Pictures that decoders keep of a stream of the largest size that its level has.
const USUAL: usize = 6;
/// Bytes that are known of each block of 4 x 4 samples in the picture at work.
const BLOCK: usize = 7 + 4 + 4 + 2 + size_of::<Motion>();

/// How large pictures are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Columns and rows that are shown.
    pub(super) size: [usize; 2],
    /// Those that are decoded.
    pub(super) coded: [usize; 2],
    /// Pictures that are kept.
    pub(super) kept: usize,
}

impl Shape {
    fn of(sps: &Sps) -> Result<Self> {
        let coded = check_size([sps.width as usize, sps.height as usize])?;
        let (width, height) = sps.output_size();
        let highest = sps.ordering.get(usize::from(sps.max_sub_layers_minus1));
        let kept = highest.map_or(0, |highest| highest.max_dec_pic_buffering_minus1 as usize + 1);
        Ok(Self { size: [width as usize, height as usize], coded, kept: kept.max(USUAL) })
    }

    /// Bytes of the samples of a picture.
    pub(super) fn bytes(&self) -> usize {
        let [width, height] = self.coded;
        2 * (width * height + 2 * width.div_ceil(2) * height.div_ceil(2))
    }

    /// Bytes of so many pictures, and of what is known of the one at work.
    pub(super) fn held(&self, pictures: usize) -> usize {
        let [width, height] = self.coded;
        let motion = width.div_ceil(16) * height.div_ceil(16) * size_of::<Motion>();
        let work = width.div_ceil(4) * height.div_ceil(4) * BLOCK + 2 * width * height;
        pictures * (self.bytes() + motion) + work
    }
}

/// A picture that begins.
pub(super) struct Begun {
    pub(super) shape: Shape,
    /// Pictures that are made up before it.
    pub(super) missing: usize,
}

/// Parameters, and how pictures are counted.
#[derive(Default)]
pub(super) struct Kept {
    sequences: Vec<Option<(Sps, Shape)>>,
    pictures: Vec<Option<Pps>>,
    /// The number of the last picture that others count from.
    before: i32,
    /// The numbers of pictures that were passed over, since the last one that all numbers begin anew with.
    passed: Vec<i32>,
}

/// Puts `value` where `number` says.
fn put<T>(values: &mut Vec<Option<T>>, number: usize, value: T) {
    if values.len() <= number {
        values.resize_with(number + 1, || None);
    }
    if let Some(place) = values.get_mut(number) {
        *place = Some(value);
    }
}

/// The parameters of a sequence in a unit that holds some.
pub(super) fn sequence(unit: &[u8]) -> Result<(Sps, Shape)> {
    let sps = parse_sps(&nal::unescape(unit, 2)).map_err(error)?;
    let shape = Shape::of(&sps)?;
    Ok((sps, shape))
}

impl Kept {
    /// Takes in the parameters of a sequence.
    pub(super) fn sequence(&mut self, sps: Sps, shape: Shape) {
        put(&mut self.sequences, usize::from(sps.id), (sps, shape));
    }

    /// Takes in the parameters of pictures, and gives their number.
    ///
    /// # Errors
    /// Damaged ones.
    pub(super) fn pictures(&mut self, unit: &[u8]) -> Result<u8> {
        let pps = parse_pps(&nal::unescape(unit, 2)).map_err(error)?;
        let number = pps.id;
        put(&mut self.pictures, usize::from(number), pps);
        Ok(number)
    }

    /// Looks at the first slice of a picture, which the crate decodes next beside `kept`; `None` where that cannot.
    ///
    /// # Errors
    /// More pictures that it is made from than there may be.
    pub(super) fn begin(
        &mut self,
        head: &NalHeader,
        unit: &[u8],
        kept: &[DpbEntry],
    ) -> Result<Option<Begun>> {
        let Some((slice, shape, span)) = self.slice(head, unit) else { return Ok(None) };
        let references = slice.st_rps.num_delta_pocs() + slice.long_term.len();
        if references > MOST_REFERENCES {
            return Err(damaged(format!(
                "a picture of H.265 is made from {references} others, expected at most {MOST_REFERENCES}"
            )));
        }
        let kind = head.nal_type;
        let number = self.number(kind, &slice, span);
        if head.temporal_id == 0 && !kind.is_rasl() && !kind.is_radl() && !kind.is_sub_layer_non_ref() {
            self.before = number;
        }
        if kind.is_idr() {
            self.passed.clear();
            return Ok(Some(Begun { shape, missing: 0 }));
        }
        let short = slice.st_rps.neg.iter().chain(&slice.st_rps.pos).filter(|(_, used)| *used);
        let is_there = |by: i32| {
            let number = number.wrapping_add(by);
            kept.iter().any(|entry| entry.mark == RefMark::ShortTerm && entry.poc == number)
        };
        let is_passed = |by: i32| self.passed.contains(&number.wrapping_add(by)) && !is_there(by);
        if short.clone().any(|(by, _)| is_passed(*by))
            || !self.passed.is_empty() && !slice.long_term.is_empty()
        {
            return Err(damaged("H.265: a picture is made from one of which none should be"));
        }
        // Where those for long are is not looked up.
        let missing = short.filter(|(by, _)| !is_there(*by)).count() + slice.long_term.len();
        Ok(Some(Begun { shape, missing }))
    }

    /// The number of a picture.
    fn number(&self, kind: NalType, slice: &SliceHeader, span: i32) -> i32 {
        let low = slice.poc_lsb as i32;
        match kind {
            NalType::BlaWLp | NalType::BlaWRadl | NalType::BlaNLp => low,
            _ if kind.is_idr() => 0,
            _ => {
                let (low_before, high) = (self.before & (span - 1), self.before & !(span - 1));
                match low - low_before {
                    back if back <= -span / 2 => high.wrapping_add(span).wrapping_add(low),
                    ahead if ahead > span / 2 => high.wrapping_sub(span).wrapping_add(low),
                    _ => high.wrapping_add(low),
                }
            }
        }
    }

    /// Whether the picture of a slice, its first, can be passed over: of those that are marked so, pictures of higher
    /// layers of time may be made.
    pub(super) fn passes_over(&mut self, head: &NalHeader, unit: &[u8]) -> bool {
        let Some((slice, _, span)) = self.slice(head, unit) else { return false };
        let sequence = |pps: &Pps| self.sequences.get(usize::from(pps.sps_id))?.as_ref();
        let pps = self.pictures.get(usize::from(slice.pps_id)).and_then(Option::as_ref);
        let highest = pps.and_then(sequence).map(|(sps, _)| sps.max_sub_layers_minus1);
        let is_spare = highest.is_some_and(|highest| head.temporal_id >= highest);
        if is_spare && self.passed.len() < MOST_PASSED {
            self.passed.push(self.number(head.nal_type, &slice, span));
            return true;
        }
        false
    }

    /// The header of a slice, how large its picture is, and from where on numbers of pictures begin anew.
    fn slice(&self, head: &NalHeader, unit: &[u8]) -> Option<(SliceHeader, Shape, i32)> {
        let sequence = |pps: &Pps| self.sequences.get(usize::from(pps.sps_id))?.as_ref();
        let lookup = |number: u8| {
            let pps = self.pictures.get(usize::from(number))?.as_ref()?;
            Some((&sequence(pps)?.0, pps))
        };
        let bytes = nal::unescape(unit.get(..HEADER).unwrap_or(unit), 2);
        let slice = parse_slice_header(&mut BitReader::new(&bytes), head, &lookup, None).ok()?;
        let pps = self.pictures.get(usize::from(slice.pps_id))?.as_ref()?;
        let (sps, shape) = sequence(pps)?;
        Some((slice, *shape, 1_i32 << sps.log2_max_poc_lsb.min(16)))
    }

    /// How large the picture of a slice is.
    pub(super) fn shape(&self, head: &NalHeader, unit: &[u8]) -> Option<Shape> {
        self.slice(head, unit).map(|(_, shape, _)| shape)
    }
}
