//! Rows of the tables of the kernel that decodes progressive images: their scans, and which of them waits for which. It
//! must not know files.

use std::cmp::Reverse;

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

/// Puts the scans of an image into the order in which warps take them, where these are fewer: `bits` are those of their
/// data. First come the scans of the component that has most, as each of its scans follows another and all of them take
/// longest; DC values come last, as in the file. A scan stays behind those that it waits for: they have its component,
/// and are earlier in the file.
pub(super) fn in_turn(passes: &[Pass], bits: &[u64]) -> Vec<Pass> {
    let weight = |components: u32| -> u64 {
        let scans = passes.iter().zip(bits);
        scans.filter(|(pass, _)| pass.first > 0 && pass.components == components).map(|(_, bits)| bits).sum()
    };
    let mut order: Vec<usize> = (0..passes.len()).collect();
    order.sort_by_key(|&number| {
        let key = |pass: &Pass| match pass.first {
            0 => (true, Reverse(0), number),
            _ => (false, Reverse(weight(pass.components)), number),
        };
        passes.get(number).map(key)
    });
    let place = |earlier: usize| order.iter().position(|&number| number == earlier).unwrap_or_default();
    let moved = |waits: u32| {
        (0..order.len())
            .filter(|earlier| waits >> earlier & 1 != 0)
            .fold(0, |all, earlier| all | 1 << place(earlier))
    };
    let taken = order.iter().filter_map(|&number| passes.get(number));
    taken.map(|pass| Pass { waits: moved(pass.waits), ..*pass }).collect()
}

/// Whether `scan` changes coefficients that `earlier` has brought.
fn is_before(earlier: &Scan<'_>, scan: &Scan<'_>) -> bool {
    let shared = scan.components.iter().any(|place| earlier.components.contains(place));
    shared && earlier.band[0] <= scan.band[1] && scan.band[0] <= earlier.band[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_scan_comes_before_one_that_it_waits_for() {
        let pass =
            |components, first, waits| Pass { components, first, waits, ..bytemuck::Zeroable::zeroed() };
        // DC values of all components, then two further bits of each component's, then bands.
        let mut passes = vec![pass(7, 0, 0)];
        for component in [1, 2, 4] {
            let first = passes.len();
            passes.extend([pass(component, 0, 1), pass(component, 0, 1 | 1 << first)]);
        }
        passes.extend([pass(4, 1, 0), pass(1, 1, 0), pass(1, 6, 0), pass(1, 1, 3 << 8)]);
        let bits: Vec<u64> = (0..passes.len() as u64).map(|number| 100 + number).collect();
        let taken = in_turn(&passes, &bits);
        for (place, pass) in taken.iter().enumerate() {
            assert_eq!(pass.waits >> place, 0, "the scan at place {place} waits for {:b}", pass.waits);
        }
        let waiting = |passes: &[Pass]| passes.iter().map(|pass| pass.waits.count_ones()).sum::<u32>();
        assert_eq!(waiting(&taken), waiting(&passes));
    }

    #[test]
    fn warps_take_long_chains_first_and_nothing_before_what_it_waits_for() {
        let pass =
            |components, first, waits| Pass { components, first, waits, ..bytemuck::Zeroable::zeroed() };
        // DC values, a band of Y, one of Cr, a further bit of DC, of Y, of Cr.
        let passes = [
            pass(7, 0, 0),
            pass(1, 1, 0),
            pass(4, 1, 0),
            pass(7, 0, 1),
            pass(1, 1, 1 << 1),
            pass(4, 1, 1 << 2),
        ];
        let taken = in_turn(&passes, &[900, 10, 50, 900, 70, 20]);
        let shown: Vec<_> = taken.iter().map(|pass| (pass.components, pass.first, pass.waits)).collect();
        assert_eq!(shown, [(1, 1, 0), (1, 1, 1), (4, 1, 0), (4, 1, 1 << 2), (7, 0, 0), (7, 0, 1 << 4)]);
    }
}
