//! TIFF: the first image of a file, as libtiff has it. docs/reference/differences.md says what of it is not read.
//!
//! ```text
//! directory > layout (tags) > pixels > codecs (fax) > samples ---+
//!                               |                                v
//!                               +----> files, old_jpeg ----> colors (ycbcr, lab) > picture
//!                                 (old_jpeg_parts)
//! ```

mod codecs;
mod colors;
mod directory;
mod extent;
mod fax;
mod fax_codes;
mod files;
mod lab;
mod layout;
mod old_jpeg;
mod old_jpeg_parts;
mod pixels;
mod samples;
mod ycbcr;

use std::borrow::Cow;

use super::color::Luma;
use super::effort::{Cost, Measures};
use super::format::ImageFormat;
use super::jpeg;
use super::orientation::Orientation;
use super::picture::{Picture, Samples};
use super::profile::Profile;
use super::{ColorSpace, Header, Job, check_size};
use crate::error::{Error, Result};
use colors::Pixels;
use directory::Directory;
use layout::{Format, Layout, compression, tag};

/// The most samples that pictures have.
const MAX_CHANNELS: usize = 4;

/// Nanoseconds for each byte of samples: 0.2 where they are stored as they are, 3.6 where they are inflated, 6.5 with
/// LZW. The header does not tell soon.
const BYTE: f64 = 4.0;

/// The same for each byte of its strips, which may have more of them than it becomes.
const CODED_BYTE: f64 = 1.0;

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "TIFF",
    parameter: "tiff",
    is_one: |bytes| matches!(bytes, [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..]),
    header,
    decode: |decoder, bytes, job, out| decode(bytes, &decoder.jpeg, job, out),
    profile,
    effort: |image: &Measures<'_>| Cost {
        nanoseconds: image.stored * BYTE + coded_bytes(image.bytes) as f64 * CODED_BYTE,
        // Where it is made to look otherwise for its decoder, the file itself.
        scratch: 2.0 * image.stored + image.length,
    },
};

/// Reads the header of the first image.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    extent::check(bytes)?;
    let layout = Layout::read(bytes)?;
    let turn = layout.directory.number(tag::ORIENTATION).ok().flatten().unwrap_or(1);
    Ok(Header {
        width: layout.width,
        height: layout.height,
        channels: layout.channels(),
        bit_depth: layout.bits,
        orientation: Orientation::from_exif(u32::try_from(turn).unwrap_or(1)),
        halves: false,
    })
}

/// The file's profile.
fn profile(bytes: &[u8]) -> Result<Option<Profile<'_>>> {
    let profile = Directory::read(bytes)?.raw(tag::PROFILE)?;
    Ok((!profile.is_empty()).then_some(Profile::Icc(Cow::Borrowed(profile))))
}

/// Bytes of codes that are read, where the same ones may be read again and again.
pub(super) fn coded_bytes(bytes: &[u8]) -> u64 {
    extent::coded_bytes(bytes)
}

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], jpegs: &jpeg::Decoder, job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    let layout = Layout::read(bytes)?;
    check_size(layout.width as u64, layout.height as u64)?;
    let samples = job.info.width * job.info.height * job.info.channels;
    extent::check_coded_bytes(bytes, samples * job.info.bit_depth.div_ceil(8))?;
    if job.options.color == ColorSpace::Any && job.info.channels > MAX_CHANNELS {
        return Err(Error::unsupported(format!(
            "the {} channels of an image are not returned as they are, expected at most {MAX_CHANNELS}, or another output type than ANY_DATA",
            job.info.channels
        )));
    }
    let (mut pixels, is_done) = match (layout.compression, files::format(layout.compression)) {
        (compression::OLD_JPEG, _) => (old_jpeg::read(&layout, jpegs, job.conditions)?, false),
        (_, Some(format)) => files::read(&layout, format, jpegs, job.conditions)?,
        _ => (pixels::read(&layout, job.conditions.watch)?, false),
    };
    let channels =
        if is_done { layout.kept() } else { colors::convert(&layout, job.options.as_pillow, &mut pixels)? };
    // Of 9 to 15 bits gray is computed in those bits, as in DALI.
    let luma = match (layout.format, layout.bits) {
        (Format::Unsigned, bits @ 9..=15) => Luma::Bits14Above(16 - bits as u32),
        _ => Luma::Float,
    };
    let samples = match &pixels {
        Pixels::U8(samples) => Samples::U8(samples),
        Pixels::U16(samples) => Samples::U16(samples),
        Pixels::F32(samples) => Samples::F32(samples),
    };
    Picture { samples, channels, luma }.write(job, out)
}
