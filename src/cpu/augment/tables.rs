//! What is a table of 256 levels: for all channels, or one for each.

use super::{CHANNELS, Library, Rgb};

const LEVELS: usize = 256;
type Table = [u8; LEVELS];

/// A level from 0 to 1, as torchvision makes it: version 1 divides, version 2 multiplies.
pub(super) fn unit(level: u8, is_v2: bool) -> f32 {
    if is_v2 { f32::from(level) * (1.0 / 255.0) } else { f32::from(level) / 255.0 }
}

/// Replaces every level by that of a function.
pub(super) fn map_all(image: &mut [Rgb], function: impl Fn(u8) -> u8) {
    let table: Table = std::array::from_fn(|level| function(level as u8));
    for pixel in image {
        *pixel = pixel.map(|level| table[usize::from(level)]);
    }
}

/// Keeps the upper bits.
pub(super) fn posterize(image: &mut [Rgb], bits: u32) {
    let mask = (0xff00_u32 >> bits.min(8)) as u8;
    map_all(image, |level| level & mask);
}

/// Inverts levels from the threshold on.
pub(super) fn solarize(image: &mut [Rgb], threshold: f32) {
    map_all(image, |level| if f32::from(level) < threshold { level } else { 255 - level });
}

/// Spreads each channel over all levels.
pub(super) fn auto_contrast(image: &mut [Rgb], library: Library) {
    map_channels(image, |counts| {
        let lowest = counts.iter().position(|&count| count > 0).unwrap_or_default();
        let highest = counts.iter().rposition(|&count| count > 0).unwrap_or_default();
        let range = (highest - lowest) as f32;
        let spread = |level: usize| match library {
            _ if range == 0.0 => level as u8,
            Library::Pillow => {
                let scale = 255.0 / f64::from(range);
                (level as f64 * scale + -(lowest as f64) * scale) as u8
            }
            // torch divides a number by a tensor as a product with the inverse.
            Library::Torchvision => ((level as f32 - lowest as f32) * (1.0 / range * 255.0)) as u8,
            Library::TorchvisionV2 => ((level as f32 - lowest as f32) / (range * (1.0 / 255.0))) as u8,
        };
        std::array::from_fn(spread)
    });
}

/// Equalizes each channel's histogram; all libraries count alike.
pub(super) fn equalize(image: &mut [Rgb]) {
    map_channels(image, |counts| {
        let last = counts.iter().rfind(|&&count| count > 0).copied().unwrap_or_default();
        let step = (counts.iter().sum::<u64>() - last) / 255;
        let mut before = step / 2;
        std::array::from_fn(|level| {
            let found = before.checked_div(step).map_or(level as u64, |found| found.min(255));
            before += counts[level];
            found as u8
        })
    });
}

/// Replaces the levels of each channel by the table that its histogram gives.
fn map_channels(image: &mut [Rgb], table: impl Fn(&[u64; LEVELS]) -> Table) {
    let mut counts = [[0; LEVELS]; CHANNELS];
    for pixel in &*image {
        for (counts, &level) in counts.iter_mut().zip(pixel) {
            counts[usize::from(level)] += 1;
        }
    }
    let tables = counts.map(|counts| table(&counts));
    for pixel in image {
        *pixel = std::array::from_fn(|channel| tables[channel][usize::from(pixel[channel])]);
    }
}
