//! `ROIRandomCrop`: where a window of a given size begins that holds as much of a region as it can.

use super::{SEED, seed};
use crate::cpu::random::{BatchRandom, Philox, Seed, uniform_int};
use crate::error::{Error, Result};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

/// Where the window of a sample may begin in one dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Places {
    /// The region is as large as the window: nothing is drawn.
    Only(i64),
    /// One from the first to the last. It is drawn also where these are one.
    Between(i64, i64),
}

struct RoiRandomCrop {
    crop_shape: Arg,
    roi_start: Arg,
    /// Size or end of the region.
    roi: Arg,
    has_end: bool,
    in_shape: Option<Arg>,
    has_input: bool,
    seed: Seed,
    batch: BatchRandom,
    places: Vec<Vec<Places>>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "ROIRandomCrop",
    doc: "Where a random window begins that holds as much of a region as it can",
    devices: &[Device::Cpu],
    inputs: (0, 1),
    args: &[
        SEED,
        ArgSpec::ints("crop_shape", "size of the window").tensor().required(),
        ArgSpec::ints("roi_start", "where the region begins").tensor().required(),
        ArgSpec::ints("roi_shape", "size of the region").tensor(),
        ArgSpec::ints("roi_end", "where the region ends, in place of its size").tensor(),
        ArgSpec::ints("in_shape", "size of what the window must lie in").tensor(),
    ],
    build: &build,
    outputs: &one_output,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    let needed = |name| args.arg(name);
    if args.has("roi_shape") == args.has("roi_end") {
        return Err(Error::invalid("expected one of the arguments `roi_shape` and `roi_end`"));
    }
    if args.has("in_shape") && inputs > 0 {
        return Err(Error::invalid("argument `in_shape` and an input exclude each other"));
    }
    let has_end = args.has("roi_end");
    Ok(Box::new(RoiRandomCrop {
        crop_shape: needed("crop_shape")?,
        roi_start: needed("roi_start")?,
        roi: needed(if has_end { "roi_end" } else { "roi_shape" })?,
        has_end,
        in_shape: args.given_arg("in_shape")?,
        has_input: inputs > 0,
        seed: seed(args)?,
        batch: BatchRandom::default(),
        places: Vec::new(),
    }))
}

impl RoiRandomCrop {
    fn places(&self, sample: &SampleInputs<'_>) -> Result<Vec<Places>> {
        let crop = self.crop_shape.ints(sample)?;
        let whole = match &self.in_shape {
            Some(arg) => match arg.ints(sample)?[..] {
                [all] => Some(vec![all; crop.len()]),
                ref each => Some(each.to_vec()),
            },
            None if self.has_input => {
                Some(sample.input(0)?.shape.iter().map(|&extent| extent as i64).collect())
            }
            None => None,
        };
        let of = |values: Vec<i64>, what: &str| {
            if let [all] = values[..]
                && what != "whole"
            {
                return Ok(vec![all; crop.len()]);
            }
            // Further dimensions of what is cropped, such as channels, stay as they are.
            if values.len() == crop.len() || (what == "whole" && values.len() > crop.len()) {
                return Ok(values);
            }
            Err(Error::invalid(format!("{} values for a window of {} dimensions", values.len(), crop.len())))
        };
        let (start, roi) =
            (of(self.roi_start.ints(sample)?, "start")?, of(self.roi.ints(sample)?, "region")?);
        let whole = whole.map(|whole| of(whole, "whole")).transpose()?;
        (0..crop.len())
            .map(|d| {
                // Numbers beyond 32 bits are no positions; within them nothing below overflows.
                let [crop, start, roi] =
                    [crop[d], start[d], roi[d]].map(i32::try_from).map(|v| v.map(i64::from));
                let (Ok(crop), Ok(start), Ok(roi)) = (crop, start, roi) else {
                    return Err(Error::invalid("a window or a region beyond 32 bits"));
                };
                let end = if self.has_end { roi } else { start + roi };
                if crop < 0 || end < start {
                    return Err(Error::invalid(format!(
                        "a window of {crop} and a region from {start} to {end}"
                    )));
                }
                let (one, other) = (start, end - crop);
                let (first, last) = (one.min(other), one.max(other));
                let between = |first, last| {
                    if one == other { Places::Only(one) } else { Places::Between(first, last) }
                };
                let Some(whole) = whole.as_ref().map(|whole| whole[d]) else {
                    return Ok(between(first, last));
                };
                if crop > whole || start < 0 || end > whole {
                    return Err(Error::invalid(format!(
                        "a window of {crop} and a region from {start} to {end}, expected both within {whole}"
                    )));
                }
                Ok(between(first.max(0), last.min(whole - crop)))
            })
            .collect()
    }
}

fn place(random: &mut Philox, places: Places) -> i64 {
    match places {
        Places::Only(place) => place,
        Places::Between(first, last) => {
            first + i64::from(uniform_int(random, u32::try_from(last - first).unwrap_or(u32::MAX)))
        }
    }
}

impl Operator for RoiRandomCrop {
    fn infer(&self, _inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let ndim = self.crop_shape.known().map(<[f64]>::len);
        Ok(vec![ValueType { dtype: Some(DType::I64), dims: Some(vec![ndim]), layout: Some(Layout::NONE) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.batch = self.seed.batch(inputs.first_sample());
        self.places = inputs.map(|sample| self.places(&sample));
        let shapes = self.places.iter().map(|places| Shape::from([places.len()])).collect();
        Ok(vec![BatchDesc::new(DType::I64, Layout::NONE, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (places, mut random) = (&self.places[sample.index()], self.batch.sample(sample.index()));
            for (to, &between) in sample.output(0)?.as_slice_mut::<i64>()?.iter_mut().zip(places) {
                *to = place(&mut random, between);
            }
            Ok(())
        })
    }
}
