//! `gesso__Patchify`: images and clips as rows of patches.

use std::sync::Arc;

use super::sides::count;
use crate::cpu::patches::Patches;
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::limits;
use crate::operator::shared::layouts;
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType, elements, elements_mut};

pub(super) struct Patchify {
    side: usize,
    depth: usize,
    merge: usize,
    /// How each sample is cut; `None` for one that failed.
    cuts: Vec<Option<Patches>>,
}

const LAYOUTS: [&str; 4] = ["CHW", "HWC", "FCHW", "FHWC"];

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__Patchify",
    doc: "Cuts an image or a clip into patches, a row each, in the order of Qwen2-VL and its successors: patches that \
          a model merges are neighbours, and the last frame is repeated where a patch needs more",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("patch_size", "rows and columns of a patch").or_int(14),
        ArgSpec::int("temporal_patch_size", "frames of a patch").or_int(2),
        ArgSpec::int("merge_size", "patches along each side of a square that a model merges").or_int(2),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    reads_in_place: InputSet::All,
    sequences: true,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Patchify::new(args)?))
}

impl Patchify {
    /// # Errors
    /// When an argument is out of bounds.
    pub(super) fn new(args: &Args) -> Result<Self> {
        let number = |name: &str, most| Ok::<_, Error>(count(name, args.int(name)?, most)? as usize);
        Ok(Self {
            side: number("patch_size", limits::MAX_PATCH_SIDE)?,
            depth: number("temporal_patch_size", limits::MAX_PATCH_GROUP)?,
            merge: number("merge_size", limits::MAX_PATCH_GROUP)?,
            cuts: Vec::new(),
        })
    }

    /// How a sample of `shape` is cut.
    ///
    /// # Errors
    /// When it does not consist of whole patches.
    pub(super) fn patches(&self, shape: &Shape, layout: Layout) -> Result<Patches> {
        let layout = layouts::accepted(layout, shape.len(), &LAYOUTS)?;
        let extent = |letter| layout.find(letter).and_then(|at| shape.get(at)).copied().unwrap_or(1);
        let cut = Patches {
            frames: extent(b'F'),
            channels: extent(b'C'),
            height: extent(b'H'),
            width: extent(b'W'),
            channels_last: layout.letters().last() == Some(&b'C'),
            side: self.side,
            depth: self.depth,
            merge: self.merge,
        };
        let unit = self.side * self.merge;
        let fits = |side: usize| side > 0 && side.is_multiple_of(unit);
        if !fits(cut.height) || !fits(cut.width) || cut.frames == 0 || cut.channels == 0 {
            return Err(Error::invalid(format!(
                "a sample of shape {shape}, expected a height and a width that are multiples of {unit}, patch size \
                 times merge size, and at least one frame and channel"
            )));
        }
        Ok(cut)
    }

    /// Elements of a patch where the number of channels is known.
    fn patch_len(&self, ty: &ValueType, layout: Option<Layout>) -> Option<usize> {
        let channels = ty.dims.as_ref()?.get(layout?.find(b'C')?).copied()??;
        (self.side * self.side * self.depth).checked_mul(channels)
    }
}

/// The patches' shape: rows of patches.
pub(super) fn shape(cut: &Patches) -> Result<Shape> {
    let rows = cut.grid().into_iter().try_fold(1usize, usize::checked_mul);
    let rows = rows.ok_or_else(|| Error::invalid("more patches than a number holds"))?;
    Ok(Shape::from([rows, cut.patch_len()]))
}

impl Operator for Patchify {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let layout = layouts::of_type(&inputs[0], &LAYOUTS)?;
        let dims = Some(vec![None, self.patch_len(&inputs[0], layout)]);
        Ok(vec![ValueType { dtype: inputs[0].dtype, dims, layout: Some(Layout::NONE) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        self.cuts = inputs.map(|sample| {
            let shape = sample.input(0)?.shape;
            // Nothing here multiplies extents whose product no number holds.
            shape.bytes_of_input(1)?;
            self.patches(shape, desc.layout).map(Some)
        });
        let cuts = &self.cuts;
        let shapes = inputs.map_shapes(2, |sample| match cuts.get(sample.index) {
            Some(Some(cut)) => shape(cut),
            _ => Err(Error::internal("a sample was not looked at")),
        });
        Ok(vec![BatchDesc::new(desc.dtype, Layout::NONE, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (cuts, size) = (&self.cuts, io.inputs().desc(0)?.dtype.size());
        io.for_each_sample(cx, |sample| {
            let Some(Some(cut)) = cuts.get(sample.index()) else { return Ok(()) };
            let (input, output) = sample.unary()?;
            match size {
                1 => cut.cut(input.bytes, output.bytes),
                2 => cut.cut::<u16>(elements(input.bytes)?, elements_mut(output.bytes)?),
                4 => cut.cut::<u32>(elements(input.bytes)?, elements_mut(output.bytes)?),
                _ => cut.cut::<u64>(elements(input.bytes)?, elements_mut(output.bytes)?),
            }
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| gpu.kernel(&kernel(dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let rows = io.rows(|sample| {
            let cut = self.cuts.get(sample.index()).copied().flatten();
            let cut = cut.ok_or_else(|| Error::internal("a sample was not looked at"))?;
            let ([_, high, wide], strides) = (cut.grid(), cut.strides());
            Ok(Row {
                to: sample.target(0)?,
                from: sample.source(0)?,
                elements: sample.output_shape(0)?.volume()? as u64,
                channels: cut.channels as u32,
                last_frame: cut.frames as u32 - 1,
                high: high as u32,
                wide: wide as u32,
                frame_stride: strides.frame as u64,
                channel_stride: strides.channel as u32,
                row_stride: strides.row as u32,
                column_stride: strides.column as u32,
                unused: 0,
            })
        });
        let most = rows.iter().map(|row| row.elements).max().unwrap_or_default();
        let params = Params { side: self.side as u32, depth: self.depth as u32, merge: self.merge as u32 };
        cx.launch(&kernel(io.inputs().desc(0)?.dtype), most as usize, &params, &rows)
    }
}

device_struct! {
    /// A sample, as `kernels/patchify.cu` sees it.
    struct Row as Row {
        to: u64 = "ELEMENT *",
        from: u64 = "const ELEMENT *",
        /// of the output
        elements: u64,
        channels: u32,
        /// that is repeated
        last_frame: u32,
        /// patches along rows
        high: u32,
        /// patches along columns
        wide: u32,
        /// distances of neighbours in the input, in elements
        frame_stride: u64,
        channel_stride: u32,
        row_stride: u32,
        column_stride: u32,
        unused: u32,
    }
}

device_struct! {
    struct Params as Params {
        /// rows and columns of a patch
        side: u32,
        /// frames of a patch
        depth: u32,
        /// patches along each side of a square that is merged
        merge: u32,
    }
}

fn kernel(dtype: DType) -> KernelSpec {
    KernelSpec::of::<Row, Params>("patchify", "patchify").dtype("ELEMENT", dtype.bits())
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    [DType::U8, DType::U16, DType::U32, DType::U64].map(kernel).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    fn error(values: &[(&str, i64)], shape: &[usize]) -> String {
        let values: Vec<_> = values.iter().map(|&(name, value)| (name, Value::Ints(vec![value]))).collect();
        let pixels = vec![0u8; shape.iter().product()];
        match run(&DEF, &args(&values, &[]), &[batch(&[(shape, &pixels)])], &[]) {
            Ok(made) => made.error(0),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn hostile_shapes_and_arguments_are_errors() {
        for shape in [&[3, 28, 27][..], &[3, 0, 28], &[0, 28, 28], &[0, 3, 28, 28], &[28, 28]] {
            let found = error(&[], shape);
            assert!(found.contains("expected"), "{shape:?}: {found}");
        }
        for name in ["patch_size", "temporal_patch_size", "merge_size"] {
            for value in [0, -1, i64::MAX] {
                assert!(error(&[(name, value)], &[3, 28, 28]).contains(name));
            }
        }
        // Squares so large that their area passes 32 bits.
        assert!(error(&[("patch_size", 4096), ("merge_size", 64)], &[3, 28, 28]).contains("262144"));
    }

    #[test]
    fn nothing_of_huge_extents_is_an_error() {
        let none: [u8; 0] = [];
        let made = run(&DEF, &args(&[], &[]), &[batch(&[(&[0, 28 << 40, 28 << 40], &none)])], &[]).unwrap();
        assert!(made.error(0).contains("huge extents"));
    }
}
