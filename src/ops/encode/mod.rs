//! Images to files, which DALI does not have: JPEG, PNG, WebP. In operators' files their names begin with `gesso__`, in
//! Python they are in `fn.gesso`. Each gives its settings; what they share is here.

mod encode_jpeg;
mod encode_jpeg_on_device;
mod encode_png;
mod encode_webp;

use super::table::{Bound, Row};
use crate::cpu::encode::Image;
use crate::deadline::Watch;
use crate::error::{Error, Result, caught};
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{CpuCx, Inputs, Io, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Layout, Shape, ValueType};

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&encode_jpeg::DEF, Bound::Elements),
    (&encode_png::DEF, Bound::Elements),
    (&encode_webp::DEF, Bound::Elements),
];

/// Layouts of an image: with channels, and gray without them.
const LAYOUTS: [&str; 2] = ["HWC", "HW"];

/// A format that images become.
trait Encoder: Send + Sync {
    /// What a sample's arguments ask for.
    type Settings: Send + Sync;

    /// Types of samples that it takes.
    const DTYPES: &'static [DType];

    /// Nanoseconds of one core for each sample of a pixel, about.
    const SAMPLE: f64;

    /// Reads the arguments of a sample.
    ///
    /// # Errors
    /// When one of them has no such value.
    fn settings(&self, sample: &SampleInputs<'_>) -> Result<Self::Settings>;

    /// Encodes an image.
    ///
    /// # Errors
    /// For one that no file of the format is.
    fn encode(&self, image: &Image<'_>, settings: &Self::Settings) -> Result<Vec<u8>>;
}

/// The operator of an encoder. How long a file becomes only encoding tells, so that is done before shapes are told.
struct Encode<E> {
    encoder: E,
    /// Of the batch at hand; empty for samples that failed.
    files: Vec<Vec<u8>>,
}

impl<E> Encode<E> {
    fn new(encoder: E) -> Self {
        Self { encoder, files: Vec::new() }
    }
}

/// Checks the types and layouts of the images.
fn check<E: Encoder>(inputs: &Inputs<'_>) -> Result<()> {
    let desc = inputs.desc(0)?;
    dtypes::accepted("images", desc.dtype, E::DTYPES)?;
    layouts::of_batch(desc, &LAYOUTS).map(drop)
}

/// The image that a sample is, without its bytes where they are on a device.
fn image<'a>(sample: &SampleInputs<'a>) -> Result<Image<'a>> {
    let view = sample.input(0)?;
    let [height, width, ref channels @ ..] = view.shape[..] else {
        return Err(Error::invalid(format!("an image of shape {}, expected height and width", view.shape)));
    };
    let channels = channels.first().copied().unwrap_or(1);
    Ok(Image { bytes: view.bytes, height, width, channels, width_of_sample: view.dtype.size() })
}

impl<E: Encoder> Operator for Encode<E> {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), |dtype| dtypes::accepted("images", dtype, E::DTYPES))?;
        layouts::of_type(&inputs[0], &LAYOUTS)?;
        Ok(vec![ValueType::ranked(DType::U8, 1, Layout::NONE)])
    }

    fn work_ahead(&mut self, cx: &CpuCx<'_>, inputs: &Inputs<'_>) -> Result<()> {
        check::<E>(inputs)?;
        let encoder = &self.encoder;
        let mut jobs =
            inputs.map(|sample| Ok(Some((image(&sample)?, encoder.settings(&sample)?, sample.index))));
        let mut files: Vec<_> = jobs.iter_mut().map(|job| (job.take(), Vec::new())).collect();
        cx.pool.for_each(&mut files, |(job, file)| {
            let Some((image, settings, index)) = job else { return };
            let expected = std::time::Duration::from_nanos((image.bytes.len() as f64 * E::SAMPLE) as u64);
            let encode = || {
                Watch::new(cx.deadline, inputs.failures().member(*index)).ensure_time(expected)?;
                encoder.encode(image, settings)
            };
            match caught(encode) {
                Ok(bytes) => *file = bytes,
                Err(error) => inputs.fail(*index, error),
            }
        });
        self.files = files.into_iter().map(|(_, file)| file).collect();
        Ok(())
    }

    fn setup(&mut self, _inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let shapes = self.files.iter().map(|file| Shape::new(vec![file.len()])).collect();
        Ok(vec![BatchDesc::new(DType::U8, Layout::NONE, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let files = std::mem::take(&mut self.files);
        io.for_each_sample(cx, |sample| {
            let file = files.get(sample.index()).map(Vec::as_slice).unwrap_or_default();
            let output = sample.output(0)?;
            if output.bytes.len() != file.len() {
                return Err(Error::internal("a file of another length than was told"));
            }
            output.bytes.copy_from_slice(file);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::decode::{DecodeOptions, Decoder, output_shape, probe};
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};
    use crate::ops::find;

    fn decoded(file: &[u8]) -> ([usize; 3], Vec<u8>) {
        let options =
            DecodeOptions { color: crate::cpu::decode::ColorSpace::Any, ..DecodeOptions::default() };
        let shape = output_shape(&probe(file, true).unwrap(), &options);
        let mut pixels = vec![0; shape.iter().product()];
        Decoder::new().decode_into(file, &options, &mut pixels).unwrap();
        (shape, pixels)
    }

    #[test]
    fn files_have_the_pixels_again() {
        let pixels: Vec<u8> = (0..12 * 20 * 3).map(|i| (i / 3) as u8).collect();
        for (name, values, most) in [
            (
                "gesso__EncodeJpeg",
                vec![("quality", Value::Ints(vec![100])), ("subsampling", text("4:4:4"))],
                4,
            ),
            ("gesso__EncodeJpeg", vec![("progressive", Value::Bools(vec![true]))], 40),
            ("gesso__EncodePng", vec![], 0),
            ("gesso__EncodePng", vec![("compression_level", Value::Ints(vec![0]))], 0),
            ("gesso__EncodeWebp", vec![("lossless", Value::Bools(vec![true]))], 0),
            ("gesso__EncodeWebp", vec![("quality", Value::Floats(vec![100.0]))], 12),
        ] {
            let images = batch(&[(&[12, 20, 3][..], &pixels[..]), (&[10, 24, 3], &pixels[..])]);
            let made = run(find(name).unwrap(), &args(&values, &[]), &[images], &[]).unwrap();
            for (i, size) in [[12, 20, 3], [10, 24, 3]].into_iter().enumerate() {
                let (shape, found) = decoded(&made.values::<u8>(i));
                assert_eq!(shape, size, "{name} {values:?}");
                let off = found.iter().zip(&pixels).map(|(a, b)| a.abs_diff(*b)).max();
                assert!(off <= Some(most), "{name} {values:?}: {off:?} levels");
            }
        }
    }

    fn text(text: &str) -> Value {
        Value::Strings(vec![text.to_owned()])
    }

    #[test]
    fn gray_alpha_and_wide_samples_are_kept_by_png() {
        let wide: Vec<u16> = (0..10 * 10 * 4).map(|i| i * 100).collect();
        for shape in [&[20, 20, 1][..], &[10, 20, 2], &[10, 10, 4], &[20, 20]] {
            let made =
                run(find("gesso__EncodePng").unwrap(), &args(&[], &[]), &[batch(&[(shape, &wide[..])])], &[]);
            let file = made.unwrap().values::<u8>(0);
            let (found, pixels) = decoded(&file);
            assert_eq!(probe(&file, true).unwrap().bit_depth, 16);
            assert_eq!(found[2], shape.get(2).copied().unwrap_or(1));
            assert!(pixels.iter().zip(&wide).all(|(found, wide)| found.abs_diff((wide / 257) as u8) <= 1));
        }
    }

    #[test]
    fn what_no_file_can_be_fails_its_sample_alone() {
        let pixels = [7_u8; 48];
        let images =
            [(&[4, 4, 3][..], &pixels[..]), (&[0, 4, 3], &[]), (&[4, 6, 2], &pixels), (&[16, 3, 1], &pixels)];
        for (name, said) in [
            ("gesso__EncodeJpeg", "2 channels cannot be a JPEG"),
            ("gesso__EncodeWebp", "2 channels cannot be a WebP"),
        ] {
            let made = run(find(name).unwrap(), &args(&[], &[]), &[batch(&images)], &[]).unwrap();
            assert!(!made.values::<u8>(0).is_empty());
            assert!(made.error(1).contains("0 x 4 pixels"), "{}", made.error(1));
            assert!(made.error(2).contains(said), "{}", made.error(2));
        }
        let images = batch(&[(&[4, 4, 3][..], &pixels[..]), (&[4, 4, 3], &pixels)]);
        let qualities = batch(&[(&[][..], &[50_i32][..]), (&[], &[101])]);
        let made = run(find("gesso__EncodeJpeg").unwrap(), &args(&[], &["quality"]), &[images], &[qualities]);
        let made = made.unwrap();
        assert!(
            made.error(1).contains("`quality` is 101, expected 1 to 100") && !made.values::<u8>(0).is_empty()
        );
    }

    #[test]
    fn settings_that_there_are_not_fail_the_load() {
        for (name, argument, value) in [
            ("gesso__EncodeJpeg", "subsampling", text("4:1:1")),
            ("gesso__EncodePng", "compression_level", Value::Ints(vec![10])),
            ("gesso__EncodeWebp", "method", Value::Ints(vec![7])),
        ] {
            let made = find(name).unwrap().instantiate(&args(&[(argument, value)], &[]), 1);
            assert!(made.err().unwrap().to_string().contains(argument), "{name}");
        }
    }
}
