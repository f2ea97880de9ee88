//! Rows of the tables of kernels: how the data of images is cut, and which block of threads has what of it. It must not
//! know files.

use bytemuck::Zeroable;

use super::coded::{BLOCK, Coded};
use super::constants::{
    AHEAD, DECODE_THREADS, DECODE_WINDOW_BITS, GUESSES, MAX_COMPONENTS, MOST_HALVINGS, PIXELS_BLOCKS,
    SCAN_THREADS, SKIP_THREADS, SKIP_WINDOW_BITS,
};
use super::part::Part;
use super::scan::Segment;
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;

/// How the data of a batch is cut into pieces, each for a thread: the more data, the longer, as long as the device is
/// full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Bits of a piece: an odd number of words, so that neighbouring threads read from different banks of shared
    /// memory.
    pub(in crate::gpu::jpeg) bits: u32,
    /// Guesses which block of an MCU a piece begins with. More make it likelier that one is right, and cost as much
    /// each.
    guesses: u32,
}

impl Cut {
    /// For a few images: what counts is how long one thread takes. Shorter pieces leave images whose links are not
    /// found.
    pub(super) const SMALL: Self = Self { bits: 544, guesses: GUESSES };
    /// For more than the device can take at once: what counts is the sum of all work.
    pub(super) const LARGE: Self = Self { bits: 1_056, guesses: 1 };

    /// Every cut.
    pub const ALL: [Self; 2] = [Self::SMALL, Self::LARGE];

    /// For a batch with so many bytes of data.
    pub fn of(bytes: usize) -> Self {
        const SMALL_BYTES: usize = 3 << 20;
        if bytes < SMALL_BYTES { Self::SMALL } else { Self::LARGE }
    }

    /// The same for an image whose MCUs have so many bits on average. Where they have more than those of photos, it
    /// takes a decoder that starts anywhere longer until it is right: pieces are as long as an MCU, and there are more
    /// guesses.
    pub(in crate::gpu::jpeg) fn for_mcus(self, bits: usize) -> Self {
        if bits <= PHOTO_MCU_BITS {
            return self;
        }
        let words = (bits.min(MAX_MCU_BITS) / 32) as u32;
        Self { bits: self.bits.max((words | 1) * 32), guesses: Self::SMALL.guesses }
    }

    /// Pieces of a segment of `bits` bits.
    pub(super) fn pieces(self, bits: u32) -> u32 {
        bits.div_ceil(self.bits).max(1)
    }
}

/// Bits of an MCU that are taken into account: the longest pieces must leave room for several in a window.
const MAX_MCU_BITS: usize = 8_192;

/// Bits of an MCU of six blocks in photos of quality 95.
const PHOTO_MCU_BITS: usize = 1_024;

device_struct! {
    /// An image.
    pub(super) struct Image as Image {
        /// Entropy-coded data.
        pub(super) data: u64 = "const uint32_t *",
        pub(super) pixels: u64 = "uint8_t *",
        /// Whole words of data that can be read.
        pub(super) words: u32,
        /// In the tables of the batch.
        pub(super) first_segment: u32,
        pub(super) segments: u32,
        pub(super) first_piece: u32,
        /// 0: a progressive image, whose scans jpeg_progressive decodes.
        pub(super) pieces: u32,
        piece_bits: u32,
        guesses: u32,
        pub(super) first_block: u32,
        pub(super) blocks: u32,
        /// DC and AC of the first pair, then of the second.
        pub(super) tables: [u32; 4],
        mcu_blocks: u32,
        /// For each block of an MCU a bit: which pair.
        pairs: u32,
        /// For each block of an MCU two bits: which component.
        components: u32,
        /// Of the window; without one, of the image.
        width: u32,
        height: u32,
        mcus_across: u32,
        /// Of each component: log2 of by how much it is sampled more coarsely than the picture.
        factor_x: [u8; 4],
        factor_y: [u8; 4],
        /// Of each component: its first block of an MCU, and how many there are across.
        first: [u8; 4],
        across: [u8; 4],
        pub(super) quantisation: [u32; MAX_COMPONENTS],
        /// 0 gray, 1 YCbCr, 2 RGB.
        color: u32,
        /// Of the MCU, in blocks.
        mcu_width: u32,
        mcu_height: u32,
        /// Where the window begins.
        left: u32,
        top: u32,
        /// The first MCU that the window lies in, and where the window begins there.
        first_mcu: u32,
        left_in_mcu: u32,
        top_in_mcu: u32,
        /// MCUs across that the window lies in.
        window_across: u32,
        /// Of its components' planes, when it has any.
        pub(super) first_plane: u32,
    }
}

impl Image {
    /// What the file says; what depends on the other images of its batch is 0.
    pub(super) fn new(coded: &Coded<'_>, part: &Part, cut: Cut) -> Result<Self> {
        let small = |value: usize| {
            u32::try_from(value).map_err(|_| Error::internal(format!("{value} of something in a JPEG")))
        };
        let ([mcu_width, mcu_height], [mcus_across, _]) = (coded.factors(), coded.grid());
        let mcu_blocks = small(coded.blocks())?;
        let [mcu_columns, mcu_rows] = coded.factors().map(|blocks| blocks * BLOCK);
        let cut = cut.for_mcus(coded.mcu_bits());
        let mut image = Self {
            piece_bits: cut.bits,
            guesses: mcu_blocks.min(cut.guesses),
            blocks: small(coded.mcus() * coded.blocks())?,
            mcu_blocks,
            width: small(part.width)?,
            height: small(part.height)?,
            left: small(part.left)?,
            top: small(part.top)?,
            first_mcu: small(part.top / mcu_rows * mcus_across + part.left / mcu_columns)?,
            left_in_mcu: small(part.left % mcu_columns)?,
            top_in_mcu: small(part.top % mcu_rows)?,
            window_across: small((part.left % mcu_columns + part.width).div_ceil(mcu_columns))?,
            mcus_across: small(mcus_across)?,
            color: coded.colour.number(),
            mcu_width: small(mcu_width)?,
            mcu_height: small(mcu_height)?,
            ..Self::zeroed()
        };
        // The standard's limits, which every file was held to: a component has at most 10 blocks of an MCU.
        let mut block = 0_u8;
        for (number, component) in coded.components.iter().enumerate().take(MAX_COMPONENTS) {
            image.factor_x[number] = (mcu_width / component.across).trailing_zeros() as u8;
            image.factor_y[number] = (mcu_height / component.down).trailing_zeros() as u8;
            image.first[number] = block;
            image.across[number] = component.across as u8;
            for _ in 0..component.across * component.down {
                image.pairs |= (component.pair as u32) << block;
                image.components |= (number as u32) << (2 * block);
                block += 1;
            }
        }
        Ok(image)
    }

    /// How its data is cut.
    pub(super) fn cut(&self) -> Cut {
        Cut { bits: self.piece_bits, guesses: self.guesses }
    }

    /// Threads that the kernels which guess and link have at work for it.
    pub(super) fn guess_threads(&self) -> usize {
        self.pieces as usize * self.guesses as usize
    }

    /// Groups of neighbouring pieces of its `segments`, one for each block of threads in those kernels; so many threads
    /// of each warp are at work.
    pub(super) fn guess_groups(&self, segments: &[Segment], of_a_warp: u32) -> Vec<(u32, u32)> {
        let ahead = (AHEAD * self.piece_bits).min(SKIP_WINDOW_BITS / 2);
        let most = SKIP_THREADS / 32 * of_a_warp / self.guesses.max(1);
        piece_groups(segments, self.cut(), most, SKIP_WINDOW_BITS - ahead)
    }

    /// The same in the kernel that decodes, where a thread has a section of a piece that is halved so often.
    pub(super) fn decode_groups(
        &self,
        segments: &[Segment],
        of_a_warp: u32,
        halvings: u32,
    ) -> Vec<(u32, u32)> {
        let most = (DECODE_THREADS / 32 * of_a_warp) >> halvings;
        piece_groups(segments, self.cut(), most, DECODE_WINDOW_BITS)
    }

    /// Pieces of which a block of threads finds out where they begin: the first, and how many. A progressive image has
    /// a block without pieces.
    pub(super) fn piece_runs(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let none = (self.pieces == 0).then_some((0, 0));
        none.into_iter().chain(runs(self.pieces, SCAN_THREADS))
    }

    /// MCUs whose DC values a block of threads adds up.
    pub(super) fn dc_runs(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        runs(self.blocks / self.mcu_blocks.max(1), SCAN_THREADS)
    }

    /// MCUs whose pixels a block of threads makes at once.
    fn mcus_at_once(&self) -> u32 {
        (PIXELS_BLOCKS / self.mcu_blocks.max(1)).max(1)
    }

    /// MCUs that the part lies in.
    fn mcus(&self) -> u32 {
        let rows = (self.mcu_height * BLOCK as u32).max(1);
        self.window_across * (self.top_in_mcu + self.height).div_ceil(rows)
    }

    /// How often that is, at least.
    pub(super) fn mcu_groups(&self) -> usize {
        self.mcus().div_ceil(self.mcus_at_once()) as usize
    }

    /// MCUs whose pixels a block of threads makes, `each` groups one after the other: the first, and how many.
    pub(super) fn mcu_runs(&self, each: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        runs(self.mcus(), self.mcus_at_once() * each.max(1))
    }
}

/// `count` things, `length` at a time.
pub(super) fn runs(count: u32, length: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
    (0..count).step_by(length as usize).map(move |first| (first, length.min(count - first)))
}

/// Neighbouring pieces of an image that a block of threads has, the first, and how many: at most `most`, and no more
/// than `window` bits.
fn piece_groups(segments: &[Segment], cut: Cut, most: u32, window: u32) -> Vec<(u32, u32)> {
    let mut groups = Vec::new();
    let (mut first, mut begin, mut count) = (0, 0, 0);
    for segment in segments {
        let (pieces, mut done) = (cut.pieces(segment.bits), 0);
        while done < pieces {
            let at = segment.first_bit + done * cut.bits;
            if count == 0 {
                (first, begin) = (segment.first_piece + done, at);
            }
            let room = (begin + window).saturating_sub(at) / cut.bits;
            let more = room.min(most.max(1) - count).min(pieces - done);
            (count, done) = (count + more, done + more);
            if done < pieces || count == most {
                groups.push((first, count));
                count = 0;
            }
        }
    }
    groups.extend((count > 0).then_some((first, count)));
    groups
}

/// Words that blocks of threads tell those behind them of an image, at most: two of pieces, one of MCUs.
pub(super) fn told(pieces: usize, mcus: usize) -> usize {
    let blocks = |items: usize| items.div_ceil(SCAN_THREADS as usize);
    2 * blocks(pieces) + blocks(mcus)
}

/// How often pieces are halved where they are decoded, if all batches under way have so many on so many
/// multiprocessors: as often as leaves each section a thread among those that [`threads_of_a_warp`] deals out.
pub(super) fn halvings(pieces: usize, multiprocessors: usize) -> u32 {
    let threads = 32 * multiprocessors * DEALT_WARPS_OF_AN_SM;
    (threads / pieces.max(1)).checked_ilog2().unwrap_or(0).min(MOST_HALVINGS)
}

/// How many threads of each warp are at work, where all batches under way have so many `threads` to do on so many
/// multiprocessors. The fewer, the sooner a warp is done (`spread` in `kernels/jpeg_codes.cuh`). So there are few as
/// long as the device has room for more warps.
pub(super) fn threads_of_a_warp(threads: usize, multiprocessors: usize) -> u32 {
    threads.div_ceil(multiprocessors.max(1) * DEALT_WARPS_OF_AN_SM).clamp(1, 32) as u32
}

/// Warps of each SM among which these threads are dealt out.
const DEALT_WARPS_OF_AN_SM: usize = 8;

/// Rows of [`Work`] that a batch has beside [`most_groups`], at most, when its pieces are dealt out among the warps of
/// so many multiprocessors. Each row of its three tables is for four of these warps or more.
pub(super) fn most_dealt(multiprocessors: usize) -> usize {
    3 * multiprocessors * DEALT_WARPS_OF_AN_SM / 4
}

/// Rows of [`Work`] that an image makes in a batch that fills a device, at most: two tables of pieces to guess and
/// link, one of pieces to decode, one of MCUs, and those of scans over pieces and over MCUs.
pub(super) fn most_groups(pieces: usize, [across, down]: [usize; 2], mcu_blocks: usize) -> usize {
    // Pieces are short of their bits only at the end of a segment, with less padding behind it than would let a group
    // be smaller.
    let fewest = (SKIP_THREADS / Cut::SMALL.guesses) as usize;
    let mcus = (PIXELS_BLOCKS as usize / mcu_blocks.max(1)).max(1);
    let scans = [pieces, across * down].map(|items| items / SCAN_THREADS as usize + 1);
    3 * (pieces / fewest + 1) + across.div_ceil(mcus) * down + scans.iter().sum::<usize>()
}

device_struct! {
    /// What a block of threads works on.
    pub(super) struct Work as Task {
        image: u32,
        /// Its first piece, MCU, block of a component, strip of pixels or scan.
        first: u32,
        /// How many of them.
        count: u32,
        /// Its component. Where blocks of threads tell one another of their parts of an image, the number of the block.
        component: u32,
    }
}

impl Work {
    pub(super) fn new(image: u32, (first, count): (u32, u32)) -> Self {
        Self { image, first, count, component: 0 }
    }

    /// Of a component, or the one with that number of its image.
    pub(super) fn of_component(self, component: u32) -> Self {
        Self { component, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::jpeg::sm::Colour;
    use crate::gpu::jpeg::sm::Component;

    /// Segments of so many bits, as a scan has them.
    fn segments(bits: &[u32], cut: Cut) -> Vec<Segment> {
        let (mut first_bit, mut first_piece) = (0, 0);
        let segment = |&bits: &u32| {
            let segment = Segment { first_bit, bits, first_piece, first_block: 0 };
            first_bit += (bits + 128).next_multiple_of(32);
            first_piece += cut.pieces(bits);
            segment
        };
        bits.iter().map(segment).collect()
    }

    #[test]
    fn groups_have_every_piece_once_and_no_more_than_there_is_room_for() {
        let many = vec![1_000; 500];
        let mixed: Vec<u32> = (0..300).map(|i| 8 + i * 997 % 20_000).collect();
        for bits in [&[8][..], &[1_024], &[1_025], &[2_000_000], &[200_000, 8, 300_000], &many, &mixed] {
            for cut in Cut::ALL {
                let segments = segments(bits, cut);
                let ends: Vec<(u32, u32)> = segments
                    .iter()
                    .flat_map(|s| {
                        let end = move |i: u32| s.first_bit + (i * cut.bits).min(s.bits);
                        (0..cut.pieces(s.bits)).map(move |i| (end(i), end(i + 1)))
                    })
                    .collect();
                for (most, window) in [
                    (1, 70_000),
                    (42, SKIP_WINDOW_BITS),
                    (128, DECODE_WINDOW_BITS),
                    (256, DECODE_WINDOW_BITS),
                ] {
                    let mut next = 0;
                    for (first, count) in piece_groups(&segments, cut, most, window) {
                        assert_eq!(first, next);
                        assert!((1..=most).contains(&count));
                        next += count;
                        let (begin, end) = (ends[first as usize].0, ends[next as usize - 1].1);
                        assert!(end - begin <= window, "{} bits", end - begin);
                    }
                    assert_eq!(next as usize, ends.len());
                }
                let image = Image { piece_bits: cut.bits, guesses: cut.guesses, ..Image::zeroed() };
                let groups = |guess, decode, halvings| {
                    2 * image.guess_groups(&segments, guess).len()
                        + image.decode_groups(&segments, decode, halvings).len()
                };
                assert!(groups(32, 32, 0) <= most_groups(ends.len(), [0, 0], 1));
                for multiprocessors in [1, 8, 132] {
                    let of_a_warp = |threads| threads_of_a_warp(threads, multiprocessors);
                    let halvings = halvings(ends.len(), multiprocessors);
                    let guesses = of_a_warp(ends.len() * cut.guesses as usize);
                    let dealt = groups(guesses, of_a_warp(ends.len() << halvings), halvings);
                    assert!(dealt <= most_groups(ends.len(), [0, 0], 1) + most_dealt(multiprocessors));
                }
            }
        }
    }

    #[test]
    fn a_section_has_a_thread() {
        for (pieces, expected) in
            [(0, 2), (1, 2), (1_030, 2), (8_448, 2), (8_449, 1), (16_896, 1), (16_897, 0), (1 << 40, 0)]
        {
            assert_eq!(halvings(pieces, 132), expected, "{pieces} pieces");
            assert!(pieces << expected <= 132 * 256 || expected == 0);
        }
    }

    #[test]
    fn pieces_are_an_odd_number_of_words_and_longer_in_larger_batches() {
        let cuts = [0, 70_000, 200_000, 2_000_000, 9_000_000, 1 << 30].map(Cut::of);
        assert!(cuts.iter().all(|cut| cut.bits % 64 == 32 && (1..=6).contains(&cut.guesses)));
        let longer = [0, 700, 2_000, 5_000, 1 << 30].map(|bits| Cut::SMALL.for_mcus(bits).bits);
        assert_eq!(longer, [544, 544, 2_016, 5_024, 8_224]);
        assert!(longer.iter().all(|bits| bits % 64 == 32));
        assert!(cuts.is_sorted_by_key(|cut| cut.bits));
        assert_eq!((Cut::LARGE.pieces(0), Cut::LARGE.pieces(1_056), Cut::LARGE.pieces(1_057)), (1, 1, 2));
    }

    #[test]
    fn blocks_of_an_mcu_know_their_component() {
        let component = |across, down, pair| Component { across, down, table: 0, pair };
        let coded = Coded {
            width: 100,
            height: 50,
            colour: Colour::YCbCr,
            components: [component(1, 2, 0), component(4, 1, 1), component(2, 2, 0)].into(),
            quantisation: Default::default(),
            pairs: Default::default(),
            restart_interval: None,
            data: &[],
            scans: Vec::new(),
        };
        let image = Image::new(&coded, &Part::whole([100, 50], 0), Cut::LARGE).unwrap();
        assert_eq!((image.mcu_blocks, image.pairs), (10, 0b00_0011_1100));
        assert_eq!(image.components, 0b10_10_10_10_01_01_01_01_00_00);
        assert_eq!((image.mcu_width, image.mcu_height, image.mcus_across, image.blocks), (4, 2, 4, 160));
        assert_eq!((image.factor_x, image.factor_y), ([2, 0, 1, 0], [0, 1, 0, 0]));
        assert_eq!((image.first, image.across), ([0, 2, 6, 0], [1, 4, 2, 0]));
    }

    #[test]
    fn runs_have_every_mcu_once() {
        let image = Image { window_across: 7, mcu_blocks: 10, mcu_height: 1, height: 24, ..Image::zeroed() };
        assert_eq!(image.mcu_groups(), 7);
        assert_eq!(image.mcu_runs(1).take(3).collect::<Vec<_>>(), [(0, 3), (3, 3), (6, 3)]);
        assert_eq!(image.mcu_runs(3).collect::<Vec<_>>(), [(0, 9), (9, 9), (18, 3)]);
    }
}
