//! H.264 (AVC) by the crate `rust_h264`.

use std::collections::VecDeque;

use rust_h264::decoder::{Frame, OrderedDecoder};
use rust_h264::error::DecodeError;
use rust_h264::nal::{NalUnit, NalUnitType, SpsInfo, parse_sps_info};

use super::budget::{Budget, Cost};
use super::decoder::{Larger, Picture, VideoDecoder, check_size, damaged};
use super::h264_kept::{Kept, Shape, Slice};
use super::nal::{self, Framing};
use super::track::Codec;
use crate::cpu::yuv::{self, Color, Layout, Matrix, Planes, TakeRow};
use crate::deadline::Watch;
use crate::error::{Error, Result};

/// See [`Cost`].
pub(super) const COST: Cost = Cost { pixel: 4.0, byte: 40.0 };

/// Pictures that wait until their order is known, and the one behind them.
const WAITING: usize = 17;

/// Of a unit, beside its bytes: finding it.
const UNIT: usize = 64;

pub(super) struct Decoder {
    inner: OrderedDecoder<usize>,
    /// What `inner` keeps to make pictures from.
    kept: Kept,
    framing: Framing,
    color: Option<Color>,
    /// How large the first pictures are; larger ones are left out.
    first: Shape,
    has_begun: bool,
    /// The packet of the last picture that was left out.
    left_out: Option<usize>,
    /// Pictures that `inner` has begun and not given.
    begun: usize,
    ready: VecDeque<Box<dyn Picture>>,
}

struct Decoded {
    frame: Frame,
    place: usize,
    color: Color,
}

/// The crate's error in our words.
fn error(error: DecodeError) -> Error {
    match error {
        DecodeError::Unsupported(what) => Error::unsupported(format!("H.264: {what}")),
        other => damaged(other),
    }
}

/// A unit, as the crate takes it.
pub(super) fn parsed(unit: &[u8]) -> Option<NalUnit<'_>> {
    let head = *unit.first().filter(|head| **head & 0x80 == 0)?;
    let (nal_ref_idc, nal_unit_type) = (head >> 5 & 3, NalUnitType::from(head & 0x1F));
    Some(NalUnit { nal_ref_idc, nal_unit_type, rbsp: nal::unescape(unit, 1) })
}

/// The units of parameters in the configuration that a container holds, and how the units of its packets are told
/// apart.
pub(super) fn configuration(config: &[u8]) -> Result<(Vec<&[u8]>, Framing)> {
    let (units, framing) = nal::configuration(Codec::H264, config)?;
    match framing {
        Framing::Lengths(3) => Err(Error::invalid("H.264: lengths of units in 3 bytes, expected 1, 2 or 4")),
        framing => Ok((units, framing)),
    }
}

/// Whether a packet is one picture of which no other is made, and nothing that others need.
pub(super) fn is_spare(packet: &[u8], framing: Framing) -> bool {
    let mut slices = 0;
    let all = nal::units(packet, framing).filter_map(|unit| unit.first()).all(|head| match head & 0x1F {
        1 => {
            slices += 1;
            head & 0x60 == 0
        }
        // What stands between and says nothing of pictures.
        6 | 9 | 12 => true,
        _ => false,
    });
    all && slices > 0
}

/// What parameters say of pictures.
pub(super) fn info(unit: &NalUnit<'_>) -> Result<SpsInfo> {
    let info = parse_sps_info(unit).map_err(error)?;
    check_size([info.coded_width as usize, info.coded_height as usize])?;
    Ok(info)
}

impl Decoder {
    /// A decoder that has read the container's configuration, of a stream that begins with packet `first`.
    pub(super) fn new(config: &[u8], first: &[u8], budget: &Budget<'_>) -> Result<Self> {
        let (units, framing) = configuration(config)?;
        let mut decoder = Self {
            inner: OrderedDecoder::new(),
            kept: Kept::default(),
            framing,
            color: None,
            first: shape(config, first)?,
            has_begun: false,
            left_out: None,
            begun: 0,
            ready: VecDeque::new(),
        };
        units.into_iter().try_for_each(|unit| decoder.unit(unit, 0, budget))?;
        Ok(decoder)
    }

    fn unit(&mut self, bytes: &[u8], place: usize, budget: &Budget<'_>) -> Result<()> {
        budget.look(bytes.len() + UNIT)?;
        let Some(unit) = parsed(bytes) else { return Ok(()) };
        match unit.nal_unit_type {
            NalUnitType::Sps => {
                let info = info(&unit)?;
                let (matrix, full_range) = (Matrix::numbered(info.matrix), info.full_range);
                self.color = Some(Color { matrix, full_range });
                self.kept.parameters(&unit)?;
            }
            NalUnitType::Pps => {
                self.kept.parameters(&unit)?;
            }
            NalUnitType::Slice | NalUnitType::SliceIdr => {
                let Some(slice) = self.kept.look(&unit)? else { return Ok(()) };
                if slice.shape.bytes() > self.first.bytes() {
                    return self.leave_out(slice.shape, place);
                }
                self.pay(slice, bytes.len(), budget)?;
            }
            // The crate does nothing with others.
            _ => return Ok(()),
        }
        let frames = self.inner.decode_nal_with_meta(&unit, place).map_err(error)?;
        self.keep(frames);
        Ok(())
    }

    /// Does without a picture that takes more memory than the first ones.
    fn leave_out(&mut self, shape: Shape, place: usize) -> Result<()> {
        if self.left_out == Some(place) {
            return Ok(());
        }
        self.left_out = Some(place);
        // Those before it come first.
        self.kept.finish()?;
        let frames = self.inner.flush_with_meta();
        self.keep(frames);
        self.begun = 0;
        self.ready.push_back(Box::new(Larger { place, size: shape.size }));
        Ok(())
    }

    fn pay(&mut self, slice: Slice, bytes: usize, budget: &Budget<'_>) -> Result<()> {
        let shape = slice.shape;
        if !slice.begins {
            // What was decoded of the picture is copied.
            return budget.part(shape.bytes());
        }
        let copies = self.kept.begin(slice)?;
        self.has_begun = true;
        self.begun = (self.begun + 1).min(WAITING);
        budget.hold(self.taken(self.first))?;
        budget.frame(shape.size, COST.of(shape.size, bytes))?;
        (0..copies).try_for_each(|_| budget.part(shape.bytes()))
    }

    /// Bytes that it takes for pictures of a shape.
    fn taken(&self, shape: Shape) -> usize {
        shape.held(self.kept.references() + 1, self.begun + self.ready.len())
    }

    fn keep(&mut self, frames: Vec<(Frame, usize)>) {
        self.begun = self.begun.saturating_sub(frames.len());
        let color = self.color.unwrap_or(Color { matrix: Matrix::BT601, full_range: false });
        let decoded = frames.into_iter().map(|(frame, place)| Decoded { frame, place, color });
        self.ready.extend(decoded.map(|decoded| Box::new(decoded) as Box<dyn Picture>));
    }
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize, budget: &Budget<'_>) -> Result<()> {
        nal::units(packet, self.framing).try_for_each(|unit| self.unit(unit, place, budget))
    }

    fn passes_over(&mut self, packet: &[u8]) -> bool {
        is_spare(packet, self.framing)
    }

    fn finish(&mut self) -> Result<()> {
        let frames = self.inner.flush_with_meta();
        self.keep(frames);
        Ok(())
    }

    fn next(&mut self) -> Option<Box<dyn Picture>> {
        self.ready.pop_front()
    }

    fn held(&self) -> usize {
        // Before the first one there is nothing.
        if self.has_begun { self.taken(self.first) } else { 0 }
    }
}

impl Picture for Decoded {
    fn place(&self) -> usize {
        self.place
    }

    fn size(&self) -> [usize; 2] {
        [self.frame.width as usize, self.frame.height as usize]
    }

    fn write_rgb(&self, out: &mut [u8], _watch: &Watch<'_>) -> Result<()> {
        yuv::to_rgb(&self.frame, self.layout(), self.color, out);
        Ok(())
    }

    fn write_rows(&self, take: &mut TakeRow<'_>) -> Result<bool> {
        yuv::to_rows(&self.frame, self.layout(), self.color, take);
        Ok(true)
    }
}

impl Decoded {
    fn layout(&self) -> Layout {
        let [width, height] = self.size();
        let down = if self.frame.chroma_height() == self.frame.height { 0 } else { 1 };
        let depth = self.frame.bit_depth.into();
        Layout { width, height, depth, halved: Some([1, down]), spread: true }
    }
}

impl Planes for Frame {
    fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
        let (samples, width) = match plane {
            0 => (&self.y, self.width),
            1 => (&self.u, self.chroma_width()),
            _ => (&self.v, self.chroma_width()),
        };
        let size = self.bytes_per_sample();
        let start = y * width as usize * size;
        let samples = samples.get(start..).unwrap_or_default();
        if size == 1 {
            row.iter_mut().zip(samples).for_each(|(to, from)| *to = u16::from(*from));
        } else {
            row.iter_mut().zip(samples.as_chunks().0).for_each(|(to, from)| *to = u16::from_le_bytes(*from));
        }
    }
}

/// The first parameters, of the container's configuration or the first packet.
fn parameters<'p>(config: &'p [u8], first: &'p [u8]) -> Result<NalUnit<'p>> {
    let (found, framing) = configuration(config)?;
    let units = found.into_iter().chain(nal::units(first, framing)).filter_map(parsed);
    let mut parameters = units.filter(|unit| unit.nal_unit_type == NalUnitType::Sps);
    parameters.next().ok_or_else(|| Error::invalid("H.264 without parameters of its pictures"))
}

/// Columns and rows, from the container's configuration or the first packet.
pub(super) fn size(config: &[u8], first: &[u8]) -> Result<[usize; 2]> {
    let info = info(&parameters(config, first)?)?;
    if config.is_empty() && !info.progressive {
        return Err(Error::unsupported(
            "interlaced H.264 without a container, where no frame says when it is shown",
        ));
    }
    Ok([info.width as usize, info.height as usize])
}

/// How large the first pictures are.
pub(super) fn shape(config: &[u8], first: &[u8]) -> Result<Shape> {
    let shape = Kept::default().parameters(&parameters(config, first)?)?;
    shape.ok_or_else(|| Error::internal("no parameters of H.264"))
}

/// Bytes of memory that a decoder takes at most.
pub(super) fn needs(config: &[u8], first: &[u8]) -> Result<usize> {
    shape(config, first).map(|shape| shape.held(shape.references + 1, WAITING + 2))
}
