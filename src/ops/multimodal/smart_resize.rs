//! `gesso__SmartResize`: the size that Qwen2-VL, Qwen2.5-VL and Qwen3-VL resize an image to.

use super::sides::{count, height_and_width, list_shape, list_type, write};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Layout, ValueType};

struct SmartResize {
    rule: Rule,
}

/// What decides the size.
#[derive(Debug, Clone, Copy)]
struct Rule {
    factor: u64,
    min_pixels: u64,
    max_pixels: u64,
    max_aspect_ratio: f64,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__SmartResize",
    doc: "The height and width that Qwen2-VL and its successors resize an image to: multiples of a factor, within \
          bounds of the area, in nearly the same ratio. The input is a list that begins with the image's height and \
          width",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("factor", "what both sides become multiples of: patch size times merge size").or_int(28),
        ArgSpec::int("min_pixels", "smallest area").or_int(56 * 56),
        ArgSpec::int("max_pixels", "largest area").or_int(28 * 28 * 1280),
        ArgSpec::float("max_aspect_ratio", "an image whose longer side is more times the shorter one fails")
            .or_float(200.0),
    ],
    build: &build,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let largest = limits::MAX_IMAGE_PIXELS as usize;
    let rule = Rule {
        factor: count("factor", args.int("factor")?, limits::MAX_PATCH_SIDE)?,
        min_pixels: count("min_pixels", args.int("min_pixels")?, largest)?,
        max_pixels: count("max_pixels", args.int("max_pixels")?, largest)?,
        max_aspect_ratio: f64::from(args.float("max_aspect_ratio")?),
    };
    if rule.min_pixels > rule.max_pixels {
        return Err(Error::invalid(format!(
            "argument `min_pixels` is {}, expected at most `max_pixels`, {}",
            rule.min_pixels, rule.max_pixels
        )));
    }
    let most = limits::MAX_ASPECT_RATIO;
    if !(1.0..=most).contains(&rule.max_aspect_ratio) {
        return Err(Error::invalid(format!(
            "argument `max_aspect_ratio` is {}, expected 1 to {most}",
            rule.max_aspect_ratio
        )));
    }
    Ok(Box::new(SmartResize { rule }))
}

impl Rule {
    /// The height and the width of an image of that height and width. Numbers are doubles, halves are rounded to even
    /// and each step is in transformers' order, so that sizes are the same in every case.
    fn size(&self, [height, width]: [u64; 2]) -> Result<[u64; 2]> {
        let ratio = height.max(width) as f64 / height.min(width) as f64;
        if ratio > self.max_aspect_ratio {
            return Err(Error::invalid(format!(
                "an image of {height} x {width} pixels, whose longer side is {ratio} times the shorter one, expected \
                 at most {} times",
                self.max_aspect_ratio
            )));
        }
        let (sides, factor) = ([height as f64, width as f64], self.factor as f64);
        let nearest = sides.map(|side| (side / factor).round_ties_even() * factor);
        let area = nearest[0] * nearest[1];
        let size = if area > self.max_pixels as f64 {
            let shrink = ((height * width) as f64 / self.max_pixels as f64).sqrt();
            sides.map(|side| ((side / shrink / factor).floor() * factor).max(factor))
        } else if area < self.min_pixels as f64 {
            let grow = (self.min_pixels as f64 / (height * width) as f64).sqrt();
            sides.map(|side| (side * grow / factor).ceil() * factor)
        } else {
            nearest
        };
        Ok(size.map(|side| side as u64))
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
            let size = self.rule.size(height_and_width(&sample.input(0)?)?)?;
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
