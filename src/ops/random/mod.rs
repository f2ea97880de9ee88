//! Operators that draw numbers. What they share is here: seeds, shapes, element types; a [`Distribution`] says how one
//! number is drawn. The generator is [`crate::cpu::random`].

pub(super) mod batch_permutation;
pub(super) mod bbox_crop;
mod bbox_window;
pub(super) mod beta;
pub(super) mod choice;
pub(super) mod coin_flip;
pub(super) mod crop;
mod gpu;
pub(super) mod noise;
pub(super) mod normal;
pub(super) mod roi_crop;
pub(super) mod salt_and_pepper;
pub(super) mod shot;
pub(super) mod ssd_crop;
pub(super) mod uniform;

pub(super) use gpu::kernels;

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use multiversion::multiversion;

use super::table::{Bound, Row};
use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::cpu::random::{BatchRandom, Elements, Philox, Seed};
use crate::deadline::{Effort, Watch};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::shape_arg::ShapeArg;
use crate::operator::{ArgSpec, Args, CpuCx, GpuCx, GpuIo, Inputs, Io, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Element, Layout, Shape, ValueType};
use gpu::Draw;

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&batch_permutation::DEF, Bound::Elements),
    (&bbox_crop::DEF, Bound::Limit),
    (&beta::DEF, Bound::Told),
    (&choice::DEF, Bound::Limit),
    (&coin_flip::DEF, Bound::Told),
    (&crop::DECODER, Bound::Decodes),
    (&crop::GENERATOR, Bound::Limit),
    (&crop::RESIZED, Bound::Told),
    (&noise::DEF, Bound::Told),
    (&normal::DEF, Bound::Told),
    (&roi_crop::DEF, Bound::Limit),
    (&salt_and_pepper::DEF, Bound::Told),
    (&shot::DEF, Bound::Told),
    (&ssd_crop::DEF, Bound::Limit),
    (&uniform::DEF, Bound::Told),
];

/// The argument of every operator with random numbers.
pub(super) const SEED: ArgSpec = ArgSpec::int("seed", "start of the random numbers")
    .or_computed("made from the pipeline's seed, which without one is new at each load");

/// Arguments of operators that make tensors of random numbers.
pub(super) const ARGS: &[ArgSpec] = &[
    SEED,
    ArgSpec::ints("shape", "shape of the output").tensor().or_computed("that of the input, or a scalar"),
    ArgSpec::dtype("dtype", "element type of the output").or_computed("the distribution's"),
];

/// Element types of random numbers.
const NUMBERS: &[DType] = &[
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::U32,
    DType::I32,
    DType::U64,
    DType::I64,
    DType::F32,
    DType::F64,
];

/// The seed of an operator with these arguments.
///
/// # Errors
/// When `seed` is no integer.
pub(super) fn seed(args: &Args) -> Result<Seed> {
    // The hasher of the standard library is keyed by the system's randomness, anew for each.
    let seed = match args.given_int("seed")? {
        Some(seed) => seed as u64,
        None => std::hash::RandomState::new().build_hasher().finish(),
    };
    Ok(Seed::new(seed))
}

/// How a number is drawn.
pub(super) trait Distribution: Send + Sync {
    /// What a sample's arguments say.
    type Parameters: Default + Send + Sync;

    /// Type of the numbers when the file does not say it.
    const DTYPE: DType;

    /// Types that can be asked for.
    const DTYPES: &[DType];

    /// Nanoseconds that a number takes.
    const NUMBER_TIME: f64;

    /// Reads the arguments of a sample, for numbers of type `dtype`.
    ///
    /// # Errors
    /// When they make no distribution.
    fn parameters(&self, sample: &SampleInputs<'_>, dtype: DType) -> Result<Self::Parameters>;

    /// A number for types of less than 32 bits, and float32.
    fn draw_f32(parameters: &Self::Parameters, random: &mut Philox) -> f32;

    /// A number for larger types.
    fn draw_f64(parameters: &Self::Parameters, random: &mut Philox) -> f64;

    /// The function of `kernels/random.cu` that draws such numbers.
    fn kernel(&self) -> &'static str;

    /// The same for that function; `is_wide` where [`Distribution::draw_f64`] draws.
    fn draw(parameters: &Self::Parameters, is_wide: bool) -> Draw<'_>;
}

/// Whether DALI draws numbers of this type as doubles.
fn is_wide(dtype: DType) -> bool {
    dtype.size() >= 4 && dtype != DType::F32
}

/// Draws every one of `numbers`.
fn fill<D: Distribution, T: Element>(
    numbers: &mut [T],
    sample: Philox,
    parameters: &D::Parameters,
    is_wide: bool,
    watch: &Watch<'_>,
) -> Result<()>
where
    f32: ConvertSat<T>,
    f64: ConvertSat<T>,
{
    let mut elements = sample.elements();
    for stretch in numbers.chunks_mut(STRETCH) {
        elements = if is_wide {
            in_parts(stretch, elements, |part, elements| draw_f64::<D>(part, elements, parameters))
        } else {
            in_parts(stretch, elements, |part, elements| draw_f32::<D>(part, elements, parameters))
        };
        watch.charge(stretch.len())?;
    }
    Ok(())
}

/// Numbers that are drawn before somebody is asked whether to go on.
const STRETCH: usize = 1 << 14;

/// Numbers that are drawn before they are converted: they stay in the nearest cache.
const PART: usize = 256;

/// Lets `draw` fill `numbers`, or a part after the other that is then converted: there is one loop that draws for each
/// distribution, not one for each type. It gives back the elements that are left.
fn in_parts<F, T>(
    numbers: &mut [T],
    mut elements: Elements,
    draw: impl Fn(&mut [F], Elements) -> Elements,
) -> Elements
where
    F: Element + ConvertSat<T>,
    T: Element,
{
    if F::DTYPE == T::DTYPE {
        return draw(bytemuck::cast_slice_mut(numbers), elements);
    }
    let mut drawn = [F::default(); PART];
    for part in numbers.chunks_mut(PART) {
        let drawn = &mut drawn[..part.len()];
        elements = draw(drawn, elements);
        convert_slice(drawn, part);
    }
    elements
}

// Elements that are moved stay in registers, others would be written to memory for each number.
#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn draw_f32<D: Distribution>(
    numbers: &mut [f32],
    mut elements: Elements,
    parameters: &D::Parameters,
) -> Elements {
    for (number, mut random) in numbers.iter_mut().zip(elements.by_ref()) {
        *number = D::draw_f32(parameters, &mut random);
    }
    elements
}

#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn draw_f64<D: Distribution>(
    numbers: &mut [f64],
    mut elements: Elements,
    parameters: &D::Parameters,
) -> Elements {
    for (number, mut random) in numbers.iter_mut().zip(elements.by_ref()) {
        *number = D::draw_f64(parameters, &mut random);
    }
    elements
}

/// Elements of each sample.
fn counts(shapes: &[Shape]) -> Vec<usize> {
    shapes.iter().map(|shape| shape.volume().unwrap_or(usize::MAX)).collect()
}

/// What drawing the numbers of a sample is expected to take, of so many nanoseconds each.
fn drawing(counts: &[usize], sample: usize, nanoseconds: f64) -> Effort {
    Effort::new(counts.get(sample).copied().unwrap_or(0) as f64 * nanoseconds, 0)
}

/// An operator that makes tensors of random numbers.
pub(super) struct Random<D: Distribution> {
    distribution: D,
    dtype: DType,
    shape: ShapeArg,
    seed: Seed,
    batch: BatchRandom,
    /// Per sample, for the batch at hand.
    parameters: Vec<D::Parameters>,
    /// Numbers of each sample.
    counts: Vec<usize>,
}

impl<D: Distribution + 'static> Random<D> {
    /// The operator that draws from `distribution`; with one regular input, as many numbers as that has elements.
    ///
    /// # Errors
    /// When one of [`ARGS`] is wrong.
    pub(super) fn operator(distribution: D, args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
        let dtype = args.given_dtype("dtype")?.unwrap_or(D::DTYPE);
        if !D::DTYPES.contains(&dtype) {
            let names: Vec<&str> = D::DTYPES.iter().map(|dtype| dtype.name()).collect();
            return Err(Error::unsupported(format!(
                "argument `dtype` is {dtype}, expected one of {}",
                names.join(", ")
            )));
        }
        Ok(Box::new(Self {
            distribution,
            dtype,
            shape: ShapeArg::new(args, inputs > 0)?,
            seed: seed(args)?,
            batch: BatchRandom::default(),
            parameters: Vec::new(),
            counts: Vec::new(),
        }))
    }
}

impl<D: Distribution> Operator for Random<D> {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let dims = self.shape.infer(inputs.first().and_then(|input| input.dims.as_ref()));
        Ok(vec![ValueType { dtype: Some(self.dtype), dims, layout: Some(Layout::NONE) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.batch = self.seed.batch(inputs.first_sample());
        self.parameters = inputs.map(|sample| self.distribution.parameters(&sample, self.dtype));
        let shapes = self.shape.shapes(inputs);
        self.counts = counts(&shapes);
        Ok(vec![BatchDesc::new(self.dtype, Layout::NONE, shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        drawing(&self.counts, sample, D::NUMBER_TIME)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let failures = io.inputs().failures();
        dispatch!(self.dtype, T => io.for_each_sample(cx, |sample| {
            let (parameters, random) = (&self.parameters[sample.index()], self.batch.sample(sample.index()));
            let watch = cx.watch(failures, sample.index());
            let numbers = sample.output(0)?.as_slice_mut::<T>()?;
            fill::<D, T>(numbers, random, parameters, is_wide(self.dtype), &watch)
        }))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&gpu::kernel(self.distribution.kernel(), self.dtype)).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let (is_wide, kernel) = (is_wide(self.dtype), (self.distribution.kernel(), self.dtype));
        gpu::run(cx, io, kernel, &self.batch, |sample| D::draw(&self.parameters[sample], is_wide))
    }
}
