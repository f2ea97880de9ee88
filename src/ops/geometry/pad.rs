//! `Pad`: makes samples as large as the largest of the batch, or as large as asked, by adding elements at the end.

use std::sync::Arc;

use crate::cpu::window::{Outside, WindowCopy, fill_elements};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::axes::Axes;
use crate::operator::shared::gather::{self, Fill, Gather};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType};

struct Pad {
    axes: Axes,
    fill: Arg,
    /// Smallest extent along each axis; not positive: the largest of the batch.
    shape: Option<Arg>,
    /// Extents become multiples of these.
    align: Option<Arg>,
    /// Per sample: the copy and the fill value.
    copies: Vec<Option<(WindowCopy, f32)>>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Pad",
    doc: "Adds elements at the end of dimensions, up to the batch's largest sample, a shape or an alignment",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("fill_value", "value of the added elements").tensor().or_float(0.0),
        ArgSpec::ints("axes", "dimensions to pad, negative ones from the back").tensor().or_computed("all"),
        ArgSpec::layout("axis_names", "dimensions to pad, as letters of the layout"),
        ArgSpec::ints("shape", "smallest extents, one or one an axis; not positive: the batch's largest")
            .tensor()
            .or_computed("the batch's largest extents"),
        ArgSpec::ints("align", "extents become multiples of these, one or one an axis").tensor(),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gather::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Pad {
        axes: Axes::new(args, Axes::All)?,
        fill: args.arg("fill_value")?,
        shape: args.given_arg("shape")?,
        align: args.given_arg("align")?,
        copies: Vec::new(),
    }))
}

impl Operator for Pad {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        if let Some(dims) = &mut ty.dims {
            *dims = match ty.layout {
                Some(layout) => self.infer_dims(dims, layout)?,
                None => vec![None; dims.len()],
            };
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let input = inputs.desc(0)?;
        let ndim = input.shapes.first().map_or(0, |shape| shape.len());
        let mut largest = vec![0; ndim];
        for (i, shape) in input.shapes.iter().enumerate() {
            // A sample that failed must not change the others.
            if inputs.failures().get(i).is_none() {
                largest.iter_mut().zip(shape.iter()).for_each(|(most, &extent)| *most = extent.max(*most));
            }
        }
        self.copies = inputs.map(|sample| {
            let shape = sample.input(0)?.shape;
            let padded = self.padded(&sample, shape, &largest, input.layout)?;
            let copy = WindowCopy::new(shape, &vec![0; shape.len()], &padded, Outside::Fill)?;
            Ok(Some((copy, self.fill.float(&sample)?)))
        });
        let shapes = self.copies.iter().map(|copy| match copy {
            Some((copy, _)) => copy.extent().clone(),
            None => Shape::new(vec![0; ndim]),
        });
        Ok(vec![BatchDesc::new(input.dtype, input.layout, shapes.collect())])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let dtype = io.inputs().desc(0)?.dtype;
        dispatch!(dtype, T => io.for_each_sample(cx, |sample| {
            let (copy, value) = self.window(sample.index())?;
            let (input, output) = sample.unary()?;
            let output = output.as_slice_mut::<T>()?;
            copy.fill(output, &[*value], 0)?;
            copy.copy(input.as_slice()?, output)
        }))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| Gather::copy(dtype.size()).prepare(gpu))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let dtype = io.inputs().desc(0)?.dtype;
        let gather = Gather::copy(dtype.size());
        let values = self.copies.iter().map(|copy| copy.as_ref().map_or(0.0, |(_, value)| *value));
        let fill = cx.recorder.stage(&fill_elements(dtype, &values.collect::<Vec<_>>()))?;
        let rows = io.rows(|sample| {
            let (copy, _) = self.window(sample.index())?;
            let own = fill.address() + (sample.index() * dtype.size()) as u64;
            let fill = Fill { address: own, values: 1, repeat: 1 };
            gather.window(sample.target(0)?, sample.source(0)?, copy, fill)
        });
        gather.launch(cx, &rows)
    }
}

impl Pad {
    /// Copy and fill value of a live sample.
    fn window(&self, sample: usize) -> Result<&(WindowCopy, f32)> {
        let copy = self.copies.get(sample).and_then(Option::as_ref);
        copy.ok_or_else(|| Error::internal("a sample has no shape"))
    }

    /// Extents of one sample after padding; `largest`: those of the batch.
    fn padded(
        &self,
        sample: &SampleInputs<'_>,
        shape: &[usize],
        largest: &[usize],
        layout: Layout,
    ) -> Result<Vec<usize>> {
        let axes = self.axes.of(sample, layout, shape.len())?;
        let read = |arg: &Option<Arg>| arg.as_ref().map(|arg| arg.ints(sample)).transpose();
        let (smallest, align) = (read(&self.shape)?, read(&self.align)?);
        let mut padded = shape.to_vec();
        for (i, &axis) in axes.iter().enumerate() {
            let smallest = smallest.as_deref().map(|v| one("shape", v, i, axes.len())).transpose()?;
            let align = align.as_deref().map(|v| one("align", v, i, axes.len())).transpose()?;
            padded[axis] = extent(shape[axis], smallest, align, largest[axis])?;
        }
        Ok(padded)
    }

    /// An axis that is padded to the batch has no fixed extent, unless all samples have one already.
    fn infer_dims(&self, dims: &[Option<usize>], layout: Layout) -> Result<Vec<Option<usize>>> {
        let Some(axes) = self.axes.known(layout, dims.len()).transpose()? else {
            return Ok(vec![None; dims.len()]);
        };
        let mut padded = dims.to_vec();
        for (i, &axis) in axes.iter().enumerate() {
            let value = |arg: &Option<Arg>, name| match arg {
                None => Some(None),
                Some(arg) => {
                    let values: Vec<i64> = arg.known()?.iter().map(|&v| v as i64).collect();
                    one(name, &values, i, axes.len()).ok().map(Some)
                }
            };
            let known = (dims[axis], value(&self.shape, "shape"), value(&self.align, "align"));
            padded[axis] = match known {
                (Some(dim), Some(smallest), Some(align)) => extent(dim, smallest, align, dim).ok(),
                _ => None,
            };
        }
        Ok(padded)
    }
}

/// The value for axis `i` of `axes`; a single one serves for all.
fn one(name: &str, values: &[i64], i: usize, axes: usize) -> Result<i64> {
    match values {
        [value] => Ok(*value),
        _ if values.len() == axes => Ok(values[i]),
        _ => Err(Error::invalid(format!("argument `{name}` has {} values for {axes} axes", values.len()))),
    }
}

/// The padded extent of a dimension of `len` positions.
fn extent(len: usize, smallest: Option<i64>, align: Option<i64>, largest: usize) -> Result<usize> {
    let smallest =
        smallest.and_then(|smallest| usize::try_from(smallest).ok()).filter(|&smallest| smallest > 0);
    let extent = smallest.map_or(largest, |smallest| smallest.max(len));
    let Some(align) = align else { return Ok(extent) };
    usize::try_from(align)
        .ok()
        .filter(|&align| align > 0)
        .and_then(|align| extent.checked_next_multiple_of(align))
        .ok_or_else(|| {
            Error::invalid(format!(
                "argument `align` is {align} for {extent} positions, expected a positive number"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_grow_to_the_batch_a_size_or_an_alignment() {
        assert_eq!(extent(2, None, None, 5).unwrap(), 5);
        assert_eq!(extent(2, Some(-1), Some(4), 5).unwrap(), 8);
        assert_eq!(extent(2, Some(1), Some(4), 5).unwrap(), 4);
        assert_eq!(extent(7, Some(3), None, 9).unwrap(), 7);
        for align in [0, -2, i64::MAX] {
            let large = usize::MAX;
            assert!(extent(large, None, Some(align), large).is_err(), "{align}");
        }
    }
}
