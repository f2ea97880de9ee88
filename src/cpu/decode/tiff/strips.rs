//! JPEGs inside of TIFF: each strip or tile is one, of which the file may hold the tables apart. Our JPEG decoder decodes them, so that
//! they are as libjpeg-turbo's, which libtiff uses.

use std::io::{Read, Seek};

use tiff::decoder::{ChunkType, Decoder};
use tiff::tags::Tag;

use super::super::orientation::Orientation;
use super::super::{ColorSpace, DecodeOptions, Format, ImageInfo, Job, jpeg};
use super::{failed, palette};
use crate::error::{Error, Result};

const JPEG_COMPRESSION: u16 = 7;
/// Values of `Tag::PhotometricInterpretation`.
const GRAY: u16 = 1;
const RGB: u16 = 2;
const YCBCR: u16 = 6;
const START: [u8; 2] = [0xFF, 0xD8];
const END: [u8; 2] = [0xFF, 0xD9];

/// Samples of the first image, interleaved, if it is made of JPEGs as they usually are; `None` leaves it to crate `tiff`.
///
/// # Errors
/// When a JPEG is damaged or nobody waits any more.
pub(super) fn decode<R: Read + Seek>(
    bytes: &[u8],
    decoder: &mut Decoder<R>,
    jpegs: &jpeg::Decoder,
    job: &Job<'_>,
) -> Result<Option<Vec<u8>>> {
    let number = |decoder: &mut Decoder<R>, tag| decoder.find_tag_unsigned::<u16>(tag).map_err(failed);
    let is_planar = number(decoder, Tag::PlanarConfiguration)?.unwrap_or(1) != 1;
    let channels = job.info.channels;
    let (color, transform) = match (palette::photometric(decoder), channels) {
        (Some(GRAY), 1) => (ColorSpace::Gray, None),
        (Some(RGB), 3) => (ColorSpace::Rgb, Some(0)),
        (Some(YCBCR), 3) => (ColorSpace::Rgb, Some(1)),
        _ => return Ok(None),
    };
    let is_jpeg = number(decoder, Tag::Compression)? == Some(JPEG_COMPRESSION);
    if !is_jpeg || is_planar || job.info.bit_depth != 8 {
        return Ok(None);
    }
    let tables = match decoder.find_tag(Tag::JPEGTables).map_err(failed)? {
        Some(value) => value.into_u8_vec().map_err(failed)?,
        None => Vec::new(),
    };
    let (offsets, sizes) = match decoder.get_chunk_type() {
        ChunkType::Strip => (Tag::StripOffsets, Tag::StripByteCounts),
        ChunkType::Tile => (Tag::TileOffsets, Tag::TileByteCounts),
    };
    let list = |decoder: &mut Decoder<R>, tag| {
        let list = decoder.find_tag_unsigned_vec::<u64>(tag).map_err(failed)?;
        Ok::<_, Error>(list.unwrap_or_default())
    };
    let (offsets, sizes) = (list(decoder, offsets)?, list(decoder, sizes)?);
    let (width, height) = job.info.stored_size();
    let (step_x, step_y) = decoder.chunk_dimensions();
    let (step_x, step_y) = (step_x as usize, (step_y as usize).min(height));
    if step_x == 0 || step_y == 0 {
        return Ok(None);
    }
    let across = width.div_ceil(step_x);
    let count = across * height.div_ceil(step_y);
    if offsets.len() != count || sizes.len() != count {
        return Ok(None);
    }
    let mut samples = vec![0; width * height * channels];
    let mut part = Vec::new();
    for (i, (&offset, &size)) in offsets.iter().zip(&sizes).enumerate() {
        let (left, top) = (i % across * step_x, i / across * step_y);
        let data = usize::try_from(offset)
            .ok()
            .and_then(|start| bytes.get(start..start.checked_add(usize::try_from(size).ok()?)?))
            .ok_or_else(|| Error::invalid("truncated: the input ends before the image does"))?;
        let file = whole(data, &tables, transform)?;
        let header = jpeg::header(&file)?;
        let (shown_width, shown_height) = (step_x.min(width - left), step_y.min(height - top));
        let fits = |length: usize, shown: usize, step: usize| (shown..=step).contains(&length);
        if !fits(header.width, shown_width, step_x)
            || !fits(header.height, shown_height, step_y.next_multiple_of(16))
            || header.channels != channels
        {
            return Err(Error::invalid(format!(
                "damaged: a JPEG of {} x {} pixels of {} samples in place of {step_x} x {step_y} of {channels}",
                header.width, header.height, header.channels
            )));
        }
        let info = ImageInfo {
            format: Format::Jpeg,
            width: header.width,
            height: header.height,
            channels,
            bit_depth: header.bit_depth,
            orientation: Orientation::default(),
            halves: header.halves,
        };
        let options = DecodeOptions { color, ..DecodeOptions::default() };
        part.resize(header.width * header.height * channels, 0);
        jpegs.decode(&file, &Job::new(&file, &info, &options, job.conditions)?, &mut part)?;
        let rows = part.chunks_exact(header.width * channels).take(shown_height);
        for (y, row) in rows.enumerate() {
            let start = ((top + y) * width + left) * channels;
            let shown = shown_width * channels;
            samples[start..start + shown].copy_from_slice(&row[..shown]);
        }
    }
    Ok(Some(samples))
}

/// A file of its own: the tables, and what says whether colours are transformed, which TIFF says elsewhere.
fn whole(data: &[u8], tables: &[u8], transform: Option<u8>) -> Result<Vec<u8>> {
    let data = data.strip_prefix(&START).ok_or_else(|| Error::invalid("damaged: no JPEG in a strip"))?;
    let tables = tables.strip_prefix(&START).unwrap_or_default();
    let tables = tables.strip_suffix(&END).unwrap_or(tables);
    let mut file = START.to_vec();
    if let Some(transform) = transform {
        file.extend(b"\xFF\xEE\x00\x0EAdobe\x00\x64\x00\x00\x00\x00");
        file.push(transform);
    }
    file.extend(tables);
    file.extend(data);
    Ok(file)
}
