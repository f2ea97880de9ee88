//! `decoders__ImageCrop`: encoded images to the pixels of a crop window.

use super::decoders_image::{ARGS, Image, Region, plane};
use crate::cpu::encoded::Encoded;
use crate::cpu::exact::Arithmetic;
use crate::error::Result;
use crate::operator::shared::window::{CROP_ARGS, CropWindow, Window};
use crate::operator::{Args, InputSet, OpDef, Operator, SampleInputs, one_output};
use crate::tensor::Device;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "decoders__ImageCrop",
    aliases: &["ImageDecoderCrop", "experimental__decoders__ImageCrop"],
    doc: "Decodes images and keeps a crop window of each",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[],
    shared_args: &[ARGS, CROP_ARGS],
    arithmetics: &Arithmetic::PILLOW,
    build: &build,
    outputs: &one_output,
    kernels: &[super::decoders_image::kernels],
    host_inputs: Some(0),
    copies_input: InputSet::First,
    encoded: Some(Encoded::Picture),
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(decoder(args)?))
}

/// The decoder that these arguments describe.
///
/// # Errors
/// When one of them has no such value.
pub(in crate::ops) fn decoder(args: &Args) -> Result<Image> {
    Image::new(args, Some(Box::new(CropWindow::new(args)?)))
}

impl Region for CropWindow {
    fn infer(&self) -> Result<Vec<Option<usize>>> {
        CropWindow::infer(self, &[None, None], plane(), false)
    }

    fn place(&self, sample: &SampleInputs<'_>, size: &[usize]) -> Result<Window> {
        CropWindow::place(self, sample, size, plane())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};
    use crate::tensor::{DType, ValueType};

    /// Four columns and three rows, gray, 0 to 11.
    const IMAGE: &[u8] = b"P5 4 3 255\n\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b";

    fn gray() -> (&'static str, Value) {
        ("output_type", Value::Ints(vec![2]))
    }

    #[test]
    fn a_window_that_is_none_fails_its_sample_alone() {
        let sizes = [2.0, 5.0, f32::NAN, f32::INFINITY, 1e30, -1.0, 3.9];
        let images = batch(&[(&[IMAGE.len()][..], IMAGE); 7]);
        let sizes: Vec<(&[usize], &[f32])> = sizes.chunks(1).map(|size| (&[][..], size)).collect();
        let values = [gray(), ("crop_h", Value::Floats(vec![1.0]))];
        let outcome = run(&DEF, &args(&values, &["crop_w"]), &[images], &[batch(&sizes)]).unwrap();
        assert_eq!(outcome.desc.shapes[0][..], [1, 2, 1]);
        assert_eq!(outcome.values::<u8>(0), [5, 6]);
        assert_eq!(outcome.values::<u8>(5), [4, 5, 6, 7]);
        // A place of 0.5 that must be rounded goes away from zero.
        assert_eq!(outcome.values::<u8>(6), [5, 6, 7]);
        assert!(outcome.error(1).contains("leaves a sample of shape [3, 4]"), "{}", outcome.error(1));
        for failed in 2..5 {
            assert!(outcome.error(failed).contains("a crop window has size"), "{}", outcome.error(failed));
        }
    }

    #[test]
    fn a_damaged_image_has_no_window() {
        let images: [(&[usize], &[u8]); 2] = [(&[IMAGE.len()], IMAGE), (&[9], &IMAGE[..9])];
        let values = [gray(), ("crop", Value::Ints(vec![1, 2]))];
        let outcome = run(&DEF, &args(&values, &[]), &[batch(&images)], &[]).unwrap();
        assert_eq!(outcome.values::<u8>(0), [5, 6]);
        assert!(!outcome.error(1).is_empty());
    }

    #[test]
    fn the_size_is_known_where_the_file_fixes_it() {
        let encoded = |args: &Args| {
            let input = ValueType { dtype: Some(DType::U8), dims: Some(vec![None]), layout: None };
            DEF.instantiate(args, 1).unwrap().infer(&[input]).unwrap().remove(0).dims
        };
        let fixed = [("crop", Value::Ints(vec![5, 0]))];
        assert_eq!(encoded(&args(&fixed, &[])), Some(vec![Some(5), None, Some(3)]));
        assert_eq!(encoded(&args(&[], &["crop"])), Some(vec![None, None, Some(3)]));
        assert_eq!(encoded(&args(&[], &[])), Some(vec![None, None, Some(3)]));
    }
}
