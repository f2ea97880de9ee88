//! `gesso__PadToBatch`: samples as large as the largest of the batch, and masks that say what of them was there before.

use std::sync::Arc;

use crate::cpu::window::{Outside, Span, WindowCopy, fill_elements};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::shared::axes::Axes;
use crate::operator::shared::gather::{self, Fill, Gather};
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct PadToBatch {
    axes: Axes,
    fill: f32,
    /// What extents become a multiple of.
    align: usize,
    /// Whether elements are added before a sample, not behind it.
    before: bool,
    /// Per sample; `None` for one that failed.
    padded: Vec<Option<Padded>>,
}

/// What becomes of one sample.
struct Padded {
    copy: WindowCopy,
    /// Along the axes that are padded, in their order: where the sample is in the mask.
    mask: Vec<Span>,
}

/// Values of the mask.
const MASK: [i64; 2] = [0, 1];

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__PadToBatch",
    doc: "Makes samples as large as the largest of their batch, and says what was there before: the second output, \
          int64, has the dimensions that are padded, 1 for an element of the sample and 0 for one that was added. \
          Batches of a server have samples of several requests",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints("axes", "dimensions to pad, negative ones from the back").or_computed("all"),
        ArgSpec::layout("axis_names", "dimensions to pad, as letters of the layout"),
        ArgSpec::float("fill_value", "value of the added elements").or_float(0.0),
        ArgSpec::int("align", "extents become multiples of it").or_int(1),
        ArgSpec::string("side", "where elements are added: `right`, behind a sample, or `left`, before it")
            .or_string("right"),
    ],
    build: &build,
    outputs: &|_, _| Ok(2),
    kernels: &[gather::kernels],
    reads_in_place: InputSet::All,
    mixes_samples: |_| true,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let before = match args.string("side")? {
        "right" => false,
        "left" => true,
        other => {
            return Err(Error::invalid(format!("argument `side` is `{other}`, expected `right` or `left`")));
        }
    };
    Ok(Box::new(PadToBatch {
        axes: Axes::new(args, Axes::All)?,
        fill: args.float("fill_value")?,
        align: super::sides::count("align", args.int("align")?, limits::MAX_IMAGE_SIDE)? as usize,
        before,
        padded: Vec::new(),
    }))
}

/// The largest extents of the samples that have not failed: one that did must not change the others.
fn largest(inputs: &Inputs<'_>, shapes: &[Shape], ndim: usize) -> Vec<usize> {
    let mut largest = vec![0; ndim];
    for (_, shape) in shapes.iter().enumerate().filter(|&(i, _)| inputs.failures().get(i).is_none()) {
        largest.iter_mut().zip(shape.iter()).for_each(|(most, &extent)| *most = extent.max(*most));
    }
    largest
}

impl PadToBatch {
    fn pad(&self, sample: &SampleInputs<'_>, largest: &[usize], layout: Layout) -> Result<Padded> {
        let shape = sample.input(0)?.shape;
        let axes = self.axes.of(sample, layout, shape.len())?;
        let mut extents = shape.to_vec();
        for &axis in &axes {
            extents[axis] = largest[axis].checked_next_multiple_of(self.align).ok_or_else(|| {
                Error::invalid(format!("an extent of {}, which no multiple of `align` holds", largest[axis]))
            })?;
        }
        let anchors: Vec<i64> = (extents.iter().zip(shape.iter()))
            .map(|(&extent, &own)| if self.before { own as i64 - extent as i64 } else { 0 })
            .collect();
        let copy = WindowCopy::new(shape, &anchors, &extents, Outside::Fill)?;
        let span = |&axis: &usize| Span {
            extent: extents[axis],
            stride: 0,
            anchor: anchors[axis],
            source: shape[axis],
        };
        Ok(Padded { copy, mask: axes.iter().map(span).collect() })
    }

    fn of(&self, sample: usize) -> Result<&Padded> {
        let padded = self.padded.get(sample).and_then(Option::as_ref);
        padded.ok_or_else(|| Error::internal("a sample has no shape"))
    }
}

/// Writes 1 where the sample is.
fn mark(mask: &mut [i64], spans: &[Span]) {
    let Some((span, inner)) = spans.split_first() else { return mask.fill(MASK[1]) };
    let first = span.anchor.unsigned_abs() as usize;
    let size = mask.len().checked_div(span.extent).unwrap_or_default().max(1);
    for part in mask.chunks_exact_mut(size).skip(first).take(span.source) {
        mark(part, inner);
    }
}

impl Operator for PadToBatch {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut data = inputs[0].clone();
        let known = match (data.ndim(), data.layout) {
            (Some(ndim), Some(layout)) => self.axes.known(layout, ndim).transpose()?,
            _ => None,
        };
        if let Some(dims) = &mut data.dims {
            for (axis, dim) in dims.iter_mut().enumerate() {
                if known.as_ref().is_none_or(|known| known.contains(&axis)) {
                    *dim = None;
                }
            }
        }
        let mask = ValueType {
            dtype: Some(DType::I64),
            dims: known.map(|axes| vec![None; axes.len()]),
            layout: Some(Layout::NONE),
        };
        Ok(vec![data, mask])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let largest = largest(inputs, &desc.shapes, ndim);
        self.padded = inputs.map(|sample| self.pad(&sample, &largest, desc.layout).map(Some));
        let rank = self.axes.known(desc.layout, ndim).transpose()?.map_or(ndim, |axes| axes.len());
        let of = |shape: fn(&Padded) -> Shape, ndim: usize| {
            let empty = || Shape::new(vec![0; ndim]);
            self.padded.iter().map(|padded| padded.as_ref().map_or_else(empty, shape)).collect()
        };
        let shapes = of(|padded| padded.copy.extent().clone(), ndim);
        let masks =
            of(|padded| Shape::new(padded.mask.iter().map(|span| span.extent).collect::<Vec<_>>()), rank);
        Ok(vec![
            BatchDesc::new(desc.dtype, desc.layout, shapes),
            BatchDesc::new(DType::I64, Layout::NONE, masks),
        ])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let dtype = io.inputs().desc(0)?.dtype;
        dispatch!(dtype, T => io.for_each_sample(cx, |sample| {
            let padded = self.of(sample.index())?;
            let input = sample.input(0)?;
            let output = sample.output(0)?.as_slice_mut::<T>()?;
            padded.copy.fill(output, &[self.fill], 0)?;
            padded.copy.copy(input.as_slice()?, output)?;
            let mask = sample.output(1)?.as_slice_mut::<i64>()?;
            mask.fill(MASK[0]);
            mark(mask, &padded.mask);
            Ok(())
        }))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        Gather::copy(size_of::<i64>()).prepare(gpu)?;
        inputs[0].dtype.map_or(Ok(()), |dtype| Gather::copy(dtype.size()).prepare(gpu))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let dtype = io.inputs().desc(0)?.dtype;
        let gather = Gather::copy(dtype.size());
        let of_mask = Gather::copy(size_of::<i64>());
        let values = cx.recorder.stage(bytemuck::cast_slice(&MASK))?;
        let fill = cx.recorder.stage(&fill_elements(dtype, &[self.fill]))?;
        let one = |address| Fill { address, values: 1, repeat: 1 };
        let rows = io.rows(|sample| {
            let padded = self.of(sample.index())?;
            let data =
                gather.window(sample.target(0)?, sample.source(0)?, &padded.copy, one(fill.address()))?;
            let ones = values.address() + size_of::<i64>() as u64;
            Ok((data, of_mask.row(sample.target(1)?, ones, &padded.mask, one(values.address()))?))
        });
        let (data, masks): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        gather.launch(cx, &data)?;
        of_mask.launch(cx, &masks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    fn padded(values: &[(&str, Value)], samples: &[(&[usize], &[u8])]) -> Result<Vec<Vec<u8>>, String> {
        let made = run(&DEF, &args(values, &[]), &[batch(samples)], &[]);
        let made = made.map_err(|error| error.to_string())?;
        (0..samples.len()).map(|i| made.words(i).map(|_| made.values::<u8>(i))).collect()
    }

    #[test]
    fn samples_grow_to_the_largest_of_each_axis() {
        let samples: [(&[usize], &[u8]); 2] = [(&[1, 2], &[1, 2]), (&[2, 1], &[3, 4])];
        assert_eq!(padded(&[], &samples).unwrap(), [[1, 2, 0, 0], [3, 0, 4, 0]]);
        let left = [("side", Value::Strings(vec!["left".into()])), ("fill_value", Value::Floats(vec![9.0]))];
        assert_eq!(padded(&left, &samples).unwrap(), [[9, 9, 1, 2], [9, 3, 9, 4]]);
        let one = [("axes", Value::Ints(vec![-1])), ("align", Value::Ints(vec![3]))];
        assert_eq!(padded(&one, &samples).unwrap(), [vec![1, 2, 0], vec![3, 0, 0, 4, 0, 0]]);
    }

    #[test]
    fn masks_say_where_samples_are() {
        let span = |extent, anchor, source| Span { extent, stride: 0, anchor, source };
        let mut mask = [0; 6];
        mark(&mut mask, &[span(2, -1, 1), span(3, -1, 2)]);
        assert_eq!(mask, [0, 0, 0, 0, 1, 1]);
        mark(&mut mask, &[span(2, 0, 1), span(3, 0, 1)]);
        assert_eq!(mask, [1, 0, 0, 0, 1, 1]);
        mark(&mut [], &[span(0, 0, 0), span(3, 0, 3)]);
    }

    #[test]
    fn hostile_shapes_and_arguments_are_errors() {
        let ints = |name, value| [(name, Value::Ints(vec![value]))];
        for (name, value) in [("axes", 2), ("axes", -3), ("align", 0), ("align", i64::MAX)] {
            assert!(padded(&ints(name, value), &[(&[1, 1], &[1])]).is_err(), "{name} {value}");
        }
        let side = [("side", Value::Strings(vec!["up".into()]))];
        assert!(padded(&side, &[(&[1], &[1])]).unwrap_err().contains("expected `right` or `left`"));
        // Together they would be larger than a sample may be.
        let none: [u8; 0] = [];
        let huge: [(&[usize], &[u8]); 2] = [(&[1 << 40, 0], &none), (&[1, 1 << 40], &none)];
        assert!(padded(&[], &huge[..1]).unwrap()[0].is_empty());
        assert!(padded(&ints("align", 1 << 24), &[(&[1, 1, 1], &[1])]).is_err());
    }
}
