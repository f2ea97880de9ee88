//! Copies on a device into dense outputs, of elements that lie at strides in their inputs: windows, mirrored and
//! transposed copies, one element for many. It makes the rows of `kernels/gather.cu`; which elements those are,
//! operators say.

use crate::cpu::window::{Border, Outside, Span, WindowCopy};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::gpu_io::GpuCx;
use crate::operator::shared::border::DeviceBorder;
use crate::tensor::DType;

/// Dimensions of a copy after those are joined that are one in the input too. An image has two, a window of every
/// dimension of a sequence of volumes five.
const MAX_AXES: usize = 6;

/// Bytes that a thread writes at once.
const CHUNK_BYTES: usize = 8;

/// A kernel for elements of certain types.
pub(crate) struct Gather {
    spec: KernelSpec,
    from_size: usize,
    to_size: usize,
    outside: Outside,
}

/// What stands for elements outside of the input.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fill {
    /// Where they are on the device.
    pub(crate) address: u64,
    /// How many: one for each position of some dimension, or one.
    pub(crate) values: usize,
    /// Elements of the output behind a position of that dimension.
    pub(crate) repeat: usize,
}

device_struct! {
    /// One dimension of an output.
    #[derive(Debug, PartialEq, Eq)]
    struct Axis as Axis {
        extent: u64,
        /// distance of neighbours in the input, in elements
        stride: i64,
        /// position in the input of the first one
        anchor: i64,
        /// positions that the input has
        source: i64,
    }
}

device_struct! {
    /// A sample, as `kernels/gather.cu` sees it.
    #[derive(Debug)]
    pub(crate) struct Row as Row {
        to: u64 = "TO *",
        /// the element at position 0 of every axis
        from: u64 = "const FROM *",
        /// what stands for elements outside of the input
        fill: u64 = "const TO *",
        /// how many, one for each position of a dimension
        fill_values: u64,
        /// elements of the output that have the same one
        fill_repeat: u64,
        /// of the output
        elements: u64,
        /// at least one
        axes: u64,
        /// innermost first
        axis: [Axis; MAX_AXES],
    }
}

device_struct! {
    struct Params as Params {
        border: u32 = "Border" of DeviceBorder,
    }
}

pub(crate) fn kernels() -> Vec<KernelSpec> {
    let mut specs: Vec<KernelSpec> = [1, 2, 4, 8].into_iter().map(|size| Gather::copy(size).spec).collect();
    for from in DType::ALL {
        let converted = [DType::U8, DType::F16, DType::F32].into_iter().filter(|&to| to != from);
        specs.extend(converted.map(|to| Gather::new(from, to).spec));
    }
    specs
}

impl Gather {
    /// Copies of elements of `size` bytes.
    pub(crate) fn copy(size: usize) -> Self {
        let dtype = match size {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            _ => DType::U64,
        };
        let spec = Self::spec(dtype, dtype).define("CONVERTS", 0);
        Self { spec, from_size: dtype.size(), to_size: dtype.size(), outside: Outside::Fill }
    }

    /// Copies from `from` to `to`: uint8, float16, float32 or the same type. Fractions are dropped, values out of range
    /// saturate.
    pub(crate) fn new(from: DType, to: DType) -> Self {
        if from == to {
            return Self::copy(from.size());
        }
        let spec = Self::spec(from, to).define("CONVERTS", 1);
        Self { spec, from_size: from.size(), to_size: to.size(), outside: Outside::Fill }
    }

    fn spec(from: DType, to: DType) -> KernelSpec {
        KernelSpec::of::<Row, Params>("gather", "gather").dtype("FROM", from).dtype("TO", to)
    }

    /// The same with another rule for what lies outside of the input.
    pub(crate) fn with_outside(self, outside: Outside) -> Self {
        Self { outside, ..self }
    }

    /// Compiles the kernel.
    ///
    /// # Errors
    /// Those of [`Gpu::kernel`].
    pub(crate) fn prepare(&self, gpu: &Gpu) -> Result<()> {
        gpu.kernel(&self.spec).map(drop)
    }

    /// The row of a window that `copy` describes.
    ///
    /// # Errors
    /// As [`Gather::row`].
    pub(crate) fn window(&self, to: u64, from: u64, copy: &WindowCopy, fill: Fill) -> Result<Row> {
        self.row(to, from, &copy.spans(), fill)
    }

    /// The row of an output at address `to` with dimensions `spans`, outermost first. The element at position 0 of all
    /// of them is at address `from`.
    ///
    /// # Errors
    /// Unsupported, when more than [`MAX_AXES`] dimensions are left after joining; invalid, when the output is too
    /// large.
    pub(crate) fn row(&self, to: u64, from: u64, spans: &[Span], fill: Fill) -> Result<Row> {
        let elements = spans
            .iter()
            .try_fold(1u64, |elements, span| elements.checked_mul(span.extent as u64))
            .filter(|&elements| elements <= u64::from(u32::MAX))
            .ok_or_else(|| Error::internal("an output has more elements than a sample may have"))?;
        let (axes, offset) = joined(spans, self.outside);
        let mut row = Row {
            to,
            from: from.wrapping_add_signed(offset.wrapping_mul(self.from_size as i64)),
            fill: fill.address,
            fill_values: fill.values as u64,
            fill_repeat: fill.repeat as u64,
            elements,
            axes: axes.len() as u64,
            axis: bytemuck::Zeroable::zeroed(),
        };
        let slots = row.axis.get_mut(..axes.len()).ok_or_else(|| {
            Error::unsupported(format!(
                "a copy of {} dimensions that cannot be joined, expected at most {MAX_AXES} on a GPU",
                axes.len()
            ))
        })?;
        slots.copy_from_slice(&axes);
        Ok(row)
    }

    /// Records the copies.
    ///
    /// # Errors
    /// Those of [`GpuCx::launch`].
    pub(crate) fn launch(&self, cx: &mut GpuCx<'_>, rows: &[Row]) -> Result<()> {
        let border = DeviceBorder::from(self.outside).number();
        let most = rows.iter().map(|row| row.elements as usize).max().unwrap_or_default();
        cx.launch(&self.spec, (most * self.to_size).div_ceil(CHUNK_BYTES), &Params { border }, rows)
    }
}

/// The dimensions `spans`, outermost first, as few as possible and innermost first, at least one; and the offset in the
/// input of position 0 in all of them. For outputs without elements the answer means nothing.
fn joined(spans: &[Span], outside: Outside) -> (Vec<Axis>, i64) {
    let mut axes: Vec<Axis> = Vec::with_capacity(spans.len().max(1));
    let mut offset = 0i64;
    if spans.iter().any(|span| span.source == 0) {
        // Nothing comes from the input, whose extents may be of any size.
        let extent = spans.iter().map(|span| span.extent as u64).product();
        return (vec![Axis { extent, stride: 0, anchor: 0, source: 0 }], 0);
    }
    for span in spans.iter().rev() {
        let (extent, source) = (span.extent as i64, span.source as i64);
        let is_inside = span.anchor >= 0 && span.anchor.saturating_add(extent) <= source;
        let axis = if is_inside {
            offset += span.anchor * span.stride;
            Axis { extent: extent as u64, stride: span.stride, anchor: 0, source: extent }
        } else {
            let anchor = reduced(span.anchor, extent, source, outside);
            Axis { extent: extent as u64, stride: span.stride, anchor, source }
        };
        if is_inside && extent == 1 {
            continue;
        }
        // Neighbours of the outer one begin where the inner one, taken whole, ends: then they are one dimension. A
        // border is not, which repeats the outer one alone.
        match axes.last_mut() {
            Some(inner)
                if (inner.anchor, inner.source) == (0, inner.extent as i64)
                    && axis.stride == inner.stride * inner.source
                    && (is_inside || outside == Outside::Fill) =>
            {
                *inner = Axis {
                    extent: axis.extent * inner.extent,
                    stride: inner.stride,
                    anchor: axis.anchor * inner.source,
                    source: axis.source * inner.source,
                };
            }
            _ => axes.push(axis),
        }
    }
    if axes.is_empty() {
        axes.push(Axis { extent: 1, stride: 0, anchor: 0, source: 1 });
    }
    (axes, offset)
}

/// An anchor with the same meaning whose sum with a position overflows nowhere; not negative for a border that repeats.
fn reduced(anchor: i64, extent: i64, source: i64, outside: Outside) -> i64 {
    match outside {
        Outside::Fill | Outside::Border(Border::Clamp) => anchor.clamp(-extent, source),
        Outside::Border(Border::Wrap) => anchor.rem_euclid(source),
        Outside::Border(Border::Reflect1001) => anchor.rem_euclid(2 * source),
        Outside::Border(Border::Reflect101) => anchor.rem_euclid((2 * source - 2).max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(spans: &[Span], outside: Outside) -> Result<Row> {
        Gather::copy(2).with_outside(outside).row(0, 1000, spans, Fill::default())
    }

    fn axes(row: &Row) -> Vec<(u64, i64, i64, i64)> {
        row.axis[..row.axes as usize].iter().map(|a| (a.extent, a.stride, a.anchor, a.source)).collect()
    }

    fn window(shape: &[usize], anchor: &[i64], extent: &[usize], outside: Outside) -> Row {
        row(&WindowCopy::new(shape, anchor, extent, outside).unwrap().spans(), outside).unwrap()
    }

    #[test]
    fn a_window_of_an_image_has_two_dimensions() {
        let inside = window(&[8, 6, 3], &[2, 1, 0], &[4, 5, 3], Outside::Fill);
        assert_eq!(axes(&inside), [(15, 1, 0, 15), (4, 18, 0, 4)]);
        assert_eq!((inside.from, inside.elements), (1000 + 2 * (2 * 18 + 3), 60));
        let filled = window(&[8, 6, 3], &[0, -1, 0], &[8, 9, 3], Outside::Fill);
        assert_eq!(axes(&filled), [(27, 1, -3, 18), (8, 18, 0, 8)]);
        // A border repeats pixels, not channels.
        let repeated = window(&[8, 6, 3], &[0, -1, 0], &[8, 9, 3], Outside::Border(Border::Wrap));
        assert_eq!(axes(&repeated), [(3, 1, 0, 3), (9, 3, 5, 6), (8, 18, 0, 8)]);
    }

    #[test]
    fn what_lies_together_is_one_dimension() {
        assert_eq!(axes(&window(&[4, 5, 6], &[1, 0, 0], &[2, 5, 6], Outside::Fill)), [(60, 1, 0, 60)]);
        assert_eq!(axes(&window(&[], &[], &[], Outside::Fill)), [(1, 0, 0, 1)]);
        assert_eq!(axes(&window(&[0, 1 << 40], &[0, 0], &[2, 3], Outside::Fill)), [(6, 0, 0, 0)]);
        let far = window(&[4, 4], &[i64::MIN, i64::MAX], &[2, 2], Outside::Fill);
        assert_eq!(axes(&far), [(2, 1, 4, 4), (2, 4, -2, 4)]);
        // One element for many.
        let one = [Span::whole(4, 0), Span::whole(5, 0)];
        assert_eq!(axes(&row(&one, Outside::Fill).unwrap()), [(20, 0, 0, 20)]);
    }

    #[test]
    fn too_many_dimensions_are_an_error_that_names_the_limit() {
        let spans = |n: i64| (0..n).map(|i| Span::whole(2, 1 << (2 * i))).collect::<Vec<_>>();
        assert!(row(&spans(6), Outside::Fill).is_ok());
        let error = row(&spans(7), Outside::Fill).unwrap_err().to_string();
        assert!(error.contains("7 dimensions") && error.contains("at most 6"), "{error}");
    }
}
