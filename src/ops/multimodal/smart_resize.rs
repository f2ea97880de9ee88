//! `gesso__SmartResize`: the size that Qwen2-VL, Qwen2.5-VL and Qwen3-VL resize an image or a clip to.

use super::sides::{count, height_and_width, list_shape, list_type, write};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{Arg, ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Device, Layout, ValueType};

struct SmartResize {
    rule: Rule,
    max_pixels: Arg,
    /// Frames whose areas count together; `None`: each counts alone.
    frames: Option<Arg>,
}

/// What decides the size, beside the largest area.
#[derive(Debug, Clone, Copy)]
struct Rule {
    factor: u64,
    min_pixels: u64,
    max_aspect_ratio: f64,
    /// What the number of frames becomes a multiple of.
    depth: u64,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__SmartResize",
    doc: "The height and width that Qwen2-VL and its successors resize an image to: multiples of a factor, within \
          bounds of the area, in nearly the same ratio. The input is a list that begins with the image's height and \
          width. With `frames` the area is that of all frames together, as Qwen3-VL has it",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("factor", "what both sides become multiples of: patch size times merge size").or_int(28),
        ArgSpec::int("min_pixels", "smallest area").or_int(56 * 56),
        ArgSpec::int("max_pixels", "largest area").tensor().or_int(28 * 28 * 1280),
        ArgSpec::float("max_aspect_ratio", "an image whose longer side is more times the shorter one fails")
            .or_float(200.0),
        ArgSpec::int(
            "frames",
            "frames of a clip whose areas count together; not given: each frame's area counts",
        )
        .tensor(),
        ArgSpec::int("temporal_patch_size", "with `frames`: what their number is rounded to a multiple of")
            .or_int(2),
    ],
    build: &build,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let rule = Rule {
        factor: count("factor", args.int("factor")?, limits::MAX_PATCH_SIDE)?,
        min_pixels: count("min_pixels", args.int("min_pixels")?, limits::MAX_SAMPLE_BYTES)?,
        max_aspect_ratio: f64::from(args.float("max_aspect_ratio")?),
        depth: count("temporal_patch_size", args.int("temporal_patch_size")?, limits::MAX_PATCH_GROUP)?,
    };
    let most = limits::MAX_ASPECT_RATIO;
    if !(1.0..=most).contains(&rule.max_aspect_ratio) {
        return Err(Error::invalid(format!(
            "argument `max_aspect_ratio` is {}, expected 1 to {most}",
            rule.max_aspect_ratio
        )));
    }
    let made = SmartResize { rule, max_pixels: args.arg("max_pixels")?, frames: args.given_arg("frames")? };
    if let Some(&[value]) = made.max_pixels.known() {
        made.largest_area(value as i64)?;
    }
    Ok(Box::new(made))
}

impl SmartResize {
    /// Checks the argument `max_pixels`.
    fn largest_area(&self, value: i64) -> Result<u64> {
        let largest =
            if self.frames.is_some() { limits::MAX_SAMPLE_BYTES } else { limits::MAX_IMAGE_PIXELS as usize };
        let area = count("max_pixels", value, largest)?;
        if self.rule.min_pixels > area {
            return Err(Error::invalid(format!(
                "argument `min_pixels` is {}, expected at most `max_pixels`, {area}",
                self.rule.min_pixels
            )));
        }
        Ok(area)
    }

    fn size(&self, sample: &SampleInputs<'_>) -> Result<[u64; 2]> {
        let size = height_and_width(&sample.input(0)?)?;
        let max_pixels = self.largest_area(self.max_pixels.int(sample)?)?;
        let Some(frames) = &self.frames else { return self.rule.size(size, max_pixels) };
        let frames = count("frames", frames.int(sample)?, limits::MAX_VIDEO_FRAMES)?;
        self.rule.size_of_clip(size, frames, max_pixels)
    }
}

impl Rule {
    /// The height and the width of an image of that height and width. Numbers are doubles, halves are rounded to even
    /// and each step is in transformers' order, so that sizes are the same in every case.
    fn size(&self, size: [u64; 2], max_pixels: u64) -> Result<[u64; 2]> {
        self.check_ratio(size)?;
        Ok(self.within(size, 1, self.nearest(size), max_pixels))
    }

    /// Those of a clip. Frames with a side below the factor are enlarged first.
    fn size_of_clip(&self, size: [u64; 2], frames: u64, max_pixels: u64) -> Result<[u64; 2]> {
        if frames < self.depth {
            return Err(Error::invalid(format!(
                "a clip of {frames} frames, expected `temporal_patch_size`, {}, at least",
                self.depth
            )));
        }
        let ([height, width], factor) = (size.map(|side| side as f64), self.factor as f64);
        let enlarged = if height < factor || width < factor {
            let scale = (factor / height).max(factor / width);
            [(height * scale) as u64, (width * scale) as u64]
        } else {
            size
        };
        self.check_ratio(enlarged)?;
        Ok(self.within(enlarged, frames, self.nearest(enlarged), max_pixels))
    }

    fn check_ratio(&self, [height, width]: [u64; 2]) -> Result<()> {
        let ratio = height.max(width) as f64 / height.min(width) as f64;
        if ratio <= self.max_aspect_ratio {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "an image of {height} x {width} pixels, whose longer side is {ratio} times the shorter one, expected at \
             most {} times",
            self.max_aspect_ratio
        )))
    }

    /// The multiples of the factor that are next to a size.
    fn nearest(&self, size: [u64; 2]) -> [u64; 2] {
        size.map(|side| (side as f64 / self.factor as f64).round_ties_even() as u64 * self.factor)
    }

    /// What `nearest` becomes where its area, that of all frames, is out of bounds.
    fn within(&self, size: [u64; 2], frames: u64, nearest: [u64; 2], max_pixels: u64) -> [u64; 2] {
        let (sides, factor) = (size.map(|side| side as f64), self.factor as f64);
        let pixels = |frames: u64, [height, width]: [u64; 2]| {
            u128::from(frames) * u128::from(height) * u128::from(width)
        };
        let whole = match frames {
            1 => 1,
            _ => (frames as f64 / self.depth as f64).round_ties_even() as u64 * self.depth,
        };
        let (area, own) = (pixels(whole, nearest), pixels(frames, size) as f64);
        if area > u128::from(max_pixels) {
            let shrink = (own / max_pixels as f64).sqrt();
            sides.map(|side| ((side / shrink / factor).floor() as u64 * self.factor).max(self.factor))
        } else if area < u128::from(self.min_pixels) {
            let grow = (self.min_pixels as f64 / own).sqrt();
            sides.map(|side| (side * grow / factor).ceil() as u64 * self.factor)
        } else {
            nearest
        }
    }
}

impl Operator for SmartResize {
    fn infer(&self, _inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![list_type(2)])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        Ok(vec![BatchDesc::new(DType::I64, Layout::NONE, vec![list_shape(2); inputs.batch_size()])])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let size = self.size(&sample.inputs)?;
            write(sample.output(0)?, &size)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    fn size(values: &[(&str, Value)], list: &[i64]) -> Result<Vec<i64>, String> {
        let made = run(&DEF, &args(values, &[]), &[batch(&[(&[list.len()], list)])], &[]);
        let made = made.map_err(|error| error.to_string())?;
        made.words(0)?;
        Ok(made.values::<i64>(0))
    }

    /// Halves become even numbers of the factor: 42 is one and a half times 28, 70 two and a half times.
    #[test]
    fn sides_are_multiples_in_bounds() {
        assert_eq!(size(&[], &[224, 224, 3]).unwrap(), [224, 224]);
        assert_eq!(size(&[], &[98, 70]).unwrap(), [112, 56]);
        assert_eq!(size(&[], &[1, 1]).unwrap(), [56, 56]);
        assert_eq!(size(&[], &[3000, 4000]).unwrap(), [840, 1148]);
        assert_eq!(size(&[], &[1, 200]).unwrap(), [28, 812]);
        let least = [("min_pixels", Value::Ints(vec![1])), ("factor", Value::Ints(vec![32]))];
        assert_eq!(size(&least, &[16, 16]).unwrap(), [32, 32]);
    }

    /// 5 frames count as 4: halves become even.
    #[test]
    fn areas_of_frames_count_together() {
        let clip = |frames: i64, most: i64, list: &[i64]| {
            let ints = |value| Value::Ints(vec![value]);
            size(&[("factor", ints(32)), ("frames", ints(frames)), ("max_pixels", ints(most))], list)
        };
        assert_eq!(clip(5, 4 * 480 * 640, &[480, 640]).unwrap(), [480, 640]);
        assert_eq!(clip(6, 4 * 480 * 640, &[480, 640]).unwrap(), [384, 512]);
        assert_eq!(clip(2, 1 << 28, &[4, 40]).unwrap(), [32, 320]);
        assert!(clip(1, 1 << 20, &[480, 640]).unwrap_err().contains("`temporal_patch_size`, 2, at least"));
        assert!(clip(0, 1 << 20, &[480, 640]).unwrap_err().contains("frames"));
        assert!(clip(1 << 20, 1 << 40, &[1 << 24, 1 << 24]).unwrap_err().contains("max_pixels"));
        assert_eq!(clip(1 << 20, 1 << 20, &[1 << 24, 1 << 24]).unwrap(), [32, 32]);
    }

    #[test]
    fn hostile_sizes_are_errors() {
        assert!(size(&[], &[1, 201]).unwrap_err().contains("at most 200 times"));
        for list in [&[0, 5][..], &[5, -1], &[5, i64::MAX], &[5], &[]] {
            assert!(size(&[], list).is_err(), "{list:?}");
        }
        for (name, value) in
            [("factor", 0), ("factor", i64::MAX), ("min_pixels", -1), ("max_pixels", 1 << 40)]
        {
            assert!(size(&[(name, Value::Ints(vec![value]))], &[5, 5]).unwrap_err().contains(name));
        }
        let crossed = [("min_pixels", Value::Ints(vec![100])), ("max_pixels", Value::Ints(vec![99]))];
        assert!(size(&crossed, &[5, 5]).unwrap_err().contains("at most `max_pixels`"));
        let ratio = [("max_aspect_ratio", Value::Floats(vec![f32::NAN]))];
        assert!(size(&ratio, &[5, 5]).unwrap_err().contains("max_aspect_ratio"));
    }
}
