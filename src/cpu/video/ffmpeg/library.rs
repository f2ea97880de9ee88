//! FFmpeg's libraries: where they are, and whether they can be used. Looked for once, when the first video is decoded.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::Library;

use super::sys::{self, Api, Context, Frame, Version};
use crate::cpu::video::nal;
use crate::error::{Error, Result};

/// The environment variable that names their folder, or says `off`.
const VARIABLE: &str = "GESSO_FFMPEG";
const OFF: &str = "off";
/// How the names of files begin that hold libavcodec, and what stands before its version.
const NAME: &str = "libavcodec";
const VERSION: &str = ".so.";
/// What the loader says behind the name of a library that another one needs.
const MISSING: &str = ": cannot open shared object file";
/// Libraries that one needs of its folder.
const MOST_NEEDED: usize = 128;

/// A clip of H.264 that `tests/data/video/make.py` makes: five frames of 48 x 32 pixels with two slices each, some made
/// of those on both sides. What FFmpeg makes of it, as [`sum`] counts.
const CLIP: &[u8] = include_bytes!("clip.h264");
const CLIP_SUM: u64 = 0xE3B7_4E73_9EB1_005A;
/// As which frame each packet of it is shown.
const CLIP_ORDER: [i64; 5] = [0, 2, 1, 4, 3];
/// The packet of which a slice is left out to see whether that is told.
const DAMAGED: usize = 2;

/// What was found of FFmpeg.
pub(super) enum Found {
    /// Libraries that decode the clip as they must.
    Used(&'static Api, PathBuf),
    /// Nobody wants them, or there are none.
    Absent(String),
    /// What is there cannot be used.
    Refused(String),
}

/// Looks for the libraries, the first time that it is called.
pub(super) fn found() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| {
        let named = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        if named.as_ref().is_some_and(|value| value == OFF) {
            return Found::Absent(format!("{VARIABLE} is `{OFF}`"));
        }
        match look(named.as_ref().map(Path::new)) {
            Ok(Some((library, path))) => used(library, path),
            Ok(None) => Found::Absent("libavcodec.so.59 to 62 are not on the library path".to_owned()),
            Err(error) => {
                tracing::warn!("videos are decoded without FFmpeg: {error}");
                Found::Refused(error)
            }
        }
    })
}

/// Tries whether a library can be used.
fn used(library: Library, path: PathBuf) -> Found {
    let refused = |error: Error| {
        let text = format!("`{}`: {error}", path.display());
        tracing::warn!("videos are decoded without FFmpeg: {text}");
        Found::Refused(text)
    };
    // It stays for good: what is used of it may outlive everything else.
    match Api::of(library) {
        Err(error) => refused(error),
        Ok(api) => {
            let api: &'static Api = Box::leak(Box::new(api));
            match test(api) {
                Err(error) => refused(error),
                Ok(()) => {
                    let (release, version, file) = (api.version.release, &api.text, path.display());
                    tracing::info!(
                        "videos are decoded by FFmpeg {release}, libavcodec {version} of `{file}`"
                    );
                    Found::Used(api, path)
                }
            }
        }
    }
}

/// Loads libavcodec: of `folder`, else from where the loader looks.
///
/// # Errors
/// A folder without it, and why it cannot be loaded.
fn look(folder: Option<&Path>) -> std::result::Result<Option<(Library, PathBuf)>, String> {
    let Some(folder) = folder else {
        let names = Version::ALL.map(|version| PathBuf::from(format!("{NAME}{VERSION}{}", version.codec)));
        return Ok(names.into_iter().find_map(|name| Some((sys::load(&name).ok()?, name))));
    };
    let inside =
        std::fs::read_dir(folder).map_err(|error| format!("{VARIABLE}: `{}`: {error}", folder.display()))?;
    let files: Vec<PathBuf> = inside.flatten().map(|entry| entry.path()).collect();
    let of = |version: Version| files.iter().find(|file| major(file) == Some(version.codec));
    let file = Version::ALL
        .into_iter()
        .find_map(of)
        .ok_or_else(|| format!("{VARIABLE}: `{}` holds no {NAME}{VERSION}59 to 62", folder.display()))?;
    let library = load_with(file, folder, &mut MOST_NEEDED.clone())?;
    Ok(Some((library, file.clone())))
}

/// The version in a file's name, if it is that of libavcodec: `libavcodec.so.61`, `libavcodec-7ee0753d.so.61.19.101`.
fn major(file: &Path) -> Option<u32> {
    let name = file.file_name()?.to_str()?.strip_prefix(NAME)?;
    let (_, version) = name.split_once(VERSION)?;
    version.split('.').next()?.parse().ok()
}

/// Loads a library, and before it those of its folder that it asks for and the loader does not find there.
fn load_with(file: &Path, folder: &Path, left: &mut usize) -> std::result::Result<Library, String> {
    loop {
        let error = match sys::load(file) {
            Ok(library) => return Ok(library),
            Err(error) => error,
        };
        let needed = error.split_once(MISSING).and_then(|(name, _)| Path::new(name).file_name());
        let needed = needed.map(|name| folder.join(name)).filter(|needed| needed != file && needed.exists());
        let (Some(needed), Some(less)) = (needed, left.checked_sub(1)) else { return Err(error) };
        *left = less;
        // Loaded for good, under the name that is asked for.
        std::mem::forget(load_with(&needed, folder, left)?);
    }
}

/// The clip's packets.
fn packets() -> Vec<Vec<u8>> {
    let mut packets: Vec<Vec<u8>> = vec![Vec::new()];
    let (mut has_slice, begins) = (false, |unit: &[u8]| unit.get(1).is_some_and(|byte| byte & 0x80 != 0));
    for unit in nal::ranges(CLIP).filter_map(|range| CLIP.get(range)) {
        let is_slice = matches!(unit.first().map(|head| head & 31), Some(1 | 5));
        if has_slice && (!is_slice || begins(unit)) {
            packets.push(Vec::new());
            has_slice = false;
        }
        has_slice |= is_slice;
        if let Some(packet) = packets.last_mut() {
            packet.extend_from_slice(&[0, 0, 1]);
            packet.extend_from_slice(unit);
        }
    }
    packets
}

/// All pictures of packets.
fn pictures(api: &'static Api, packets: &[Vec<u8>]) -> Result<Vec<Frame>> {
    let mut context = Context::new(api, "h264", &super::options(super::H264, 1 << 20))?;
    let mut found = Vec::new();
    for (place, packet) in (0..).zip(packets) {
        context.send(packet, place).map_err(Error::unsupported)?;
        while let Some(frame) = context.receive().map_err(Error::unsupported)? {
            found.push(frame);
        }
    }
    context.end();
    while let Some(frame) = context.receive().map_err(Error::unsupported)? {
        found.push(frame);
    }
    Ok(found)
}

/// A number that tells pictures apart.
fn sum(frames: &[Frame]) -> u64 {
    let mut sum = 0xCBF2_9CE4_8422_2325;
    for frame in frames {
        let planes = [(0, 32), (1, 16), (2, 16)].into_iter();
        let rows = planes.flat_map(|(plane, rows)| (0..rows).map(move |y| frame.samples(plane, y)));
        for &sample in rows.flatten() {
            sum = (sum ^ u64::from(sample)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    sum
}

/// Decodes the clip, whole and damaged.
///
/// # Errors
/// When a library makes something else of it than FFmpeg does.
fn test(api: &'static Api) -> Result<()> {
    let wrong =
        |what: String| Error::unsupported(format!("its libavcodec {} fails a test: {what}", api.text));
    let mut packets = packets();
    let frames = pictures(api, &packets)?;
    let places: Vec<i64> = frames.iter().map(Frame::place).collect();
    if places != CLIP_ORDER {
        return Err(wrong(format!("frames of packets {places:?}, expected {CLIP_ORDER:?}")));
    }
    if let Some(frame) = frames.iter().find(|frame| frame.size() != [48, 32] || frame.format() != "yuv420p") {
        return Err(wrong(format!(
            "a frame of {:?} in {}, expected [48, 32] in yuv420p",
            frame.size(),
            frame.format()
        )));
    }
    if let Some(frame) = frames.iter().find(|frame| frame.is_damaged()) {
        return Err(wrong(format!("frame {} is damaged, expected none", frame.place())));
    }
    let found = sum(&frames);
    if found != CLIP_SUM {
        return Err(wrong(format!("samples of sum {found:016x}, expected {CLIP_SUM:016x}")));
    }
    let packet = packets.get_mut(DAMAGED).ok_or_else(|| Error::internal("a clip without frames"))?;
    let last = nal::ranges(packet).last().map_or(0, |unit| unit.start - 3);
    packet.truncate(last);
    let frames = pictures(api, &packets)?;
    let damaged: Vec<i64> = frames.iter().filter(|frame| frame.is_damaged()).map(Frame::place).collect();
    if damaged != [DAMAGED as i64] {
        return Err(wrong(format!("frames of packets {damaged:?} are damaged, expected {DAMAGED}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        let major = |name: &str| major(Path::new(name));
        assert_eq!(major("/a/libavcodec.so.59"), Some(59));
        assert_eq!(major("/a/libavcodec-7ee0753d.so.61.19.101"), Some(61));
        for other in ["libavcodec.so", "libavformat.so.61", "libavcodec.a", "libavcodec.so.x"] {
            assert_eq!(major(other), None, "{other}");
        }
    }

    #[test]
    fn the_clip_has_five_packets() {
        let packets = packets();
        let units: Vec<usize> = packets.iter().map(|packet| nal::ranges(packet).count()).collect();
        assert_eq!(units, [4, 2, 2, 2, 2]);
    }
}
