//! How big everything is: samples of a block, planes of samples, how chroma is upsampled, and which MCUs are needed. It
//! must not know bytes of a file.

use super::frame::{Frame, Stored};
use super::{Ask, Kind};
use crate::cpu::decode::Window;

/// How a component becomes as large as the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upsample {
    /// Each sample so often, across and down; (1, 1) for full size.
    Repeat(usize, usize),
    /// Three quarters of the nearest sample and one of the next nearest: along rows, along columns, both.
    SmoothRows,
    SmoothColumns,
    Smooth,
}

/// A component's samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sized {
    /// Blocks of an MCU.
    pub(super) h: usize,
    pub(super) v: usize,
    /// Sides of a transformed block: 8, 4, 2 or 1.
    pub(super) side: usize,
    /// Samples of the whole image.
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) upsample: Upsample,
    /// Whether its samples are needed for what is asked.
    pub(super) needed: bool,
}

/// Everything about sizes.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) components: Vec<Sized>,
    /// MCUs of the image, across and down.
    pub(super) mcus: (usize, usize),
    /// Pixels of an MCU.
    pub(super) mcu_width: usize,
    pub(super) mcu_height: usize,
    /// Pixels of the image.
    pub(super) height: usize,
    /// The pixels that are returned.
    pub(super) window: Window,
    /// Columns of MCUs that are transformed: those under the window and their neighbours, from a multiple of four on.
    pub(super) columns: std::ops::Range<usize>,
    /// Rows of MCUs that are transformed.
    pub(super) rows: std::ops::Range<usize>,
    pub(super) stored: Stored,
}

impl Layout {
    pub(super) fn new(frame: &Frame, stored: Stored, ask: &Ask) -> Option<Self> {
        let (most_h, most_v) = frame.most();
        let least = 8_usize >> ask.shrink;
        let smooth = ask.smooth && least > 1;
        let luma_is_all = ask.kind == Kind::Gray && stored == Stored::Ycc;
        let mut components = Vec::with_capacity(frame.components.len());
        for (i, component) in frame.components.iter().enumerate() {
            let (h, v) = (component.h, component.v);
            // What is coarser than luma is reduced less.
            let mut side = least;
            let fits = |side: usize| {
                (most_h * least).is_multiple_of(h * side) && (most_v * least).is_multiple_of(v * side)
            };
            while side < 8 && fits(2 * side) {
                side *= 2;
            }
            let width = (frame.width * h * side).div_ceil(8 * most_h);
            let height = (frame.height * v * side).div_ceil(8 * most_v);
            let (wide, high) = (h * side / least, v * side / least);
            if !most_h.is_multiple_of(wide) || !most_v.is_multiple_of(high) {
                return None;
            }
            let upsample = match (most_h / wide, most_v / high) {
                (2, 1) if smooth && width > 2 => Upsample::SmoothRows,
                (1, 2) if smooth => Upsample::SmoothColumns,
                (2, 2) if smooth && width > 2 => Upsample::Smooth,
                (across, down) => Upsample::Repeat(across, down),
            };
            let needed = i == 0 || !luma_is_all;
            components.push(Sized { h, v, side, width, height, upsample, needed });
        }
        let mcus = frame.mcus();
        let (mcu_width, mcu_height) = (most_h * least, most_v * least);
        let (width, height) = (frame.width.div_ceil(1 << ask.shrink), frame.height.div_ceil(1 << ask.shrink));
        let window = ask.window.unwrap_or(Window { x: 0, y: 0, width, height });
        let (right, bottom) = (window.x.checked_add(window.width)?, window.y.checked_add(window.height)?);
        if right > width || bottom > height || window.width == 0 || window.height == 0 {
            return None;
        }
        let columns = (window.x / mcu_width).saturating_sub(1) & !3
            ..(right.div_ceil(mcu_width) + 1).next_multiple_of(4).min(mcus.0.next_multiple_of(4));
        let rows = (window.y / mcu_height).saturating_sub(1)..(bottom.div_ceil(mcu_height) + 1).min(mcus.1);
        Some(Self { components, mcus, mcu_width, mcu_height, height, window, columns, rows, stored })
    }

    /// Blocks of an MCU.
    pub(super) fn mcu_blocks(&self) -> usize {
        self.components.iter().map(|c| c.h * c.v).sum()
    }

    /// Samples of a row of a component in the columns that are transformed.
    pub(super) fn samples(&self, component: &Sized) -> usize {
        let per_mcu = component.h * component.side;
        (self.columns.len() * per_mcu).min(component.width - self.columns.start * per_mcu)
    }
}
