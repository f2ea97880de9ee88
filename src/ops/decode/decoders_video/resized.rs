//! A video decoder and the `Resize` behind it as one operator on the host: each frame is resized row by row as its
//! colours are made, so that sequences of whole frames are never in memory. It computes what the two compute.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{DEF, DecodersVideo, Job};
use crate::cpu::video::{Frame, Video};
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::operator::{Args, CpuCx, Decoded, Fusion, Inputs, Io, Operator, Preferences};
use crate::ops::decode::decode_resize::Pictures;
use crate::ops::geometry::resize::attributes::ResizeAttributes;
use crate::ops::geometry::resize::frames::FrameResize;
use crate::ops::geometry::resize::geometry::Geometry;
use crate::ops::geometry::resize::{self, ScratchPool};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

/// The decoder and its reader among the operators that it stands for.
const DECODER: usize = 0;
const READER: usize = 1;

struct DecodeResize {
    video: DecodersVideo,
    attributes: ResizeAttributes,
    /// What is decoded in the batch at hand.
    decoded: BatchDesc,
    jobs: Vec<Option<resize::Job>>,
    pictures: Pictures,
    scratch: ScratchPool,
}

/// What the graph knows of it.
pub(in crate::ops) const FUSION: Fusion = Fusion {
    name: "decoders__Video + Resize",
    device: Device::Cpu,
    of: &[&DEF, &resize::DEF],
    can: |args, _| args.get(READER).is_some_and(|resize| resize.bool("save_attrs").is_ok_and(|save| !save)),
    kernels: Vec::new,
    make,
};

fn make(args: &[Args]) -> Result<Box<dyn Operator>> {
    let [decoder, resize] = args else {
        return Err(Error::internal(format!("{} operators, expected 2", args.len())));
    };
    Ok(Box::new(DecodeResize {
        video: DecodersVideo::new(decoder)?,
        attributes: ResizeAttributes::new(resize)?,
        decoded: BatchDesc::new(DType::U8, super::layout(), Vec::new()),
        jobs: Vec::new(),
        pictures: Pictures::default(),
        scratch: ScratchPool::default(),
    }))
}

impl DecodeResize {
    /// Writes the sequence of one sample to `out`. The outer error is the decoder's, the inner one that of the resize.
    fn write<'w>(
        &self,
        file: &[u8],
        (job, resize): (&Job, &FrameResize<'_>),
        out: &mut [u8],
        cx: &CpuCx<'_>,
        watch: &(dyn Fn() -> Watch<'w> + Sync),
    ) -> Result<Result<()>> {
        let budget = job.budget(watch());
        let video = Video::open(file)?;
        let (bytes, made) = (resize.source_bytes()?, resize.made_bytes()?);
        let failed = parking_lot::Mutex::new(Ok(()));
        // What the resize finds is told to whoever asks for more frames.
        let resized = |found: Result<()>| match found {
            Ok(()) => Ok(()),
            Err(error) => {
                let stopped = Error::internal("a frame was not resized");
                *failed.lock() = Err(error);
                Err(stopped)
            }
        };
        let whole = |picture: &[u8], out: &mut [u8]| {
            resized(self.scratch.with(|scratch| resize.run(picture, out, scratch, &watch())))
        };
        let write = |frame: &Frame<'_>, out: &mut [u8]| {
            let mut rows = Ok(false);
            let by_rows = self.scratch.with(|scratch| {
                resize.run_rows(out, scratch, &mut |take| {
                    rows = frame.write_rows(take);
                    Ok(*rows.as_ref().unwrap_or(&false))
                })
            });
            rows?;
            if by_rows.unwrap_or(false) {
                return Ok(());
            }
            self.pictures.with(bytes, |picture| {
                frame.write(picture)?;
                whole(picture, out)
            })
        };
        let fill = |out: &mut [u8]| {
            self.pictures.with(bytes, |picture| {
                picture.as_chunks_mut().0.fill(self.video.fill);
                whole(picture, out)
            })
        };
        let targets = job.frames.iter().copied().zip(out.chunks_exact_mut(made.max(1))).collect();
        let written = cx.pool.install(|| video.write_each(targets, &fill, &write, &budget, job.decoders));
        let failed = failed.into_inner();
        if failed.is_err() { Ok(failed) } else { written.map(Ok) }
    }
}

impl Operator for DecodeResize {
    fn infer_arguments(&mut self, arguments: &[ValueType]) {
        self.video.infer_arguments(arguments);
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let decoded = self.video.infer(inputs)?;
        Ok(vec![resize::infer_resized(&decoded[0], &self.attributes, self.attributes.known_size())?])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.decoded = self.video.setup(&inputs.of_part(DECODER))?.swap_remove(0);
        let (layout, dtype) = (self.decoded.layout, self.decoded.dtype);
        self.jobs = inputs.of_part(READER).map(|sample| {
            let geometry = Geometry::new(&self.decoded.shapes[sample.index], layout)?;
            self.attributes.job(&sample, geometry, dtype, layout, None).map(Some)
        });
        let shapes = resize::output_shapes(&self.decoded, &self.jobs);
        Ok(vec![BatchDesc::new(self.attributes.output_dtype(dtype)?, layout, shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        let Effort { time, scratch } = self.video.effort(sample);
        let job = self.video.jobs.get(sample).and_then(Option::as_ref);
        let (picture, decoders) = job.map_or((0, 1), |job| (job.height * job.width * 3, job.decoders));
        let resize = resize::effort(&self.jobs, sample);
        let each = picture.saturating_add(resize.scratch);
        let scratch = scratch.saturating_add(each.saturating_mul(decoders));
        Effort { time: time.saturating_add(resize.time), scratch }
    }

    fn prefer(&mut self, preferences: &Preferences) {
        self.video.prefer(preferences);
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.set_part(DECODER);
        let (this, inputs) = (&*self, io.inputs());
        let (decoded, failures) = (AtomicUsize::new(0), inputs.failures());
        let dtype = this.attributes.output_dtype(this.decoded.dtype)?;
        io.for_each_sample(cx, |sample| {
            let index = sample.index();
            let job = this.video.job_of(index)?;
            let (input, output) = sample.unary()?;
            let of_resize = |error| inputs.of_part(READER).fail(index, error);
            let resize = match resize::job(&this.jobs, index).and_then(|job| FrameResize::new(job, dtype)) {
                Ok(resize) => resize,
                Err(error) => {
                    of_resize(error);
                    return Ok(());
                }
            };
            let watch = || Watch::new(cx.deadline, failures.member(index));
            match this.write(input.as_slice()?, (job, &resize), output.bytes, cx, &watch)? {
                Ok(()) => {
                    decoded.fetch_add(job.frames.iter().flatten().count(), Ordering::Relaxed);
                }
                Err(error) => of_resize(error),
            }
            Ok(())
        })?;
        self.video.decoded.frames += decoded.into_inner();
        Ok(())
    }

    fn take_decoded(&mut self) -> Decoded {
        self.video.take_decoded()
    }
}
