//! Strips and tiles of rows to the samples of a picture, interleaved. It must not know what samples mean.

use std::borrow::Cow;

use super::codecs::Codec;
use super::colors::Pixels;
use super::layout::{Chunks, Coding, Format, Layout};
use super::samples::{Predictor, Sample, Stored};
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::{grow, zeroed};

/// The most bytes of data that are looked at for a strip or tile: so many for each byte of it, and some. No encoder
/// makes so many. Stops data that mean nothing from being read again for each strip.
const DATA_OF_BYTE: usize = 8;
const MORE_DATA: usize = 64 << 10;

/// All samples that are kept, as the file has them: those of fewer than 8 bits are not stretched.
///
/// # Errors
/// Data that are damaged or end too early; what is not known; when nobody waits any more.
pub(super) fn read(layout: &Layout<'_>, watch: &Watch<'_>) -> Result<Pixels> {
    let reader = Reader::new(layout, watch)?;
    if layout.subsampling != [1, 1] {
        return reader.subsampled().map(Pixels::U8);
    }
    Ok(match (layout.format, layout.bits) {
        (Format::Unsigned, ..=8) => Pixels::U8(reader.samples()?),
        (Format::Unsigned, _) => Pixels::U16(reader.samples()?),
        (Format::Float, _) => Pixels::F32(reader.samples()?),
    })
}

/// A part of the picture: a strip or tile, as far as it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) index: usize,
    pub(super) plane: usize,
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The parts of the planes that are kept, in the file's order.
pub(super) fn parts<'a>(layout: &'a Layout<'_>, chunks: &'a Chunks<'_>) -> impl Iterator<Item = Part> + 'a {
    let [across, down] = chunks.counts;
    let planes = if layout.planar { layout.kept() } else { 1 };
    (0..planes * down * across).map(move |index| {
        let (column, row) = (index % across, index / across % down);
        let (left, top) = (column * chunks.width, row * chunks.height);
        Part {
            index,
            plane: index / across / down,
            left,
            top,
            width: chunks.width.min(layout.width - left),
            height: chunks.height.min(layout.height - top),
        }
    })
}

/// Memory for all samples that are kept.
///
/// # Errors
/// When they are more than the limit.
pub(super) fn memory<T: bytemuck::Zeroable>(layout: &Layout<'_>) -> Result<Vec<T>> {
    let count = layout.width.checked_mul(layout.height).and_then(|pixels| pixels.checked_mul(layout.kept()));
    let bytes = count.and_then(|count| count.checked_mul(size_of::<T>()));
    match (count, bytes) {
        (Some(count), Some(..=limits::MAX_SAMPLE_BYTES)) => zeroed(count),
        _ => Err(Error::invalid(format!(
            "the samples of {} x {} pixels take more than the limit of {} bytes",
            layout.width,
            layout.height,
            limits::MAX_SAMPLE_BYTES
        ))),
    }
}

struct Reader<'a> {
    layout: &'a Layout<'a>,
    watch: &'a Watch<'a>,
    chunks: Chunks<'a>,
    codec: Codec,
    coding: Coding,
    predictor: Predictor,
    stored: Stored,
}

impl<'a> Reader<'a> {
    fn new(layout: &'a Layout<'a>, watch: &'a Watch<'a>) -> Result<Self> {
        let chunks = layout.chunks()?;
        chunks.check_size(layout, layout.bits.div_ceil(8))?;
        let coding = Coding::read(layout)?;
        let predictor = Predictor::numbered(coding.predictor, layout.bits, layout.format == Format::Float)?;
        let stored = Stored { bits: layout.bits, order: coding.order };
        let codec = Codec::of(layout, chunks.width)?;
        Ok(Self { layout, watch, chunks, codec, coding, predictor, stored })
    }

    /// Decodes the rows of a part, `stride` bytes each.
    fn rows(&self, part: Part, stride: usize, rows: &mut [u8]) -> Result<()> {
        let data = self.chunks.bytes(part.index, self.codec.length(rows.len()))?;
        let most = rows.len().saturating_mul(DATA_OF_BYTE).saturating_add(MORE_DATA);
        let data = &data[..data.len().min(most)];
        let data = match self.coding.reversed {
            true => Cow::from(data.iter().map(|byte| byte.reverse_bits()).collect::<Vec<u8>>()),
            false => Cow::from(data),
        };
        self.codec.decode(&data, stride, rows, self.watch)
    }

    fn samples<T: Sample>(&self) -> Result<Vec<T>> {
        let (layout, chunks) = (self.layout, &self.chunks);
        let kept = layout.kept();
        let mut samples = memory::<T>(layout)?;
        let of_chunk = if layout.planar { 1 } else { layout.samples };
        let stride = chunks
            .width
            .checked_mul(of_chunk * layout.bits)
            .map(|bits| bits.div_ceil(8))
            .ok_or_else(|| Error::invalid("damaged: rows too long"))?;
        let stored = Stored { order: self.predictor.order(self.stored.order), ..self.stored };
        let (mut rows, mut row, mut spare) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts(layout, chunks) {
            grow(&mut rows, stride * part.height, 0)?;
            self.rows(part, stride, &mut rows)?;
            for (y, bytes) in rows.chunks_exact_mut(stride).enumerate() {
                self.predictor.undo(bytes, of_chunk, self.stored, &mut spare);
                let start = ((part.top + y) * layout.width + part.left) * kept;
                let to = &mut samples[start..start + part.width * kept];
                if of_chunk == kept {
                    T::unpack(bytes, stored, to);
                    continue;
                }
                row.resize(part.width * of_chunk, T::default());
                T::unpack(bytes, stored, &mut row);
                for (to, from) in to.chunks_exact_mut(kept).zip(row.chunks_exact(of_chunk)) {
                    match layout.planar {
                        true => to[part.plane] = from[0],
                        false => to.copy_from_slice(&from[..kept]),
                    }
                }
            }
        }
        Ok(samples)
    }

    /// Luma and chroma of each pixel, where several share theirs: they are stored together, their luma first.
    fn subsampled(&self) -> Result<Vec<u8>> {
        let (layout, chunks) = (self.layout, &self.chunks);
        let [across, down] = layout.subsampling;
        if layout.planar || (layout.samples, layout.bits) != (3, 8) || self.predictor != Predictor::None {
            return Err(Error::unsupported(
                "chroma of a lower resolution that has planes of its own, differences, or not 8 bits",
            ));
        }
        let mut samples = memory::<u8>(layout)?;
        let unit = across * down + 2;
        let stride = chunks.width.div_ceil(across) * unit;
        let mut rows = Vec::new();
        for part in parts(layout, chunks) {
            grow(&mut rows, stride * part.height.div_ceil(down), 0)?;
            self.rows(part, stride, &mut rows)?;
            for y in 0..part.height {
                let units = rows[y / down * stride..].chunks_exact(unit);
                let start = ((part.top + y) * layout.width + part.left) * 3;
                let pixels = samples[start..start + part.width * 3].chunks_mut(3 * across);
                for (unit, pixels) in units.zip(pixels) {
                    let luma = &unit[y % down * across..];
                    for (pixel, &luma) in pixels.chunks_exact_mut(3).zip(luma) {
                        pixel.copy_from_slice(&[luma, unit[across * down], unit[across * down + 1]]);
                    }
                }
            }
        }
        Ok(samples)
    }
}
