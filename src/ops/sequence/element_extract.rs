//! `ElementExtract`: single frames of a sequence, each an output of its own.

use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, gpu_io};
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType};

struct ElementExtract {
    /// The frame of each output.
    frames: Vec<usize>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "ElementExtract",
    doc: "Frames of a sequence, one output for each",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[ArgSpec::ints("element_map", "the frame of each output").required()],
    build: &build,
    outputs: &|args, _| Ok(frames(args)?.len()),
    kernels: &[gpu_io::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(ElementExtract { frames: frames(args)? }))
}

fn frames(args: &Args) -> Result<Vec<usize>> {
    let map = args.ints("element_map")?;
    if map.is_empty() || map.len() > limits::MAX_EDGES_PER_OPERATOR {
        return Err(Error::invalid(format!(
            "argument `element_map` has {} frames, expected 1 to {}",
            map.len(),
            limits::MAX_EDGES_PER_OPERATOR
        )));
    }
    let frame = |&frame: &i64| {
        usize::try_from(frame).map_err(|_| Error::invalid(format!("frame {frame}, expected 0 or more")))
    };
    map.iter().map(frame).collect()
}

fn without_first(layout: Layout) -> Layout {
    Layout::from_letters(layout.letters().get(1..).unwrap_or_default())
}

impl Operator for ElementExtract {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        if input.ndim() == Some(0) {
            return Err(Error::invalid("a scalar has no frames"));
        }
        let dims = input.dims.as_ref().map(|dims| dims[1..].to_vec());
        let ty = ValueType { dtype: input.dtype, dims, layout: input.layout.map(without_first) };
        Ok(vec![ty; self.frames.len()])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len()).saturating_sub(1);
        let shapes = inputs.map_shapes(ndim, |sample| {
            let shape = sample.input(0)?.shape;
            let Some((&extent, rest)) = shape.split_first() else {
                return Err(Error::invalid("a scalar has no frames"));
            };
            match self.frames.iter().find(|&&frame| frame >= extent) {
                Some(frame) => Err(Error::invalid(format!("frame {frame} of a sequence of {extent}"))),
                None => Ok(Shape::from(rest.to_vec())),
            }
        });
        Ok(vec![BatchDesc::new(desc.dtype, without_first(desc.layout), shapes); self.frames.len()])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let input = sample.input(0)?.bytes;
            for (i, &frame) in self.frames.iter().enumerate() {
                let output = sample.output(i)?;
                let len = output.bytes.len();
                let from = input.get(frame * len..(frame + 1) * len);
                output.bytes.copy_from_slice(from.ok_or_else(|| Error::internal("a frame is not there"))?);
            }
            Ok(())
        })
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let pairs = io.rows(|sample| {
            let input = sample.inputs.device(0)?;
            let pair = |(i, &frame): (usize, &usize)| {
                let output = sample.output(i)?;
                Ok((output.clone(), input.part(frame * output.len(), output.len())?))
            };
            self.frames.iter().enumerate().map(pair).collect::<Result<Vec<_>>>()
        });
        cx.copy(&pairs.concat())
    }
}
