//! Containers and streams of video.

use gesso::cpu::video::{Budget, Video};

/// Frames that are decoded, and pixels of the largest.
const MAX_FRAMES: usize = 8;
const MAX_PIXELS: usize = 1 << 18;

pub(crate) fn run(file: &[u8]) {
    let Ok(video) = Video::open(file) else { return };
    if video.width() * video.height() > MAX_PIXELS {
        return;
    }
    let wanted: Vec<usize> = (0..video.frames().min(MAX_FRAMES)).collect();
    let mut pixels = vec![0; video.width() * video.height() * 3];
    let budget = Budget::default();
    for run in video.runs(&wanted).unwrap_or_default() {
        let _ = video.decode(run, &budget, &mut |_, write| write(&mut pixels));
    }
}
