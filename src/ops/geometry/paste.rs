//! `Paste`: an image on a larger canvas of one colour.

use std::sync::Arc;

use super::extract::Extract;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::window::Window;
use crate::operator::shared::{dtypes, gather, layouts};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

/// Layouts of the images.
const LAYOUTS: [&str; 1] = ["HWC"];

/// Largest side of a canvas: float32 holds every integer up to here.
const MAX_SIDE: f32 = 16_777_216.0;

struct Paste {
    ratio: Arg,
    /// Where the image is, from 0 for the start to 1 for the end: y, then x.
    position: [Arg; 2],
    min_canvas_size: Arg,
    extract: Extract,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Paste",
    doc: "Puts an image on a larger canvas of one colour",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("ratio", "size of the canvas over that of the image, at least 1").tensor().required(),
        ArgSpec::ints("fill_value", "values of the canvas' channels, or one for all").required(),
        ArgSpec::int("n_channels", "how many values `fill_value` has, unless it has one").or_int(3),
        ArgSpec::float("paste_x", "place of the image from 0 (left) to 1 (right)").tensor().or_float(0.5),
        ArgSpec::float("paste_y", "place of the image from 0 (top) to 1 (bottom)").tensor().or_float(0.5),
        ArgSpec::float("min_canvas_size", "smallest side of the canvas").tensor().or_float(0.0),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gather::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let missing = |name| Error::invalid(format!("argument `{name}` is missing"));
    let fill = args.given_floats("fill_value")?.ok_or_else(|| missing("fill_value"))?;
    let channels = args.int("n_channels")?;
    if fill.len() != 1 && fill.len() as i64 != channels {
        return Err(Error::invalid(format!(
            "argument `fill_value` has {} values, expected 1 or {channels}",
            fill.len()
        )));
    }
    Ok(Box::new(Paste {
        ratio: args.given_arg("ratio")?.ok_or_else(|| missing("ratio"))?,
        position: [args.arg("paste_y")?, args.arg("paste_x")?],
        min_canvas_size: args.arg("min_canvas_size")?,
        extract: Extract::onto(fill),
    }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8])
}

/// Where an image of `side` pixels lies along one side of its canvas: the anchor of the canvas in the image, and its
/// size.
fn along(side: usize, ratio: f32, smallest: f32, position: f32) -> Result<(i64, usize)> {
    if smallest < 0.0 {
        return Err(Error::invalid(format!("argument `min_canvas_size` is {smallest}, expected at least 0")));
    }
    if !(ratio >= 1.0 && (0.0..=1.0).contains(&position)) {
        return Err(Error::invalid(format!(
            "a ratio of {ratio} and a place of {position}, expected at least 1 and 0 to 1"
        )));
    }
    let canvas = (ratio * side as f32).trunc().max(smallest.trunc());
    if !(0.0..=MAX_SIDE).contains(&canvas) {
        return Err(Error::invalid(format!("a canvas of {canvas} pixels, expected at most {MAX_SIDE}")));
    }
    let free = (canvas as usize).saturating_sub(side);
    Ok((-((position * free as f32) as i64), canvas as usize))
}

impl Operator for Paste {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), check)?;
        ty.layout = layouts::of_type(&ty, &LAYOUTS)?;
        if let Some(dims) = &mut ty.dims {
            dims.iter_mut().take(2).for_each(|extent| *extent = None);
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let layout = layouts::of_batch(desc, &LAYOUTS)?;
        let Self { ratio, position, min_canvas_size, extract } = self;
        let desc = extract.setup(inputs, layout, |sample, shape| {
            let (ratio, smallest) = (ratio.float(sample)?, min_canvas_size.float(sample)?);
            let mut window = Window::whole(shape);
            for (axis, position) in position.iter().enumerate() {
                let (anchor, extent) = along(shape[axis], ratio, smallest, position.float(sample)?)?;
                (window.anchor[axis], window.extent[axis]) = (anchor, extent);
            }
            Ok(window)
        })?;
        Ok(vec![desc])
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

    #[test]
    fn a_canvas_is_never_smaller_nor_endless() {
        assert_eq!(along(4, 1.9, 0.0, 0.5).unwrap(), (-1, 7));
        assert_eq!(along(3, 1.0, 5.9, 1.0).unwrap(), (-2, 5));
        for (ratio, smallest, position) in
            [(0.5, 0.0, 0.5), (f32::NAN, 0.0, 0.5), (1e30, 0.0, 0.5), (1.0, 1e30, 0.5), (2.0, 0.0, -0.1)]
        {
            assert!(along(4, ratio, smallest, position).is_err(), "{ratio} {smallest} {position}");
        }
    }
}
