//! MP4 and QuickTime (ISO/IEC 14496-12): boxes to the first video track. Sample tables are `mp4_samples`'s.

use super::mp4_samples::{self, Fragments};
use super::mpeg4;
use super::track::{Codec, Track};
use crate::cpu::atoms::{atoms, find};
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};
use crate::limits;

/// Motion JPEG, as object type of an elementary stream (ISO/IEC 14496-1).
const MJPEG: u8 = 0x6C;

pub(in crate::cpu) fn find_path<'a>(bytes: &'a [u8], path: &[&[u8; 4]]) -> Option<&'a [u8]> {
    path.iter().try_fold(bytes, |bytes, name| find(bytes, name))
}

/// Whether a file begins as these do.
pub(in crate::cpu) fn is_mp4(file: &[u8]) -> bool {
    let names = [b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp"];
    file.get(4..8).is_some_and(|name| names.iter().any(|known| known.as_slice() == name))
}

/// Reads the first video track of a file.
///
/// # Errors
/// A file without video, in a codec that is not decoded, or whose tables contradict one another.
pub(super) fn open(file: &[u8]) -> Result<Track> {
    let moov =
        find(file, b"moov").ok_or_else(|| Error::invalid("no `moov` box, which says what is where"))?;
    let (mut track, fragments) = movie(moov, file.len(), limits::MAX_VIDEO_FRAMES)?;
    if let Some(mut fragments) = fragments {
        for moof in atoms(file).filter(|atom| atom.name == *b"moof") {
            fragments.read(file.len(), moof, &mut track)?;
        }
    }
    Ok(track)
}

/// Reads the first video track that a `moov` box describes, with the frames that it tells of in a file of `len` bytes,
/// at `most` so many, and what is needed to read fragments, if there are some.
///
/// # Errors
/// As for [`open`].
pub(super) fn movie(moov: &[u8], len: usize, most: usize) -> Result<(Track, Option<Fragments>)> {
    let tracks = atoms(moov).filter(|atom| atom.name == *b"trak").map(|atom| atom.body);
    let is_video = |trak: &&[u8]| {
        find_path(trak, &[b"mdia", b"hdlr"]).and_then(|hdlr| hdlr.get(8..12)) == Some(b"vide".as_slice())
    };
    let trak = tracks.into_iter().find(is_video).ok_or_else(|| Error::invalid("no video track"))?;
    let table = find_path(trak, &[b"mdia", b"minf", b"stbl"])
        .ok_or_else(|| Error::invalid("a video track without sample tables"))?;
    let mut track = entry(find(table, b"stsd").unwrap_or_default())?;
    track.most = most;
    mp4_samples::read(len, table, &mut track)?;
    let extends = find(moov, b"mvex");
    let fragments = extends.map(|extends| Ok(Fragments::new(extends, track_id(trak)?))).transpose()?;
    track.tick = [1, timescale(find_path(trak, &[b"mdia", b"mdhd"])).unwrap_or(1)];
    track.edits = edits(moov, trak)?;
    Ok((track, fragments))
}

pub(in crate::cpu) fn track_id(trak: &[u8]) -> Result<u32> {
    let mut header = Bytes(find(trak, b"tkhd").unwrap_or_default());
    let version = header.u8()?;
    header.skip(if version == 1 { 19 } else { 11 })?;
    header.u32()
}

/// Codec, size and configuration from the first sample description.
fn entry(stsd: &[u8]) -> Result<Track> {
    let body = stsd.get(8..).unwrap_or_default();
    let entry = atoms(body).next().ok_or_else(|| Error::invalid("a video track without a description"))?;
    let mut fields = Bytes(entry.body);
    fields.skip(24)?;
    let size = [usize::from(fields.u16()?), usize::from(fields.u16()?)];
    fields.skip(50)?;
    let boxes = fields.0;
    let stream = find(boxes, b"esds").and_then(mpeg4::elementary_stream);
    let (codec, config) = match &entry.name {
        b"avc1" | b"avc3" => (Codec::H264, b"avcC"),
        b"hvc1" | b"hev1" => (Codec::H265, b"hvcC"),
        b"vp08" => (Codec::Vp8, b"vpcC"),
        b"vp09" => (Codec::Vp9, b"vpcC"),
        b"av01" => (Codec::Av1, b"av1C"),
        b"jpeg" | b"mjpg" | b"MJPG" | b"mjpa" => (Codec::Mjpeg, b"    "),
        b"mp4v" if stream.is_some_and(|(kind, _)| kind == MJPEG) => (Codec::Mjpeg, b"    "),
        b"mp4v" if stream.is_some_and(|(kind, _)| kind == mpeg4::OBJECT_TYPE) => (Codec::Mpeg4, b"esds"),
        name => {
            let name = String::from_utf8_lossy(name);
            return Err(Error::unsupported(format!(
                "video of type `{name}`, expected H.264, H.265, VP8, VP9, AV1, Motion JPEG or MPEG-4 Part 2"
            )));
        }
    };
    let mut track = Track::new(codec);
    track.size = size;
    if matches!(codec, Codec::H264 | Codec::H265) {
        let missing = || Error::invalid("a video track without the parameters of its codec");
        track.config = find(boxes, config).ok_or_else(missing)?.to_vec();
    }
    if codec == Codec::Av1 {
        track.config = find(boxes, config).unwrap_or_default().to_vec();
    }
    if codec == Codec::Mpeg4 {
        track.config = stream.map(|(_, parameters)| parameters.to_vec()).unwrap_or_default();
    }
    Ok(track)
}

/// The unit of time in `mvhd` or `mdhd`: parts of a second.
pub(in crate::cpu) fn timescale(header: Option<&[u8]>) -> Result<u32> {
    let mut header = Bytes(header.unwrap_or_default());
    let version = header.u8()?;
    header.skip(if version == 1 { 19 } else { 11 })?;
    header.u32().map(|scale| scale.max(1))
}

/// Which parts of the track's time the edit list shows. Where nothing is to be shown for a while, nothing is.
pub(in crate::cpu) fn edits(moov: &[u8], trak: &[u8]) -> Result<Vec<std::ops::Range<i64>>> {
    let Some(list) = find_path(trak, &[b"edts", b"elst"]) else { return Ok(Vec::new()) };
    let (movie, media) = (timescale(find(moov, b"mvhd"))?, timescale(find_path(trak, &[b"mdia", b"mdhd"]))?);
    let mut list = Bytes(list);
    let version = list.u8()?;
    list.skip(3)?;
    let mut edits = Vec::new();
    for _ in 0..list.u32()? {
        let (duration, start) = if version == 1 {
            (i64::try_from(list.u64()?).unwrap_or(i64::MAX), list.u64()?.cast_signed())
        } else {
            (i64::from(list.u32()?), i64::from(list.u32()?.cast_signed()))
        };
        list.skip(4)?;
        if start < 0 {
            continue;
        }
        // No duration: up to the end, as in files that are written while they are recorded.
        let wide = i128::from(duration) * i128::from(media);
        let length = (wide + i128::from(movie) / 2) / i128::from(movie);
        let length = if duration == 0 { i64::MAX } else { i64::try_from(length).unwrap_or(i64::MAX) };
        edits.push(start..start.saturating_add(length));
    }
    Ok(edits)
}
