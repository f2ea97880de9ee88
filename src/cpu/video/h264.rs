//! H.264 (AVC) by the crate `rust_h264`.

use std::collections::VecDeque;

use rust_h264::decoder::{Frame, OrderedDecoder};
use rust_h264::error::DecodeError;
use rust_h264::nal::{
    NalUnit, NalUnitType, SpsInfo, parse_annex_b, parse_avcc, parse_avcc_config, parse_sps_info,
};

use super::decoder::{Picture, VideoDecoder, check_size, damaged};
use super::nal::Framing;
use crate::cpu::yuv::{self, Color, Layout, Matrix, Planes};
use crate::error::{Error, Result};

pub(super) struct Decoder {
    inner: OrderedDecoder<usize>,
    framing: Framing,
    color: Option<Color>,
    ready: VecDeque<Decoded>,
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

/// The units of a packet, as the crate takes them.
fn units(packet: &[u8], framing: Framing) -> Vec<NalUnit<'_>> {
    match framing {
        Framing::StartCodes => parse_annex_b(packet),
        Framing::Lengths(size) => parse_avcc(packet, size),
    }
}

/// The units of parameters in the configuration that a container holds, and how the units of its packets are told apart.
fn configuration(config: &[u8]) -> Result<(Vec<NalUnit<'_>>, Framing)> {
    if config.is_empty() {
        return Ok((Vec::new(), Framing::StartCodes));
    }
    let parsed = parse_avcc_config(config).map_err(|cause| Error::invalid(format!("H.264: {cause}")))?;
    let framing = Framing::Lengths(parsed.length_size);
    Ok((parsed.sps_nals.into_iter().chain(parsed.pps_nals).collect(), framing))
}

/// What parameters say of pictures.
fn info(unit: &NalUnit<'_>) -> Result<SpsInfo> {
    let info = parse_sps_info(unit).map_err(error)?;
    check_size([info.coded_width as usize, info.coded_height as usize])?;
    Ok(info)
}

impl Decoder {
    /// A decoder that has read the container's configuration.
    pub(super) fn new(config: &[u8]) -> Result<Self> {
        let (units, framing) = configuration(config)?;
        let mut decoder = Self { inner: OrderedDecoder::new(), framing, color: None, ready: VecDeque::new() };
        units.iter().try_for_each(|unit| decoder.unit(unit, 0))?;
        Ok(decoder)
    }

    fn unit(&mut self, unit: &NalUnit<'_>, place: usize) -> Result<()> {
        if unit.nal_unit_type == NalUnitType::Sps {
            let info = info(unit)?;
            let (matrix, full_range) = (Matrix::numbered(info.matrix), info.full_range);
            self.color = Some(Color { matrix, full_range });
        }
        let frames = self.inner.decode_nal_with_meta(unit, place).map_err(error)?;
        self.keep(frames);
        Ok(())
    }

    fn keep(&mut self, frames: Vec<(Frame, usize)>) {
        let color = self.color.unwrap_or(Color { matrix: Matrix::BT601, full_range: false });
        self.ready.extend(frames.into_iter().map(|(frame, place)| Decoded { frame, place, color }));
    }
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize) -> Result<()> {
        units(packet, self.framing).iter().try_for_each(|unit| self.unit(unit, place))
    }

    fn finish(&mut self) -> Result<()> {
        let frames = self.inner.flush_with_meta();
        self.keep(frames);
        Ok(())
    }

    fn next(&mut self) -> Option<Box<dyn Picture>> {
        self.ready.pop_front().map(|decoded| Box::new(decoded) as Box<dyn Picture>)
    }
}

impl Picture for Decoded {
    fn place(&self) -> usize {
        self.place
    }

    fn size(&self) -> [usize; 2] {
        [self.frame.width as usize, self.frame.height as usize]
    }

    fn write_rgb(&self, out: &mut [u8]) -> Result<()> {
        let [width, height] = self.size();
        let down = if self.frame.chroma_height() == self.frame.height { 0 } else { 1 };
        let layout = Layout {
            width,
            height,
            depth: self.frame.bit_depth.into(),
            halved: Some([1, down]),
            spread: true,
        };
        yuv::to_rgb(&self.frame, layout, self.color, out);
        Ok(())
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

/// Columns and rows, from the container's configuration or the first packet.
pub(super) fn size(config: &[u8], first: &[u8]) -> Result<[usize; 2]> {
    let (mut found, framing) = configuration(config)?;
    found.extend(units(first, framing));
    let parameters = found.iter().find(|unit| unit.nal_unit_type == NalUnitType::Sps);
    let info = info(parameters.ok_or_else(|| Error::invalid("H.264 without parameters of its pictures"))?)?;
    if config.is_empty() && !info.progressive {
        return Err(Error::unsupported(
            "interlaced H.264 without a container, where no frame says when it is shown",
        ));
    }
    Ok([info.width as usize, info.height as usize])
}
