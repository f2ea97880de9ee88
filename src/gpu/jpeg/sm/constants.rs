//! Constants that the kernels and the host share. It must not know what they are for.

use crate::gpu::layout::device_constants;

device_constants! {
    pub(super) fn constants;

    /// Slots of a piece, for places at which it may end: four a word. The last stands for none.
    pub(super) const SLOT_ROOM: usize = 16;
    /// Guesses which block of an MCU a piece begins with, at most.
    pub(super) const GUESSES: u32 = 6;
    /// Components of an image, at most.
    pub(super) const MAX_COMPONENTS: usize = 3;
    /// Blocks of an MCU, at most: the standard's limit.
    pub(super) const MAX_MCU_BLOCKS: usize = 10;
    /// Bits by which a table finds a code at once.
    pub(super) const LUT_BITS: u32 = 10;
    /// Entries of a table for longer codes: enough for the tables that encoders write.
    pub(super) const TAIL: usize = 512;
    /// Bits by which the tables of two codes find some, where only the ends of codes count, and where they are decoded.
    pub(super) const AC_SKIP_BITS: u32 = 11;
    const DC_SKIP_BITS: u32 = 9;
    pub(super) const AC_CODE_BITS: u32 = 10;
    const DC_CODE_BITS: u32 = 8;
    /// Words of data that a block of threads has at hand where it looks for ends of codes, and where it decodes.
    const SKIP_WINDOW: u32 = 7_168;
    const DECODE_WINDOW: u32 = 4_224;
    /// Pieces behind its own into which a block of threads follows links.
    pub(super) const AHEAD: u32 = 24;
    /// How often a piece is halved at most, so that several threads decode it.
    pub(super) const MOST_HALVINGS: u32 = 2;
    /// Pixels of a strip: eight for each thread of a warp.
    pub(super) const STRIP: usize = 32 * 8;
    /// Threads of a block in the kernels.
    pub(super) const PAIRS_THREADS: u32 = 256;
    /// Blocks that make a table of two codes together.
    pub(super) const PAIRS_PARTS: u32 = 8;
    pub(super) const SKIP_THREADS: u32 = 192;
    pub(super) const SCAN_THREADS: u32 = 256;
    pub(super) const DECODE_THREADS: u32 = 128;
    pub(super) const PIXELS_THREADS: u32 = 256;
    /// Where a warp has a scan: of the ten scans that encoders write of an image in colour eight are decoded at once.
    pub(super) const PROGRESSIVE_THREADS: u32 = 256;
    /// Where warps have the same scan of several images: of so many, so that eight threads have one, and six warps.
    pub(super) const TOGETHER_IMAGES: usize = 4;
    pub(super) const TOGETHER_THREADS: u32 = 192;
    /// Scans of an image, at most.
    const MAX_PASSES: u32 = 32;
}

const _: () = assert!(MAX_PASSES as usize == crate::limits::MAX_SM_SCANS);

/// Bits of an image that a block of threads has at hand: the first is one of four words.
pub(super) const SKIP_WINDOW_BITS: u32 = (SKIP_WINDOW - 4) * 32;
/// The same where it decodes.
pub(super) const DECODE_WINDOW_BITS: u32 = (DECODE_WINDOW - 4) * 32;

/// Blocks of coefficients that a block of threads turns to pixels or samples: eight threads have one.
pub(super) const PIXELS_BLOCKS: u32 = PIXELS_THREADS / 8;

/// Blocks of threads of those kernels, about: enough for any device, so that more of them make each go on longer.
pub(super) const MAX_PIXELS_BLOCKS: usize = 8_192;
