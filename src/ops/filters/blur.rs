//! `gesso__Blur`: torchvision's Gaussian blur of RGB images, with weights that are given.

use crate::cpu::augment::{CHANNELS, blur};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

/// Layouts of the images.
const LAYOUTS: [&str; 1] = ["HWC"];

struct Blur {
    /// Along a row, and along a column.
    weights: [Arg; 2],
    drawn: Vec<[Vec<f32>; 2]>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__Blur",
    doc: "Blurs RGB images by a product of two rows of weights, equal to torch's convolution on a CPU to the bit",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::floats("weights_x", "along a row: an odd number of them").tensor().required(),
        ArgSpec::floats("weights_y", "along a column: an odd number of them").tensor().required(),
    ],
    build: &build,
    outputs: &one_output,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Blur { weights: [args.arg("weights_x")?, args.arg("weights_y")?], drawn: Vec::new() }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8])
}

impl Blur {
    fn weights_of(&self, sample: &SampleInputs<'_>) -> Result<[Vec<f32>; 2]> {
        let [x, y] = &self.weights;
        let found = [x.floats(sample)?, y.floats(sample)?];
        match found.iter().find(|weights| weights.len() % 2 == 0 || weights.len() > limits::MAX_BLUR_WEIGHTS)
        {
            None => Ok(found),
            Some(weights) => Err(Error::invalid(format!(
                "{} weights, expected an odd number up to {}",
                weights.len(),
                limits::MAX_BLUR_WEIGHTS
            ))),
        }
    }
}

impl Operator for Blur {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), check)?;
        ty.layout = layouts::of_type(&ty, &LAYOUTS)?;
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let layout = layouts::of_batch(desc, &LAYOUTS)?;
        self.drawn = inputs.map(|sample| self.weights_of(&sample));
        let shapes = inputs.map_shapes(3, |sample| {
            let shape = sample.input(0)?.shape;
            match shape.last() {
                Some(&CHANNELS) => Ok(shape.clone()),
                _ => Err(Error::invalid(format!("an image of shape {shape}, expected {CHANNELS} channels"))),
            }
        });
        Ok(vec![BatchDesc::new(desc.dtype, layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let this = &*self;
        io.for_each_sample(cx, |sample| {
            let index = sample.index();
            let (input, output) = sample.unary()?;
            let [_, width, _] = input.shape[..] else {
                return Err(Error::internal("a planned image has three dimensions"));
            };
            let Some([x, y]) = this.drawn.get(index) else { return Ok(()) };
            let (src, dst) =
                (input.as_slice::<u8>()?.as_chunks().0, output.as_slice_mut::<u8>()?.as_chunks_mut().0);
            blur::blur(src, dst, width, [x, y])
        })
    }
}
