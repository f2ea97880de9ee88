//! `gesso__Augment`: the augmentations of training, as Pillow and torchvision compute them.

use crate::cpu::augment::{self, CHANNELS, Filter, Library, Moves, Operation, Rgb, Step};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

/// Layouts of the images.
const LAYOUTS: [&str; 1] = ["HWC"];

struct Augment {
    operations: Arg,
    magnitudes: Arg,
    library: Library,
    moves: Moves,
    /// Of each sample of the batch.
    steps: Vec<Vec<Step>>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__Augment",
    doc: "Augmentations of RGB images one after the other, equal to Pillow's or torchvision's to the bit",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints(
            "operations",
            "what is done, in this order: 0 nothing, 1 brightness, 2 contrast, 3 saturation, 4 hue, 5 sharpness, 6 posterize, \
             7 solarize, 8 auto-contrast, 9 equalize, 10 invert, 11 grayscale, 12 shear x, 13 shear y, 14 translate x, \
             15 translate y, 16 rotate",
        )
        .tensor()
        .required(),
        ArgSpec::floats(
            "magnitudes",
            "of each: a factor (1, 2, 3, 5), a part of the circle (4), bits (6), a threshold (7), a tangent (12, 13), pixels (14, 15), \
             degrees (16)",
        )
        .tensor()
        .required(),
        ArgSpec::string(
            "arithmetic",
            "whose: `pillow`, or of tensors, up to 11, `torchvision` (version 1 of its transforms) or `torchvision-v2`",
        )
        .or_string("pillow"),
        ArgSpec::string("filter", "of what moves pixels: `nearest` or `linear`").or_string("nearest"),
        ArgSpec::ints("fill", "the colour where there is no image").or_ints(&[0]),
    ],
    build: &build,
    outputs: &one_output,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let library = match args.string("arithmetic")? {
        "pillow" => Library::Pillow,
        "torchvision" => Library::Torchvision,
        "torchvision-v2" => Library::TorchvisionV2,
        other => {
            return Err(Error::invalid(format!(
                "argument `arithmetic` is `{other}`, expected `pillow`, `torchvision` or `torchvision-v2`"
            )));
        }
    };
    let filter = match args.string("filter")? {
        "nearest" => Filter::Nearest,
        "linear" => Filter::Linear,
        other => {
            return Err(Error::invalid(format!(
                "argument `filter` is `{other}`, expected `nearest` or `linear`"
            )));
        }
    };
    let moves = Moves { filter, fill: fill(&args.ints("fill")?)? };
    let [operations, magnitudes] = [args.arg("operations")?, args.arg("magnitudes")?];
    Ok(Box::new(Augment { operations, magnitudes, library, moves, steps: Vec::new() }))
}

fn fill(values: &[i64]) -> Result<Rgb> {
    let wrong = || {
        Error::invalid(format!(
            "argument `fill` is {values:?}, expected one or {CHANNELS} levels of 0 to 255"
        ))
    };
    let levels: Vec<u8> =
        values.iter().map(|&value| u8::try_from(value)).collect::<Result<_, _>>().map_err(|_| wrong())?;
    match levels[..] {
        [level] => Ok([level; CHANNELS]),
        [red, green, blue] => Ok([red, green, blue]),
        _ => Err(wrong()),
    }
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8])
}

impl Augment {
    fn steps_of(&self, sample: &SampleInputs<'_>) -> Result<Vec<Step>> {
        let (operations, magnitudes) = (self.operations.ints(sample)?, self.magnitudes.floats(sample)?);
        if operations.len() != magnitudes.len() || operations.len() > limits::MAX_AUGMENTATIONS {
            return Err(Error::invalid(format!(
                "{} `operations` and {} `magnitudes`, expected as many of both, up to {}",
                operations.len(),
                magnitudes.len(),
                limits::MAX_AUGMENTATIONS
            )));
        }
        let step = |(&number, &magnitude): (&i64, &f32)| {
            let operation = Operation::of(number).ok_or_else(|| {
                Error::invalid(format!("argument `operations` has {number}, which is no operation"))
            })?;
            Step::new(operation, magnitude, self.library)
        };
        operations.iter().zip(&magnitudes).map(step).collect()
    }
}

impl Operator for Augment {
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
        self.steps = inputs.map(|sample| self.steps_of(&sample));
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
            let steps = this.steps.get(index).map_or(&[][..], Vec::as_slice);
            let mut image = input.as_slice::<u8>()?.as_chunks::<CHANNELS>().0.to_vec();
            let mut spare = image.clone();
            augment::apply(steps, &mut image, &mut spare, width, this.library, this.moves);
            output.bytes.copy_from_slice(image.as_flattened());
            Ok(())
        })
    }
}
