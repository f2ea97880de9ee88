//! Containers and streams of video.

use std::sync::Arc;

use gesso::cpu::video::{Budget, Video};

/// Frames that are decoded, and pixels of the largest: more take longer and find no more.
const MAX_FRAMES: usize = 6;
const MAX_PIXELS: usize = 1 << 16;
/// Frames whose packets are looked at.
const MAX_PACKETS: usize = 100;

/// Decodes frames.
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
