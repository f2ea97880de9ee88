//! Tables, rows and parameters as `kernels/jpeg.cuh` has them, and the kernels that take them. It must not know files.

use bytemuck::{Pod, Zeroable};

use super::coded::{Coded, Colour};
use super::pieces::{Cut, groups};
use super::scan::Segment;
use super::tables::Lookup;
use crate::error::{Error, Result};
use crate::gpu::KernelSpec;

/// Places at which a piece may end, as far as there is room for them.
const SLOTS: usize = 16;

/// Threads of a block of kernels that know no pieces.
pub(super) const RESOLVE_THREADS: u32 = 1_024;
pub(super) const PIXELS_THREADS: u32 = 256;

/// Blocks of coefficients that a block of threads turns to pixels: eight threads have one.
const PIXELS_BLOCKS: u32 = PIXELS_THREADS / 8;

/// Bytes on the device for a piece: ends, links, steps, slots that are taken, where it begins.
pub(super) const EXIT_BYTES: usize = SLOTS * 4;
pub(super) const LINK_BYTES: usize = SLOTS;
pub(super) const STEP_BYTES: usize = SLOTS * 16;
pub(super) const TAKEN_BYTES: usize = 4;
pub(super) const START_BYTES: usize = 24;

/// Bytes of a block of coefficients.
pub(super) const BLOCK_BYTES: usize = 64 * 2;

/// An image.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Image {
    pub(super) data: u64,
    pub(super) pixels: u64,
    /// Words of data.
    pub(super) words: u32,
    pub(super) first_segment: u32,
    pub(super) segments: u32,
    pub(super) first_piece: u32,
    pub(super) pieces: u32,
    piece_bits: u32,
    guesses: u32,
    pub(super) first_block: u32,
    pub(super) blocks: u32,
    /// For first coefficients and for the others, of the first pair and of the second.
    pub(super) tables: [u32; 4],
    mcu_blocks: u32,
    /// For each block of an MCU a bit: which pair.
    pairs: u32,
    /// For each block of an MCU two bits: which component.
    components: u32,
    width: u32,
    height: u32,
    mcus_across: u32,
    /// Of each component: how often it is halved.
    factor_x: [u8; 4],
    factor_y: [u8; 4],
    /// Its first block of an MCU, and how many there are across.
    first: [u8; 4],
    across: [u8; 4],
    pub(super) quantisation: [u32; 3],
    color: u32,
    mcu_width: u32,
    mcu_height: u32,
    unused: u32,
}

impl Image {
    /// What the file says; what depends on its batch is 0.
    pub(super) fn new(coded: &Coded<'_>, cut: Cut) -> Result<Self> {
        let small = |value: usize| {
            u32::try_from(value).map_err(|_| Error::internal(format!("{value} of something in a JPEG")))
        };
        let ([mcu_width, mcu_height], [mcus_across, _]) = (coded.factors(), coded.grid());
        let mcu_blocks = small(coded.blocks())?;
        let mut image = Self {
            piece_bits: cut.bits(),
            guesses: cut.guesses(mcu_blocks),
            blocks: small(coded.mcus() * coded.blocks())?,
            mcu_blocks,
            width: small(coded.width)?,
            height: small(coded.height)?,
            mcus_across: small(mcus_across)?,
            color: match coded.colour {
                Colour::Gray => 0,
                Colour::YCbCr => 1,
                Colour::Rgb => 2,
            },
            mcu_width: small(mcu_width)?,
            mcu_height: small(mcu_height)?,
            ..Self::zeroed()
        };
        // The standard's limits, which every file was held to: a component has at most 10 blocks of an MCU.
        let mut block = 0_u8;
        for (number, component) in coded.components.iter().enumerate().take(3) {
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

    /// Groups of neighbouring MCUs of one row whose pixels a block of threads makes.
    pub(super) fn mcu_groups(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (across, blocks) = (self.mcus_across.max(1), self.mcu_blocks.max(1));
        let rows = (0..self.blocks / blocks).step_by(across as usize);
        rows.flat_map(move |row| {
            groups(across, PIXELS_BLOCKS / blocks).map(move |(x, count)| (row + x, count))
        })
    }

    /// Groups of pieces that are guessed and linked at once, and groups that are decoded at once.
    pub(super) fn piece_groups(&self, cut: Cut) -> [impl Iterator<Item = (u32, u32)> + use<>; 2] {
        let guessed = cut.guessed_at_once(self.mcu_blocks, self.segments);
        [guessed, cut.decoded_at_once(self.segments)].map(|most| groups(self.pieces, most))
    }
}

/// Bytes of tables that go to the device with the data of a file, at most.
pub(super) fn table_bytes(coded: &Coded<'_>, cut: Cut) -> usize {
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (segments, blocks) = (small(coded.segments()), small(coded.blocks()));
    let groups = |most: u32| cut.most_pieces(coded.room(), coded.segments()) / most as usize + 1;
    let [across, down] = coded.grid();
    let work = 2 * groups(cut.guessed_at_once(blocks, segments))
        + groups(cut.decoded_at_once(segments))
        + across.div_ceil((PIXELS_BLOCKS / blocks.max(1)) as usize) * down;
    2 * size_of::<Image>()
        + coded.segments() * size_of::<Segment>()
        + 4 * size_of::<Lookup>()
        + 3 * size_of::<[u16; 64]>()
        + work * size_of::<Work>()
}

/// Bytes of scratch memory on the device for a file, at most.
pub(super) fn scratch_bytes(coded: &Coded<'_>, cut: Cut) -> usize {
    let piece = EXIT_BYTES + LINK_BYTES + STEP_BYTES + TAKEN_BYTES + START_BYTES;
    coded.mcus() * coded.blocks() * BLOCK_BYTES + cut.most_pieces(coded.room(), coded.segments()) * piece
}

/// What a block of threads works on: an image of the batch, the first of its pieces or MCUs, and how many.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Work {
    image: u32,
    first: u32,
    count: u32,
    unused: u32,
}

impl Work {
    pub(super) fn new(image: u32, (first, count): (u32, u32)) -> Self {
        Self { image, first, count, unused: 0 }
    }
}

/// What every kernel gets: where tables and scratch memory are.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Params {
    pub(super) images: u64,
    pub(super) tables: u64,
    pub(super) segments: u64,
    pub(super) quantisation: u64,
    pub(super) exits: u64,
    pub(super) links: u64,
    pub(super) steps: u64,
    pub(super) taken: u64,
    pub(super) starts: u64,
    pub(super) coefficients: u64,
    pub(super) status: u64,
    pub(super) channels: u32,
    pub(super) blue_first: u32,
}

/// The kernels in the order of their launches.
pub(super) struct Kernels {
    pub(super) guess: KernelSpec,
    pub(super) link: KernelSpec,
    pub(super) resolve: KernelSpec,
    pub(super) decode: KernelSpec,
    pub(super) pixels: KernelSpec,
}

impl Kernels {
    pub(super) fn new() -> Self {
        let work = |name| KernelSpec::new::<Work, Params>(name, name);
        Self {
            guess: work("jpeg_guess"),
            link: work("jpeg_link"),
            resolve: KernelSpec::new::<Image, Params>("jpeg_resolve", "jpeg_resolve"),
            decode: work("jpeg_decode"),
            pixels: work("jpeg_pixels"),
        }
    }

    pub(super) fn into_list(self) -> Vec<KernelSpec> {
        vec![self.guess, self.link, self.resolve, self.decode, self.pixels]
    }
}

const _: () = assert!(size_of::<Image>() == 136 && size_of::<Params>() == 96 && size_of::<Work>() == 16);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::jpeg::cores::Component;

    #[test]
    fn blocks_of_an_mcu_know_their_component() {
        let component = |across, down, pair| Component { across, down, table: 0, pair };
        let coded = Coded {
            width: 100,
            height: 50,
            colour: Colour::YCbCr,
            components: vec![component(1, 2, 0), component(4, 1, 1), component(2, 2, 0)],
            quantisation: Vec::new(),
            pairs: Vec::new(),
            restart_interval: None,
            data: &[],
        };
        let image = Image::new(&coded, Cut::of(0)).unwrap();
        assert_eq!((image.mcu_blocks, image.pairs), (10, 0b00_0011_1100));
        assert_eq!(image.components, 0b10_10_10_10_01_01_01_01_00_00);
        assert_eq!((image.mcu_width, image.mcu_height, image.mcus_across, image.blocks), (4, 2, 4, 160));
        assert_eq!((image.factor_x, image.factor_y), ([2, 0, 1, 0], [0, 1, 0, 0]));
        assert_eq!((image.first, image.across), ([0, 2, 6, 0], [1, 4, 2, 0]));
    }

    #[test]
    fn groups_of_mcus_stay_in_their_row() {
        let image = Image { mcus_across: 7, mcu_blocks: 10, blocks: 7 * 3 * 10, ..Image::zeroed() };
        let groups: Vec<(u32, u32)> = image.mcu_groups().collect();
        assert_eq!(groups[..4], [(0, 3), (3, 3), (6, 1), (7, 3)]);
        assert_eq!(groups.iter().map(|group| group.1).sum::<u32>(), 21);
    }
}
