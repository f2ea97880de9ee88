//! JPEGs of the first kind that TIFF had (compression 6): tables, header and data lie anywhere in the file, and are put
//! together to one JPEG here. Some writers put a whole one there.

use super::super::{ColorSpace, Conditions, DecodeOptions, Format, Job, jpeg};
use super::colors::Pixels;
use super::files::whole_jpeg;
use super::layout::{Colors, Layout};
use super::pixels::memory;
use crate::error::{Error, Result};

const PROCESS: u16 = 512;
const BASELINE: u64 = 1;
const JPEG: u16 = 513;
const JPEG_LENGTH: u16 = 514;
const QUANTISATION: u16 = 519;
const HUFFMAN: [u16; 2] = [520, 521];

const START: [u8; 2] = [0xFF, 0xD8];
const END: [u8; 2] = [0xFF, 0xD9];
const SCAN: u8 = 0xDA;
/// Bytes of a quantisation table, and counts of a Huffman table.
const QUANTISERS: usize = 64;
const COUNTS: usize = 16;

/// The samples, gray or RGB.
///
/// # Errors
/// What cannot be put together, or is damaged then; when nobody waits any more.
pub(super) fn read(layout: &Layout<'_>, jpegs: &jpeg::Decoder, conditions: Conditions<'_>) -> Result<Pixels> {
    if layout.directory.number(PROCESS)?.is_some_and(|process| process != BASELINE) {
        return Err(Error::unsupported("old-style JPEG that is not of the baseline process"));
    }
    let (color, transform) = match (layout.colors, layout.samples) {
        (Colors::Gray, 1) => (ColorSpace::Gray, None),
        (Colors::Rgb, 3) => (ColorSpace::Rgb, Some(0)),
        (Colors::YCbCr, 3) => (ColorSpace::Rgb, Some(1)),
        (colors, samples) => {
            return Err(Error::unsupported(format!(
                "old-style JPEG of {samples} samples for colours of {colors:?}"
            )));
        }
    };
    if layout.planar || layout.bits != 8 {
        return Err(Error::unsupported("old-style JPEG with planes, or not of 8 bits"));
    }
    let file = whole_jpeg(&put_together(layout)?, &[], transform)?;
    let header = jpeg::header(&file)?;
    if (header.width, header.height, header.channels) != (layout.width, layout.height, layout.samples) {
        return Err(Error::invalid(format!(
            "damaged: a JPEG of {} x {} pixels of {} samples in place of {} x {} of {}",
            header.width, header.height, header.channels, layout.width, layout.height, layout.samples
        )));
    }
    if header.bit_depth != 8 {
        return Err(Error::invalid(format!(
            "damaged: a JPEG with samples of {} bits, expected 8",
            header.bit_depth
        )));
    }
    let info = header.as_stored(Format::Jpeg);
    // libtiff replicates their chroma.
    let options = DecodeOptions { color, smooth_chroma: false, ..DecodeOptions::default() };
    let mut samples = memory::<u8>(layout)?;
    jpegs.decode(&file, &Job::new(&file, &info, &options, conditions)?, &mut samples)?;
    Ok(Pixels::U8(samples))
}

/// A JPEG of the whole image.
fn put_together(layout: &Layout<'_>) -> Result<Vec<u8>> {
    let directory = &layout.directory;
    let place = |tag: u16| Ok::<_, Error>(directory.number(tag)?.and_then(|at| usize::try_from(at).ok()));
    if let Some(at) = place(JPEG)?.filter(|&at| at > 0)
        && let Some(from) = directory.bytes.get(at..)
        && from.starts_with(&START)
    {
        let length = place(JPEG_LENGTH)?.filter(|&length| length > 0).unwrap_or(from.len());
        let told = &from[..length.min(from.len())];
        return match header_end(told) {
            Some(end) if end < told.len() => Ok(from.to_vec()),
            // The scan's header is the last of it, and strips have the data.
            Some(_) => with_data(layout, told.to_vec()),
            None => {
                let mut file = told.strip_suffix(&END).unwrap_or(told).to_vec();
                scan_header(layout, &mut file);
                with_data(layout, file)
            }
        };
    }
    let chunks = layout.chunks()?;
    let first = chunks.bytes(0, None)?;
    if first.starts_with(&START) {
        return match chunks.counts {
            [1, 1] => Ok(first.to_vec()),
            _ => Err(Error::unsupported("old-style JPEG with a whole JPEG in each of several strips")),
        };
    }
    let mut file = START.to_vec();
    tables(layout, &mut file)?;
    frame_header(layout, &mut file)?;
    scan_header(layout, &mut file);
    with_data(layout, file)
}

/// Where the header of the first scan ends.
fn header_end(jpeg: &[u8]) -> Option<usize> {
    let mut at = START.len();
    loop {
        let &[0xFF, marker, high, low] = jpeg.get(at..)?.first_chunk()? else { return None };
        at = at.checked_add(2 + usize::from(u16::from_be_bytes([high, low])))?;
        if marker == SCAN {
            return (at <= jpeg.len()).then_some(at);
        }
    }
}

fn tables(layout: &Layout<'_>, file: &mut Vec<u8>) -> Result<()> {
    let missing = || Error::invalid("damaged: old-style JPEG without its tables");
    let directory = &layout.directory;
    let table = |tag: u16, i: usize| -> Result<&[u8]> {
        let values = directory.values(tag)?.ok_or_else(missing)?;
        // Fewer tables than components: the last one is that of the others.
        let at = values.number(i.min(values.len().saturating_sub(1))).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| directory.bytes.get(at..)).ok_or_else(missing)
    };
    for i in 0..layout.samples {
        let values = table(QUANTISATION, i)?.get(..QUANTISERS).ok_or_else(missing)?;
        file.extend([0xFF, 0xDB, 0, 67, i as u8]);
        file.extend(values);
        for (class, tag) in (0..).zip(HUFFMAN) {
            let counts = table(tag, i)?.get(..COUNTS).ok_or_else(missing)?;
            let symbols: usize = counts.iter().map(|&count| usize::from(count)).sum();
            let all = table(tag, i)?.get(..COUNTS + symbols).ok_or_else(missing)?;
            let length = u16::try_from(3 + all.len()).map_err(|_| missing())?;
            file.extend([0xFF, 0xC4]);
            file.extend(length.to_be_bytes());
            file.push(class << 4 | i as u8);
            file.extend(all);
        }
    }
    Ok(())
}

fn frame_header(layout: &Layout<'_>, file: &mut Vec<u8>) -> Result<()> {
    let side = |side: usize| {
        u16::try_from(side)
            .map_err(|_| Error::invalid(format!("damaged: a JPEG with a side of {side} pixels")))
    };
    let [across, down] = layout.subsampling;
    file.extend([0xFF, 0xC0, 0, 8 + 3 * layout.samples as u8, 8]);
    file.extend(side(layout.height)?.to_be_bytes());
    file.extend(side(layout.width)?.to_be_bytes());
    file.push(layout.samples as u8);
    for i in 0..layout.samples as u8 {
        let factors = if i == 0 { (across << 4 | down) as u8 } else { 0x11 };
        file.extend([i + 1, factors, i]);
    }
    // Each strip begins anew.
    let chunks = layout.chunks()?;
    if chunks.counts[1] > 1 {
        let rows = 8 * down;
        let mcus = layout.width.div_ceil(8 * across) * (chunks.height / rows);
        let interval =
            u16::try_from(mcus).ok().filter(|_| chunks.height.is_multiple_of(rows) && !chunks.is_tiled);
        let interval = interval
            .ok_or_else(|| Error::unsupported("old-style JPEG in strips of other than whole blocks"))?;
        file.extend([0xFF, 0xDD, 0, 4]);
        file.extend(interval.to_be_bytes());
    }
    Ok(())
}

fn scan_header(layout: &Layout<'_>, file: &mut Vec<u8>) {
    let samples = layout.samples as u8;
    file.extend([0xFF, SCAN, 0, 6 + 2 * samples, samples]);
    (0..samples).for_each(|i| file.extend([i + 1, i << 4 | i]));
    file.extend([0, 63, 0]);
}

/// Adds the data of all strips, restart markers between them, and an end.
fn with_data(layout: &Layout<'_>, mut file: Vec<u8>) -> Result<Vec<u8>> {
    let chunks = layout.chunks()?;
    let count = chunks.counts[0] * chunks.counts[1];
    let mut all = 0;
    for i in 0..count {
        let data = chunks.bytes(i, None)?;
        let data = data.strip_suffix(&END).unwrap_or(data);
        all += data.len();
        if all > layout.directory.bytes.len() {
            return Err(Error::invalid("damaged: strips that lie over one another"));
        }
        file.extend(data);
        let ends_with_restart = matches!(data, [.., 0xFF, 0xD0..=0xD7]);
        if i + 1 < count && !ends_with_restart {
            file.extend([0xFF, 0xD0 + (i % 8) as u8]);
        }
    }
    file.extend(END);
    Ok(file)
}
