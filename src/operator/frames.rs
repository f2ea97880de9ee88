//! Arguments that differ from frame to frame: a batch of sequences as a batch of their frames, for an operator that
//! sees each frame as a sample. Arguments and inputs whose layout begins with `F` are taken apart, others are the same
//! for all frames.
//!
//! ```text
//! video  [ FHWC: 2 frames ][ FHWC: 1 frame ]           [ HWC ][ HWC ][ HWC ]
//! sigma  [ F: 0.5, 1.0    ][ F: 2.0        ]    ->     [ 0.5 ][ 1.0 ][ 2.0 ]    ->  operator  ->  sequences again
//! angle  [ 30             ][ 45            ]           [ 30  ][ 30  ][ 45  ]
//! ```

use std::sync::Arc;

use super::{Args, CpuCx, DeviceOutput, GpuCx, GpuIo, Inputs, Io, OpDef, Operator, OutputSamples};
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::tensor::{Batch, BatchDesc, Layout, Origins, Sample, Shape, ValueType};

/// Dimensions from which on a tensor without a layout is a sequence of images.
const SEQUENCE_NDIM: usize = 4;

/// An operator that may get frames.
struct Frames {
    inner: Box<dyn Operator>,
    /// Whether the operator knows no sequences, so that the first input is one of frames as well.
    always: bool,
    /// Whether a sample of the output depends on others of the batch.
    mixes_samples: bool,
    /// Argument inputs that may differ from frame to frame.
    arguments: Vec<usize>,
    /// Whether one of them does in all batches.
    is_known: bool,
    /// What the inner operator described, when the batch at hand was taken apart, and into how many frames each sample
    /// was.
    unfolded: Option<(Vec<BatchDesc>, Vec<usize>)>,
}

/// `inner` as it is, or so that it takes arguments per frame if `args` or a second input can hold some.
pub(crate) fn wrapped(
    def: &OpDef,
    inner: Box<dyn Operator>,
    args: &Args,
    inputs: usize,
) -> Box<dyn Operator> {
    let specs = || def.all_args().filter(|spec| spec.per_frame);
    let arguments: Vec<usize> = specs().filter_map(|spec| args.tensor(spec.name)).collect();
    let always = inputs > 0 && def.splits_inputs;
    if arguments.is_empty() && !always && (inputs < 2 || specs().next().is_none()) {
        return inner;
    }
    let mixes_samples = (def.mixes_samples)(args);
    Box::new(Frames { inner, always, mixes_samples, arguments, is_known: false, unfolded: None })
}

fn has_frames(layout: Layout) -> bool {
    layout.letters().first() == Some(&b'F')
}

/// Whether regular inputs of this layout and rank are sequences.
fn is_sequence(layout: Layout, ndim: usize) -> bool {
    has_frames(layout) || layout.is_none() && ndim >= SEQUENCE_NDIM
}

fn without_frames(layout: Layout) -> Layout {
    Layout::from_letters(layout.letters().get(1..).unwrap_or_default())
}

/// The layout of frames put together; as in DALI there is none when they have none.
fn with_frames(layout: Layout) -> Layout {
    if layout.is_none() { layout } else { Layout::from_letters(&[b"F", layout.letters()].concat()) }
}

/// A batch whose samples are frames.
struct Unfolded<'a> {
    regular: Vec<Batch<'a>>,
    arguments: Vec<Batch<'a>>,
    /// Frames of each sample; none of one that failed before.
    counts: Vec<usize>,
}

impl Frames {
    /// Index of the first input whose frames force unfolding.
    fn first(&self) -> usize {
        usize::from(!self.always)
    }

    /// Takes the batch apart if an argument or a further input says so; into `known` numbers of frames, as a sample
    /// that failed since still has its place among those that were set up.
    fn unfold<'a>(&self, inputs: &Inputs<'a>, known: Option<&[usize]>) -> Result<Option<Unfolded<'a>>> {
        let regular = (0..inputs.len()).map(|i| inputs.batch(i)).collect::<Result<Vec<_>>>()?;
        let arguments = inputs.arguments();
        let splits = |batch: &Batch<'_>| has_frames(batch.desc().layout);
        let of_arguments: Vec<bool> =
            (0..).zip(arguments).map(|(i, batch)| self.arguments.contains(&i) && splits(batch)).collect();
        if !of_arguments.contains(&true) && !regular.iter().skip(self.first()).any(|batch| splits(batch)) {
            return Ok(None);
        }
        let of_regular: Vec<bool> = regular
            .iter()
            .map(|batch| {
                let desc = batch.desc();
                is_sequence(desc.layout, desc.shapes.first().map_or(0, |shape| shape.len()))
            })
            .collect();
        let split = || {
            let regular = regular.iter().zip(&of_regular);
            let split = regular.chain(arguments.iter().zip(&of_arguments)).filter(|(_, splits)| **splits);
            split.map(|(batch, _)| batch)
        };
        let count = || {
            inputs.map(|sample| {
                let of = |batch: &Batch<'_>| {
                    batch.desc().shapes.get(sample.index).and_then(|s| s.first().copied())
                };
                let counts: Vec<usize> = split().filter_map(|batch| of(batch)).collect();
                // One value serves for all frames.
                let count = counts.iter().copied().find(|&count| count != 1).unwrap_or(1);
                match counts.iter().find(|&&other| other != 1 && other != count) {
                    Some(other) => Err(Error::invalid(format!("{other} values for {count} frames"))),
                    None => Ok(count),
                }
            })
        };
        let counts = known.map_or_else(|| bounded(inputs, count()), <[usize]>::to_vec);
        if self.mixes_samples && counts.iter().any(|&count| count > 1) {
            return Err(Error::unsupported("sequences of several frames whose samples are named by number"));
        }
        let take = |batches: &[&'a Batch<'a>], splits: &[bool]| -> Result<Vec<Batch<'a>>> {
            batches.iter().zip(splits).map(|(batch, &splits)| frames_of(batch, splits, &counts)).collect()
        };
        let (regular, arguments) = (take(&regular, &of_regular)?, take(arguments, &of_arguments)?);
        Ok(Some(Unfolded { regular, arguments, counts }))
    }
}

/// `counts` of frames of which a batch may have so many; samples that do not fit fail, the largest first.
fn bounded(inputs: &Inputs<'_>, mut counts: Vec<usize>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&sample| counts[sample]);
    let mut frames = 0usize;
    for sample in order {
        frames = frames.saturating_add(counts[sample]);
        if frames > limits::MAX_FRAMES {
            let text = format!(
                "{} frames do not fit into their batch any more, whose limit is {}",
                counts[sample],
                limits::MAX_FRAMES
            );
            inputs.fail(sample, Error::invalid(text));
            counts[sample] = 0;
        }
    }
    counts
}

fn not_apart() -> Error {
    Error::internal("a batch that was taken apart is none of sequences")
}

/// The frames of a batch, or its samples as often as they have frames.
fn frames_of<'a>(batch: &'a Batch<'a>, splits: bool, counts: &[usize]) -> Result<Batch<'a>> {
    let desc = batch.desc();
    let (mut shapes, mut samples) = (Vec::new(), Vec::new());
    for (i, (shape, &count)) in desc.shapes.iter().zip(counts).enumerate() {
        let sample = batch.sample(i).ok_or_else(|| Error::internal("a sample is missing"))?;
        let own = shape.first().copied().unwrap_or(1);
        let frame_shape =
            if splits { Shape::from(shape.get(1..).unwrap_or_default().to_vec()) } else { shape.clone() };
        for frame in 0..count {
            shapes.push(frame_shape.clone());
            samples.push(match splits {
                true => part(sample, batch.view(i).bytes, frame % own.max(1), own.max(1)),
                false => part(sample, batch.view(i).bytes, 0, 1),
            }?);
        }
    }
    let layout = if splits { without_frames(desc.layout) } else { desc.layout };
    Batch::new(BatchDesc::new(desc.dtype, layout, shapes), samples)
}

/// Part `number` of `parts` equal ones of a sample with the bytes `bytes`.
fn part<'a>(sample: &Sample<'a>, bytes: &'a [u8], number: usize, parts: usize) -> Result<Sample<'a>> {
    Ok(match sample {
        Sample::Missing => Sample::Missing,
        Sample::Device(all) => {
            let len = all.len() / parts;
            Sample::Device(all.part(number * len, len)?)
        }
        _ => {
            let len = bytes.len() / parts;
            Sample::Borrowed(&bytes[number * len..(number + 1) * len])
        }
    })
}

impl Unfolded<'_> {
    /// Calls `f` with the frames as inputs; a failure of a frame fails its sample.
    fn run<T>(&self, inputs: &Inputs<'_>, f: impl FnOnce(Inputs<'_>) -> Result<T>) -> Result<T> {
        let (regular, arguments): (Vec<_>, Vec<_>) =
            (self.regular.iter().collect(), self.arguments.iter().collect());
        let of_samples = self.counts.iter().enumerate();
        let of_samples = of_samples.flat_map(|(sample, &count)| std::iter::repeat_n(sample, count));
        let failures = inputs.failures().of_frames(of_samples);
        let frames = || {
            let frames = self.counts.iter().enumerate();
            frames.flat_map(|(sample, &count)| (0..count).map(move |number| (sample, number))).enumerate()
        };
        for (frame, (sample, _)) in frames() {
            if let Some(error) = inputs.failures().get(sample) {
                failures.fail(frame, error.clone());
            }
        }
        let done = f(inputs.with(&regular, &arguments, &failures))?;
        for (frame, (sample, number)) in frames() {
            if let (Some(error), None) = (failures.get(frame), inputs.failures().get(sample)) {
                inputs.failures().fail(sample, error.clone().context(format!("frame {number}")));
            }
        }
        Ok(done)
    }

    /// The description of sequences of what `desc` describes; a sample whose frames differ in shape fails.
    fn fold(&self, inputs: &Inputs<'_>, desc: &BatchDesc) -> BatchDesc {
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let mut frames = desc.shapes.as_slice();
        let shapes = self.counts.iter().enumerate().map(|(sample, &count)| {
            let (own, rest) = frames.split_at(count.min(frames.len()));
            frames = rest;
            let Some(first) = own.first() else { return Shape::new(vec![0; ndim + 1]) };
            if let Some(other) = own.iter().find(|&shape| shape != first) {
                inputs.fail(sample, Error::unsupported(format!("frames of the shapes {first} and {other}")));
            }
            Shape::from([&[count], &first[..]].concat())
        });
        BatchDesc::new(desc.dtype, with_frames(desc.layout), shapes.collect())
    }
}

impl Operator for Frames {
    fn infer_arguments(&mut self, arguments: &[ValueType]) {
        let splits = |&i: &usize| arguments.get(i).and_then(|ty| ty.layout).is_some_and(has_frames);
        self.is_known = self.arguments.iter().any(splits);
    }

    fn expect(&mut self, outputs: &[ValueType]) {
        self.inner.expect(outputs);
    }

    fn origins(&self, inputs: &Inputs<'_>, output: usize) -> Option<Origins> {
        if self.unfolded.is_none() { self.inner.origins(inputs, output) } else { None }
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let splits = |ty: &ValueType| ty.layout.is_some_and(has_frames);
        if !self.is_known && !inputs.iter().skip(self.first()).any(splits) {
            return self.inner.infer(inputs);
        }
        let frame = |ty: &ValueType| match (ty.layout, &ty.dims) {
            (Some(layout), Some(dims)) if is_sequence(layout, dims.len()) => ValueType {
                dtype: ty.dtype,
                dims: Some(dims[1..].to_vec()),
                layout: Some(without_frames(layout)),
            },
            _ => ty.clone(),
        };
        let frames: Vec<ValueType> = inputs.iter().map(frame).collect();
        let mut types = self.inner.infer(&frames)?;
        for ty in &mut types {
            ty.layout = ty.layout.map(with_frames);
            if let Some(dims) = &mut ty.dims {
                dims.insert(0, None);
            }
        }
        Ok(types)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let Some(unfolded) = self.unfold(inputs, None)? else {
            self.unfolded = None;
            return self.inner.setup(inputs);
        };
        let descs = unfolded.run(inputs, |frames| self.inner.setup_frames(&frames, &unfolded.counts))?;
        let folded = descs.iter().map(|desc| unfolded.fold(inputs, desc)).collect();
        self.unfolded = Some((descs, unfolded.counts));
        Ok(folded)
    }

    fn effort(&self, sample: usize) -> Effort {
        let Some((_, counts)) = &self.unfolded else { return self.inner.effort(sample) };
        let first: usize = counts.iter().take(sample).sum();
        let count = counts.get(sample).copied().unwrap_or(0);
        let frames = (first..first + count).map(|frame| self.inner.effort(frame));
        let all = frames.fold(Effort::default(), |all, one| Effort {
            time: all.time.saturating_add(one.time),
            scratch: all.scratch.max(one.scratch),
        });
        // Several frames of a sample are worked on at a time.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Effort { scratch: all.scratch.saturating_mul(count.min(threads)), ..all }
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let inputs = io.inputs();
        let Some((descs, counts)) = &self.unfolded else { return self.inner.run_cpu(cx, io) };
        let unfolded = self.unfold(&inputs, Some(counts))?.ok_or_else(not_apart)?;
        let outputs = io.take_outputs().into_iter().zip(descs).map(|(output, desc)| {
            let buffers = output.buffers.into_iter().zip(&unfolded.counts).flat_map(|(buffer, &count)| {
                let mut rest = buffer;
                let len = rest.as_ref().map_or(0, |bytes| bytes.len() / count.max(1));
                (0..count).map(move |_| {
                    let (frame, others) = rest.take()?.split_at_mut(len);
                    rest = Some(others);
                    Some(frame)
                })
            });
            OutputSamples { desc, buffers: buffers.collect() }
        });
        let outputs = outputs.collect();
        unfolded.run(&inputs, |frames| self.inner.run_cpu(cx, &mut Io::new(frames, outputs)))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        self.inner.prepare_gpu(gpu, inputs)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let inputs = io.inputs();
        let Some((descs, counts)) = &self.unfolded else { return self.inner.run_gpu(cx, io) };
        let unfolded = self.unfold(&inputs, Some(counts))?.ok_or_else(not_apart)?;
        let outputs = io.outputs().iter().zip(descs).map(|(output, desc)| {
            let samples = output.samples.iter().zip(&unfolded.counts).flat_map(|(bytes, &count)| {
                let len = bytes.as_ref().map_or(0, |bytes| bytes.len() / count.max(1));
                (0..count)
                    .map(move |frame| bytes.as_ref().map(|bytes| bytes.part(frame * len, len)).transpose())
            });
            Ok(DeviceOutput { desc, samples: samples.collect::<Result<_>>()? })
        });
        let outputs = outputs.collect::<Result<_>>()?;
        unfolded.run(&inputs, |frames| self.inner.run_gpu(cx, &mut GpuIo::new(frames, outputs)))
    }
}

#[cfg(test)]
mod tests;
