//! `BbFlip`: bounding boxes mirrored with their image.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::shared::dtypes;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Shape, ValueType};

struct BbFlip {
    horizontal: Arg,
    vertical: Arg,
    /// Whether a box is left, top, right, bottom; else left, top, width, height.
    has_ends: bool,
    flips: Vec<[bool; 2]>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "BbFlip",
    doc: "Mirrors relative bounding boxes with their image",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("horizontal", "nonzero: left and right change places").tensor().or_int(1),
        ArgSpec::int("vertical", "nonzero: top and bottom change places").tensor().or_int(0),
        ArgSpec::bool("ltrb", "whether boxes hold right and bottom instead of width and height")
            .or_bool(false),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(BbFlip {
        horizontal: args.arg("horizontal")?,
        vertical: args.arg("vertical")?,
        has_ends: args.bool("ltrb")?,
        flips: Vec::new(),
    }))
}

/// Boxes are float32.
pub(in crate::ops) fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("boxes", dtype, &[DType::F32])
}

/// Boxes are the last dimension.
pub(in crate::ops) fn check_shape(shape: &Shape) -> Result<()> {
    if shape.last() == Some(&4) {
        return Ok(());
    }
    Err(Error::invalid(format!("boxes of shape {shape}, expected 4 values for each")))
}

impl Operator for BbFlip {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        dtypes::like_input(inputs, check)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        self.flips = inputs.map(|sample| {
            check_shape(sample.input(0)?.shape)?;
            Ok([self.horizontal.int(&sample)? != 0, self.vertical.int(&sample)? != 0])
        });
        Ok(vec![desc.clone()])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (flips, has_ends) = (&self.flips, self.has_ends);
        io.for_each_sample(cx, |sample| {
            let flips = flips.get(sample.index()).copied().unwrap_or_default();
            let (input, output) = sample.unary()?;
            let (src, dst) = (input.as_slice::<f32>()?, output.as_slice_mut::<f32>()?);
            for (to, from) in dst.as_chunks_mut::<4>().0.iter_mut().zip(src.as_chunks::<4>().0) {
                *to = *from;
                for (side, _) in flips.iter().enumerate().filter(|(_, flips)| **flips) {
                    let end = if has_ends { from[side + 2] } else { from[side] + from[side + 2] };
                    let (start, end) = (1.0 - end, 1.0 - from[side]);
                    (to[side], to[side + 2]) = (start, if has_ends { end } else { end - start });
                }
                // Sizes are computed from ends, also along a side that is not mirrored.
                for side in (0..2).filter(|&side| !has_ends && !flips[side]) {
                    to[side + 2] = (from[side] + from[side + 2]) - from[side];
                }
            }
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&kernel()).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let rows = io.rows(|sample| {
            let flips = self.flips.get(sample.index()).copied().unwrap_or_default();
            Ok(Row {
                to: sample.target(0)?,
                from: sample.source(0)?,
                boxes: sample.output_shape(0)?.volume()? as u64 / 4,
                flipped: flips.map(u32::from),
            })
        });
        let most = rows.iter().map(|row| row.boxes).max().unwrap_or_default();
        cx.launch(&kernel(), most as usize, &Params { has_ends: self.has_ends.into() }, &rows)
    }
}

device_struct! {
    /// A sample, as `kernels/bb_flip.cu` sees it.
    struct Row as Row {
        to: u64 = "float *",
        from: u64 = "const float *",
        boxes: u64,
        /// whether left and right change places, and top and bottom
        flipped: [u32; 2],
    }
}

device_struct! {
    struct Params as Params {
        /// a box is left, top, right, bottom; else left, top, width, height
        has_ends: u32,
    }
}

fn kernel() -> KernelSpec {
    KernelSpec::of::<Row, Params>("bb_flip", "bb_flip")
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    vec![kernel()]
}
