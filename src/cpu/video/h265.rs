//! H.265 (HEVC) by the crate `rusty_h265`: Main, Main 10.

use std::collections::VecDeque;
use std::sync::Arc;

use rusty_h265::Frame;
use rusty_h265::nal::{NalHeader, NalType};

use super::budget::{Budget, Cost};
use super::decoder::{Larger, Picture, VideoDecoder, damaged};
use super::h265_idle::{Between, Known, Name, begins_anew};
use super::h265_kept::{self, Kept, Shape, error};
use super::idle::Idle;
use super::nal::{self, Framing};
use super::track::Codec;
use crate::cpu::yuv::{self, Color, Layout, Matrix, Planes, TakeRow};
use crate::deadline::Watch;
use crate::error::{Error, Result};

/// See [`Cost`].
pub(super) const COST: Cost = Cost { pixel: 4.0, byte: 40.0 };

/// Of a unit, beside its bytes: finding it.
const UNIT: usize = 64;

/// Slices of a picture. Streams of the highest level have 600 (table A.8).
pub(super) const MOST_SLICES: usize = 1_024;

/// Pictures beside those that a stream says are kept: the one at work, one that is taken, and some that are made up.
const BESIDE: usize = 6;

pub(super) struct Decoder {
    inner: rusty_h265::Decoder,
    kept: Kept,
    framing: Framing,
    color: Color,
    /// How large the first pictures are; larger ones are left out.
    first: Shape,
    /// Whether the picture at hand is left out.
    is_left_out: bool,
    /// Slices of the picture at hand.
    slices: usize,
    /// The most pictures that there were at a time: what they take is used again.
    pictures: usize,
    ready: VecDeque<Box<dyn Picture>>,
    known: Known,
    has_begun: bool,
    /// Who keeps `inner` when all pictures have come.
    idle: Option<Arc<Idle>>,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    AtWork,
    Failed,
    Done,
}

struct Decoded {
    frame: Frame,
    color: Color,
}

impl Decoder {
    /// A decoder that has read the container's configuration, of a stream that begins with packet `first`.
    pub(super) fn new(config: &[u8], first: &[u8], budget: &Budget<'_>) -> Result<Self> {
        let (units, framing) = nal::configuration(Codec::H265, config)?;
        let mut decoder = Self {
            inner: rusty_h265::Decoder::new(),
            kept: Kept::default(),
            framing,
            color: Color { matrix: Matrix::BT601, full_range: false },
            first: shape(config, first)?,
            is_left_out: false,
            slices: 0,
            pictures: 0,
            ready: VecDeque::new(),
            known: Known::default(),
            has_begun: false,
            idle: None,
            progress: Progress::AtWork,
        };
        units.into_iter().try_for_each(|unit| decoder.unit(unit, None, budget))?;
        Ok(decoder)
    }

    fn unit(&mut self, unit: &[u8], place: Option<usize>, budget: &Budget<'_>) -> Result<()> {
        budget.look(unit.len() + UNIT)?;
        if unit.len() < 2 {
            return Ok(());
        }
        let head = NalHeader::parse(unit).ok_or_else(|| damaged("H.265: a unit without a header"))?;
        let mut name = None;
        match head.nal_type {
            // Other layers are of no account.
            _ if head.layer_id != 0 => return Ok(()),
            NalType::Sps => {
                let (sps, shape) = h265_kept::sequence(unit)?;
                if let Some(vui) = &sps.vui {
                    let matrix = Matrix::numbered(vui.matrix_coeffs);
                    self.color = Color { matrix, full_range: vui.video_full_range_flag };
                }
                name = Some(Name::Sequence(sps.id));
                self.kept.sequence(sps, shape);
            }
            NalType::Pps => name = Some(Name::Pictures(self.kept.pictures(unit)?)),
            NalType::Vps | NalType::Eos | NalType::Eob => {}
            kind if kind.is_vcl() => {
                if self.leaves_out(&head, unit, place.unwrap_or(usize::MAX)) {
                    return Ok(());
                }
                if !std::mem::replace(&mut self.has_begun, true) && place.is_some() {
                    self.take_over(&head, unit, budget)?;
                }
                self.pay(&head, unit, budget)?;
            }
            // The crate does nothing with others.
            _ => return Ok(()),
        }
        let pushed = self.inner.push_nal(unit, place.map(|place| place as i64)).map_err(error);
        self.collect();
        if let (Some(name), Ok(())) = (name, &pushed) {
            self.known.add(name, unit);
        }
        pushed
    }

    /// Goes on with a decoder that was kept, and the memory of its pictures, where there is one and it may be as large.
    fn take_over(&mut self, head: &NalHeader, unit: &[u8], budget: &Budget<'_>) -> Result<()> {
        let Some(idle) = budget.idle().filter(|_| begins_anew(head, is_first(unit))) else { return Ok(()) };
        self.idle = Some(Arc::clone(idle));
        // One that holds more than this stream may stays for others.
        let most = self.first.kept + BESIDE;
        let fits = |kept: &Between| kept.pictures <= most && kept.fits(&self.known, self.first);
        let found = idle.take(fits);
        if let Some(kept) = found.filter(|kept| budget.hold(kept.held()).is_ok()) {
            self.pictures = kept.pictures;
            self.inner = kept.begin(&self.known)?;
        }
        Ok(())
    }

    /// Whether a slice is one of a picture that takes more memory than the first ones.
    fn leaves_out(&mut self, head: &NalHeader, unit: &[u8], place: usize) -> bool {
        if !is_first(unit) {
            return self.is_left_out;
        }
        self.is_left_out = false;
        let larger = |shape: &Shape| shape.bytes() > self.first.bytes();
        if let Some(shape) = self.kept.shape(head, unit).filter(larger) {
            // Those before it come first.
            self.inner.flush();
            self.collect();
            self.ready.push_back(Box::new(Larger { place, size: shape.size }));
            self.is_left_out = true;
        }
        self.is_left_out
    }

    fn pay(&mut self, head: &NalHeader, unit: &[u8], budget: &Budget<'_>) -> Result<()> {
        if !is_first(unit) {
            self.slices += 1;
            if self.slices > MOST_SLICES {
                return Err(damaged(format!("H.265: a picture of more than {MOST_SLICES} slices")));
            }
            return budget.part(unit.len());
        }
        self.slices = 1;
        let Some(begun) = self.kept.begin(head, unit, self.inner.dpb())? else { return Ok(()) };
        // The one before it is among them next, and then this one.
        self.pictures = self.pictures.max(self.inner.dpb().len() + 2 + begun.missing + self.ready.len());
        budget.hold(self.first.held(self.pictures))?;
        budget.frame(begun.shape.size, COST.of(begun.shape.size, unit.len()))?;
        (0..begun.missing).try_for_each(|_| budget.part(begun.shape.bytes()))
    }

    fn collect(&mut self) {
        while let Ok(frame) = self.inner.next_frame() {
            self.ready.push_back(Box::new(Decoded { frame, color: self.color }));
        }
    }
}

/// Whether a slice is the first one of its picture.
pub(super) fn is_first(unit: &[u8]) -> bool {
    unit.get(2).is_some_and(|byte| byte & 0x80 != 0)
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize, budget: &Budget<'_>) -> Result<()> {
        let sent = nal::units(packet, self.framing).try_for_each(|unit| self.unit(unit, Some(place), budget));
        if sent.is_err() {
            self.progress = Progress::Failed;
        }
        sent
    }

    fn passes_over(&mut self, packet: &[u8]) -> bool {
        let mut first = None;
        for unit in nal::units(packet, self.framing) {
            let Some(head) = NalHeader::parse(unit).filter(|head| head.layer_id == 0) else { return false };
            match head.nal_type {
                NalType::Aud | NalType::PrefixSei | NalType::SuffixSei | NalType::Fd => {}
                kind if kind.is_vcl() && kind.is_sub_layer_non_ref() => {
                    first.get_or_insert((head, unit));
                }
                _ => return false,
            }
        }
        first.is_some_and(|(head, unit)| is_first(unit) && self.kept.passes_over(&head, unit))
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.flush();
        self.collect();
        if self.progress == Progress::AtWork {
            self.progress = Progress::Done;
        }
        Ok(())
    }

    fn next(&mut self) -> Option<Box<dyn Picture>> {
        self.ready.pop_front()
    }

    fn held(&self) -> usize {
        if self.pictures == 0 { 0 } else { self.first.held(self.pictures) }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        let Some(idle) = self.idle.take().filter(|_| self.progress == Progress::Done) else { return };
        self.ready.clear();
        let (inner, known) = (std::mem::take(&mut self.inner), std::mem::take(&mut self.known));
        if let Some(kept) = Between::of(inner, known, self.first, self.pictures) {
            let bytes = kept.bytes();
            idle.give(kept, bytes);
        }
    }
}

impl Picture for Decoded {
    fn place(&self) -> usize {
        self.frame.pts.and_then(|place| usize::try_from(place).ok()).unwrap_or(usize::MAX)
    }

    fn size(&self) -> [usize; 2] {
        [self.frame.width, self.frame.height]
    }

    fn write_rgb(&self, out: &mut [u8], _watch: &Watch<'_>) -> Result<()> {
        yuv::to_rgb(&self.frame, self.layout()?, self.color, out);
        Ok(())
    }

    fn write_rows(&self, take: &mut TakeRow<'_>) -> Result<bool> {
        yuv::to_rows(&self.frame, self.layout()?, self.color, take);
        Ok(true)
    }
}

impl Decoded {
    fn layout(&self) -> Result<Layout> {
        let picture = &self.frame.picture;
        if picture.bit_depth_luma != picture.bit_depth_chroma {
            return Err(Error::unsupported("H.265 whose luma and chroma have different numbers of bits"));
        }
        Ok(Layout {
            width: self.frame.width,
            height: self.frame.height,
            depth: picture.bit_depth_luma.into(),
            halved: halved(&self.frame),
            spread: true,
        })
    }
}

fn halved(frame: &Frame) -> Option<[u32; 2]> {
    match frame.picture.chroma_format_idc {
        0 => None,
        1 => Some([1, 1]),
        2 => Some([1, 0]),
        _ => Some([0, 0]),
    }
}

impl Planes for Frame {
    fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
        let (left, top, ..) = self.picture.crop;
        let [across, down] = if plane == 0 { [0, 0] } else { halved(self).unwrap_or_default() };
        let Some(samples) = self.picture.planes.get(plane) else { return };
        let start = (y + (top >> down)) * samples.stride + (left >> across);
        row.iter_mut().zip(samples.data.get(start..).unwrap_or_default()).for_each(|(to, from)| *to = *from);
    }
}

/// How large pictures are by the first parameters, of the container's configuration or the first packet.
fn shape(config: &[u8], first: &[u8]) -> Result<Shape> {
    let (units, framing) = nal::configuration(Codec::H265, config)?;
    let mut units = units.into_iter().chain(nal::units(first, framing));
    let is_sequence = |unit: &&[u8]| NalHeader::parse(unit).is_some_and(|head| head.nal_type == NalType::Sps);
    let unit =
        units.find(is_sequence).ok_or_else(|| Error::invalid("H.265 without parameters of its pictures"))?;
    h265_kept::sequence(unit).map(|(_, shape)| shape)
}

/// Columns and rows, from the container's configuration or the first packet.
pub(super) fn size(config: &[u8], first: &[u8]) -> Result<[usize; 2]> {
    shape(config, first).map(|shape| shape.size)
}

/// Bytes of memory that a decoder takes at most.
pub(super) fn needs(config: &[u8], first: &[u8]) -> Result<usize> {
    shape(config, first).map(|shape| shape.held(shape.kept + BESIDE))
}
