//! Which pictures the crate `rust_h264` keeps to make others from (ITU-T H.264, 8.2.5), and the memory that they take.
//! The crate does not say so, and keeps any number where a stream does not follow the rules, so its steps are followed
//! here, one by one. It must not know how pictures are decoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use rust_h264::nal::{NalUnit, NalUnitType};
use rust_h264::pps::{Pps, parse_pps};
use rust_h264::slice::{SliceHeader, parse_slice_header};
use rust_h264::sps::{Sps, parse_sps};

use super::decoder::{check_size, damaged};
use crate::error::Result;

/// Frames that a stream may have others made from.
const MOST_REFERENCES: usize = 16;
/// Entries of a list of references: fields count by themselves.
const MOST_LISTED: u32 = 32;
/// Numbers of parameters are below these.
const SEQUENCES: u32 = 32;
const PICTURES: u32 = 256;
/// Bytes of a unit of parameters. Those with all tables that there are have some hundreds.
const MOST_PARAMETERS: usize = 8_192;
/// Bytes at the front of a slice that its header lies in.
const HEADER: usize = 8_192;

/// Bytes for each macroblock: samples of luma and chroma with 8 bits; what is known of the motion in a picture that
/// others are made from; what is known of one that is at work.
const SAMPLES: usize = 384;
const MOTION: usize = 16 * 18;
const WORK: usize = 880;

/// How large pictures are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Columns and rows that are shown.
    pub(super) size: [usize; 2],
    pub(super) macroblocks: usize,
    /// Bytes of the samples of a macroblock.
    samples: usize,
    /// Whether fields of a frame may be kept beside it.
    pub(super) has_fields: bool,
    /// Columns and rows as they are decoded.
    pub(super) coded: [usize; 2],
    /// Whether numbers of pictures may be left out.
    pub(super) has_gaps: bool,
    /// Frames that others are made from.
    pub(super) references: usize,
}

impl Shape {
    fn of(sps: &Sps) -> Result<Self> {
        let side = |minus_one: u32| (minus_one as usize).saturating_add(1).saturating_mul(16);
        let fields = if sps.frame_mbs_only_flag { 1 } else { 2 };
        let (width, rows) = (side(sps.pic_width_in_mbs_minus1), side(sps.pic_height_in_map_units_minus1));
        let [width, height] = check_size([width, rows.saturating_mul(fields)])?;
        let macroblocks = width / 16 * (height / 16);
        let chroma = if sps.chroma_format_idc == 2 { SAMPLES / 3 } else { 0 };
        let depth = if sps.bit_depth_luma_minus8 == 0 { 1 } else { 2 };
        let usual = usual_references(sps.level_idc, macroblocks);
        Ok(Self {
            size: [sps.width() as usize, sps.height() as usize],
            macroblocks,
            samples: (SAMPLES + chroma) * depth,
            has_fields: fields == 2,
            coded: [width, height],
            has_gaps: sps.gaps_in_frame_num_value_allowed_flag,
            references: usual.max(sps.max_num_ref_frames as usize),
        })
    }

    /// Bytes of the samples of a picture.
    pub(super) fn bytes(&self) -> usize {
        self.macroblocks * self.samples
    }

    /// Bytes of so many pictures that others are made from, the one at work, and `ready` that were not taken yet.
    pub(super) fn held(&self, references: usize, ready: usize) -> usize {
        let views = if self.has_fields { 2 } else { 1 };
        let kept = self.bytes() + self.macroblocks * MOTION;
        // When a slice follows another, the picture is kept as it was before.
        let work = 2 * (self.bytes() + self.macroblocks * WORK);
        references * kept * views + work + ready * self.bytes()
    }
}

/// Frames that a stream of a level may keep (table A-1).
fn usual_references(level: u8, macroblocks: usize) -> usize {
    let most: usize = match level {
        0..=10 => 396,
        11 => 900,
        12..=20 => 2_376,
        21 => 4_752,
        22..=30 => 8_100,
        31 => 18_000,
        32 => 20_480,
        33..=41 => 32_768,
        42 => 34_816,
        43..=50 => 110_400,
        51..=52 => 184_320,
        _ => 696_320,
    };
    (most / macroblocks.max(1)).clamp(1, MOST_REFERENCES)
}

/// A picture that is kept.
struct Reference {
    number: u32,
    /// Which field, if it is one: the bottom one?
    field: Option<bool>,
    /// By which number for long.
    long: Option<u32>,
}

impl Reference {
    /// Whether it is the other field of a frame of which `field` with `number` is one.
    fn is_other_field(&self, number: u32, field: Option<bool>) -> bool {
        let differ = matches!((self.field, field), (Some(a), Some(b)) if a != b);
        differ && self.number == number
    }
}

/// A slice that was looked at.
pub(super) struct Slice {
    pub(super) shape: Shape,
    /// Whether a picture begins.
    pub(super) begins: bool,
    work: Work,
}

/// A picture at work.
struct Work {
    header: SliceHeader,
    is_key: bool,
    is_reference: bool,
    /// Numbers of pictures are below it.
    numbers: u32,
}

impl Work {
    /// Whether a slice says the same of its picture, as it must: the crate believes the last one.
    fn agrees(&self, other: &Self) -> bool {
        let marks = |work: &Self| (work.is_key, work.is_reference, work.numbers);
        let numbers =
            |header: &SliceHeader| (header.frame_num, header.field_pic_flag, header.bottom_field_flag);
        let (a, b) = (&self.header, &other.header);
        marks(self) == marks(other)
            && numbers(a) == numbers(b)
            && a.adaptive_ref_pic_marking == b.adaptive_ref_pic_marking
            && a.long_term_reference_flag == b.long_term_reference_flag
            && a.mmco_ops == b.mmco_ops
    }
}

/// What the crate keeps.
#[derive(Default)]
pub(super) struct Kept {
    sequences: BTreeMap<u32, (Arc<Sps>, Shape)>,
    pictures: BTreeMap<u32, Pps>,
    /// Frames that may be kept, by the parameters that came last.
    most: usize,
    references: Vec<Reference>,
    work: Option<Work>,
    /// The number of the last picture that others may be made from.
    before: Option<u32>,
}

impl Kept {
    /// How many frames are kept. Two fields are as large as one; by itself a field may keep the other one, that was
    /// given up.
    pub(super) fn references(&self) -> usize {
        let fields = |kept: &Reference| if kept.field.is_some() && self.is_paired(kept) { 1 } else { 2 };
        self.references.iter().map(fields).sum::<usize>().div_ceil(2)
    }

    /// Whether the other field is kept, too.
    fn is_paired(&self, one: &Reference) -> bool {
        let is_other = |other: &Reference| other.is_other_field(one.number, one.field);
        self.references.iter().any(|other| other.long == one.long && is_other(other))
    }

    /// Takes in parameters, which the crate takes next. Returns how large pictures are, if they say so.
    ///
    /// # Errors
    /// Damaged ones; ones that it would keep too many pictures for, or too many of themselves.
    pub(super) fn parameters(&mut self, unit: &NalUnit<'_>) -> Result<Option<Shape>> {
        let below = |number: u32, limit: u32, what: &str| match number {
            number if number < limit => Ok(()),
            number => {
                Err(damaged(format!("H.264: the number {what} is {number}, expected less than {limit}")))
            }
        };
        if unit.rbsp.len() > MOST_PARAMETERS {
            return Err(damaged(format!(
                "H.264: parameters of {} bytes, expected at most {MOST_PARAMETERS}",
                unit.rbsp.len()
            )));
        }
        match unit.nal_unit_type {
            NalUnitType::Sps => {
                let sps = parse_sps(&unit.rbsp).map_err(damaged)?;
                below(sps.seq_parameter_set_id, SEQUENCES, "of parameters of a sequence")?;
                below(sps.max_num_ref_frames, MOST_REFERENCES as u32 + 1, "of reference frames")?;
                let shape = Shape::of(&sps)?;
                self.most = sps.max_num_ref_frames as usize;
                self.sequences.insert(sps.seq_parameter_set_id, (Arc::new(sps), shape));
                Ok(Some(shape))
            }
            NalUnitType::Pps => {
                let of = parse_number(&unit.rbsp, 1).and_then(|of| self.sequences.get(&of));
                let pps = parse_pps(&unit.rbsp, of.map(|(sps, _)| &**sps)).map_err(damaged)?;
                below(pps.pic_parameter_set_id, PICTURES, "of parameters of pictures")?;
                self.pictures.insert(pps.pic_parameter_set_id, pps);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Looks at a slice; `None` for one that does not belong to the picture at work and begins none, which is left out.
    ///
    /// # Errors
    /// A picture that begins with a damaged header; too long lists of references.
    pub(super) fn look(&self, unit: &NalUnit<'_>) -> Result<Option<Slice>> {
        let begins = self.work.is_none() || parse_number(&unit.rbsp, 0).is_none_or(|first| first == 0);
        let (header, shape, numbers) = match self.header(unit) {
            Ok(found) => found,
            Err(error) if begins => return Err(error),
            Err(_) => return Ok(None),
        };
        let listed = header.num_ref_idx_l0_active.max(header.num_ref_idx_l1_active);
        if listed > MOST_LISTED {
            return Err(damaged(format!(
                "H.264: a list of {listed} references, expected at most {MOST_LISTED}"
            )));
        }
        let is_key = unit.nal_unit_type == NalUnitType::SliceIdr;
        let work = Work { header, is_key, is_reference: unit.nal_ref_idc > 0, numbers };
        let belongs = begins || self.work.as_ref().is_some_and(|at_work| at_work.agrees(&work));
        Ok(belongs.then_some(Slice { shape, begins, work }))
    }

    /// Follows the crate when it takes a slice next that begins a picture. Returns how many pictures it copies in place
    /// of missing ones.
    ///
    /// # Errors
    /// When it keeps more than it may.
    pub(super) fn begin(&mut self, slice: Slice) -> Result<usize> {
        self.finish()?;
        let Work { header, is_key, numbers, .. } = &slice.work;
        let copies = if *is_key { 0 } else { self.fill(header.frame_num, *numbers) };
        self.work = Some(slice.work);
        self.check()?;
        Ok(copies)
    }

    fn check(&self) -> Result<()> {
        if self.references() > MOST_REFERENCES {
            return Err(damaged(format!(
                "H.264: pictures are made from more than {MOST_REFERENCES} frames, which none of them gives up"
            )));
        }
        Ok(())
    }

    fn header(&self, unit: &NalUnit<'_>) -> Result<(SliceHeader, Shape, u32)> {
        let missing = || damaged("H.264: a picture without its parameters");
        let number = parse_number(&unit.rbsp, 2).ok_or_else(missing)?;
        let pps = self.pictures.get(&number).ok_or_else(missing)?;
        let (sps, shape) = self.sequences.get(&pps.seq_parameter_set_id).ok_or_else(missing)?;
        let head = unit.rbsp.get(..HEADER).unwrap_or(&unit.rbsp);
        let parsed = parse_slice_header(head, sps, pps, unit.nal_unit_type, unit.nal_ref_idc);
        let (header, _) = parsed.map_err(damaged)?;
        let numbers = 1_u32 << (sps.log2_max_frame_num_minus4.saturating_add(4)).min(31);
        Ok((header, *shape, numbers))
    }

    /// The picture at work is done.
    ///
    /// # Errors
    /// When more are kept than may be.
    pub(super) fn finish(&mut self) -> Result<()> {
        let Some(Work { header, is_key, is_reference, numbers }) = self.work.take() else { return Ok(()) };
        if is_key {
            self.references.clear();
        }
        let field = header.field_pic_flag.then_some(header.bottom_field_flag);
        for &(command, value) in &header.mmco_ops {
            self.obey(command, value, &header, field, numbers);
        }
        if !is_reference {
            return Ok(());
        }
        if !header.adaptive_ref_pic_marking && !is_key {
            self.slide(header.frame_num, field);
        }
        // Behind command 5 numbers begin anew.
        let starts_anew = header.mmco_ops.iter().any(|&(command, _)| command == 5);
        let number = if starts_anew { 0 } else { header.frame_num };
        let long = (is_key && header.long_term_reference_flag).then_some(0);
        self.references.push(Reference { number, field, long });
        self.before = Some(number);
        for &(_, long) in header.mmco_ops.iter().filter(|(command, _)| *command == 6) {
            self.references.retain(|kept| kept.long != Some(long) || kept.is_other_field(number, field));
            let mut latest = self.references.iter_mut().rev();
            if let Some(kept) = latest.find(|kept| kept.long.is_none() && kept.number == number) {
                kept.long = Some(long);
            }
        }
        self.check()
    }

    /// What a command of a picture does to those that are kept (8.2.5.4).
    fn obey(&mut self, command: u32, value: u32, header: &SliceHeader, field: Option<bool>, numbers: u32) {
        // Pictures are named by how far they are back; fields of the same parity by odd numbers.
        let current = match field {
            Some(_) => i64::from(header.frame_num) * 2 + 1,
            None => i64::from(header.frame_num),
        };
        let named = |back: u32| {
            let number = current - (i64::from(back & 0xFFFF) + 1);
            let frame = if field.is_some() { number.div_euclid(2) } else { number };
            (frame.rem_euclid(i64::from(numbers)) as u32, field.map(|bottom| bottom == (number & 1 == 1)))
        };
        let is_named = |kept: &Reference, (number, which): (u32, Option<bool>)| {
            kept.number == number && which.is_none_or(|which| kept.field.is_none_or(|kept| kept == which))
        };
        match command {
            1 => {
                let name = named(value);
                self.references.retain(|kept| kept.long.is_some() || !is_named(kept, name));
            }
            2 => {
                let (long, which) = match field {
                    Some(bottom) => (value / 2, Some(bottom == (value & 1 == 1))),
                    None => (value, None),
                };
                let spares = |kept: Option<bool>| matches!((kept, which), (Some(a), Some(b)) if a != b);
                self.references.retain(|kept| kept.long != Some(long) || spares(kept.field));
            }
            3 => {
                let (name, long) = (named(value), value >> 16);
                let targets = |kept: &Reference| kept.long.is_none() && is_named(kept, name);
                let Some(first) = self.references.iter().find(|kept| targets(kept)) else { return };
                let (number, field) = (first.number, first.field);
                self.references.retain(|kept| kept.long != Some(long) || kept.is_other_field(number, field));
                self.references
                    .iter_mut()
                    .filter(|kept| targets(kept))
                    .for_each(|kept| kept.long = Some(long));
            }
            4 => self.references.retain(|kept| kept.long.is_none_or(|long| long < value)),
            5 => self.references.clear(),
            _ => {}
        }
    }

    /// Lets the oldest frames go (8.2.5.3).
    fn slide(&mut self, number: u32, field: Option<bool>) {
        let completes = |kept: &Reference| kept.long.is_none() && kept.is_other_field(number, field);
        if self.most == 0 || self.references.iter().any(completes) {
            return;
        }
        loop {
            let mut frames: Vec<_> = self
                .references
                .iter()
                .map(|kept| kept.long.map_or((false, kept.number), |long| (true, long)))
                .collect();
            frames.sort_unstable();
            frames.dedup();
            let oldest = self.references.iter().find(|kept| kept.long.is_none()).map(|kept| kept.number);
            let Some(oldest) = oldest.filter(|_| frames.len() >= self.most) else { return };
            self.references.retain(|kept| kept.long.is_some() || kept.number != oldest);
        }
    }

    /// Copies are put in place of pictures whose numbers are left out (8.2.5.2). Returns how many.
    fn fill(&mut self, number: u32, numbers: u32) -> usize {
        let Some(before) = self.before else { return 0 };
        if number >= numbers || number == before || number == (before + 1) % numbers {
            return 0;
        }
        let missing = (number + numbers - before - 1) % numbers;
        let skipped = missing.saturating_sub(self.most.max(1) as u32);
        let mut unused = (before + 1 + skipped) % numbers;
        let mut copies = 0;
        // The copies are of a frame.
        while unused != number && self.has_frame() {
            self.slide(unused, None);
            self.references.push(Reference { number: unused, field: None, long: None });
            copies += 1;
            unused = (unused + 1) % numbers;
        }
        self.before = Some((number + numbers - 1) % numbers);
        copies
    }

    /// Whether a frame is kept, or both of its fields.
    fn has_frame(&self) -> bool {
        self.references.iter().any(|kept| kept.field.is_none() || self.is_paired(kept))
    }
}

/// The number that stands behind `skipped` others at the beginning, each of as many zeros as bits follow the one behind
/// them.
pub(super) fn parse_number(bytes: &[u8], skipped: usize) -> Option<u32> {
    let mut bits = crate::cpu::bytes::Bits::behind(bytes, 0);
    let mut read = || {
        let mut zeros = 0;
        while !bits.flag().ok()? {
            zeros += 1;
        }
        if zeros > 31 {
            return None;
        }
        let rest = if zeros == 0 { 0 } else { bits.read(zeros).ok()? };
        Some(((1_u64 << zeros) - 1 + u64::from(rest)).min(u64::from(u32::MAX)) as u32)
    };
    for _ in 0..skipped {
        read()?;
    }
    read()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_one_after_the_other() {
        // 1, 010, 011, 00100
        let bytes = [0b1010_0110, 0b0100_0000];
        assert_eq!(
            [0, 1, 2, 3].map(|skipped| parse_number(&bytes, skipped)),
            [Some(0), Some(1), Some(2), Some(3)]
        );
        assert_eq!(parse_number(&[0; 4], 0), None);
        assert_eq!(parse_number(&[], 0), None);
    }

    #[test]
    fn a_level_says_how_many_frames_are_kept() {
        assert_eq!(usual_references(40, 8_160), 4);
        assert_eq!(usual_references(51, 1), 16);
        assert_eq!(usual_references(10, 8_160), 1);
    }
}
