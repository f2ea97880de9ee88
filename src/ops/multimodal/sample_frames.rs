//! `gesso__SampleFrames`: which frames of a video a model takes, and when they are shown.

use super::frame_rules::{Asked, Rule};
use super::sides::count;
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::args::numbers;
use crate::operator::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct SampleFrames {
    rule: Rule,
    asked: Asked,
    /// Per sample: the frames, and how many there are a second.
    found: Vec<(Vec<usize>, f64)>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__SampleFrames",
    doc: "The frames of a video that a model takes, int32, and when each is shown, in seconds, float64: its number by \
          the video's rate. Inputs are those of `gesso.peek_video`: a list that begins with the number of frames, and \
          frames a second. The argument `frames` of `decoders.video` takes the first output",
    devices: &[Device::Cpu],
    inputs: (2, 2),
    args: &[
        ArgSpec::string(
            "rule",
            "how frames are chosen: `uniform` (transformers' default), `qwen2-vl`, `qwen3-vl` (transformers' classes), \
             or `qwen-vl-utils` (the package)",
        )
        .or_string("uniform"),
        ArgSpec::float("fps", "frames that are taken of a second; not together with `num_frames`"),
        ArgSpec::int("num_frames", "frames that are taken; neither it nor `fps`: all"),
        ArgSpec::int("min_frames", "with `fps`, of Qwen's rules: fewest frames").or_int(4),
        ArgSpec::int("max_frames", "with `fps`, of Qwen's rules: most frames").or_int(768),
        ArgSpec::int(
            "temporal_patch_size",
            "of `qwen2-vl` and `qwen-vl-utils`: the number of frames becomes a multiple of it",
        )
        .or_int(2),
    ],
    build: &build,
    outputs: &|_, _| Ok(2),
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let rule = match args.string("rule")? {
        "uniform" => Rule::Uniform,
        "qwen2-vl" => Rule::Qwen2Vl,
        "qwen3-vl" => Rule::Qwen3Vl,
        "qwen-vl-utils" => Rule::QwenVlUtils,
        other => {
            return Err(Error::invalid(format!(
                "argument `rule` is `{other}`, expected `uniform`, `qwen2-vl`, `qwen3-vl` or `qwen-vl-utils`"
            )));
        }
    };
    if args.has("fps") && args.has("num_frames") {
        return Err(Error::invalid("both `fps` and `num_frames` are given, expected one of them"));
    }
    let number = |name: &str| count(name, args.int(name)?, limits::MAX_VIDEO_FRAMES);
    let fps = args.given_float("fps")?.map(f64::from);
    if let Some(fps) = fps.filter(|fps| !(*fps > 0.0 && *fps <= limits::MAX_FRAME_RATE)) {
        return Err(Error::invalid(format!(
            "argument `fps` is {fps}, expected a number above 0, at most {}",
            limits::MAX_FRAME_RATE
        )));
    }
    let num_frames =
        args.given_int("num_frames")?.map(|value| count("num_frames", value, limits::MAX_VIDEO_FRAMES));
    let asked = Asked {
        fps,
        frames: num_frames.transpose()?,
        least: number("min_frames")?,
        most: number("max_frames")?,
        multiple: count("temporal_patch_size", args.int("temporal_patch_size")?, limits::MAX_PATCH_GROUP)?,
    };
    if rule == Rule::Qwen2Vl && asked.fps.is_none() && asked.frames.is_none() {
        return Err(Error::invalid(
            "neither `fps` nor `num_frames` is given, of which the rule `qwen2-vl` needs one",
        ));
    }
    Ok(Box::new(SampleFrames { rule, asked, found: Vec::new() }))
}

/// How many frames there are.
fn frames(sample: &SampleInputs<'_>) -> Result<u64> {
    let list = sample.input(0)?;
    if list.shape.len() > 1 || !(1..=limits::MAX_NDIM).contains(&list.shape.volume()?) {
        return Err(Error::invalid(format!(
            "extents of shape {}, expected a list that begins with the number of frames",
            list.shape
        )));
    }
    match numbers(&list)?.first() {
        Some(&frames)
            if frames.fract() == 0.0 && (1.0..=limits::MAX_VIDEO_FRAMES as f64).contains(&frames) =>
        {
            Ok(frames as u64)
        }
        found => Err(Error::invalid(format!(
            "a video of {} frames, expected a whole number from 1 to {}",
            found.copied().unwrap_or_default(),
            limits::MAX_VIDEO_FRAMES
        ))),
    }
}

/// How many frames there are a second.
fn rate(sample: &SampleInputs<'_>) -> Result<f64> {
    let rate = sample.input(1)?;
    if rate.shape.volume()? != 1 {
        return Err(Error::invalid(format!("rates of shape {}, expected one number", rate.shape)));
    }
    match numbers(&rate)?[..] {
        [rate] if rate > 0.0 && rate <= limits::MAX_FRAME_RATE => Ok(rate),
        ref found => Err(Error::invalid(format!(
            "a video of {found:?} frames a second, expected a number above 0, at most {}",
            limits::MAX_FRAME_RATE
        ))),
    }
}

impl Operator for SampleFrames {
    fn infer(&self, _inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let list =
            |dtype| ValueType { dtype: Some(dtype), dims: Some(vec![None]), layout: Some(Layout::NONE) };
        Ok(vec![list(DType::I32), list(DType::F64)])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.found = inputs.map(|sample| {
            let rate = rate(&sample)?;
            Ok((self.rule.choose(&self.asked, frames(&sample)?, rate)?, rate))
        });
        let shapes: Vec<_> = self.found.iter().map(|(frames, _)| Shape::from([frames.len()])).collect();
        Ok(vec![
            BatchDesc::new(DType::I32, Layout::NONE, shapes.clone()),
            BatchDesc::new(DType::F64, Layout::NONE, shapes),
        ])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let Some((frames, rate)) = self.found.get(sample.index()) else { return Ok(()) };
            for (to, &frame) in sample.output(0)?.as_slice_mut::<i32>()?.iter_mut().zip(frames) {
                *to = frame as i32;
            }
            for (to, &frame) in sample.output(1)?.as_slice_mut::<f64>()?.iter_mut().zip(frames) {
                *to = frame as f64 / rate;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    fn chosen(values: &[(&str, Value)], list: &[i64], rate: f64) -> Result<Vec<i32>, String> {
        let rate = [rate];
        let inputs = [batch(&[(&[list.len()], list)]), batch(&[(&[], &rate)])];
        let made = run(&DEF, &args(values, &[]), &inputs, &[]).map_err(|error| error.to_string())?;
        made.words(0)?;
        Ok(made.values::<i32>(0))
    }

    fn rule(name: &str) -> (&str, Value) {
        ("rule", Value::Strings(vec![name.into()]))
    }

    #[test]
    fn frames_are_taken_by_their_number_or_their_rate() {
        let number = |value| ("num_frames", Value::Ints(vec![value]));
        assert_eq!(chosen(&[number(4)], &[10, 480, 640], 25.0).unwrap(), [0, 2, 5, 7]);
        assert_eq!(chosen(&[], &[3], 25.0).unwrap(), [0, 1, 2]);
        assert_eq!(chosen(&[rule("qwen3-vl"), number(4)], &[10], 25.0).unwrap(), [0, 3, 6, 9]);
        let fps = ("fps", Value::Floats(vec![2.0]));
        assert_eq!(
            chosen(&[rule("qwen2-vl"), fps.clone()], &[100], 25.0).unwrap(),
            [0, 12, 25, 37, 50, 62, 75, 87]
        );
        assert_eq!(chosen(&[rule("qwen-vl-utils"), fps], &[9], 30.0).unwrap(), [0, 3, 5, 8]);
    }

    #[test]
    fn hostile_numbers_are_errors() {
        for list in [&[0][..], &[-1], &[1 << 40], &[]] {
            assert!(chosen(&[], list, 25.0).is_err(), "{list:?}");
        }
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(chosen(&[], &[5], rate).unwrap_err().contains("frames a second"), "{rate}");
        }
        for (name, value) in
            [("num_frames", 0), ("max_frames", 1 << 40), ("min_frames", -1), ("temporal_patch_size", 0)]
        {
            assert!(
                chosen(&[(name, Value::Ints(vec![value]))], &[5], 25.0).unwrap_err().contains(name),
                "{name}"
            );
        }
        for fps in [0.0, -2.0, f32::NAN, f32::INFINITY] {
            assert!(
                chosen(&[("fps", Value::Floats(vec![fps]))], &[5], 25.0).unwrap_err().contains("fps"),
                "{fps}"
            );
        }
        assert!(chosen(&[rule("qwen2-vl")], &[5], 25.0).unwrap_err().contains("needs one"));
        assert!(chosen(&[rule("all")], &[5], 25.0).unwrap_err().contains("expected `uniform`"));
    }
}
