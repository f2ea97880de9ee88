//! How a picture would be decoded on the SMs, and the memory that this takes. It must not know devices.

use super::coded::Coded;
use super::kernels;
use super::part::Part;
use super::passes::Pass;
use super::rows::{self, Cut, Image, Work};
use super::scan::Segment;
use super::steps::{Plane, Planes, Steps};
use super::{ALIGNMENT, Lookup};

/// Scratch bytes of a piece.
const PIECE_BYTES: usize =
    kernels::EXIT_BYTES + kernels::LINK_BYTES + kernels::PASSED_BYTES + kernels::START_BYTES;

/// Huffman tables of a sequential picture.
const MOST_TABLES: usize = 4;

fn most_tables(coded: &Coded<'_>) -> usize {
    let of_scans = coded.scans.iter().map(|scan| scan.tables.len()).sum();
    if coded.is_progressive() { of_scans } else { MOST_TABLES }
}

fn most_pieces(coded: &Coded<'_>, cut: Cut) -> usize {
    if coded.is_progressive() {
        return 0;
    }
    coded.room() * 8 / cut.bits as usize + coded.segments()
}

/// A part of a picture, and how it is made.
pub struct Planned<'a> {
    /// What the file says.
    pub coded: Coded<'a>,
    /// Which of its pixels are made.
    pub part: Part,
    /// `None`: one step makes pixels of coefficients.
    pub(super) steps: Option<Steps>,
}

impl Planned<'_> {
    /// Bytes of scratch memory on the device in a large batch, at most, planes among them.
    pub fn scratch_bytes(&self) -> usize {
        let samples = self.steps.as_ref().map_or(0, |steps| steps.bytes(ALIGNMENT));
        let (pieces, mcus) = (most_pieces(&self.coded, Cut::LARGE), self.coded.mcus());
        mcus * self.coded.blocks() * (kernels::BLOCK_BYTES + kernels::DC_BYTES)
            + pieces * PIECE_BYTES
            + rows::told(pieces, mcus) * kernels::TOLD_BYTES
            + most_tables(&self.coded) * kernels::PAIRS_BYTES
            + samples
    }

    /// Whether it is left as planes, for a reader that makes pixels of them.
    pub fn is_left_as_planes(&self) -> bool {
        self.steps.as_ref().is_some_and(|steps| steps.left_as.is_some())
    }

    /// Bytes of tables that go to the device with the data, at most.
    pub fn table_bytes(&self) -> usize {
        let coded = &self.coded;
        let tables =
            most_tables(coded) * (size_of::<Lookup>() + size_of::<Work>()) + 3 * size_of::<[u16; 64]>();
        let own = size_of::<Image>() + tables;
        let groups = rows::most_groups(most_pieces(coded, Cut::SMALL), coded.grid(), coded.blocks());
        let (planes, more) =
            self.steps.as_ref().map_or((0, 0), |steps| (steps.samples.len(), steps.groups()));
        own + coded.segments() * size_of::<Segment>()
            + coded.scans.len() * size_of::<Pass>()
            + (groups + more) * size_of::<Work>()
            + planes * size_of::<Plane>()
            + size_of::<Planes>()
    }
}

/// Bytes of tables, at most, that a batch has beside those of its pictures, as its pieces are dealt out among the warps
/// of so many multiprocessors.
pub fn extra_table_bytes(multiprocessors: usize) -> usize {
    rows::most_dealt(multiprocessors) * size_of::<Work>()
}
