//! One picture of H.265 that needs no others, as HEIC has it: by `rusty_h265` where chroma is halved along both sides
//! and samples have up to 10 bits, of other kinds (gray, alpha, whole chroma) by `heic-decoder`, which has no vectors.
//! It must not know boxes.

use heic_decoder::HeifError;
use heic_decoder::isobmff::{HevcDecoderConfig, HevcNalArray, ResolvedImage};
use rusty_h265::nal::{NalHeader, NalType};
use rusty_h265::ps::Sps;

use super::decoder::damaged;
use super::h265::{MOST_SLICES, is_first};
use super::h265_kept::{self, Kept, error};
use super::h265_parameters::{Parameters, colors, different_bits, is_usual};
use super::nal::{self, Framing};
use crate::cpu::av1::{UNSPECIFIED, matrix_of};
use crate::cpu::yuv::{Layout, Planes};
use crate::error::{Error, Result};

/// A decoded picture.
pub(in crate::cpu) struct Still {
    pub(in crate::cpu) planes: Box<dyn Planes>,
    pub(in crate::cpu) layout: Layout,
    /// The number of its matrix in ISO/IEC 23091-2, and whether samples take the whole range of their bits.
    pub(in crate::cpu) colors: (u8, bool),
}

/// Decodes the picture in `stream`, whose parameters are in the container's configuration. `size` is what the container
/// says of it: no memory is taken for a larger one.
///
/// # Errors
/// Damaged bytes, a picture that is made from others, a kind that is not decoded.
pub(in crate::cpu) fn decode(config: &[u8], stream: &[u8], size: [usize; 2]) -> Result<Still> {
    let Parameters { sps, units, framing, length_size } = Parameters::read(config, size)?;
    match is_usual(&sps) {
        true => usual(&sps, &units, stream, framing),
        false => rare(&sps, &units, stream, length_size),
    }
}

fn layout(sps: &Sps) -> Layout {
    let halved = match sps.chroma_format_idc {
        0 => None,
        1 => Some([1, 1]),
        2 => Some([1, 0]),
        _ => Some([0, 0]),
    };
    let (width, height) = sps.output_size();
    let (width, height) = (width as usize, height as usize);
    Layout { width, height, depth: sps.bit_depth_luma.into(), halved, spread: true }
}

fn usual(sps: &Sps, parameters: &[&[u8]], stream: &[u8], framing: Framing) -> Result<Still> {
    let (mut inner, mut kept) = (rusty_h265::Decoder::new(), Kept::default());
    for unit in parameters {
        match NalHeader::parse(unit).map(|head| head.nal_type) {
            Some(NalType::Sps) => {
                let (sps, shape) = h265_kept::sequence(unit)?;
                kept.sequence(sps, shape);
            }
            Some(NalType::Pps) => {
                kept.pictures(unit)?;
            }
            _ => {}
        }
        inner.push_nal(unit, None).map_err(error)?;
    }
    let mut slices = 0;
    for unit in nal::units(stream, framing) {
        let head = NalHeader::parse(unit).filter(|head| head.layer_id == 0 && head.nal_type.is_vcl());
        let Some(head) = head else { continue };
        // Pictures behind it are of no account.
        if is_first(unit) && slices > 0 {
            break;
        }
        if slices == 0 {
            begin(&mut kept, &head, unit)?;
        }
        slices += 1;
        if slices > MOST_SLICES {
            return Err(damaged(format!("H.265: a picture of more than {MOST_SLICES} slices")));
        }
        inner.push_nal(unit, None).map_err(error)?;
    }
    inner.flush();
    let frame = inner.next_frame().map_err(|_| damaged("H.265: no picture is shown"))?;
    let colors = colors(sps);
    let picture = &frame.picture;
    if picture.bit_depth_luma != picture.bit_depth_chroma {
        return Err(different_bits());
    }
    let depth = picture.bit_depth_luma.into();
    let layout = Layout { width: frame.width, height: frame.height, depth, ..layout(sps) };
    Ok(Still { planes: Box::new(frame), layout, colors })
}

/// Lets the first slice of a picture pass that is made from no others.
fn begin(kept: &mut Kept, head: &NalHeader, unit: &[u8]) -> Result<()> {
    let begun = kept.begin(head, unit, &[])?;
    if !head.nal_type.is_irap() || begun.as_ref().is_some_and(|begun| begun.missing > 0) {
        return Err(Error::unsupported("a picture of H.265 that is made from others"));
    }
    match begun {
        Some(_) if is_first(unit) => Ok(()),
        _ => Err(damaged("H.265: a picture without its beginning or its parameters")),
    }
}

fn rare(sps: &Sps, parameters: &[&[u8]], stream: &[u8], length_size: usize) -> Result<Still> {
    let arrays = parameters.iter().map(|unit| HevcNalArray {
        nal_unit_type: NalHeader::parse(unit).map_or(0, |head| head.nal_type.id()),
        nalus: vec![unit.to_vec()],
    });
    let hevc_config = HevcDecoderConfig {
        general_profile_idc: sps.ptl.profile(),
        general_level_idc: sps.ptl.level_idc,
        chroma_format_idc: sps.chroma_format_idc,
        bit_depth_luma_minus8: sps.bit_depth_luma.saturating_sub(8),
        bit_depth_chroma_minus8: sps.bit_depth_chroma.saturating_sub(8),
        length_size_minus_one: length_size.saturating_sub(1) as u8,
        arrays: arrays.collect(),
    };
    let image = ResolvedImage { hevc_config, data: stream.to_vec() };
    let (parsed, picture) = heic_decoder::decode_one_image(&image).map_err(rare_error)?;
    let layout = layout(sps);
    let [left, _, top, _] = parsed.conformance_window.map(|side| side as usize);
    let halved = layout.halved.unwrap_or_default();
    let corner = |plane: usize| match plane {
        0 => [left, top],
        _ => [left >> halved[0], top >> halved[1]],
    };
    let mut planes = [picture.y, picture.cb, picture.cr].map(Some);
    let cut = std::array::from_fn(|place| {
        let (stride, samples) = match planes.get_mut(place).and_then(Option::take) {
            Some(plane) => (plane.width, plane.into_samples()),
            None => (0, Vec::new()),
        };
        Cut { stride, corner: corner(place), samples }
    });
    let colors = parsed.color_info.map_or((UNSPECIFIED, false), |info| {
        (matrix_of(info.matrix_coefficients.into(), info.color_primaries.into()), info.full_range)
    });
    Ok(Still { planes: Box::new(Rare(cut)), layout, colors })
}

/// The crate's error in our words.
fn rare_error(error: HeifError) -> Error {
    match error {
        HeifError::Unsupported(what) => Error::unsupported(format!("H.265: {what}")),
        other => damaged(other),
    }
}

/// Planes, each with where what is shown begins.
struct Rare([Cut; 3]);

struct Cut {
    stride: usize,
    corner: [usize; 2],
    samples: Vec<i32>,
}

impl Planes for Rare {
    fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
        let Some(Cut { stride, corner: [left, top], samples }) = self.0.get(plane) else { return };
        let samples = samples.get((top + y) * stride + left..).unwrap_or_default();
        row.iter_mut().zip(samples).for_each(|(to, from)| *to = (*from).clamp(0, 0xFFFF) as u16);
    }
}
