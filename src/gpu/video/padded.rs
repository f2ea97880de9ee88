//! Frames with zeros behind them. Of VP8 and VP9, a damaged frame may be read beyond its end, where a decoder shall
//! find zeros; the engines find what was in their memory, as of another video. It must not know decoders.

use std::borrow::Cow;

use super::coded_video::Codec;

/// Zeros for each block of 64 x 64 pixels, and for a frame: more than the shortest codes of all its symbols take.
const ZEROS_PER_BLOCK: usize = 128;
const ZEROS: usize = 1024;

/// The frames of a packet of pictures of `size`, columns and rows.
pub(super) fn frames(codec: Codec, packet: &[u8], [width, height]: [usize; 2]) -> Vec<Cow<'_, [u8]>> {
    if !matches!(codec, Codec::Vp8 | Codec::Vp9) {
        return vec![Cow::Borrowed(packet)];
    }
    let blocks = width.div_ceil(64) * height.div_ceil(64);
    let pad = |frame: &[u8]| {
        let mut padded = Vec::with_capacity(frame.len() + ZEROS_PER_BLOCK * blocks + ZEROS);
        padded.extend_from_slice(frame);
        padded.resize(padded.capacity(), 0);
        Cow::Owned(padded)
    };
    match codec {
        Codec::Vp9 => parts(packet).into_iter().map(pad).collect(),
        _ => vec![pad(packet)],
    }
}

/// The frames of a packet of VP9: several where its last byte is the mark of an index (Annex B of VP9's specification).
fn parts(packet: &[u8]) -> Vec<&[u8]> {
    let split = || {
        let mark = *packet.last()?;
        let (count, bytes) = (usize::from(mark & 7) + 1, usize::from(mark >> 3 & 3) + 1);
        let begin = packet.len().checked_sub(2 + count * bytes)?;
        if mark & 0xE0 != 0xC0 || packet[begin] != mark {
            return None;
        }
        let (mut rest, index) = (&packet[..begin], &packet[begin + 1..packet.len() - 1]);
        let mut found = Vec::with_capacity(count);
        for size in index.chunks_exact(bytes) {
            let size = size.iter().rev().fold(0, |size, byte| size << 8 | usize::from(*byte));
            let (frame, behind) = rest.split_at_checked(size)?;
            (rest, found) = (behind, [found, vec![frame]].concat());
        }
        Some(found)
    };
    split().unwrap_or_else(|| vec![packet])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_has_zeros_behind_it() {
        let index = [0xC1, 2, 3, 0xC1];
        let packet = [&[1, 2, 3, 4, 5][..], &index].concat();
        let found = frames(Codec::Vp9, &packet, [65, 64]);
        assert_eq!(found.iter().map(|frame| frame.len()).collect::<Vec<_>>(), [2 + 1280, 3 + 1280]);
        assert!(found[1][..3] == [3, 4, 5] && found[1][3..].iter().all(|&byte| byte == 0));
        // What is no index is a part of a frame.
        assert_eq!(frames(Codec::Vp9, &packet[1..], [65, 64]).len(), 1);
        assert_eq!(*frames(Codec::H264, &packet, [65, 64])[0], *packet);
    }
}
