//! Matroska and WebM (RFC 9559): EBML elements to the first video track.

use super::container::{Container, Found};
use super::track::{Codec, Track};
use crate::cpu::bytes::Bytes;
use crate::cpu::matroska::{Element, Walk, id, number};
use crate::error::{Error, Result};

pub(super) use crate::cpu::matroska::is_matroska;

/// The track that is read.
struct Chosen {
    number: u64,
}

/// Reads the first video track of a file.
///
/// # Errors
/// A file without video, in a codec that is not decoded, or with packets that are compressed once more.
pub(super) fn open(file: &[u8]) -> Result<Track> {
    let mut walk = Walk::new(file);
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
        let mut walk = Walk::new(bytes);
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
