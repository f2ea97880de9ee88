//! JPEGs of the first kind that TIFF had (compression 6): tables, header and data lie anywhere in the file, and are put
//! together to one JPEG here. Some writers put a whole one there. Whatever tags say, three samples are luma and chroma,
//! as in libtiff.

use super::super::{ColorSpace, Conditions, DecodeOptions, Format, Job, Window, jpeg};
use super::colors::Pixels;
use super::files::whole_jpeg;
use super::layout::{Chunks, Colors, Layout};
use super::old_jpeg_parts::{Frame, Parts};
use super::pixels::memory;
use crate::error::{Error, Result};

const PROCESS: u16 = 512;
const BASELINE: u64 = 1;
const JPEG: u16 = 513;
const JPEG_LENGTH: u16 = 514;
const RESTARTS: u16 = 515;
const QUANTISATION: u16 = 519;
const HUFFMAN: [u16; 2] = [520, 521];

const START: [u8; 2] = [0xFF, 0xD8];
const END: [u8; 2] = [0xFF, 0xD9];
/// Bytes in front of what a segment holds.
const SEGMENT: usize = 4;
/// Bytes of a quantisation table, and counts of a Huffman table.
const QUANTISERS: usize = 64;
const COUNTS: usize = 16;
/// A JPEG is larger than the image by less than the largest block.
const LARGEST_BLOCK: usize = 32;

/// The samples, gray or luma and chroma.
///
/// # Errors
/// What cannot be put together, or is damaged then; when nobody waits any more.
pub(super) fn read(layout: &Layout<'_>, jpegs: &jpeg::Decoder, conditions: Conditions<'_>) -> Result<Pixels> {
    if layout.directory.number(PROCESS)?.is_some_and(|process| process != BASELINE) {
        return Err(Error::unsupported("old-style JPEG that is not of the baseline process"));
    }
    // Nothing is converted: the file's own weights of luma are for that.
    let (color, transform) = match (layout.colors, layout.samples) {
        (Colors::Gray | Colors::WhiteIsZero, 1) => (ColorSpace::Gray, None),
        (Colors::YCbCr, 3) => (ColorSpace::Rgb, Some(0)),
        (colors, samples) => {
            return Err(Error::unsupported(format!(
                "old-style JPEG of {samples} samples for colours of {colors:?}"
            )));
        }
    };
    if layout.planar || layout.bits != 8 {
        return Err(Error::unsupported("old-style JPEG with planes, or not of 8 bits"));
    }
    let chunks = layout.chunks()?;
    let file = whole_jpeg(&put_together(layout, &chunks)?, &[], transform)?;
    let header = jpeg::header(&file)?;
    let fits = |length: usize, shown: usize, of_chunk: usize| {
        (shown..=shown.max(of_chunk).next_multiple_of(LARGEST_BLOCK)).contains(&length)
    };
    let is_tile = chunks.is_tiled && chunks.counts == [1, 1];
    let [width, height] = if is_tile { [chunks.width, chunks.height] } else { [0, 0] };
    if !fits(header.width, layout.width, width)
        || !fits(header.height, layout.height, height)
        || header.channels != layout.samples
    {
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
    let window = Some(Window { x: 0, y: 0, width: layout.width, height: layout.height });
    // libtiff replicates their chroma.
    let options = DecodeOptions { color, smooth_chroma: false, window, ..DecodeOptions::default() };
    let mut samples = memory::<u8>(layout)?;
    jpegs.decode(&file, &Job::new(&file, &info, &options, conditions)?, &mut samples)?;
    Ok(Pixels::U8(samples))
}

/// A JPEG of the whole image: what its stream of its own has, then what the first strip begins with, and what neither
/// has from the tags.
fn put_together(layout: &Layout<'_>, chunks: &Chunks<'_>) -> Result<Vec<u8>> {
    let directory = &layout.directory;
    let place = |tag: u16| Ok::<_, Error>(directory.number(tag)?.and_then(|at| usize::try_from(at).ok()));
    let from = place(JPEG)?.filter(|&at| at > 0).and_then(|at| directory.bytes.get(at..));
    let from = from.filter(|from| from.starts_with(&START)).unwrap_or_default();
    let length = place(JPEG_LENGTH)?.filter(|&length| length > 0).unwrap_or(from.len());
    let told = &from[..length.min(from.len())];
    let count = chunks.counts[0] * chunks.counts[1];

    let mut parts = Parts::default();
    let (mut told, mut read) = (told, parts.read(told));
    // A length that ends within a segment is too short.
    if parts.scan.is_none() && told[read..].starts_with(&[0xFF]) && !told[read..].starts_with(&END) {
        parts = Parts::default();
        (told, read) = (from, parts.read(from));
    }
    // Data behind the scan's header, unless they are those of the first of several strips that know no restarts.
    if let Some(scan) = &parts.scan
        && read < told.len()
    {
        let first = chunks.start(0).and_then(|start| start.checked_sub(place(JPEG).ok().flatten()?));
        let is_strip =
            first.is_some_and(|first| first == read || read.checked_sub(SEGMENT + scan.len()) == Some(first));
        if count == 1 || parts.interval.is_some() || !is_strip {
            let mut file = parts.header()?;
            file.extend(&from[read..]);
            return Ok(file);
        }
    }
    let strips = Strips::read(layout, chunks, &mut parts)?;
    add_missing(layout, chunks, &mut parts)?;
    let interval = match parts.interval {
        None => place(RESTARTS)?.and_then(|interval| u16::try_from(interval).ok()).filter(|&i| i > 0),
        found => found,
    };
    parts.interval = match count {
        1 => interval,
        _ => Some(interval_of_strips(layout, chunks, &parts, interval)?),
    };
    let mut file = parts.header()?;
    strips.add_to(&mut file);
    file.extend(END);
    Ok(file)
}

/// The data of all strips, without headers.
struct Strips<'a>(Vec<&'a [u8]>);

impl<'a> Strips<'a> {
    /// Reads the headers that strips begin with to `parts`.
    fn read(layout: &Layout<'_>, chunks: &Chunks<'a>, parts: &mut Parts<'a>) -> Result<Self> {
        let count = chunks.counts[0] * chunks.counts[1];
        let (mut strips, mut all) = (Vec::new(), 0);
        for i in 0..count {
            let data = chunks.bytes(i, None)?;
            all += data.len();
            if all > layout.directory.bytes.len() {
                return Err(Error::invalid("damaged: strips that lie over one another"));
            }
            if i > 0 && data.starts_with(&START) {
                return Err(Error::unsupported("old-style JPEG with a whole JPEG in each of several strips"));
            }
            let data = match i {
                0 => &data[parts.read(data)..],
                // The header of the scan again.
                _ => parts.without_scan_header(data)?,
            };
            // A strip of one whole JPEG goes on to what it ends with.
            strips.push(if count == 1 { data } else { data.strip_suffix(&END).unwrap_or(data) });
        }
        Ok(Self(strips))
    }

    /// Adds them with restart markers between them, which are numbered anew.
    fn add_to(&self, file: &mut Vec<u8>) {
        if let [only] = self.0[..] {
            file.extend(only.strip_suffix(&END).unwrap_or(only));
            return;
        }
        let restart = |number: usize| [0xFF, 0xD0 + (number % 8) as u8];
        let mut number = 0;
        for (i, strip) in self.0.iter().enumerate() {
            if i > 0 {
                file.extend(restart(number));
                number += 1;
            }
            // What ends or begins with one has it already.
            let strip = if matches!(strip, [0xFF, 0xD0..=0xD7, ..]) && i > 0 { &strip[2..] } else { strip };
            let strip = match strip {
                [data @ .., 0xFF, 0xD0..=0xD7] if i + 1 < self.0.len() => data,
                strip => strip,
            };
            let begin = file.len();
            file.extend(strip);
            let mut at = begin;
            while let Some(found) = memchr::memchr(0xFF, &file[at..]) {
                at += found + 1;
                if matches!(file.get(at), Some(0xD0..=0xD7)) {
                    file[at - 1..=at].copy_from_slice(&restart(number));
                    number += 1;
                }
            }
        }
    }
}

/// Units between restarts where each strip begins anew; those between `told` ones if these are fewer.
fn interval_of_strips(
    layout: &Layout<'_>,
    chunks: &Chunks<'_>,
    parts: &Parts<'_>,
    told: Option<u16>,
) -> Result<u16> {
    let [across, down] = parts.frame.as_ref().map_or([1, 1], Frame::unit);
    let rows = 8 * down;
    let of_strip = layout.width.div_ceil(8 * across) * (chunks.height / rows);
    let is_whole = chunks.height.is_multiple_of(rows) && !chunks.is_tiled;
    let interval = u16::try_from(of_strip).ok().filter(|_| is_whole);
    let interval =
        interval.ok_or_else(|| Error::unsupported("old-style JPEG in strips of other than whole blocks"))?;
    match told {
        Some(told) if interval.is_multiple_of(told) => Ok(told),
        Some(told) => Err(Error::unsupported(format!(
            "old-style JPEG with a restart after {told} blocks, in strips of {interval}"
        ))),
        None => Ok(interval),
    }
}

/// Adds what tags say where no header did.
fn add_missing<'a>(layout: &Layout<'a>, chunks: &Chunks<'_>, parts: &mut Parts<'a>) -> Result<()> {
    let missing = || Error::invalid("damaged: old-style JPEG without its tables");
    let directory = &layout.directory;
    let table = |tag: u16, i: usize| -> Result<&'a [u8]> {
        let values = directory.values(tag)?.ok_or_else(missing)?;
        // Fewer tables than components: the last one is that of the others.
        let at = values.number(i.min(values.len().saturating_sub(1))).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| directory.bytes.get(at..)).ok_or_else(missing)
    };
    if !parts.has_quantisers() {
        for i in 0..layout.samples {
            let values = table(QUANTISATION, i)?.get(..QUANTISERS).ok_or_else(missing)?;
            parts.add_quantisers(i as u8, values);
        }
    }
    if !parts.has_codes() {
        for i in 0..layout.samples {
            for (class, tag) in (0..).zip(HUFFMAN) {
                let counts = table(tag, i)?.get(..COUNTS).ok_or_else(missing)?;
                let symbols: usize = counts.iter().map(|&count| usize::from(count)).sum();
                let all = table(tag, i)?.get(..COUNTS + symbols).ok_or_else(missing)?;
                parts.add_codes(class << 4 | i as u8, all)?;
            }
        }
    }
    if parts.frame.is_none() {
        // A tile is coded whole.
        let size = match chunks.is_tiled && chunks.counts == [1, 1] {
            true => [chunks.width, chunks.height],
            false => [layout.width, layout.height],
        };
        let [across, down] = layout.subsampling;
        parts.add_frame(size, layout.samples, (across << 4 | down) as u8)?;
    }
    parts.add_scan()
}
