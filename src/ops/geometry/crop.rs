//! `Crop`: a window of an image, a volume or every frame of a sequence.

use std::sync::Arc;

use super::extract::{self, Extract};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::operator::shared::gather;
use crate::operator::shared::window::{CROP_ARGS, CropWindow, image_layout};
use crate::operator::{Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, ValueType};

struct Crop {
    window: CropWindow,
    extract: Extract,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Crop",
    doc: "Cuts a window out of images, volumes or sequences",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[],
    shared_args: &[CROP_ARGS, extract::ARGS[0], extract::ARGS[1]],
    build: &build,
    outputs: &one_output,
    kernels: &[gather::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Crop { window: CropWindow::new(args)?, extract: Extract::new(args)? }))
}

impl Operator for Crop {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype = self.extract.infer(ty.dtype)?;
        if let Some(dims) = &mut ty.dims {
            ty.layout = ty.layout.map(|layout| image_layout(layout, dims.len()));
            *dims = match ty.layout {
                Some(layout) => self.window.infer(dims, layout, self.extract.policy().trims())?,
                None if self.window.is_whole() => dims.clone(),
                None => vec![None; dims.len()],
            };
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let input = inputs.desc(0)?;
        let layout = image_layout(input.layout, input.shapes.first().map_or(0, |shape| shape.len()));
        let Self { window, extract } = self;
        Ok(vec![extract.setup(inputs, layout, |sample, shape| window.place(sample, shape, layout))?])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        self.extract.run(cx, io)
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        self.extract.prepare_gpu(gpu, &inputs[0])
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        self.extract.run_gpu(cx, io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Failures;
    use crate::operator::args::Value;
    use crate::tensor::{Batch, DType, Layout, Sample, Shape};

    #[test]
    fn a_size_that_is_none_fails_its_sample_alone() {
        let sizes = [f32::NAN, 2.0, f32::INFINITY, 1e15, -1.0, 7.0];
        let image = BatchDesc::new(DType::U8, Layout::hwc(), vec![Shape::from([4, 4, 1]); sizes.len()]);
        let image = Batch::new(image, vec![Sample::Borrowed(&[0; 16]); sizes.len()]).unwrap();
        let argument = BatchDesc::new(DType::F32, Layout::NONE, vec![Shape::from([]); sizes.len()]);
        let bytes = sizes.chunks(1).map(|size| Sample::Borrowed(bytemuck::cast_slice(size))).collect();
        let argument = Batch::new(argument, bytes).unwrap();
        for (policy, expected) in [
            ("error", [false, true, false, false, true, false]),
            ("wrap", [false, true, false, false, true, true]),
        ] {
            let values = [("out_of_bounds_policy".to_owned(), Value::Strings(vec![policy.to_owned()]))];
            let tensors = [("crop_w".to_owned(), 0), ("crop_h".to_owned(), 0)];
            let args = Args::new(values.into(), tensors.into());
            let mut crop = DEF.instantiate(&args, 1).unwrap();
            let failures = Failures::none(sizes.len());
            crop.setup(&Inputs::new(&"Crop".into(), &[&image], &[&argument], &failures)).unwrap();
            let live: Vec<bool> = (0..sizes.len()).map(|i| failures.get(i).is_none()).collect();
            assert_eq!(live, expected, "{policy}");
        }
    }
}
