//! `decoders__ImageSlice`: encoded images to the pixels of a window given by its ends.

use super::decoders_image::{ARGS, Image, Region, plane};
use crate::cpu::encoded::Encoded;
use crate::cpu::exact::Arithmetic;
use crate::error::Result;
use crate::operator::shared::slice_window::{SLICE_ARGS, SliceWindow};
use crate::operator::shared::window::{OutOfBounds, Window};
use crate::operator::{Args, InputSet, OpDef, Operator, SampleInputs, one_output};
use crate::tensor::Device;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "decoders__ImageSlice",
    aliases: &["ImageDecoderSlice", "experimental__decoders__ImageSlice"],
    doc: "Decodes images and keeps what lies between absolute or relative ends",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 3),
    args: &[],
    shared_args: &[ARGS, SLICE_ARGS],
    arithmetics: &Arithmetic::PILLOW,
    build: &build,
    outputs: &one_output,
    kernels: &[super::decoders_image::kernels],
    host_inputs: Some(0),
    copies_input: InputSet::First,
    encoded: Some(Encoded::Picture),
    ..OpDef::BASE
};

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    Image::operator(args, Some(Box::new(SliceWindow::new(args, inputs)?)))
}

impl Region for SliceWindow {
    fn infer(&self) -> Result<Vec<Option<usize>>> {
        SliceWindow::infer(self, &[None, None], plane(), OutOfBounds::Error)
    }

    fn place(&self, sample: &SampleInputs<'_>, size: &[usize]) -> Result<Window> {
        SliceWindow::place(self, sample, size, plane())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{Outcome, args, batch, run};

    /// Four columns and three rows, gray, 0 to 11.
    const IMAGE: &[u8] = b"P5 4 3 255\n\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b";

    fn gray() -> (&'static str, Value) {
        ("output_type", Value::Ints(vec![2]))
    }

    fn fixed(start: &[f32], shape: &[f32], others: &[(&str, Value)]) -> Result<Outcome> {
        let floats = |values: &[f32]| Value::Floats(values.to_vec());
        let values = [&[gray(), ("start", floats(start)), ("shape", floats(shape))], others].concat();
        run(&DEF, &args(&values, &[]), &[batch(&[(&[IMAGE.len()], IMAGE)])], &[])
    }

    #[test]
    fn windows_must_be_inside_and_hold_a_pixel() {
        assert_eq!(fixed(&[1.0, 2.0], &[3.0, 1.0], &[]).unwrap().values::<u8>(0), [9, 10, 11]);
        assert_eq!(fixed(&[0.0], &[4.0, 3.0], &[]).unwrap().values::<u8>(0), (0..12).collect::<Vec<_>>());
        for (start, shape, expected) in [
            ([2.0, 0.0], [3.0, 1.0], "leaves a sample of shape [3, 4]"),
            ([-1.0, 0.0], [3.0, 1.0], "leaves a sample of shape [3, 4]"),
            ([9.0, 0.0], [0.0, 1.0], "leaves a sample of shape [3, 4]"),
            ([1.0, 0.0], [0.0, 2.0], "a window of 0 x 2 pixels of an image is empty"),
            ([1.0, 0.0], [-1.0, 2.0], "ends before it starts"),
            ([f32::NAN, 0.0], [1.0, 2.0], "a slice has coordinate"),
            ([0.0, 1e30], [1.0, 2.0], "a slice has coordinate"),
        ] {
            let text = fixed(&start, &shape, &[]).unwrap().error(0);
            assert!(text.contains(expected), "{start:?} {shape:?}: {text}");
        }
    }

    #[test]
    fn there_are_no_axes_but_rows_and_columns() {
        let axis = |axis: i64| [("axes", Value::Ints(vec![axis]))];
        assert_eq!(fixed(&[1.0], &[1.0], &axis(-2)).unwrap().values::<u8>(0), [4, 5, 6, 7]);
        assert!(fixed(&[0.0], &[1.0], &axis(2)).unwrap().error(0).contains("axis 2"));
        let names = [("axis_names", Value::Strings(vec!["C".to_owned()]))];
        assert!(fixed(&[0.0], &[1.0], &names).unwrap().error(0).contains("no dimension `C`"));
    }

    #[test]
    fn inputs_place_the_window_of_their_own_sample() {
        let images = batch(&[(&[IMAGE.len()][..], IMAGE); 3]);
        let shape: &[usize] = &[2];
        let anchors = batch::<f32>(&[(shape, &[0.5, 0.0]), (shape, &[0.75, 0.0]), (&[1], &[0.0])]);
        let sizes = batch::<f32>(&[(shape, &[0.5, 0.34]), (shape, &[0.5, 0.34]), (shape, &[0.5, 0.34])]);
        let outcome = run(&DEF, &args(&[gray()], &[]), &[images, anchors, sizes], &[]).unwrap();
        assert_eq!(outcome.values::<u8>(0), [2, 3]);
        assert!(outcome.error(1).contains("leaves a sample"), "{}", outcome.error(1));
        assert!(outcome.error(2).contains("the anchor input has 1 values"), "{}", outcome.error(2));
    }

    #[test]
    fn a_file_without_ends_is_refused() {
        for (inputs, values) in [(1, vec![]), (2, vec![]), (3, vec![("start", Value::Ints(vec![1]))])] {
            assert!(DEF.instantiate(&args(&values, &[]), inputs).is_err(), "{inputs} inputs, {values:?}");
        }
    }
}
