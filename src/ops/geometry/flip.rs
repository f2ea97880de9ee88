//! `Flip`: mirrors an image, a volume or every frame of a sequence.

use std::sync::Arc;

use multiversion::multiversion;

use crate::cpu::window::Span;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::gather::{self, Fill, Gather};
use crate::operator::shared::layouts;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, Device, Shape, ValueType};

/// Letters of the axes that can be flipped, in the order of the arguments below.
const AXES: [u8; 3] = *b"WHD";

/// Layouts of samples that have none.
const LAYOUTS: [&str; 3] = ["HWC", "FHWC", "FDHWC"];

struct Flip {
    /// For each of [`AXES`]: whether to flip along it; nonzero is yes.
    flags: [Arg; 3],
    /// Per sample: whether to flip along each dimension of its shape.
    flipped: Vec<Vec<bool>>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Flip",
    doc: "Mirrors horizontally, vertically or in depth",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("horizontal", "nonzero: left and right change places").tensor().or_int(1),
        ArgSpec::int("vertical", "nonzero: top and bottom change places").tensor().or_int(0),
        ArgSpec::int("depthwise", "nonzero: front and back change places").tensor().or_int(0),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gather::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let flags = [args.arg("horizontal")?, args.arg("vertical")?, args.arg("depthwise")?];
    Ok(Box::new(Flip { flags, flipped: Vec::new() }))
}

impl Operator for Flip {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![ValueType { layout: layouts::of_type_or_first(&inputs[0], &LAYOUTS), ..inputs[0].clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let mut desc = inputs.desc(0)?.clone();
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        desc.layout = layouts::or_first(desc.layout, ndim, &LAYOUTS);
        self.flipped = inputs.map(|sample| {
            let shape = sample.input(0)?.shape;
            let layout = desc.layout;
            let mut flipped = vec![false; shape.len()];
            for (flag, letter) in self.flags.iter().zip(AXES) {
                if flag.int(&sample)? == 0 {
                    continue;
                }
                // Images have no depth, which DALI lets pass.
                if letter == b'D' && layout.find(letter).is_none() {
                    continue;
                }
                let axis = layout.find(letter).filter(|&axis| axis < shape.len()).ok_or_else(|| {
                    Error::invalid(format!(
                        "layout `{layout}` has no dimension `{}` to flip",
                        char::from(letter)
                    ))
                })?;
                flipped[axis] = true;
            }
            Ok(flipped)
        });
        Ok(vec![desc])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let size = io.inputs().desc(0)?.dtype.size();
        io.for_each_sample(cx, |sample| {
            let flipped = &self.flipped[sample.index()];
            let (input, output) = sample.unary()?;
            flip(input.bytes, output.bytes, input.shape, size, flipped);
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
            let (spans, first) = mirrored(sample.input(0)?.shape, &self.flipped[sample.index()]);
            let from = sample.source(0)? + (first * size) as u64;
            gather.row(sample.target(0)?, from, &spans, Fill::default())
        });
        gather.launch(cx, &rows)
    }
}

/// The dimensions of `shape`, walked backwards where they are flipped; and the element where that begins.
fn mirrored(shape: &Shape, flipped: &[bool]) -> (Vec<Span>, usize) {
    if shape.contains(&0) {
        return (vec![Span::whole(0, 1)], 0);
    }
    let mut first = 0;
    let dims = shape.iter().zip(shape.strides()).zip(flipped);
    let spans = dims.map(|((&extent, stride), &flip)| {
        if flip {
            first += (extent - 1) * stride;
        }
        Span::whole(extent, if flip { -(stride as i64) } else { stride as i64 })
    });
    (spans.collect(), first)
}

/// Copies `src` to `dst`, both dense of shape `shape` with elements of `size` bytes, mirrored along the dimensions that
/// `flipped` names.
fn flip(src: &[u8], dst: &mut [u8], shape: &Shape, size: usize, flipped: &[bool]) {
    // Dimensions behind the last flipped one move as one run of bytes, those of the last flipped one are a line.
    let Some(last) = flipped.iter().rposition(|&f| f) else { return dst.copy_from_slice(src) };
    let run = size * shape[last + 1..].iter().product::<usize>();
    let line = run * shape[last];
    let outer = &shape[..last];
    if line == 0 {
        return;
    }
    let mut index = vec![0; outer.len()];
    for target in dst.chunks_exact_mut(line) {
        let source = index
            .iter()
            .zip(outer)
            .zip(flipped)
            .fold(0, |at, ((&i, &extent), &flip)| at * extent + if flip { extent - 1 - i } else { i });
        let source = &src[source * line..][..line];
        // Runs of a known length are moved by an instruction or two.
        match run {
            1 => reverse::<1>(source, target),
            2 => reverse::<2>(source, target),
            3 => reverse::<3>(source, target),
            4 => reverse::<4>(source, target),
            12 => reverse::<12>(source, target),
            _ => {
                let runs = target.chunks_exact_mut(run).zip(source.chunks_exact(run).rev());
                runs.for_each(|(to, from)| to.copy_from_slice(from));
            }
        }
        for (i, &extent) in index.iter_mut().zip(outer).rev() {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
}

/// Copies runs of `N` bytes, the last one first.
#[multiversion(targets("x86_64+avx+avx2"))]
fn reverse<const N: usize>(src: &[u8], dst: &mut [u8]) {
    let runs = dst.as_chunks_mut::<N>().0.iter_mut().zip(src.as_chunks::<N>().0.iter().rev());
    runs.for_each(|(to, from)| *to = *from);
}
