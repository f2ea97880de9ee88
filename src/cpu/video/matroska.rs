//! Matroska and WebM (RFC 9559): EBML elements to the first video track.

use super::container::{Container, Found};
use super::track::{Codec, Track};
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};
use crate::limits;

/// Elements by the names of the standard.
mod id {
    pub(super) const EBML: u32 = 0x1A45_DFA3;
    pub(super) const SEGMENT: u32 = 0x1853_8067;
    pub(super) const INFO: u32 = 0x1549_A966;
    pub(super) const TIMESTAMP_SCALE: u32 = 0x2A_D7B1;
    pub(super) const TRACKS: u32 = 0x1654_AE6B;
    pub(super) const TRACK_ENTRY: u32 = 0xAE;
    pub(super) const TRACK_NUMBER: u32 = 0xD7;
    pub(super) const TRACK_TYPE: u32 = 0x83;
    pub(super) const CODEC_ID: u32 = 0x86;
    pub(super) const CODEC_PRIVATE: u32 = 0x63A2;
    pub(super) const CONTENT_ENCODINGS: u32 = 0x6D80;
    pub(super) const VIDEO: u32 = 0xE0;
    pub(super) const PIXEL_WIDTH: u32 = 0xB0;
    pub(super) const PIXEL_HEIGHT: u32 = 0xBA;
    pub(super) const CLUSTER: u32 = 0x1F43_B675;
    pub(super) const TIMESTAMP: u32 = 0xE7;
    pub(super) const SIMPLE_BLOCK: u32 = 0xA3;
    pub(super) const BLOCK_GROUP: u32 = 0xA0;
    pub(super) const BLOCK: u32 = 0xA1;
    pub(super) const REFERENCE: u32 = 0xFB;
}

/// One element: what it is, and where its content begins and ends in the file.
#[derive(Debug, Clone, Copy)]
struct Element {
    id: u32,
    start: usize,
    end: usize,
    /// Bytes of it that are behind where the file, or what it is in, ends.
    missing: usize,
    /// Whether it says how long it is.
    is_sized: bool,
}

/// The track that is read.
struct Chosen {
    number: u64,
}

/// Whether a file begins as these do.
pub(super) fn is_matroska(file: &[u8]) -> bool {
    file.starts_with(&id::EBML.to_be_bytes())
}

/// A number of one to eight bytes whose first byte says how many; `None` where all its bits are set: it is not known.
fn number(bytes: &mut Bytes<'_>) -> Result<Option<u64>> {
    let first = bytes.u8()?;
    let more = first.leading_zeros() as usize;
    if more > 7 {
        return Err(Error::invalid("an element's size of more than eight bytes"));
    }
    let mask = 0x7F_u64 >> more;
    let rest = bytes.take(more)?;
    let value = rest.iter().fold(u64::from(first) & mask, |value, byte| value << 8 | u64::from(*byte));
    let all = (mask << (8 * more)) | ((1_u64 << (8 * more)) - 1);
    Ok((value != all).then_some(value))
}

/// Reads elements of `file`, of which it counts how many there were.
struct Walk<'a> {
    file: &'a [u8],
    elements: usize,
}

impl<'a> Walk<'a> {
    /// The element at `at`, which ends at `end` at the latest; `None` where none fits.
    fn element(&mut self, at: usize, end: usize) -> Result<Option<Element>> {
        let Some(rest) = self.file.get(at..end).filter(|rest| !rest.is_empty()) else { return Ok(None) };
        self.elements += 1;
        if self.elements > limits::MAX_VIDEO_BOXES {
            return Err(Error::invalid("a file of more elements than the limit"));
        }
        let mut bytes = Bytes(rest);
        let length = rest.first().map_or(0, |first| first.leading_zeros() as usize + 1);
        let Ok(name) = bytes.take(length) else { return Ok(None) };
        if length > 4 {
            return Err(Error::invalid("bytes that are no element"));
        }
        let id = name.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
        let Ok(size) = number(&mut bytes) else { return Ok(None) };
        let start = end - bytes.0.len();
        let is_sized = size.is_some();
        let size = size.and_then(|size| usize::try_from(size).ok());
        let own_end = size.map_or(end, |size| start.saturating_add(size));
        let missing = own_end.saturating_sub(end);
        Ok(Some(Element { id, start, end: own_end.min(end), missing, is_sized }))
    }

    fn children(&mut self, of: Element) -> Result<Vec<Element>> {
        let (mut at, mut found) = (of.start, Vec::new());
        while let Some(element) = self.element(at, of.end)? {
            found.push(element);
            at = element.end;
        }
        Ok(found)
    }

    fn content(&self, element: Element) -> &'a [u8] {
        self.file.get(element.start..element.end).unwrap_or_default()
    }

    /// The content as an unsigned number.
    fn unsigned(&self, element: Element) -> u64 {
        self.content(element).iter().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}

/// Reads the first video track of a file.
///
/// # Errors
/// A file without video, in a codec that is not decoded, or with packets that are compressed once more.
pub(super) fn open(file: &[u8]) -> Result<Track> {
    let mut walk = Walk { file, elements: 0 };
    let mut at = 0;
    while let Some(top) = walk.element(at, file.len())? {
        if top.id == id::SEGMENT {
            return segment(&mut walk, top);
        }
        at = top.end;
    }
    Err(Error::invalid("a file without a segment"))
}

fn segment(walk: &mut Walk<'_>, segment: Element) -> Result<Track> {
    let mut found: Option<(Chosen, Track)> = None;
    // Nanoseconds; a millisecond where a file does not say.
    let mut unit = 1_000_000;
    let mut at = segment.start;
    while let Some(element) = walk.element(at, segment.end)? {
        at = element.end;
        match (element.id, &mut found) {
            (id::INFO, _) => {
                let scales =
                    walk.children(element)?.into_iter().filter(|field| field.id == id::TIMESTAMP_SCALE);
                unit = scales.map(|scale| walk.unsigned(scale)).next_back().unwrap_or(unit);
            }
            (id::TRACKS, None) => found = tracks(walk, element)?,
            // A cluster of unknown size ends where the next one begins.
            (id::CLUSTER, Some((chosen, track))) => at = cluster(walk, element, chosen, track)?,
            _ => {}
        }
    }
    let unit = u32::try_from(unit).unwrap_or(u32::MAX);
    let track = found.map(|(_, track)| Track { tick: [unit, 1_000_000_000], ..track });
    track.ok_or_else(|| Error::invalid("no video track"))
}

/// A segment of which the elements come one after the other, with those of its clusters.
#[derive(Default)]
pub(super) struct Pieces {
    found: Option<(Chosen, Track)>,
    /// Of the cluster at hand.
    time: i64,
}

impl Container for Pieces {
    fn track(&self) -> Option<&Track> {
        self.found.as_ref().map(|(_, track)| track)
    }

    fn look(&mut self, bytes: &[u8], _at: u64, _is_last: bool) -> Result<Found> {
        let mut walk = Walk { file: bytes, elements: 0 };
        let Some(element) = walk.element(0, bytes.len())? else { return Ok(Found::Cut) };
        let passed = Found::Nothing(element.end.saturating_add(element.missing));
        let is_read = matches!(element.id, id::TRACKS | id::TIMESTAMP | id::SIMPLE_BLOCK | id::BLOCK_GROUP);
        match (element.id, &mut self.found) {
            (id::SEGMENT | id::CLUSTER, _) => Ok(Found::Nothing(element.start)),
            _ if !element.is_sized => {
                Err(Error::invalid("an element of unknown size, which only clusters may have"))
            }
            _ if is_read && element.missing > 0 => Ok(Found::Cut),
            (id::TRACKS, None) => {
                self.found = tracks(&mut walk, element)?;
                if self.found.is_none() { Err(Error::invalid("no video track")) } else { Ok(passed) }
            }
            (id::TIMESTAMP, _) => {
                self.time = i64::try_from(walk.unsigned(element)).unwrap_or(i64::MAX);
                Ok(passed)
            }
            (id::SIMPLE_BLOCK | id::BLOCK_GROUP, Some((chosen, track))) => {
                frames(&mut walk, element, self.time, chosen, track)?;
                Ok(Found::Packets(std::mem::take(&mut track.packets), element.end))
            }
            _ => Ok(passed),
        }
    }
}

/// The first video track of those that are described.
fn tracks(walk: &mut Walk<'_>, all: Element) -> Result<Option<(Chosen, Track)>> {
    for entry in walk.children(all)?.into_iter().filter(|entry| entry.id == id::TRACK_ENTRY) {
        let fields = walk.children(entry)?;
        let field = |id: u32| fields.iter().copied().find(|field| field.id == id);
        if field(id::TRACK_TYPE).map(|field| walk.unsigned(field)) != Some(1) {
            continue;
        }
        if field(id::CONTENT_ENCODINGS).is_some() {
            return Err(Error::unsupported(
                "a video track whose packets are compressed or encrypted once more",
            ));
        }
        let codec = match field(id::CODEC_ID).map(|field| walk.content(field)).unwrap_or_default() {
            b"V_MPEG4/ISO/AVC" => Codec::H264,
            b"V_MPEGH/ISO/HEVC" => Codec::H265,
            b"V_VP8" => Codec::Vp8,
            b"V_VP9" => Codec::Vp9,
            b"V_AV1" => Codec::Av1,
            b"V_MJPEG" => Codec::Mjpeg,
            b"V_MPEG4/ISO/SP" | b"V_MPEG4/ISO/ASP" | b"V_MPEG4/ISO/AP" => Codec::Mpeg4,
            name => {
                let name = String::from_utf8_lossy(name);
                return Err(Error::unsupported(format!(
                    "video of type `{name}`, expected H.264, H.265, VP8, VP9, AV1, Motion JPEG or MPEG-4 Part 2"
                )));
            }
        };
        let number = field(id::TRACK_NUMBER).map_or(0, |field| walk.unsigned(field));
        let mut track = Track::new(codec);
        if matches!(codec, Codec::H264 | Codec::H265 | Codec::Av1 | Codec::Mpeg4) {
            track.config =
                field(id::CODEC_PRIVATE).map(|field| walk.content(field).to_vec()).unwrap_or_default();
        }
        if let Some(video) = field(id::VIDEO) {
            for size in walk.children(video)? {
                let place = match size.id {
                    id::PIXEL_WIDTH => 0,
                    id::PIXEL_HEIGHT => 1,
                    _ => continue,
                };
                track.size[place] = usize::try_from(walk.unsigned(size)).unwrap_or(usize::MAX);
            }
        }
        return Ok(Some((Chosen { number }, track)));
    }
    Ok(None)
}

/// Adds the blocks of one cluster. Returns where it ends.
fn cluster(walk: &mut Walk<'_>, cluster: Element, chosen: &Chosen, track: &mut Track) -> Result<usize> {
    let (mut at, mut time) = (cluster.start, 0_i64);
    while let Some(element) = walk.element(at, cluster.end)? {
        match element.id {
            id::TIMESTAMP => time = i64::try_from(walk.unsigned(element)).unwrap_or(i64::MAX),
            id::SIMPLE_BLOCK | id::BLOCK_GROUP => frames(walk, element, time, chosen, track)?,
            id::CLUSTER => return Ok(at),
            _ => {}
        }
        at = element.end;
    }
    Ok(cluster.end)
}

/// Adds the frame of a simple block, or those of a group.
fn frames(walk: &mut Walk<'_>, of: Element, time: i64, chosen: &Chosen, track: &mut Track) -> Result<()> {
    if of.id == id::SIMPLE_BLOCK {
        return block(walk, of, None, time, chosen, track);
    }
    let parts = walk.children(of)?;
    let is_key = !parts.iter().any(|part| part.id == id::REFERENCE);
    let blocks = parts.into_iter().filter(|part| part.id == id::BLOCK);
    blocks.into_iter().try_for_each(|part| block(walk, part, Some(is_key), time, chosen, track))
}

/// Adds the frame of one block.
fn block(
    walk: &Walk<'_>,
    block: Element,
    is_key: Option<bool>,
    cluster_time: i64,
    chosen: &Chosen,
    track: &mut Track,
) -> Result<()> {
    let mut bytes = Bytes(walk.content(block));
    if block.missing > 0 || number(&mut bytes)? != Some(chosen.number) {
        return Ok(());
    }
    let (time, flags) = (bytes.u16()?.cast_signed(), bytes.u8()?);
    if flags & 0x06 != 0 {
        return Err(Error::unsupported("several frames in one block (lacing)"));
    }
    let start = block.end - bytes.0.len();
    let time = cluster_time.saturating_add(i64::from(time));
    track.push(walk.file.len(), start..block.end, time, is_key.unwrap_or(flags & 0x80 != 0))
}
