//! How the data of a batch is cut into pieces, and how many of them a block of threads has. Pure arithmetic: it must not know
//! files or devices.
//!
//! Small pieces give a small batch enough threads to fill the device; large ones need fewer guesses and links for the same
//! data.

/// Threads of a block that guesses and links, or decodes.
pub(super) const GUESS_THREADS: u32 = 256;
pub(super) const DECODE_THREADS: u32 = 128;

/// Bits of an image that a block of threads has at hand.
const WINDOW_BITS: u32 = 4_096 * 32;

/// Pieces behind its own that a block of threads may read.
const AHEAD: u32 = 8;

/// Bits between two segments, at most.
const GAP_BITS: u32 = 160;

/// Bits of data up to which a batch is tiny, and up to which it is small.
const TINY_BITS: usize = 1_000_000;
const SMALL_BITS: usize = 20_000_000;

/// Bits of a piece: what a thread decodes by itself. And guesses which block of an MCU it begins with. The words of a piece
/// are an odd number, so that neighbouring threads read from other banks.
const TINY: Cut = Cut { bits: 9 * 32, guesses: 6 };
const SMALL: Cut = Cut { bits: 17 * 32, guesses: 6 };
const LARGE: Cut = Cut { bits: 33 * 32, guesses: 3 };

/// How all images of a batch are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    bits: u32,
    guesses: u32,
}

impl Cut {
    /// Every cut that there is.
    pub const ALL: [Self; 3] = [TINY, SMALL, LARGE];

    /// For a batch with `bytes` of data.
    pub fn of(bytes: usize) -> Self {
        match bytes.saturating_mul(8) {
            0..TINY_BITS => TINY,
            TINY_BITS..=SMALL_BITS => SMALL,
            _ => LARGE,
        }
    }

    /// Bits of a piece.
    pub(super) fn bits(self) -> u32 {
        self.bits
    }

    /// Pieces of a segment of `bits`; the last one may be shorter.
    pub(super) fn pieces(self, bits: u32) -> u32 {
        bits.div_ceil(self.bits).max(1)
    }

    /// Pieces of `segments` that are together at most so long, at most.
    pub(super) fn most_pieces(self, bytes: usize, segments: usize) -> usize {
        bytes * 8 / self.bits as usize + segments
    }

    /// Guesses for a piece of an image with `blocks` in an MCU.
    pub(super) fn guesses(self, blocks: u32) -> u32 {
        self.guesses.min(blocks).max(1)
    }

    /// Pieces that a block of threads guesses and links, of an image with `blocks` in an MCU and so many segments.
    pub(super) fn guessed_at_once(self, blocks: u32, segments: u32) -> u32 {
        (GUESS_THREADS / self.guesses(blocks)).min(self.window(segments))
    }

    /// Pieces that a block of threads decodes.
    pub(super) fn decoded_at_once(self, segments: u32) -> u32 {
        DECODE_THREADS.min(self.window(segments))
    }

    /// Pieces that fit into what a block of threads has at hand.
    fn window(self, segments: u32) -> u32 {
        let gap = if segments > 1 { GAP_BITS } else { 0 };
        (WINDOW_BITS / (self.bits + gap) - AHEAD).max(1)
    }
}

/// Neighbours of `count` things, `most` at once: the first, and how many.
pub(super) fn groups(count: u32, most: u32) -> impl Iterator<Item = (u32, u32)> {
    let most = most.max(1);
    (0..count).step_by(most as usize).map(move |first| (first, most.min(count - first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_batches_have_larger_pieces() {
        let bits = [0, 124_999, 125_000, 2_500_000, 2_500_001, usize::MAX].map(|bytes| Cut::of(bytes).bits());
        assert_eq!(bits, [288, 288, 544, 544, 1_056, 1_056]);
    }

    #[test]
    fn pieces_of_any_segments_fit_into_the_window() {
        for cut in Cut::ALL {
            assert_eq!(cut.bits() / 32 % 2, 1);
            for blocks in 1..=10 {
                assert!((1..=blocks).contains(&cut.guesses(blocks)) && cut.guesses(blocks) >= blocks.min(2));
                for segments in [1, 2, 1_000] {
                    let guessed = cut.guessed_at_once(blocks, segments);
                    let decoded = cut.decoded_at_once(segments);
                    assert!(guessed * cut.guesses(blocks) <= GUESS_THREADS && decoded <= DECODE_THREADS);
                    let gap = if segments > 1 { GAP_BITS } else { 0 };
                    assert!((guessed.max(decoded) + AHEAD) * (cut.bits() + gap) <= WINDOW_BITS);
                }
            }
        }
    }

    #[test]
    fn groups_have_everything_once() {
        assert_eq!(groups(0, 3).count(), 0);
        assert_eq!(groups(7, 3).collect::<Vec<_>>(), [(0, 3), (3, 3), (6, 1)]);
        assert_eq!(groups(2, 0).collect::<Vec<_>>(), [(0, 1), (1, 1)]);
    }
}
