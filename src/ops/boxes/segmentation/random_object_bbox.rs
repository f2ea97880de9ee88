//! `segmentation__RandomObjectBBox`: the box around a random object of a label map.

use std::collections::BTreeMap;

use crate::cpu::blobs::{Blob, blobs};
use crate::cpu::convert::ConvertSat;
use crate::cpu::random::{BatchRandom, Philox, Seed, uniform_int};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::shared::dtypes;
use crate::operator::{Arg, ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, SampleInputs};
use crate::ops::random::{SEED, choice::by_sums, seed};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, Shape, ValueType, View};

/// Types of labels.
const TYPES: [DType; 8] =
    [DType::Bool, DType::U8, DType::I8, DType::U16, DType::I16, DType::U32, DType::I32, DType::I64];

struct RandomObjectBBox {
    foreground_prob: Arg,
    classes: Option<Arg>,
    class_weights: Option<Arg>,
    background: Option<Arg>,
    threshold: Option<Arg>,
    k_largest: Option<usize>,
    ignore_class: bool,
    format: Format,
    has_class: bool,
    seed: Seed,
    batch: BatchRandom,
    /// Per sample, for the batch at hand.
    requests: Vec<Request>,
}

/// How a box is told.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    AnchorShape,
    StartEnd,
    /// Start and end in one output.
    Box,
}

/// What one sample's arguments say.
#[derive(Debug, Clone, Default)]
struct Request {
    foreground_prob: f32,
    background: i64,
    /// Classes with their weights; `None`: all that occur.
    classes: Option<Vec<(i64, f64)>>,
    /// Smallest extents of a box.
    threshold: Vec<usize>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "segmentation__RandomObjectBBox",
    doc: "The box around a random object of a label map",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        SEED,
        ArgSpec::float("foreground_prob", "probability of an object; else the whole map")
            .tensor()
            .or_float(1.0),
        ArgSpec::ints("classes", "labels of objects").tensor().or_computed("all but the background"),
        ArgSpec::floats("class_weights", "how likely each class is, by `classes` or from 1 on")
            .tensor()
            .or_computed("all alike"),
        ArgSpec::int("background", "label of no object; not 0 if that is one of `classes`")
            .tensor()
            .or_int(0),
        ArgSpec::ints("threshold", "smallest extents of a box, one or for each dimension").tensor(),
        ArgSpec::int("k_largest", "how many of the largest boxes are drawn from").or_computed("all"),
        ArgSpec::bool("ignore_class", "whether an object is drawn from all, not from a class drawn before")
            .or_bool(false),
        ArgSpec::bool("output_class", "whether an output tells the class").or_bool(false),
        ArgSpec::string("format", "`anchor_shape`, `start_end`, or `box`: both in one output")
            .or_string("anchor_shape"),
        ArgSpec::bool("cache_objects", "whether DALI keeps what it found").no_effect().or_bool(false),
    ],
    build: &build,
    outputs: &|args, _| {
        let corners = if format(args)? == Format::Box { 1 } else { 2 };
        Ok(corners + usize::from(args.bool("output_class")?))
    },
    ..OpDef::BASE
};

fn format(args: &Args) -> Result<Format> {
    match args.string("format")? {
        "anchor_shape" => Ok(Format::AnchorShape),
        "start_end" => Ok(Format::StartEnd),
        "box" => Ok(Format::Box),
        other => Err(Error::invalid(format!(
            "argument `format` is `{other}`, expected `anchor_shape`, `start_end` or `box`"
        ))),
    }
}

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let ignore_class = args.bool("ignore_class")?;
    let has_class = args.bool("output_class")?;
    if ignore_class && (has_class || args.has("classes") || args.has("class_weights")) {
        let text = "argument `ignore_class` excludes `classes`, `class_weights` and `output_class`";
        return Err(Error::invalid(text));
    }
    let k_largest = args.given_int("k_largest")?.map(|k| {
        let positive = usize::try_from(k).ok().filter(|&k| k > 0);
        positive.ok_or_else(|| Error::invalid(format!("argument `k_largest` is {k}, expected 1 or more")))
    });
    Ok(Box::new(RandomObjectBBox {
        foreground_prob: args.arg("foreground_prob")?,
        classes: args.given_arg("classes")?,
        class_weights: args.given_arg("class_weights")?,
        background: args.given_arg("background")?,
        threshold: args.given_arg("threshold")?,
        k_largest: k_largest.transpose()?,
        ignore_class,
        format: format(args)?,
        has_class,
        seed: seed(args)?,
        batch: BatchRandom::default(),
        requests: Vec::new(),
    }))
}

impl RandomObjectBBox {
    fn request(&self, sample: &SampleInputs<'_>) -> Result<Request> {
        let ndim = sample.input(0)?.shape.len();
        if ndim == 0 {
            return Err(Error::invalid("a map without dimensions"));
        }
        let classes = self.classes.as_ref().map(|arg| arg.ints(sample)).transpose()?;
        let background = match (&self.background, &classes) {
            (Some(arg), _) => arg.int(sample)?,
            // Some label that is no class.
            (None, Some(classes)) if classes.contains(&0) => {
                classes.iter().copied().min().unwrap_or_default().saturating_sub(1)
            }
            (None, _) => 0,
        };
        if classes.as_ref().is_some_and(|classes| classes.contains(&background)) {
            return Err(Error::invalid(format!("the background, {background}, is one of `classes`")));
        }
        let weights = self.class_weights.as_ref().map(|arg| arg.floats(sample)).transpose()?;
        let classes = match (classes, weights) {
            (None, None) => None,
            (Some(classes), None) => Some(classes.into_iter().map(|class| (class, 1.0)).collect()),
            (classes, Some(weights)) => {
                // Numbers of classes that are not given leave the background out.
                let mut numbered = (0..).filter(|&class| class != background);
                let classes = classes.unwrap_or_else(|| numbered.by_ref().take(weights.len()).collect());
                if classes.len() != weights.len() {
                    return Err(Error::invalid(format!(
                        "{} weights for {} classes",
                        weights.len(),
                        classes.len()
                    )));
                }
                Some(classes.into_iter().zip(weights.into_iter().map(f64::from)).collect())
            }
        };
        let threshold = match self.threshold.as_ref().map(|arg| arg.ints(sample)).transpose()? {
            None => vec![0; ndim],
            Some(given) if given.len() == 1 => vec![given[0]; ndim],
            Some(given) => given,
        };
        if threshold.len() != ndim {
            let count = threshold.len();
            return Err(Error::invalid(format!(
                "argument `threshold` has {count} values for {ndim} dimensions"
            )));
        }
        let threshold = threshold.into_iter().map(|least| usize::try_from(least).unwrap_or(0)).collect();
        let foreground_prob = self.foreground_prob.float(sample)?;
        Ok(Request { foreground_prob, background, classes, threshold })
    }

    /// The object that is drawn; `None` for the whole map.
    fn draw<T>(&self, map: &View<'_>, request: &Request, random: &mut Philox) -> Result<Option<Blob<i64>>>
    where
        T: Element + ConvertSat<i64>,
    {
        if unit(random) >= f64::from(request.foreground_prob) {
            return Ok(None);
        }
        let elements = map.as_slice::<T>()?;
        if elements.len() as u64 > limits::MAX_IMAGE_PIXELS {
            return Err(Error::invalid(format!(
                "a map of shape {}, expected at most {} elements",
                map.shape,
                limits::MAX_IMAGE_PIXELS
            )));
        }
        let is_background = |label: T| label.convert_sat() == request.background;
        let found = blobs(elements, map.shape, limits::MAX_OBJECTS, is_background);
        let found = found
            .ok_or_else(|| Error::invalid(format!("a map of more than {} objects", limits::MAX_OBJECTS)))?;
        let found =
            found.into_iter().map(|Blob { label, low, high }| Blob { label: label.convert_sat(), low, high });
        let is_large = |blob: &Blob<i64>| {
            let sides = blob.low.iter().zip(&blob.high).map(|(low, high)| high - low);
            sides.zip(&request.threshold).all(|(side, &least)| side >= least)
        };
        if self.ignore_class {
            return Ok(self.pick(found.filter(is_large).collect(), random));
        }
        // Large objects of each class that occurs.
        let mut objects: BTreeMap<i64, Vec<Blob<i64>>> = BTreeMap::new();
        for blob in found {
            let own = objects.entry(blob.label).or_default();
            if is_large(&blob) {
                own.push(blob);
            }
        }
        // A class that does not occur keeps its place, but is never drawn.
        let mut classes: Vec<(i64, f64)> = match &request.classes {
            None => objects.keys().map(|&class| (class, 1.0)).collect(),
            Some(given) => given
                .iter()
                .map(|&(c, weight)| (c, if objects.contains_key(&c) { weight } else { 0.0 }))
                .collect(),
        };
        if classes.len() > limits::MAX_CLASSES {
            let (found, most) = (classes.len(), limits::MAX_CLASSES);
            return Err(Error::invalid(format!("{found} classes, expected at most {most}")));
        }
        while let Some(drawn) = weighted(&classes, random) {
            let (class, weight) = &mut classes[drawn];
            if let Some(blob) = self.pick(objects.remove(class).unwrap_or_default(), random) {
                return Ok(Some(blob));
            }
            *weight = 0.0;
        }
        Ok(None)
    }

    /// One of `blobs`, perhaps only of the largest.
    fn pick(&self, mut blobs: Vec<Blob<i64>>, random: &mut Philox) -> Option<Blob<i64>> {
        if let Some(k) = self.k_largest.filter(|&k| k < blobs.len()) {
            blobs.sort_by_key(|blob| std::cmp::Reverse(blob.volume()));
            blobs.truncate(k);
        }
        let last = u32::try_from(blobs.len().checked_sub(1)?).unwrap_or(u32::MAX);
        Some(blobs.swap_remove(uniform_int(random, last) as usize))
    }
}

/// A double from 0 up to 1.
fn unit(random: &mut Philox) -> f64 {
    random.unit_f64().min(1f64.next_down())
}

/// Draws one of `classes` by their weights, as `std::discrete_distribution` does, but with a number for a
/// single one too; `None` if all weights are zero.
fn weighted(classes: &[(i64, f64)], random: &mut Philox) -> Option<usize> {
    let total: f64 = classes.iter().map(|(_, weight)| weight).sum();
    if classes.iter().all(|(_, weight)| *weight <= 0.0) || !total.is_finite() {
        return None;
    }
    let mut sum = 0.0;
    let mut sums: Vec<f64> = classes
        .iter()
        .map(|(_, weight)| {
            sum += weight / total;
            sum
        })
        .collect();
    *sums.last_mut()? = 1.0;
    let drawn = by_sums(random, &sums);
    (classes[drawn].1 > 0.0).then_some(drawn)
}

impl Operator for RandomObjectBBox {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), |dtype| dtypes::accepted("labels", dtype, &TYPES))?;
        let ndim = inputs[0].ndim();
        let ty = |dims| ValueType { dtype: Some(DType::I32), dims: Some(dims), layout: Some(Layout::NONE) };
        let mut types = match self.format {
            Format::Box => vec![ty(vec![ndim.map(|ndim| 2 * ndim)])],
            Format::AnchorShape | Format::StartEnd => vec![ty(vec![ndim]); 2],
        };
        types.extend(self.has_class.then(|| ty(Vec::new())));
        Ok(types)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        dtypes::accepted("labels", inputs.desc(0)?.dtype, &TYPES)?;
        self.batch = self.seed.batch(inputs.first_sample());
        self.requests = inputs.map(|sample| self.request(&sample));
        let samples = inputs.batch_size();
        let numbers = |each: usize| {
            let shapes =
                inputs.map_shapes(1, |sample| Ok(Shape::from([each * sample.input(0)?.shape.len()])));
            BatchDesc::new(DType::I32, Layout::NONE, shapes)
        };
        let mut outputs = match self.format {
            Format::Box => vec![numbers(2)],
            Format::AnchorShape | Format::StartEnd => vec![numbers(1), numbers(1)],
        };
        if self.has_class {
            outputs.push(BatchDesc::new(DType::I32, Layout::NONE, vec![Shape::default(); samples]));
        }
        Ok(outputs)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (request, mut random) = (&self.requests[sample.index()], self.batch.sample(sample.index()));
            let map = sample.input(0)?;
            let drawn = dispatch!(map.dtype, T => self.draw::<T>(&map, request, &mut random)?);
            let blob = drawn.unwrap_or_else(|| Blob {
                label: request.background,
                low: vec![0; map.shape.len()],
                high: map.shape.to_vec(),
            });
            let sizes = blob.high.iter().zip(&blob.low).map(|(high, low)| high - low);
            let second: Vec<usize> =
                if self.format == Format::AnchorShape { sizes.collect() } else { blob.high.clone() };
            let numbers = blob.low.iter().chain(&second).map(|&at| at as i32);
            let lists = if self.format == Format::Box { 1 } else { 2 };
            let mut numbers = numbers.collect::<Vec<_>>().into_iter();
            for i in 0..lists {
                for to in sample.output(i)?.as_slice_mut::<i32>()? {
                    *to = numbers.next().unwrap_or_default();
                }
            }
            if self.has_class {
                sample.output(lists)?.as_slice_mut::<i32>()?.fill(blob.label as i32);
            }
            Ok(())
        })
    }
}
