//! BMP of Windows and of OS/2, with pixels that are stored or in runs. It must not know other formats.

mod header;
mod runs;

use multiversion::multiversion;

use super::color::Luma;
use super::effort::{Cost, Measures, STORED_BYTE};
use super::format::ImageFormat;
use super::orientation::Orientation;
use super::picture::{Picture, Samples};
use super::{ColorSpace, Header, Job};
use crate::error::{Error, Result};
use crate::memory::zeroed;

use header::{Coding, File, Mask};

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "BMP",
    parameter: "bmp",
    is_one: |bytes| matches!(bytes, [b'B', b'M', ..]),
    header,
    decode: |_, bytes, job, out| decode(bytes, job, out),
    profile: |_| Ok(None),
    effort: |image: &Measures<'_>| Cost {
        nanoseconds: (image.stored + image.length) * STORED_BYTE,
        scratch: image.stored,
    },
};

/// Reads a header. A palette of grays makes a gray image.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    let file = File::read(bytes)?;
    Ok(Header {
        width: file.width,
        height: file.height,
        channels: channels(&file),
        bit_depth: file.bits.min(8),
        orientation: Orientation::default(),
        halves: false,
    })
}

/// Pixels of 32 bits have a fourth channel, of which only the colour masks say that it is alpha.
fn channels(file: &File<'_>) -> usize {
    match file.bits {
        1..=8 if file.palette.iter().all(|[r, g, b]| r == g && g == b) => 1,
        32 => 4,
        _ if file.masks.alpha.is_some() => 4,
        _ => 3,
    }
}

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    let file = File::read(bytes)?;
    let (width, channels) = (file.width, channels(&file));
    if file.bits == 24
        && file.coding == Coding::Stored
        && job.is_plain()
        && job.options.color == ColorSpace::Rgb
    {
        for (y, to) in out.chunks_exact_mut(width * 3).enumerate() {
            write_reversed(stored_row(&file, y)?, to);
        }
        return Ok(());
    }
    let mut samples = zeroed::<u8>(width * file.height * channels)?;
    let rows = samples.chunks_exact_mut(width * channels);
    if let Coding::Runs = file.coding {
        let places = runs::decode(&file)?;
        for (row, places) in rows.zip(places.chunks_exact(width * file.bits.div_ceil(8))) {
            write_row(&file, places, row, channels);
        }
    } else {
        let mut places = vec![0; if file.bits < 8 { width } else { 0 }];
        for (y, row) in rows.enumerate() {
            let mut stored = stored_row(&file, y)?;
            if file.bits < 8 {
                unpack(stored, file.bits, &mut places);
                stored = &places;
            }
            write_row(&file, stored, row, channels);
        }
    }
    let luma = if file.has_alpha_mask_in_header() { Luma::FloatFloor } else { Luma::Bits14 };
    Picture { samples: Samples::U8(&samples), channels, luma }.write(job, out)
}

/// The bytes of row `y`, the uppermost first, without what fills them up.
fn stored_row<'a>(file: &File<'a>, y: usize) -> Result<&'a [u8]> {
    let length = (file.width * file.bits).div_ceil(8);
    let pitch = length.next_multiple_of(4);
    let row = if file.is_top_down { y } else { file.height - 1 - y };
    let start = row * pitch;
    file.pixels
        .get(start..start + length)
        .ok_or_else(|| Error::invalid("truncated: the input ends before the image does"))
}

/// Writes the numbers that stand in a row, several in each byte.
fn unpack(stored: &[u8], bits: usize, places: &mut [u8]) {
    let per_byte = 8 / bits;
    let most = (1_u8 << bits) - 1;
    for (places, byte) in places.chunks_mut(per_byte).zip(stored) {
        for (at, place) in places.iter_mut().enumerate() {
            *place = byte >> (8 - bits * (at + 1)) & most;
        }
    }
}

/// Writes a row of pixels, or of numbers of colours, as so many channels.
fn write_row(file: &File<'_>, stored: &[u8], row: &mut [u8], channels: usize) {
    let pixels = row.chunks_exact_mut(channels);
    match file.bits {
        1..=8 => {
            for (pixel, &number) in pixels.zip(stored) {
                // Numbers behind the palette are black.
                let color = file.palette.get(usize::from(number)).unwrap_or(&[0; 3]);
                pixel.copy_from_slice(&color[..channels]);
            }
        }
        24 => write_reversed(stored, row),
        16 => {
            for (pixel, stored) in pixels.zip(stored.as_chunks::<2>().0) {
                write_masked(file, u32::from(u16::from_le_bytes(*stored)), pixel);
            }
        }
        _ => {
            for (pixel, stored) in pixels.zip(stored.as_chunks::<4>().0) {
                write_masked(file, u32::from_le_bytes(*stored), pixel);
            }
        }
    }
}

/// Writes red, green, blue and, if there is room, alpha, which is opaque where no mask says where it is.
fn write_masked(file: &File<'_>, stored: u32, pixel: &mut [u8]) {
    for (sample, mask) in pixel.iter_mut().zip(file.masks.colors) {
        *sample = mask.map_or(0, |mask| level(mask, stored, file.bits));
    }
    if let Some(alpha) = pixel.get_mut(3) {
        *alpha = file.masks.alpha.map_or(u8::MAX, |mask| level(mask, stored, file.bits));
    }
}

/// A sample of 8 bits. As in DALI, the low bits of one of 5 or 6 bits are 0, and what has more is rounded down.
fn level(mask: Mask, pixel: u32, bits: usize) -> u8 {
    let value = pixel >> mask.shift & mask.most();
    match mask.bits {
        5 | 6 if bits == 16 => (value << (8 - mask.bits)) as u8,
        _ => (u64::from(value) * 255 / u64::from(mask.most())) as u8,
    }
}

/// Writes the pixels of a row, the three samples of each in the other order.
#[multiversion(targets("x86_64+avx+avx2", "x86_64+ssse3"))]
fn write_reversed(from: &[u8], to: &mut [u8]) {
    for ([r, g, b], &[blue, green, red]) in to.as_chunks_mut::<3>().0.iter_mut().zip(from.as_chunks::<3>().0)
    {
        (*r, *g, *b) = (red, green, blue);
    }
}
