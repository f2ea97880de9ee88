//! H.265 (HEVC) by the crate `rusty_h265`: Main, Main 10.

use rusty_h265::nal::unescape;
use rusty_h265::ps::{Sps, parse_sps};
use rusty_h265::{Error as Cause, Frame};

use super::decoder::{Picture, VideoDecoder, check_size, damaged};
use super::nal::{self, Framing};
use super::track::Codec;
use crate::cpu::yuv::{self, Color, Layout, Matrix, Planes};
use crate::error::{Error, Result};

/// The type of a unit with the parameters of a sequence.
const SEQUENCE_PARAMETERS: u8 = 33;

pub(super) struct Decoder {
    inner: rusty_h265::Decoder,
    framing: Framing,
    color: Color,
}

struct Decoded {
    frame: Frame,
    color: Color,
}

/// The crate's error in our words.
fn error(error: Cause) -> Error {
    match error {
        Cause::Unsupported(what) => Error::unsupported(format!("H.265: {what}")),
        other => damaged(other),
    }
}

/// The parameters of a sequence, if the unit holds some.
fn parameters(unit: &[u8]) -> Result<Option<Sps>> {
    let kind = unit.first().map_or(0, |head| head >> 1 & 0x3F);
    let (SEQUENCE_PARAMETERS, Some(payload)) = (kind, unit.get(2..)) else { return Ok(None) };
    let sps = parse_sps(&unescape(payload).data).map_err(error)?;
    check_size([sps.width as usize, sps.height as usize])?;
    Ok(Some(sps))
}

impl Decoder {
    /// A decoder that has read the container's configuration.
    pub(super) fn new(config: &[u8]) -> Result<Self> {
        let (units, framing) = nal::configuration(Codec::H265, config)?;
        let color = Color { matrix: Matrix::BT601, full_range: false };
        let mut decoder = Self { inner: rusty_h265::Decoder::new(), framing, color };
        for unit in units {
            decoder.unit(unit, None)?;
        }
        Ok(decoder)
    }

    fn unit(&mut self, unit: &[u8], place: Option<i64>) -> Result<()> {
        if unit.len() < 2 {
            return Ok(());
        }
        if let Some(vui) = parameters(unit)?.and_then(|sps| sps.vui) {
            let matrix = Matrix::numbered(vui.matrix_coeffs);
            self.color = Color { matrix, full_range: vui.video_full_range_flag };
        }
        self.inner.push_nal(unit, place).map_err(error)
    }
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize) -> Result<()> {
        let units = nal::units(packet, self.framing);
        units.into_iter().try_for_each(|unit| self.unit(unit, Some(place as i64)))
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.flush();
        Ok(())
    }

    fn next(&mut self) -> Option<Box<dyn Picture>> {
        let frame = self.inner.next_frame().ok()?;
        Some(Box::new(Decoded { frame, color: self.color }))
    }
}

impl Picture for Decoded {
    fn place(&self) -> usize {
        self.frame.pts.and_then(|place| usize::try_from(place).ok()).unwrap_or(usize::MAX)
    }

    fn size(&self) -> [usize; 2] {
        [self.frame.width, self.frame.height]
    }

    fn write_rgb(&self, out: &mut [u8]) -> Result<()> {
        let picture = &self.frame.picture;
        if picture.bit_depth_luma != picture.bit_depth_chroma {
            return Err(Error::unsupported("H.265 whose luma and chroma have different numbers of bits"));
        }
        let layout = Layout {
            width: self.frame.width,
            height: self.frame.height,
            depth: picture.bit_depth_luma.into(),
            halved: halved(&self.frame),
            spread: true,
        };
        yuv::to_rgb(&self.frame, layout, self.color, out);
        Ok(())
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

/// Columns and rows, from the container's configuration or the first packet.
pub(super) fn size(config: &[u8], first: &[u8]) -> Result<[usize; 2]> {
    let (mut units, framing) = nal::configuration(Codec::H265, config)?;
    units.extend(nal::units(first, framing));
    for unit in units {
        if let Some(sps) = parameters(unit)? {
            let (width, height) = sps.output_size();
            return Ok([width as usize, height as usize]);
        }
    }
    Err(Error::invalid("H.265 without parameters of its pictures"))
}
