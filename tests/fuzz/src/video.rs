//! Containers and streams of video.

use std::sync::{Arc, LazyLock};

use gesso::cpu::video::{Budget, Ffmpeg, Growing, Video};

/// Frames that are decoded, and pixels of the largest: more take longer and find no more.
const MAX_FRAMES: usize = 6;
const MAX_PIXELS: usize = 1 << 16;
/// Bytes that a video in pieces may hold: more than a decoder of the largest frames, and less than tables of a few
/// bytes tell of.
const MAX_HELD: usize = 1 << 30;
/// Frames whose packets are looked at.
const MAX_PACKETS: usize = 100;

/// Whether an FFmpeg decodes some videos, which is said once: a run's log tells what was looked at.
static HAS_FFMPEG: LazyLock<bool> = LazyLock::new(|| {
    let found = Ffmpeg::find();
    eprintln!("FFmpeg: {found:?}");
    matches!(found, Ffmpeg::Used(_))
});

/// Decodes frames, of the whole and of pieces; where there is an FFmpeg by that and by our own decoders.
pub(crate) fn run(file: &[u8]) {
    decode(file, |budget| budget);
    if *HAS_FFMPEG {
        decode(file, Budget::by_own_decoders);
    }
}

/// Which decoders a budget is for.
type Way = fn(Budget<'static>) -> Budget<'static>;

fn decode(file: &[u8], way: Way) {
    grow(file, way);
    let Ok(video) = Video::open(file) else { return };
    if video.width() * video.height() > MAX_PIXELS {
        return;
    }
    let wanted: Vec<usize> = (0..video.frames().min(MAX_FRAMES)).collect();
    let mut pixels = vec![0; video.width() * video.height() * 3];
    let budget = way(Budget::default());
    for run in video.runs(&wanted).unwrap_or_default() {
        let _ = video.decode(run, &budget, &mut |_, frame| frame.write(&mut pixels));
    }
}

/// Decodes a video that comes in pieces. Of how many bytes, those of the file say.
fn grow(file: &[u8], way: Way) {
    let length = file.iter().fold(0_usize, |sum, &byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    let (mut growing, mut frames) = (Growing::default(), 0);
    let budget = way(Budget::of((MAX_FRAMES * MAX_PIXELS) as u64));
    let (mut rest, length) = (file, [1, 16, 256, usize::MAX][length % 4]);
    loop {
        let (piece, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        if growing.push(piece, rest.is_empty()).is_err() {
            return;
        }
        while let Ok(true) = growing.prepare(&budget) {
            let mut pixels = vec![0; growing.size().iter().product::<usize>() * 3];
            frames += 1;
            if growing.write(&budget, &mut pixels).is_err() || frames == MAX_FRAMES {
                return;
            }
        }
        assert!(growing.held() <= MAX_HELD, "{} bytes for a file of {}", growing.held(), file.len());
        if rest.is_empty() {
            return;
        }
    }
}

/// Takes videos apart as for the engines of a device: no pixel is decoded.
pub(crate) fn packets(file: &[u8]) {
    let Ok(video) = Video::open(file) else { return };
    let video = Arc::new(video);
    let wanted: Vec<usize> = (0..video.frames().min(MAX_PACKETS)).collect();
    let together = video.is_ascending().then_some(&wanted[..]).filter(|wanted| !wanted.is_empty());
    let (budget, mut packet) = (Budget::default(), Vec::new());
    for run in video.runs(&wanted).unwrap_or_default().into_iter().chain(together) {
        let Ok(mut coded) = video.coded(run) else { return };
        let mut shown = Vec::new();
        while let Ok(Some(place)) = coded.packet(&budget, &mut packet) {
            shown.push(place);
            let _ = coded.factors(packet.first().copied().unwrap_or(0), place % 2 == 0);
        }
        // As they are shown, then as a damaged stream might show them.
        shown.sort_unstable();
        for place in shown.into_iter().chain([usize::MAX]) {
            let frames = coded.frames(place).unwrap_or_default();
            assert!(frames.iter().all(|frame| run.contains(frame)), "frames that nobody wants: {frames:?}");
        }
        let _ = coded.is_done();
    }
    assert!(wanted.iter().all(|&frame| video.seconds(frame).is_finite()));
}
