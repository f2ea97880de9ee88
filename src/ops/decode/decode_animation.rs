//! `gesso__DecodeAnimation`: the pictures of an animation, and for how long each is shown.

use super::decoders_image::check_encoded;
use crate::cpu::decode::{ANIMATED_PIXEL, AnimationInfo, Conditions, Decoder, probe_animation};
use crate::cpu::encoded::Encoded;
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::operator::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct DecodeAnimation {
    alpha: bool,
    decoder: Decoder,
    /// Per sample; `None` of those that failed.
    found: Vec<Option<AnimationInfo>>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__DecodeAnimation",
    doc: "All pictures of an animation (GIF, APNG, WebP), each as it is shown: FHWC, uint8; and for how many milliseconds \
          each is shown: float32. Of another image the one picture, and 0",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[ArgSpec::bool("alpha", "RGBA, and not RGB without regard to what is not seen").or_bool(false)],
    build: &build,
    outputs: &|_, _| Ok(2),
    encoded: Some(Encoded::Picture),
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let alpha = args.bool("alpha")?;
    Ok(Box::new(DecodeAnimation { alpha, decoder: Decoder::new(), found: Vec::new() }))
}

impl DecodeAnimation {
    fn channels(&self) -> usize {
        if self.alpha { 4 } else { 3 }
    }
}

impl Operator for DecodeAnimation {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        check_encoded(&inputs[0])?;
        let of =
            |dtype, dims, layout| ValueType { dtype: Some(dtype), dims: Some(dims), layout: Some(layout) };
        Ok(vec![
            of(DType::U8, vec![None, None, None, Some(self.channels())], Layout::new("FHWC")?),
            of(DType::F32, vec![None], Layout::NONE),
        ])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.found = inputs.map(|sample| Ok(Some(probe_animation(sample.input(0)?.as_slice()?)?)));
        let channels = self.channels();
        let shape = |found: &Option<AnimationInfo>| {
            found.map_or([0, 0, 0, channels], |info| [info.frames, info.height, info.width, channels])
        };
        let shapes: Vec<_> = self.found.iter().map(shape).collect();
        let durations = shapes.iter().map(|&[frames, ..]| Shape::from([frames])).collect();
        Ok(vec![
            BatchDesc::new(DType::U8, Layout::new("FHWC")?, shapes.into_iter().map(Shape::from).collect()),
            BatchDesc::new(DType::F32, Layout::NONE, durations),
        ])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.found.get(sample).copied().flatten().map_or(Effort::default(), |info| {
            let pixels = (info.height * info.width) as f64;
            // The picture at hand, the one before, and a frame.
            Effort::new(pixels * info.frames as f64 * ANIMATED_PIXEL, 12 * info.height * info.width)
        })
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let failures = io.inputs().failures();
        io.for_each_sample(cx, |sample| {
            let index = sample.index();
            let info = self.found.get(index).copied().flatten();
            let info = info.ok_or_else(|| Error::internal("an animation was not looked at"))?;
            let watch = Watch::new(cx.deadline, failures.member(index));
            let conditions = Conditions { watch: &watch, pool: None };
            let (file, frames) = sample.unary()?;
            let durations = self.decoder.decode_animation(
                conditions,
                file.as_slice()?,
                &info,
                self.alpha,
                frames.bytes,
            )?;
            sample.output(1)?.as_slice_mut::<f32>()?.copy_from_slice(&durations);
            Ok(())
        })
    }
}
