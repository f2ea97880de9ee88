//! JPEG 2000 by crate `hayro-jpeg2000`: files with boxes, and bare codestreams. The crate sees the codestream alone,
//! and only after what it takes was told (`price`): it cannot be interrupted. It must not know other formats.

mod boxes;
mod codestream;
mod ending;
mod marker;
mod price;
mod tile;

use std::borrow::Cow;

use hayro_jpeg2000::{ComponentData, DecodeError, DecodeSettings, DecoderContext, Image, TileError};

use super::color::Luma;
use super::effort::{Cost, Measures};
use super::format::ImageFormat;
use super::orientation::Orientation;
use super::picture::{Picture, Samples};
use super::{Header, Job};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::zeroed;

use boxes::{Boxes, Channel};
use codestream::Codestream;

/// Most bits of a sample.
const MAX_BITS: u8 = 16;

/// A header that says that colours are red, green and blue, up to its last box, which goes on to the end: the
/// codestream.
const WITHOUT_CHROMA: &[u8] = b"\0\0\0\x0CjP  \r\n\x87\n\0\0\0\x14ftypjp2 \0\0\0\0jp2 \
    \0\0\0\x17jp2h\0\0\0\x0Fcolr\x01\0\0\0\0\0\x10\0\0\0\0jp2c";

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "JPEG 2000",
    parameter: "jpeg2000",
    is_one: |bytes| matches!(bytes, [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xFF, 0x4F, 0xFF, 0x51, ..]),
    header,
    decode: |_, bytes, job, out| decode(bytes, job, out),
    profile: |_| Ok(None),
    effort: expected,
};

fn expected(image: &Measures<'_>) -> Cost {
    let (taken, nanoseconds) = price(image.bytes);
    // The samples are never the output at once.
    let samples = if image.is_output { image.stored } else { 0.0 };
    Cost { nanoseconds, scratch: samples + taken }
}

/// What the crate answers when packets are not as long as the part of a tile that they are in.
const PACKETS_DO_NOT_FIT: DecodeError = DecodeError::Tile(TileError::Invalid);

/// What is damaged is an error, not shown as far as it goes.
const SETTINGS: DecodeSettings =
    DecodeSettings { resolve_palette_indices: true, strict: true, target_resolution: None };

fn failed(error: DecodeError) -> Error {
    match error {
        PACKETS_DO_NOT_FIT => Error::invalid("damaged: the packets of a tile do not fit its bytes"),
        error => Error::invalid(format!("damaged: {error}")),
    }
}

/// A file whose headers were read.
struct Opened<'a> {
    boxes: Boxes<'a>,
    stream: Codestream<'a>,
    channels: Vec<Channel>,
}

impl<'a> Opened<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self> {
        let boxes = Boxes::read(bytes)?;
        let stream = Codestream::open(boxes.codestream)?;
        if let Some(bits) = stream.bits.iter().find(|bits| **bits > MAX_BITS) {
            return Err(Error::unsupported(format!("samples of {bits} bits, expected 1 to {MAX_BITS}")));
        }
        let channels = boxes.channels(&stream.bits)?;
        Ok(Self { boxes, stream, channels })
    }

    /// Bits of the channel that has most.
    fn bits(&self) -> u8 {
        self.channels.iter().map(|channel| channel.bits).max().unwrap_or(0)
    }

    /// Whether colours are luma and chroma. Where the file does not say it, having less of chroma does.
    fn is_sycc(&self) -> bool {
        self.channels.len() >= 3 && self.boxes.is_sycc.unwrap_or_else(|| self.stream.has_less_chroma())
    }

    /// The codestream so that the crate turns no chroma into colours, which it does not do for those with alpha.
    fn for_the_crate(&self) -> Result<Cow<'a, [u8]>> {
        let bytes = self.boxes.codestream;
        let ending = self.stream.ending;
        let told = if ending.is_told() { Cow::Borrowed(bytes) } else { Cow::Owned(ending.told(bytes, &[])?) };
        Ok(match self.stream.has_less_chroma() {
            true => Cow::Owned([WITHOUT_CHROMA, &told].concat()),
            false => told,
        })
    }

    /// Fails for a codestream without an end marker, unless all its packets are there: then the crate refuses one more
    /// that holds nothing, which it does before it decodes any, and else takes it for the next.
    fn must_be_whole(&self) -> Result<()> {
        let ending = self.stream.ending;
        if ending.is_marked {
            return Ok(());
        }
        let packet = ending::empty_packet(self.stream.tile(0).0).ok_or_else(ending::cut)?;
        let longer = ending.told(self.boxes.codestream, packet)?;
        let image = Image::new(&longer, &SETTINGS).map_err(failed)?;
        match image.decode(&mut DecoderContext::default()) {
            Err(PACKETS_DO_NOT_FIT) => Ok(()),
            _ => Err(ending::cut()),
        }
    }
}

/// Reads a header.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    let opened = Opened::read(bytes)?;
    let channels = opened.channels.len();
    let [width, height] = opened.stream.size().map(|side| side as usize);
    if width.saturating_mul(height).saturating_mul(channels) > limits::MAX_JPEG_2000_SAMPLES {
        return Err(Error::invalid(format!(
            "{width} x {height} pixels of {channels} channels are more than the limit of {} samples",
            limits::MAX_JPEG_2000_SAMPLES
        )));
    }
    Ok(Header {
        width,
        height,
        channels,
        bit_depth: usize::from(opened.bits()),
        orientation: Orientation::default(),
        halves: false,
    })
}

/// What decoding takes: bytes beside the samples that are made of what the crate gives, and nanoseconds. Nothing where
/// it will be refused.
fn price(bytes: &[u8]) -> (f64, f64) {
    let price = Boxes::read(bytes).and_then(|boxes| price::price(boxes.codestream));
    price.map_or((0.0, 0.0), |price| (price.bytes as f64, price.nanoseconds))
}

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    let mut opened = Opened::read(bytes)?;
    price::price(opened.boxes.codestream)?;
    job.must_end_in_time()?;
    opened.stream.read_tiles()?;
    opened.must_be_whole()?;
    let stream = opened.for_the_crate()?;
    let image = Image::new(&stream, &SETTINGS).map_err(failed)?;
    let mut context = DecoderContext::default();
    let decoded = image.decode(&mut context).map_err(failed)?;
    let (planes, pixels) = (decoded.components(), job.info.width * job.info.height);
    if planes.len() != opened.stream.bits.len() || planes.iter().any(|plane| plane.samples().len() != pixels)
    {
        return Err(Error::unsupported(format!(
            "{} planes of samples, expected {} as large as the image",
            planes.len(),
            opened.stream.bits.len()
        )));
    }
    let channels = opened.channels.len();
    if opened.bits() <= 8 {
        let samples = interleaved(&opened, planes, 255.0, |value| value as u8)?;
        Picture { samples: Samples::U8(&samples), channels, luma: Luma::Bits15 }.write(job, out)
    } else {
        let samples = interleaved(&opened, planes, 65535.0, |value| value as u16)?;
        Picture { samples: Samples::U16(&samples), channels, luma: Luma::Bits15 }.write(job, out)
    }
}

/// The samples pixel by pixel, as integers of which `full` is the largest.
fn interleaved<T: bytemuck::Zeroable>(
    opened: &Opened<'_>,
    planes: &[ComponentData],
    full: f32,
    to: impl Fn(f32) -> T,
) -> Result<Vec<T>> {
    let channels = &opened.channels;
    let scale = |channel: &Channel| full / ((1_u32 << channel.bits) - 1) as f32;
    let pixels = planes.first().map_or(0, |plane| plane.samples().len());
    let mut all = zeroed::<T>(pixels * channels.len())?;
    for (place, channel) in channels.iter().enumerate() {
        let Some(samples) = planes.get(channel.component).map(ComponentData::samples) else { continue };
        let scale = scale(channel);
        let mut write = |pixel: usize, value: f32| {
            all[pixel * channels.len() + place] = to((value * scale).round_ties_even());
        };
        match (channel.column, opened.boxes.palette()) {
            (Some(column), Some(palette)) => palette.look_up(column, samples, write),
            _ => samples.iter().enumerate().for_each(|(pixel, &value)| write(pixel, value)),
        }
    }
    if opened.is_sycc()
        && let [Some(luma), Some(blue), Some(red)] = [0, 1, 2].map(|place| plane_of(channels, planes, place))
    {
        let [scales, zeros] = [0, 1].map(|what| {
            [0, 1, 2].map(|place| match channels.get(place) {
                Some(channel) if what == 0 => scale(channel),
                Some(channel) if place > 0 => (1_u32 << (channel.bits - 1)) as f32,
                _ => 0.0,
            })
        });
        let sample = |value: f32, place: usize| (value - zeros[place]) * scales[place];
        let colors = luma.iter().zip(blue).zip(red);
        for (pixel, ((&luma, &blue), &red)) in all.chunks_exact_mut(channels.len()).zip(colors) {
            let rgb = rgb_of_ycc([sample(luma, 0), sample(blue, 1), sample(red, 2)]);
            for (to_sample, value) in pixel.iter_mut().zip(rgb) {
                *to_sample = to(value.clamp(0.0, full).round_ties_even());
            }
        }
    }
    Ok(all)
}

/// The samples of a channel that is a component.
fn plane_of<'a>(channels: &[Channel], planes: &'a [ComponentData], place: usize) -> Option<&'a [f32]> {
    let channel = channels.get(place).filter(|channel| channel.column.is_none())?;
    planes.get(channel.component).map(ComponentData::samples)
}

/// Red, green and blue of luma and of chroma around 0 (sYCC, IEC 61966-2-1).
fn rgb_of_ycc([luma, blue, red]: [f32; 3]) -> [f32; 3] {
    [luma + 1.402 * red, luma - 0.344_136 * blue - 0.714_136 * red, luma + 1.772 * blue]
}
