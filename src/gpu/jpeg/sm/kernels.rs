//! The kernels that decode on the cores, their parameters, and tables that only they fill. It must not know what is
//! decoded.

use super::constants::{AC_CODE_BITS, AC_SKIP_BITS, SLOT_ROOM, constants};
use super::passes::Pass;
use super::rows::{Image, Work};
use super::scan::Segment;
use super::steps::Plane;
use super::tables::Lookup;
use crate::gpu::KernelSpec;
use crate::gpu::layout::{Header, device_struct, text_with};

/// Bytes on the device for a table that finds two codes at once.
pub(super) const PAIRS_BYTES: usize = size_of::<Pairs>();

/// Bytes on the device for a piece: ends, links, blocks passed, where a section begins.
pub(super) const EXIT_BYTES: usize = SLOT_ROOM * 4;
pub(super) const LINK_BYTES: usize = SLOT_ROOM;
pub(super) const PASSED_BYTES: usize = SLOT_ROOM * 2;
pub(super) const START_BYTES: usize = size_of::<Start>();

/// Bytes on the device for what is noted of a piece that is halved so often.
pub(super) fn note_bytes(halvings: u32) -> usize {
    SLOT_ROOM * ((1 << halvings) - 1) * size_of::<Note>()
}

/// Bytes of what a block of threads tells those behind it at a time.
pub(super) const TOLD_BYTES: usize = 8;

/// Bytes of a block of coefficients, and of its DC value.
pub(super) const BLOCK_BYTES: usize = 64 * 2;
pub(super) const DC_BYTES: usize = 2;

device_struct! {
    /// What finds two codes at once, made of an AC table by a kernel. Of a DC table it has one code an entry, as
    /// another table is next.
    pub(super) struct Pairs as Pairs {
        /// Where codes end, by the next bits: their bits and those of values (0-4), how far they advance (8-15).
        skips: [u16; 1 << AC_SKIP_BITS],
        /// What codes mean, by the next bits: an entry of Table, above it that of the next code. 0: none is found.
        codes: [u32; 1 << AC_CODE_BITS],
    }
}

device_struct! {
    /// Where a section of a piece begins if the piece begins at a certain place, made by a kernel.
    pub(super) struct Note as Note {
        place: u32,
        /// Blocks before it in the piece.
        passed: u32,
    }
}

device_struct! {
    /// Where a section of a piece really begins, made by a kernel.
    pub(super) struct Start as Start {
        place: u32,
        /// Its first block, and the first block behind its segment.
        block: u32,
        end: u32,
    }
}

device_struct! {
    /// What every kernel gets: where tables and scratch memory are.
    pub(super) struct Params as Params {
        pub(super) images: u64 = "const Image *" of Image,
        pub(super) tables: u64 = "const Table *" of Lookup,
        /// Of each table.
        pub(super) pairs: u64 = "Pairs *" of Pairs,
        pub(super) segments: u64 = "const Segment *" of Segment,
        pub(super) quantisation: u64 = "const uint16_t *",
        /// For each piece SLOT_ROOM of them.
        pub(super) exits: u64 = "uint32_t *",
        pub(super) links: u64 = "uint8_t *",
        /// Blocks from there to the end of the piece.
        pub(super) passed: u64 = "uint16_t *",
        /// For each slot of a piece one for each section but the first.
        pub(super) notes: u64 = "Note *" of Note,
        /// Of each section.
        pub(super) starts: u64 = "Start *" of Start,
        pub(super) coefficients: u64 = "int16_t *",
        /// Of each block.
        pub(super) dcs: u64 = "int16_t *",
        /// For each image: 0 when all went well.
        pub(super) status: u64 = "uint32_t *",
        pub(super) planes: u64 = "const Plane *" of Plane,
        /// What blocks of jpeg_resolve tell one another, two words each, and those of jpeg_dc, one each.
        pub(super) told: u64 = "uint64_t *",
        pub(super) told_dcs: u64 = "uint64_t *",
        /// Of all progressive images.
        pub(super) passes: u64 = "const Pass *" of Pass,
        pub(super) channels: u32,
        pub(super) blue_first: u32,
        /// How often pieces are halved to sections.
        pub(super) halvings: u32,
        pub(super) told_words: u32,
    }
}

/// What all of them include.
const HEADER: Header = Header { name: "jpeg", text: || text_with::<Work, Params>(&constants()) };

/// The kernels in the order of their launches.
pub(super) struct Kernels {
    pub(super) pairs: KernelSpec,
    pub(super) guess: KernelSpec,
    pub(super) link: KernelSpec,
    pub(super) resolve: KernelSpec,
    pub(super) decode: KernelSpec,
    /// For few images, a warp a scan, and for many, which share warps.
    pub(super) progressive: [KernelSpec; 2],
    pub(super) dc: KernelSpec,
    pub(super) pixels: KernelSpec,
    pub(super) planes: KernelSpec,
    pub(super) upsample: KernelSpec,
}

impl Kernels {
    pub(super) fn new() -> Self {
        let entry = |source, entry| KernelSpec::of::<Work, Params>(source, entry).header(HEADER).early();
        let work = |name| entry(name, name);
        Self {
            pairs: work("jpeg_pairs"),
            guess: work("jpeg_guess"),
            link: work("jpeg_link"),
            resolve: work("jpeg_resolve"),
            decode: work("jpeg_decode"),
            progressive: ["jpeg_progressive", "jpeg_progressive_together"]
                .map(|name| entry("jpeg_progressive", name)),
            dc: work("jpeg_dc"),
            pixels: work("jpeg_pixels"),
            planes: work("jpeg_planes"),
            upsample: work("jpeg_upsample"),
        }
    }

    pub(super) fn into_list(self) -> Vec<KernelSpec> {
        let Self { pairs, guess, link, resolve, decode, progressive, dc, pixels, planes, upsample } = self;
        let [few, many] = progressive;
        vec![pairs, guess, link, resolve, decode, few, many, dc, pixels, planes, upsample]
    }
}
