//! Video files to RGB frames: MP4 and QuickTime, Matroska and WebM, AVI, IVF, streams of H.264 and H.265 without a
//! container; in H.264, H.265, VP8, VP9, AV1 and Motion JPEG; MPEG-4 Part 2 for devices and FFmpeg alone. It must not
//! know operators: bytes and numbers of frames in, pixels out.
//!
//! ```text
//! file -> mp4, matroska, avi, raw -> Track (packets, times)                 `Video::open`: no pixel is decoded
//!                                      |  which frames: from which key frame to which packet
//!                                      v
//!         h264, h265, vp8, vp9, av1, mjpeg, ffmpeg (VideoDecoder) -> Picture -> color -> RGB  `Video::decode`
//!                                      ^
//! pieces -> mp4_pieces, matroska, raw_pieces: packets as they come                            `Growing`
//! ```
//!
//! Frames are counted as they are shown: by their times, as far as an edit list shows them. A frame is decoded from the
//! last key frame before it, without those on the way that no other is made of, and nothing is decoded behind the last
//! frame that is wanted. As in DALI, the rotation that
//! a container asks for is not applied, and VP8, VP9 and Motion JPEG are taken as BT.601 whatever they say; H.264,
//! H.265 and AV1 are converted as they say, and as BT.601 where they say nothing.

mod av1;
mod avi;
mod budget;
mod codec;
mod coded;
mod container;
mod cursor;
mod decoder;
mod decoding;
mod ffmpeg;
mod file;
mod growing;
mod h264;
mod h264_kept;
mod h265;
mod h265_idle;
mod h265_kept;
pub(in crate::cpu) mod h265_parameters;
pub(in crate::cpu) mod h265_still;
mod idle;
mod matroska;
mod mjpeg;
pub(in crate::cpu) mod mp4;
mod mp4_pieces;
pub(in crate::cpu) mod mp4_samples;
pub(in crate::cpu) mod mpeg4;
mod nal;
mod padding;
mod raw;
mod raw_pieces;
mod run;
mod several;
mod track;
mod vp8;
mod vp9;

use crate::cpu::formats::Format;
use crate::error::{Context, Error, Result};
use track::{Packet, Shown, Track};

pub use super::yuv::{Factors, TakeRow};
pub use budget::Budget;
pub use coded::{Coded, Coding};
pub use cursor::{Cursor, Sequences};
pub use ffmpeg::Ffmpeg;
pub use file::File;
pub use growing::Growing;
pub use idle::Idle;
pub use padding::Padding;
pub use run::{Frame, TakeFrame};
pub use several::{Efforts, Target, fill_color};

/// A video whose container was read.
#[derive(Debug)]
pub struct Video<'a> {
    file: File<'a>,
    track: Track,
    size: [usize; 2],
    /// The frames that are shown.
    shown: Vec<Shown>,
    /// The packets where decoding may begin.
    keys: Vec<usize>,
}

/// Keys that are looked at before a frame for one that is shown before it. One or two do in files that are not made to
/// waste time.
const KEYS_BACK: usize = 16;

/// Frames a second of files that do not say.
const USUAL_RATE: f64 = 25.0;

/// The unit of time that FFmpeg gives raw streams.
const RAW_TICK: [u32; 2] = [1, 1_200_000];

impl<'a> Video<'a> {
    /// Reads what the container says of the video in `file`, and the parameters of its codec.
    ///
    /// # Errors
    /// A file of no known kind, without video, in an unsupported codec, or whose tables are damaged; more than
    /// [`crate::limits::MAX_VIDEO_FRAMES`] frames, or larger ones than [`crate::limits::MAX_VIDEO_PIXELS`].
    pub fn open(file: impl Into<File<'a>>) -> Result<Self> {
        let file = file.into();
        let mut track = open(&file).context(|| "video".to_owned())?;
        track.check_overlap(file.len()).context(|| "video".to_owned())?;
        codec::mark_packets(&file, &mut track)?;
        let first = track.packets.first().ok_or_else(|| Error::invalid("a video without a frame"))?;
        let size = codec::picture_size(&track, first.of(&file)).context(|| "video".to_owned())?;
        let shown = track.shown()?;
        let keys = (0..track.packets.len()).filter(|&packet| track.packets[packet].key).collect();
        Ok(Self { file, track, size, shown, keys })
    }

    /// How its frames are compressed.
    pub fn format(&self) -> Format {
        codec::format(self.track.codec)
    }

    /// How many frames are shown.
    pub fn frames(&self) -> usize {
        self.shown.len()
    }

    /// Columns of every frame.
    pub fn width(&self) -> usize {
        self.size[0]
    }

    /// Rows of every frame.
    pub fn height(&self) -> usize {
        self.size[1]
    }

    /// Bytes of memory that it takes, beside its file.
    pub fn held(&self) -> usize {
        self.track.held()
            + self.shown.capacity() * size_of::<Shown>()
            + self.keys.capacity() * size_of::<usize>()
    }

    /// When frame `frame` is shown, in seconds from the beginning; frames of files that do not say come 25 times a
    /// second.
    pub fn seconds(&self, frame: usize) -> f64 {
        let time = self.shown.get(frame).map_or(0, |shown| shown.time);
        let [unit, parts] = self.track.tick.map(f64::from);
        time as f64 * unit / parts.max(1.0)
    }

    /// `seconds` rounded towards 0 to the unit of its times, which is FFmpeg's for a raw stream: as DALI does before it
    /// looks for the frame that is shown then.
    pub fn in_units(&self, seconds: f64) -> f64 {
        let tick = if self.track.timed { self.track.tick } else { RAW_TICK };
        let [unit, parts] = tick.map(f64::from);
        let rounded = (seconds * parts.max(1.0) / unit).trunc() * unit / parts.max(1.0);
        if rounded.is_finite() { rounded } else { seconds }
    }

    /// Frames a second, on average: those of files that do not say, or that have one frame, come 25 times.
    pub fn rate(&self) -> f64 {
        let time = |shown: Option<&Shown>| shown.map_or(0, |shown| shown.time);
        let ticks = time(self.shown.last()).saturating_sub(time(self.shown.first())) as f64;
        let [unit, parts] = self.track.tick.map(f64::from);
        let rate = self.shown.len().saturating_sub(1) as f64 * parts / (ticks * unit);
        if rate.is_finite() && rate > 0.0 { rate } else { USUAL_RATE }
    }

    /// The frames `wanted`, ascending numbers without repetition, in runs that begin with the same key frame: each run
    /// is decoded without the others, so several threads may.
    ///
    /// # Errors
    /// A frame that there is not.
    pub fn runs<'w>(&self, wanted: &'w [usize]) -> Result<Vec<&'w [usize]>> {
        let keys: Vec<usize> = wanted.iter().map(|&frame| self.key_of(frame)).collect::<Result<_>>()?;
        let mut rest = wanted;
        let run = |keys: &[usize]| {
            let (run, after) = rest.split_at(keys.len());
            rest = after;
            run
        };
        Ok(keys.chunk_by(|a, b| a == b).map(run).collect())
    }

    /// The bytes of packet `number`.
    fn packet(&self, number: usize) -> Option<&[u8]> {
        self.track.packets.get(number).map(|packet| packet.of(&self.file))
    }

    /// The packet that decoding must begin with for frame `frame`: the last key frame that is not shown after it.
    fn key_of(&self, frame: usize) -> Result<usize> {
        let shown = self.shown.get(frame);
        let packet = shown
            .map(|shown| shown.packet)
            .ok_or_else(|| Error::invalid(format!("frame {frame} of a video of {} frames", self.frames())))?;
        let packets = &self.track.packets;
        let time = packets[packet].time;
        // Frames that are shown before a key frame may stand behind it; then one of the keys before serves.
        let mut keys =
            self.keys[..self.keys.partition_point(|&key| key <= packet)].iter().rev().take(KEYS_BACK);
        Ok(keys.find(|&&key| packets[key].time <= time).copied().unwrap_or(0))
    }

    /// The packet behind the last one that must be decoded from key frame `key` on, so that the picture of packet
    /// `last` comes.
    fn end_of(&self, key: usize, last: usize) -> usize {
        if self.track.timed {
            return last + 1;
        }
        // Which of the frames up to the next key comes first, only the decoder knows.
        let later = self.keys.partition_point(|&other| other <= key.max(last));
        self.keys.get(later).copied().unwrap_or(self.track.packets.len())
    }

    /// Whether a packet is not decoded that follows key frame `key`: it is shown before that, and perhaps made of
    /// frames that stand before it.
    fn is_left_out(&self, key: usize, packet: &Packet) -> bool {
        self.track.timed && self.track.packets.get(key).is_some_and(|key| packet.time < key.time)
    }

    /// Whether packet `a` is shown behind packet `b`.
    fn is_behind(&self, a: usize, b: usize) -> bool {
        let time = |packet: usize| {
            let found = self.track.packets.get(packet).filter(|_| self.track.timed);
            (found.map_or(0, |found| found.time), packet)
        };
        time(a) > time(b)
    }

    /// Whether every frame is shown behind the one before it: only an edit list goes back, or shows a frame twice.
    pub fn is_ascending(&self) -> bool {
        self.shown.windows(2).all(|pair| matches!(pair, [a, b] if self.is_behind(b.packet, a.packet)))
    }
}

/// How the frames of a file are compressed, as its container says; `None` where there is none that is decoded.
pub fn file_format(file: &[u8]) -> Option<Format> {
    open(file).ok().map(|track| codec::format(track.codec))
}

/// Reads a container of any kind.
fn open(file: &[u8]) -> Result<Track> {
    if mp4::is_mp4(file) {
        return mp4::open(file);
    }
    if matroska::is_matroska(file) {
        return matroska::open(file);
    }
    if avi::is_avi(file) {
        return avi::open(file);
    }
    if raw::is_ivf(file) {
        return raw::open_ivf(file);
    }
    if let Some(codec) = raw::annex_b_codec(file) {
        return raw::open_annex_b(file, codec);
    }
    if file.is_empty() {
        return Err(Error::invalid("a video of no bytes"));
    }
    Err(Error::invalid("not a video of a known kind: expected MP4, Matroska, WebM, AVI, IVF or Annex B"))
}
