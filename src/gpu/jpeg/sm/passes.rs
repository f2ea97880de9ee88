//! Rows of the tables of the kernel that decodes progressive images: their scans, and which of them waits for which. It
//! must not know files.

use super::coded::Coded;
use super::constants::MAX_COMPONENTS;
use crate::error::{Error, Result};
use crate::gpu::jpeg::header::Scan;
use crate::gpu::layout::device_struct;

device_struct! {
    /// A scan of a progressive image.
    pub(super) struct Pass as Pass {
        /// In the table of the batch.
        pub(super) first_segment: u32,
        segments: u32,
        /// MCUs of every segment but the last.
        interval: u32,
        /// MCUs; of one component alone they are its blocks.
        across: u32,
        down: u32,
        /// A bit for each component.
        components: u32,
        /// Tables of the components of the frame.
        pub(super) tables: [u32; MAX_COMPONENTS],
        /// A bit for each earlier scan of the image that must be ahead.
        waits: u32,
        /// First and last coefficient, in zigzag order.
        first: u8,
        last: u8,
        /// Whether bits of coefficients come that are known, and the lowest bit.
        refines: u8,
        low: u8,
    }
}

impl Pass {
    /// Segments between restarts.
    pub(super) fn segments(&self) -> u32 {
        self.segments
    }

    /// Scan `number` of a file; what depends on its batch is 0.
    pub(super) fn new(coded: &Coded<'_>, number: usize) -> Result<Self> {
        let wrong = || Error::internal(format!("scan {number} of {} in a JPEG", coded.scans.len()));
        let scan = coded.scans.get(number).ok_or_else(wrong)?;
        let small = |value: usize| u32::try_from(value).map_err(|_| wrong());
        let (layout, [across, down]) = (coded.scan_layout(scan), coded.scan_grid(scan));
        let waits = (0..).zip(&coded.scans).take(number).filter(|(_, earlier)| is_before(earlier, scan));
        Ok(Self {
            first_segment: 0,
            segments: small(layout.segments())?,
            interval: small(layout.interval.unwrap_or(layout.mcus))?,
            across: small(across)?,
            down: small(down)?,
            components: scan.components.iter().fold(0, |all, place| all | 1 << place),
            tables: [0; MAX_COMPONENTS],
            waits: waits.fold(0, |all, (earlier, _): (u32, _)| all | 1 << earlier),
            first: scan.band[0],
            last: scan.band[1],
            refines: u8::from(scan.high > 0),
            low: scan.low,
        })
    }
}

/// Whether `scan` changes coefficients that `earlier` has brought.
fn is_before(earlier: &Scan<'_>, scan: &Scan<'_>) -> bool {
    let shared = scan.components.iter().any(|place| earlier.components.contains(place));
    shared && earlier.band[0] <= scan.band[1] && scan.band[0] <= earlier.band[1]
}
