//! `SequenceRearrange`: frames of a sequence in another order, some of them repeated or left out.

use std::sync::Arc;

use crate::cpu::window::Span;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::gather::{self, Fill, Gather};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType};

struct SequenceRearrange {
    new_order: Arg,
    /// Per sample: the input's frame of each frame of the output.
    orders: Vec<Vec<usize>>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "SequenceRearrange",
    doc: "The frames of a sequence in another order",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[ArgSpec::ints("new_order", "which frame comes first, second, ...").tensor().required()],
    build: &build,
    outputs: &one_output,
    kernels: &[gather::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let new_order = args.arg("new_order")?;
    if new_order.known().is_some_and(<[f64]>::is_empty) {
        return Err(Error::invalid("argument `new_order` is empty, expected a frame"));
    }
    Ok(Box::new(SequenceRearrange { new_order, orders: Vec::new() }))
}

fn check(layout: Layout, ndim: usize) -> Result<()> {
    if ndim < 2 {
        return Err(Error::invalid(format!("a sample of {ndim} dimensions, expected frames of one or more")));
    }
    match layout.letters().first() {
        None | Some(b'F') => Ok(()),
        Some(_) => Err(Error::invalid(format!("layout `{layout}`, expected frames (`F`) first"))),
    }
}

impl Operator for SequenceRearrange {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        if let (Some(layout), Some(ndim)) = (ty.layout, ty.ndim()) {
            check(layout, ndim)?;
        }
        if let Some(frames) = ty.dims.as_mut().and_then(|dims| dims.first_mut()) {
            *frames = self.new_order.known().map(<[f64]>::len);
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let ndim = desc.shapes.first().map_or(2, |shape| shape.len());
        check(desc.layout, ndim)?;
        self.orders = inputs.map(|sample| {
            let frames = sample.input(0)?.shape.first().copied().unwrap_or_default();
            if let Some(given) = self.new_order.tensor(&sample)?
                && given.shape.len() != 1
            {
                let text =
                    format!("argument `new_order` has shape {}, expected a list of frames", given.shape);
                return Err(Error::invalid(text));
            }
            let order = self.new_order.ints(&sample)?;
            if order.is_empty() {
                return Err(Error::invalid("argument `new_order` is empty, expected a frame"));
            }
            let frame = |&frame: &i64| {
                let inside = usize::try_from(frame).ok().filter(|&frame| frame < frames);
                inside.ok_or_else(|| Error::invalid(format!("frame {frame} of a sequence of {frames}")))
            };
            order.iter().map(frame).collect()
        });
        let shapes = desc.shapes.iter().zip(&self.orders).map(|(shape, order)| {
            let mut dims = shape.to_vec();
            dims[0] = order.len();
            Shape::from(dims)
        });
        Ok(vec![BatchDesc::new(desc.dtype, desc.layout, shapes.collect())])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let orders = &self.orders;
        io.for_each_sample(cx, |sample| {
            let order = &orders[sample.index()];
            let (input, output) = sample.unary()?;
            let frame = output.bytes.len() / order.len().max(1);
            if frame > 0 {
                for (to, &from) in output.bytes.chunks_exact_mut(frame).zip(order) {
                    to.copy_from_slice(&input.bytes[from * frame..][..frame]);
                }
            }
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| Gather::copy(dtype.size()).prepare(gpu))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let size = io.inputs().desc(0)?.dtype.size();
        let gather = Gather::copy(size);
        let rows = io.rows(|sample| {
            let elements = sample.input(0)?.shape[1..].iter().product::<usize>();
            let (source, target) = (sample.source(0)?, sample.target(0)?);
            let place = |frame: usize| (frame * elements * size) as u64;
            let row = |(to, &from): (usize, &usize)| {
                let spans = [Span::whole(elements, 1)];
                gather.row(target + place(to), source + place(from), &spans, Fill::default())
            };
            self.orders[sample.index()].iter().enumerate().map(row).collect::<Result<Vec<_>>>()
        });
        gather.launch(cx, &rows.concat())
    }
}
