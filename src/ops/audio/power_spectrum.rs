//! `PowerSpectrum`: the spectrum of signals along one dimension of a tensor.

use realfft::RealFftPlanner;

use super::floats_only;
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, Shape, ValueType};

struct PowerSpectrum {
    /// The dimension of the signals, the last when negative.
    axis: i64,
    /// Samples of a transform; those of the signal when it is not given.
    length: Option<usize>,
    /// Whether magnitudes are squared.
    squares: bool,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "PowerSpectrum",
    doc: "The spectrum of signals along a dimension",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("axis", "dimension of the signals, -1: the last").or_int(-1),
        ArgSpec::int("nfft", "samples of a transform, others are cut or 0")
            .or_computed("those of the signal"),
        ArgSpec::int("power", "1 for magnitudes, 2 for powers").or_int(2),
    ],
    build: &build,
    outputs: &one_output,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    // Not positive: not given, as in DALI.
    let length = args.given_int("nfft")?.filter(|&length| length > 0).map(|length| {
        let inside =
            usize::try_from(length).ok().filter(|length| (1..=limits::MAX_TRANSFORM).contains(length));
        inside.ok_or_else(|| {
            let most = limits::MAX_TRANSFORM;
            Error::invalid(format!("argument `nfft` is {length}, expected 1 to {most}"))
        })
    });
    let squares = match args.int("power")? {
        1 => false,
        2 => true,
        other => return Err(Error::invalid(format!("argument `power` is {other}, expected 1 or 2"))),
    };
    Ok(Box::new(PowerSpectrum { axis: args.int("axis")?, length: length.transpose()?, squares }))
}

impl PowerSpectrum {
    fn axis(&self, ndim: usize) -> Result<usize> {
        // As in DALI, every negative number is the last.
        let axis = if self.axis < 0 { ndim as i64 - 1 } else { self.axis };
        usize::try_from(axis)
            .ok()
            .filter(|&axis| axis < ndim)
            .ok_or_else(|| Error::invalid(format!("axis {} of a sample with {ndim} dimensions", self.axis)))
    }

    /// Samples of the transform of a signal.
    fn length(&self, signal: usize) -> Result<usize> {
        let length = self.length.unwrap_or(signal);
        if (1..=limits::MAX_TRANSFORM).contains(&length) {
            return Ok(length);
        }
        let most = limits::MAX_TRANSFORM;
        Err(Error::invalid(format!("a transform of {length} samples, expected 1 to {most}")))
    }

    /// Transforms every signal of `src`, whose samples are `inner` elements apart.
    fn run(&self, src: &[f32], dst: &mut [f32], signal: usize, inner: usize) -> Result<()> {
        let length = self.length(signal)?;
        let transform = RealFftPlanner::new().plan_fft_forward(length);
        let mut samples = transform.make_input_vec();
        let mut spectrum = transform.make_output_vec();
        let mut scratch = transform.make_scratch_vec();
        let bins = spectrum.len();
        for (i, block) in dst.chunks_exact_mut((bins * inner).max(1)).enumerate() {
            for column in 0..inner {
                samples.fill(0.0);
                let from = src.iter().skip(i * signal * inner + column).step_by(inner).take(signal);
                samples.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
                transform
                    .process_with_scratch(&mut samples, &mut spectrum, &mut scratch)
                    .map_err(|error| Error::internal(format!("a transform of {length} samples: {error}")))?;
                for (to, value) in block.iter_mut().skip(column).step_by(inner).zip(&spectrum) {
                    *to = if self.squares { value.norm_sqr() } else { value.norm_sqr().sqrt() };
                }
            }
        }
        Ok(())
    }
}

impl Operator for PowerSpectrum {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), floats_only)?;
        if let Some(dims) = &mut ty.dims {
            let axis = self.axis(dims.len())?;
            dims[axis] = self.length.or(dims[axis]).map(|length| length / 2 + 1);
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        floats_only(desc.dtype)?;
        let ndim = desc.shapes.first().map_or(1, |shape| shape.len());
        let axis = self.axis(ndim)?;
        let shapes = inputs.map_shapes(ndim, |sample| {
            let mut dims = sample.input(0)?.shape.to_vec();
            dims[axis] = self.length(dims[axis])? / 2 + 1;
            Ok(Shape::from(dims))
        });
        Ok(vec![BatchDesc::new(desc.dtype, desc.layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let this = &*self;
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            if output.bytes.is_empty() {
                return Ok(());
            }
            let axis = this.axis(input.shape.len())?;
            let inner = input.shape[axis + 1..].iter().product();
            this.run(input.as_slice()?, output.as_slice_mut()?, input.shape[axis], inner)
        })
    }
}
