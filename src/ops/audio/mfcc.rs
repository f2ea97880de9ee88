//! `MFCC`: a cosine transform of a mel spectrogram, and the first of its coefficients.

use std::borrow::Cow;
use std::f64::consts::PI;
use std::sync::Arc;

use super::bands::{self, Band, Bands, Sums};
use super::floats_only;
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, Device, Shape, ValueType};

struct Mfcc {
    coefficients: usize,
    kind: i64,
    normalizes: bool,
    lifter: f32,
    axis: usize,
    jobs: Vec<Option<Job>>,
    /// Values of the first sample, and the factors of so many.
    table: (usize, Vec<f32>),
    efforts: Vec<Effort>,
}

/// Nanoseconds of one core of a Zen 5 for each product of a value and a factor.
const PRODUCT: f64 = 0.6;
/// For each factor, which samples with other numbers of values than the first have each for itself.
const FACTOR: f64 = 20.0;

/// One sample's work: a transform of blocks of `from` rows of `inner` values to `to` rows.
struct Job {
    from: usize,
    to: usize,
    inner: usize,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "MFCC",
    doc: "Cepstral coefficients of a mel spectrogram",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("n_mfcc", "coefficients that are kept").or_int(20),
        ArgSpec::int("dct_type", "kind of the cosine transform, 1 to 4").or_int(2),
        ArgSpec::bool("normalize", "whether the transform is orthonormal").or_bool(false),
        ArgSpec::int("axis", "dimension that is transformed").or_int(0),
        ArgSpec::float("lifter", "length of the sine that weighs the coefficients, 0: none does")
            .or_float(0.0),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[super::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let size = |name: &str, least: i64| {
        let value = args.int(name)?;
        let valid = value >= least && value <= limits::MAX_TRANSFORM as i64;
        let error = || Error::invalid(format!("argument `{name}` is {value}, expected at least {least}"));
        valid.then_some(value as usize).ok_or_else(error)
    };
    let kind = args.int("dct_type")?;
    if !(1..=4).contains(&kind) {
        return Err(Error::invalid(format!("argument `dct_type` is {kind}, expected 1 to 4")));
    }
    let normalizes = args.bool("normalize")?;
    if normalizes && kind == 1 {
        return Err(Error::invalid("argument `normalize` is set, which a transform of type 1 cannot be"));
    }
    Ok(Box::new(Mfcc {
        coefficients: size("n_mfcc", 1)?,
        kind,
        normalizes,
        lifter: args.float("lifter")?,
        axis: size("axis", 0)?,
        jobs: Vec::new(),
        table: (0, Vec::new()),
        efforts: Vec::new(),
    }))
}

impl Mfcc {
    /// Factors of `from` values in each of `to` coefficients.
    fn table(&self, from: usize, to: usize) -> Vec<f32> {
        let length = from as f64;
        let (first, other) = match (self.normalizes, self.kind) {
            (true, _) => (1.0 / length.sqrt(), (2.0 / length).sqrt()),
            (false, 3) => (0.5, 1.0),
            (false, _) => (1.0, 1.0),
        };
        let factor = |k: usize, n: usize| -> f64 {
            let (x, y) = (k as f64, n as f64);
            match self.kind {
                1 if n == 0 => 0.5,
                1 if n + 1 == from => 0.5 - (k % 2) as f64,
                1 => (PI / (length - 1.0) * x * y).cos(),
                2 => (if k == 0 { first } else { other }) * (PI / length * (y + 0.5) * x).cos(),
                3 if n == 0 => first,
                3 => other * (PI / length * y * (x + 0.5)).cos(),
                _ => other * (PI / length * (y + 0.5) * (x + 0.5)).cos(),
            }
        };
        (0..to).flat_map(|k| (0..from).map(move |n| factor(k, n) as f32)).collect()
    }

    /// The same, kept where the first sample has as many values.
    fn table_of(&self, from: usize, to: usize) -> Cow<'_, [f32]> {
        match &self.table {
            (known, table) if *known == from => Cow::Borrowed(table),
            _ => Cow::Owned(self.table(from, to)),
        }
    }

    /// The weight of coefficient `k`.
    fn weight(&self, k: usize) -> f32 {
        if self.lifter == 0.0 {
            return 1.0;
        }
        let (half, phase) = (self.lifter * 0.5, (PI / f64::from(self.lifter)) as f32);
        1.0 + half * (phase * (k + 1) as f32).sin()
    }

    fn job(&self, shape: &Shape) -> Result<Job> {
        let from = *shape.get(self.axis).ok_or_else(|| {
            Error::invalid(format!("axis {} of a sample with {} dimensions", self.axis, shape.len()))
        })?;
        let to = self.coefficients.min(from);
        if from < 2 && self.kind == 1 {
            return Err(Error::invalid("a transform of type 1 needs two values at least"));
        }
        if from.checked_mul(to).is_none_or(|elements| elements > limits::MAX_TRANSFORM) {
            return Err(Error::invalid(format!("{to} coefficients of {from} values are too many")));
        }
        Ok(Job { from, to, inner: shape[self.axis + 1..].iter().product() })
    }
}

impl Operator for Mfcc {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), floats_only)?;
        if let Some(dims) = &mut ty.dims {
            let ndim = dims.len();
            let axis = dims.get_mut(self.axis);
            let axis =
                axis.ok_or_else(|| Error::invalid(format!("axis {} of {ndim} dimensions", self.axis)))?;
            *axis = axis.map(|extent| extent.min(self.coefficients));
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        floats_only(desc.dtype)?;
        self.jobs = inputs.map(|sample| self.job(sample.input(0)?.shape).map(Some));
        // Samples mostly have as many values as the first.
        if let Some(first) = self.jobs.iter().flatten().next().filter(|job| job.from != self.table.0) {
            self.table = (first.from, self.table(first.from, first.to));
        }
        let shapes = desc.shapes.iter().zip(&self.jobs).map(|(shape, job)| {
            let mut dims = shape.to_vec();
            match job {
                Some(job) => dims[self.axis] = job.to,
                None => dims.fill(0),
            }
            Shape::new(dims)
        });
        let efforts = desc.shapes.iter().zip(&self.jobs).map(|(shape, job)| {
            let (from, to) = job.as_ref().map_or((0, 0), |job| (job.from, job.to));
            let (read, table) = (shape.volume().unwrap_or(usize::MAX) as f64, from * to);
            Effort::new(read * to as f64 * PRODUCT + table as f64 * FACTOR, table * size_of::<f32>())
        });
        self.efforts = efforts.collect();
        Ok(vec![BatchDesc::new(desc.dtype, desc.layout, shapes.collect())])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.efforts.get(sample).copied().unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (this, failures) = (&*self, io.inputs().failures());
        io.for_each_sample(cx, |sample| {
            let watch = cx.watch(failures, sample.index());
            let job = this.jobs.get(sample.index()).and_then(Option::as_ref);
            let Job { from, to, inner } = job.ok_or_else(|| Error::internal("a sample has no table"))?;
            let table = this.table_of(*from, *to);
            let (input, output) = sample.unary()?;
            let (src, dst) = (input.as_slice::<f32>()?, output.as_slice_mut::<f32>()?);
            if from * inner == 0 {
                return Ok(());
            }
            for (src, dst) in src.chunks_exact(from * inner).zip(dst.chunks_exact_mut(to * inner)) {
                let rows = dst.chunks_exact_mut(*inner).zip(table.chunks_exact(*from)).enumerate();
                for (k, (row, factors)) in rows {
                    row.fill(0.0);
                    for (src, factor) in src.chunks_exact(*inner).zip(factors) {
                        row.iter_mut().zip(src).for_each(|(to, from)| *to += from * factor);
                        watch.charge(*inner)?;
                    }
                    if this.lifter != 0.0 {
                        let weight = this.weight(k);
                        row.iter_mut().for_each(|value| *value *= weight);
                    }
                }
            }
            Ok(())
        })
    }
    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&bands::kernel()).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let samples = io.rows(|sample| {
            let job = self.jobs.get(sample.index()).and_then(Option::as_ref);
            let job = job.ok_or_else(|| Error::internal("a sample has no table"))?;
            let sums = Sums {
                to: sample.target(0)?,
                from: sample.source(0)?,
                elements: sample.output_shape(0)?.volume()?,
                extent: job.from,
                inner: job.inner,
            };
            Ok((sums, job))
        });
        let mut rows = Vec::with_capacity(samples.len());
        let mut staged = None;
        for (sums, job) in samples {
            // Samples mostly share a table: it goes up once.
            let table = match staged {
                Some((known, table)) if known == (job.from, job.to) => table,
                _ => self.bands(job).stage(cx)?,
            };
            staged = Some(((job.from, job.to), table));
            rows.push((sums, table));
        }
        bands::run(cx, &rows)
    }
}

impl Mfcc {
    /// The coefficients as bands that are all of the dimension.
    fn bands(&self, job: &Job) -> Bands {
        let count = job.from as u32;
        let band = |k: usize| Band { first: 0, count, start: k as u32 * count, scale: self.weight(k) };
        Bands {
            bands: (0..job.to).map(band).collect(),
            weights: self.table_of(job.from, job.to).into_owned(),
        }
    }
}
