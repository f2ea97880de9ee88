//! PNM: headers by crate `image`, samples as DALI takes them. It must not know other formats.

use std::io::{Cursor, Read};

use image::ImageDecoder;
use image::codecs::pnm::{PnmDecoder, PnmSubtype, SampleEncoding};

use super::color::Luma;
use super::effort::{Cost, Measures, STORED_BYTE};
use super::format::ImageFormat;
use super::orientation::Orientation;
use super::picture::{Picture, Samples};
use super::raster::{failed, read_pixels, truncated_header};
use super::{Header, Job};
use crate::error::{Error, Result};
use crate::memory::zeroed;

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "PNM",
    parameter: "pnm",
    is_one: |bytes| matches!(bytes, [b'P', b'1'..=b'6', b' ' | b'\t' | b'\r' | b'\n' | b'#', ..]),
    header,
    decode: |_, bytes, job, out| decode(bytes, job, out),
    profile: |_| Ok(None),
    effort: |image: &Measures<'_>| Cost {
        nanoseconds: (image.stored + image.length) * STORED_BYTE,
        scratch: image.stored,
    },
};

/// Reads a header.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    let decoder = PnmDecoder::new(Cursor::new(bytes)).map_err(truncated_header)?;
    let (width, height) = decoder.dimensions();
    let color = decoder.color_type();
    let channels = usize::from(color.channel_count());
    Ok(Header {
        width: width as usize,
        height: height as usize,
        channels,
        bit_depth: usize::from(color.bits_per_pixel()) / channels,
        orientation: Orientation::default(),
        halves: false,
    })
}

/// Decodes what `job` asks for to `out`, whose size was checked.
///
/// `image` would stretch samples to the full range of their type. DALI does so for 8-bit text only, and takes 16-bit
/// samples for 8-bit ones, their high bytes, unless they use the full range.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    let decoder = PnmDecoder::new(Cursor::new(bytes)).map_err(failed)?;
    let encoding = match decoder.subtype() {
        PnmSubtype::Graymap(encoding) | PnmSubtype::Pixmap(encoding) => encoding,
        _ => return read_pixels(decoder, Luma::Bits14, job, out),
    };
    let (width, height) = job.info.stored_size();
    let channels = job.info.channels;
    let count = width * height * channels;
    let (mut reader, header) = decoder.into_inner();
    let most = header.maximal_sample();
    let wide = job.info.bit_depth == 16;
    let raster = match encoding {
        SampleEncoding::Binary => {
            let mut raster = zeroed(count * if wide { 2 } else { 1 })?;
            reader.read_exact(&mut raster).map_err(|error| failed(error.into()))?;
            raster
        }
        SampleEncoding::Ascii => {
            let start = reader.position() as usize;
            text_samples(bytes.get(start..).unwrap_or_default(), count, most, wide)?
        }
    };
    let mut write = |samples: Samples<'_>| Picture { samples, channels, luma: Luma::Bits14 }.write(job, out);
    let pairs = raster.as_chunks::<2>().0;
    match most {
        _ if !wide => write(Samples::U8(&raster)),
        FULL_RANGE => {
            let mut wide = zeroed::<u16>(pairs.len())?;
            wide.iter_mut().zip(pairs).for_each(|(to, &pair)| *to = u16::from_be_bytes(pair));
            write(Samples::U16(&wide))
        }
        _ => {
            let mut bytes = zeroed::<u8>(pairs.len())?;
            bytes.iter_mut().zip(pairs).for_each(|(to, &[high, _])| *to = high);
            write(Samples::U8(&bytes))
        }
    }
}

const FULL_RANGE: u32 = u16::MAX as u32;

/// Samples written as decimal numbers, in the bytes that a binary file would have; 8-bit ones are stretched.
fn text_samples(text: &[u8], count: usize, most: u32, wide: bool) -> Result<Vec<u8>> {
    // A digit and a space for each: a short text cannot ask for much memory.
    let mut samples = Vec::with_capacity(count.min(text.len()) * 2);
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    for _ in 0..count {
        let word =
            words.next().ok_or_else(|| Error::invalid("truncated: the input ends before the image does"))?;
        let number = std::str::from_utf8(word).ok().and_then(|word| word.parse::<u32>().ok());
        let Some(number) = number else {
            return Err(Error::invalid(format!(
                "damaged: expected a number, found `{}`",
                word.escape_ascii()
            )));
        };
        let number = number.min(most);
        if wide {
            samples.extend_from_slice(&(number as u16).to_be_bytes());
        } else {
            samples.push((number * 255 / most.max(1)) as u8);
        }
    }
    Ok(samples)
}
