//! `Crop`: a window of an image, a volume or every frame of a sequence.

use super::extract::{self, Extract};
use super::window::{CROP_ARGS, CropWindow, image_layout};
use super::{Args, CpuCx, Inputs, Io, OpDef, Operator, one_output};
use crate::error::Result;
use crate::tensor::{BatchDesc, Device, ValueType};

struct Crop {
    window: CropWindow,
    extract: Extract,
}

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "Crop",
    aliases: &[],
    doc: "Cuts a window out of images, volumes or sequences",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[],
    shared_args: &[CROP_ARGS, extract::ARGS[0], extract::ARGS[1]],
    build,
    outputs: one_output,
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
}
