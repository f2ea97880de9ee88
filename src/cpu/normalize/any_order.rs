//! Normalises tensors whose dimensions change places in any way: volumes and sequences for which no loop over images
//! does. One row of the output at a time; images take the loops of the parent module.

use std::ops::Range;

use super::loops::{Stage, contiguous, strided};
use super::{Channel, Normalized};
use crate::error::{Error, Result};

/// One dimension of the output and where it lies in the source.
#[derive(Debug, Clone, Copy)]
pub struct Dimension {
    /// Positions in the source.
    pub source: usize,
    /// Distance of neighbours in the source, in elements.
    pub stride: usize,
    /// Position in the source of the window's first element; the window may leave the source on any side.
    pub anchor: i64,
    /// Positions in the window, and in the output.
    pub window: usize,
    /// Whether positions are reversed, those outside of the source too.
    pub mirror: bool,
}

impl Dimension {
    /// Position `i` of the output, in the source.
    fn place(&self, i: usize) -> Option<usize> {
        let i = if self.mirror { self.window - 1 - i } else { i };
        let place = usize::try_from(self.anchor.checked_add(i64::try_from(i).ok()?)?).ok()?;
        (place < self.source).then_some(place)
    }

    /// Positions of the output that lie inside of the source.
    fn inside(&self) -> Range<usize> {
        let clamp = |at: i64| at.clamp(0, self.window as i64) as usize;
        let start = clamp(self.anchor.saturating_neg());
        let end = clamp((self.source as i64).saturating_sub(self.anchor)).max(start);
        if self.mirror { self.window - end..self.window - start } else { start..end }
    }
}

/// Crops, mirrors, normalises and transposes a tensor.
#[derive(Debug, Clone, Copy)]
pub struct NormalizeAnyOrder<'a, A> {
    /// The output's dimensions, outermost first.
    pub dimensions: &'a [Dimension],
    /// Which of them holds the channels.
    pub channel: usize,
    /// One per channel of the source.
    pub channels: &'a [A],
    /// One per channel of the output: the value of elements outside of the source, see [`super::Normalize::fill`].
    pub fill: &'a [f32],
}

impl<A: Copy> NormalizeAnyOrder<'_, A> {
    /// Writes the window of `src` to `dst`, both dense. Types as for [`super::Normalize::run`].
    ///
    /// # Errors
    /// When a slice does not have the size that the fields say.
    pub fn run<S: Copy, T: Normalized>(&self, src: &[S], dst: &mut [T]) -> Result<()>
    where
        A: Channel<S>,
    {
        let source: usize = self.dimensions.iter().map(|dimension| dimension.source).product();
        let window: usize = self.dimensions.iter().map(|dimension| dimension.window).product();
        let channels = self.dimensions.get(self.channel).map_or(0, |dimension| dimension.window);
        if (source, window, channels) != (src.len(), dst.len(), self.fill.len()) {
            return Err(Error::internal(format!(
                "cannot normalize {:?} with {} fill values: the buffers have {} and {} elements",
                self.dimensions,
                self.fill.len(),
                src.len(),
                dst.len()
            )));
        }
        if !dst.is_empty() {
            self.part(self.dimensions, Some(0), 0, (src, &mut Stage::new()), dst);
        }
        Ok(())
    }

    /// Writes `dst`, the elements below `dimensions`. They start at `at` in the source, or lie outside of it.
    fn part<S: Copy, T: Normalized>(
        &self,
        dimensions: &[Dimension],
        at: Option<usize>,
        channel: usize,
        (src, stage): (&[S], &mut Stage),
        dst: &mut [T],
    ) where
        A: Channel<S>,
    {
        let Some((dimension, inner)) = dimensions.split_first() else {
            let pixel = at.and_then(|at| src.get(at)).zip(self.channels.get(channel));
            let value = match pixel {
                Some((&pixel, channel)) => T::from_pixel(channel.apply(pixel)),
                None => T::from_fill(self.fill.get(channel).copied().unwrap_or_default()),
            };
            dst.fill(value);
            return;
        };
        let is_channel = self.dimensions.len() - dimensions.len() == self.channel;
        if inner.is_empty() && !is_channel {
            self.row(dimension, at, channel, (src, stage), dst);
            return;
        }
        let size = dst.len() / dimension.window;
        for (i, part) in dst.chunks_exact_mut(size).enumerate() {
            let at = at.zip(dimension.place(i)).map(|(at, place)| at + place * dimension.stride);
            self.part(inner, at, if is_channel { i } else { channel }, (src, &mut *stage), part);
        }
    }

    /// Writes `dst`, the elements of one channel along the last dimension of the output.
    fn row<S: Copy, T: Normalized>(
        &self,
        dimension: &Dimension,
        at: Option<usize>,
        channel: usize,
        (src, stage): (&[S], &mut Stage),
        dst: &mut [T],
    ) where
        A: Channel<S>,
    {
        let inside = dimension.inside();
        if inside.len() < dst.len() || at.is_none() || channel >= self.channels.len() {
            dst.fill(T::from_fill(self.fill.get(channel).copied().unwrap_or_default()));
        }
        let (Some(at), Some(&of_channel), false) = (at, self.channels.get(channel), inside.is_empty()) else {
            return;
        };
        let src = src.get(at + dimension.anchor.max(0) as usize * dimension.stride..).unwrap_or_default();
        let dst = &mut dst[inside];
        if dimension.stride == 1 {
            contiguous(src, dst, of_channel, dimension.mirror, stage);
        } else {
            strided((src, dimension.stride), (dst, 1), of_channel, dimension.mirror, stage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::normalize::affine;

    #[test]
    fn dimensions_change_places_and_leave_the_source() {
        // A 2 x 3 source of shape (row, channel) to (channel, row), one row above it and one channel more, rows
        // mirrored.
        let row = Dimension { source: 2, stride: 3, anchor: -1, window: 3, mirror: true };
        let channel = Dimension { source: 3, stride: 1, anchor: 0, window: 4, mirror: false };
        let affines = [affine(1.0, 1.0, 1.0, 0.0), affine(0.0, 0.5, 1.0, 0.0), affine(0.0, 1.0, 1.0, 7.0)];
        let normalize = NormalizeAnyOrder {
            dimensions: &[channel, row],
            channel: 0,
            channels: &affines,
            fill: &[-1.0, -2.0, -3.0, -4.0],
        };
        let mut dst = [0f32; 12];
        normalize.run(&[0u8, 1, 2, 10, 11, 12], &mut dst).unwrap();
        assert_eq!(dst, [9.0, -1.0, -1.0, 22.0, 2.0, -2.0, 19.0, 9.0, -3.0, -4.0, -4.0, -4.0]);
        let other_way = NormalizeAnyOrder { dimensions: &[row, channel], channel: 1, ..normalize };
        other_way.run(&[0u8, 1, 2, 10, 11, 12], &mut dst).unwrap();
        assert_eq!(dst, [9.0, 22.0, 19.0, -4.0, -1.0, 2.0, 9.0, -4.0, -1.0, -2.0, -3.0, -4.0]);
        assert!(normalize.run(&[0u8; 5], &mut dst).is_err());
        assert!(normalize.run(&[0u8; 6], &mut dst[1..]).is_err());
    }
}
