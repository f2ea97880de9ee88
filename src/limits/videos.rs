//! Limits of videos: their files, frames and decoders, and those that come in pieces.

/// Frames of one video (five hours at 50 a second). Stops tables of a few kilobytes that tell of billions.
pub const MAX_VIDEO_FRAMES: usize = 1 << 20;

/// Frames a second of a video, and that are taken of one. Stops numbers whose products no integer holds.
pub const MAX_FRAME_RATE: f64 = 1e6;

/// How often a byte of a video's file may be one of a frame: tables may name the same bytes again and again, all of
/// which are read.
pub const MAX_VIDEO_OVERLAP: usize = 4;

/// Pixels of one frame of a video (8192 x 4352: 8K). What a decoder holds, it counts. Stops a header of a few bytes
/// that asks for gigabytes.
pub const MAX_VIDEO_PIXELS: usize = 8_192 * 4_352;

/// Bytes that decoders which an operator, in each batch in flight, or a reader keeps from one video to the next may
/// hold together: six of H.265 at 1080p. Stops videos of many sizes from filling memory.
pub const MAX_IDLE_DECODER_BYTES: usize = 256 << 20;

/// Frames that tables of a video in pieces may tell of before they come (almost three hours at 25 a second). Stops
/// fragments of a few bytes that each tell of a million more.
pub const MAX_VIDEO_FRAMES_AHEAD: usize = 1 << 18;

/// Pixels that are decoded for one sample, with those between a key frame and the frame that is wanted (33,000 frames
/// of 1080p). Stops small files whose frames repeat others from taking hours.
pub const MAX_VIDEO_DECODED_PIXELS: u64 = 1 << 36;

/// Decoders of a device's video engines that an operator keeps, and samples that it decodes on them at the same time.
/// The largest devices have seven engines, each of which has something to do while another sample begins or ends. A
/// decoder holds about twenty frames: 70 MB of 1080p.
pub const MAX_VIDEO_DECODERS: usize = 16;

/// Bytes of video files that a reader keeps in memory, beside the one that it reads. Sequences of one file often follow
/// each other.
pub const MAX_READER_VIDEO_BYTES: usize = 256 << 20;

/// Bytes of a frame, or of a table of the container, in a video that comes in pieces: they wait until the last of them
/// is there. Stops a size that a few bytes tell of from filling memory.
pub const MAX_VIDEO_PIECE: usize = 64 << 20;

/// Videos that come to one instance in pieces at the same time. Stops sequences that are begun and not ended from
/// filling its table; what they hold is [`MAX_STREAM_BYTES`]' matter.
pub const MAX_STREAMS: usize = 64;

/// Bytes that those may hold together from one piece to the next: frames of a decoder (53 MB of 1080p), the sequence at
/// hand, the bytes that are no whole frame. Stops a few large ones from filling memory, where many small ones do not.
pub const MAX_STREAM_BYTES: usize = 4 << 30;

/// Milliseconds that such a video may wait for its next piece, where the model says nothing. Stops those whose clients
/// have gone from being kept.
pub const STREAM_IDLE_MS: u64 = 30_000;

/// Milliseconds that such a video must have waited before a new one takes its place where [`MAX_STREAMS`] are open.
/// Stops clients who begin videos and send nothing more from keeping all others out, and those who begin many from
/// ending videos whose pieces come.
pub const STREAM_REPLACED_MS: u64 = 5_000;

/// Packets of sound in an MP4 (27 hours of AAC at 44,100 a second). Stops tables of a few kilobytes that tell of
/// billions.
pub const MAX_SOUND_PACKETS: usize = 1 << 22;

/// Boxes, elements or chunks of a container of a video, or of AVIF and HEIC, on one level. Stops files of millions of
/// empty ones.
pub const MAX_VIDEO_BOXES: usize = 1 << 22;
