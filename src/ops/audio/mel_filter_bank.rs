//! `MelFilterBank`: a spectrum seen through triangular filters at equal distances on the mel scale.

use std::sync::Arc;

use super::bands::{self, Band, Bands, Sums};
use super::floats_only;
use crate::cpu::audio::mel::{Bank, Scale, Share};
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType};

struct MelFilterBank {
    bank: Bank,
    /// The bins of the last spectrum and what each filter takes of them.
    shares: (usize, Vec<Share>),
    efforts: Vec<Effort>,
}

/// Nanoseconds of one core of a Zen 5 for each element of a spectrum.
const ELEMENT: f64 = 3.0;
/// For what a bin shares with the filters, which samples with other numbers of bins than the first have each for
/// itself.
const SHARE: f64 = 20.0;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "MelFilterBank",
    doc: "A spectrogram's frequencies on the mel scale",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("nfilter", "number of filters").or_int(128),
        ArgSpec::float("sample_rate", "samples a second of the signal").or_float(44100.0),
        ArgSpec::float("freq_low", "where the first filter starts, in hertz").or_float(0.0),
        ArgSpec::float("freq_high", "where the last filter ends, 0: half of the sampling rate").or_float(0.0),
        ArgSpec::bool("normalize", "whether the filters' areas are made equal").or_bool(true),
        ArgSpec::string("mel_formula", "`slaney` or `htk`").or_string("slaney"),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[super::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let filters = args.int("nfilter")?;
    let filters = usize::try_from(filters).ok().filter(|n| (1..=limits::MAX_TRANSFORM).contains(n));
    let filters = filters.ok_or_else(|| {
        Error::invalid(format!("argument `nfilter` is not from 1 to {}", limits::MAX_TRANSFORM))
    })?;
    let sample_rate = args.float("sample_rate")?;
    let low = args.float("freq_low")?;
    let high = args.given_float("freq_high")?.filter(|&high| high > 0.0).unwrap_or(sample_rate / 2.0);
    if !(sample_rate > 0.0 && low >= 0.0 && high > low && high <= sample_rate) {
        return Err(Error::invalid(format!(
            "filters from {low} to {high} Hz of a signal with {sample_rate} samples a second"
        )));
    }
    let scale = match args.string("mel_formula")? {
        "slaney" => Scale::Slaney,
        "htk" => Scale::Htk,
        other => {
            return Err(Error::invalid(format!(
                "argument `mel_formula` is `{other}`, expected `slaney` or `htk`"
            )));
        }
    };
    let normalizes = args.bool("normalize")?;
    let bank = Bank { scale, filters, sample_rate, low, high, normalizes };
    Ok(Box::new(MelFilterBank { bank, shares: (0, Vec::new()), efforts: Vec::new() }))
}

/// The dimension of frequencies: `f` in the layout, else the last but one.
fn frequencies(layout: Layout, ndim: usize) -> Result<usize> {
    if layout.is_none() && ndim > 0 {
        return Ok(ndim.saturating_sub(2));
    }
    layout
        .find(b'f')
        .filter(|&axis| axis < ndim)
        .ok_or_else(|| Error::invalid(format!("layout `{layout}` has no dimension `f`")))
}

impl Operator for MelFilterBank {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), floats_only)?;
        if let (Some(layout), Some(dims)) = (ty.layout, &mut ty.dims) {
            let axis = frequencies(layout, dims.len())?;
            dims[axis] = Some(self.bank.filters);
        } else if let Some(dims) = &mut ty.dims {
            dims.fill(None);
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        floats_only(desc.dtype)?;
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let shapes = inputs.map_shapes(ndim, |sample| {
            let mut dims = sample.input(0)?.shape.to_vec();
            let axis = frequencies(desc.layout, dims.len())?;
            if dims[axis] > limits::MAX_TRANSFORM {
                return Err(Error::invalid(format!(
                    "a spectrum of {} bins, expected at most {}",
                    dims[axis],
                    limits::MAX_TRANSFORM
                )));
            }
            dims[axis] = self.bank.filters;
            Ok(Shape::new(dims))
        });
        let efforts = inputs.map(|sample| {
            let shape = sample.input(0)?.shape;
            let bins = shape[frequencies(desc.layout, shape.len())?];
            let read = shape.volume().unwrap_or(usize::MAX) as f64;
            Ok(Effort::new(read * ELEMENT + bins as f64 * SHARE, bins * size_of::<Share>()))
        });
        self.efforts = efforts;
        // Samples mostly have as many bins as the first.
        let bins = desc.shapes.first().zip(frequencies(desc.layout, ndim).ok());
        let bins = bins.and_then(|(shape, axis)| shape.get(axis).copied());
        if let Some(bins) = bins.filter(|&bins| bins != self.shares.0 && bins <= limits::MAX_TRANSFORM) {
            self.shares = (bins, self.bank.shares(bins));
        }
        Ok(vec![BatchDesc::new(desc.dtype, desc.layout, shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.efforts.get(sample).copied().unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (bank, (known, shares), failures) = (&self.bank, &self.shares, io.inputs().failures());
        io.for_each_sample(cx, |sample| {
            let watch = cx.watch(failures, sample.index());
            let (input, output) = sample.unary()?;
            let axis = frequencies(input.layout, input.shape.len())?;
            let (bins, inner) = (input.shape[axis], input.shape[axis + 1..].iter().product::<usize>());
            let own;
            let shares = if bins == *known {
                shares
            } else {
                own = bank.shares(bins);
                &own
            };
            let (src, dst) = (input.as_slice::<f32>()?, output.as_slice_mut::<f32>()?);
            if bins * inner == 0 {
                dst.fill(0.0);
                return Ok(());
            }
            for (src, dst) in src.chunks_exact(bins * inner).zip(dst.chunks_exact_mut(bank.filters * inner)) {
                bank.run(shares, src, dst, inner, &watch)?;
            }
            Ok(())
        })
    }
    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&bands::kernel()).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let samples = io.rows(|sample| {
            let input = sample.input(0)?;
            let axis = frequencies(input.layout, input.shape.len())?;
            Ok(Sums {
                to: sample.target(0)?,
                from: sample.source(0)?,
                elements: sample.output_shape(0)?.volume()?,
                extent: input.shape[axis],
                inner: input.shape[axis + 1..].iter().product(),
            })
        });
        let mut rows = Vec::with_capacity(samples.len());
        let mut staged = None;
        for sums in samples {
            let filters = match staged {
                Some((known, filters)) if known == sums.extent => filters,
                _ => self.bands(sums.extent).stage(cx)?,
            };
            staged = Some((sums.extent, filters));
            rows.push((sums, filters));
        }
        bands::run(cx, &rows)
    }
}

impl MelFilterBank {
    /// The filters for a spectrum of `bins` bins.
    fn bands(&self, bins: usize) -> Bands {
        let own;
        let shares: &[Share] = match bins {
            0 => &[],
            _ if bins == self.shares.0 => &self.shares.1,
            _ => {
                own = self.bank.shares(bins);
                &own
            }
        };
        let mut filters = Bands::default();
        for (first, weights) in self.bank.bands(shares) {
            let (count, start) = (weights.len() as u32, filters.weights.len() as u32);
            filters.bands.push(Band { first: first as u32, count, start, scale: 1.0 });
            filters.weights.extend(weights);
        }
        filters
    }
}
