//! `decoders__Image`: encoded images to HWC pixels. And what every image decoder shares: its arguments, and a [`Decoding`]
//! that makes a [`Job`] of every sample. Those must not know on which device pixels are decoded.

mod files;
mod finish;
mod mixed;
mod on_cores;
mod on_engines;
mod on_host;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::window::{OutOfBounds, Window};
use super::{
    Accepts, ArgSpec, Args, CpuCx, Decoded, Deferred, GpuCx, GpuIo, Inputs, Io, OpDef, Operator, Preferences,
    SampleInputs, one_output,
};
use crate::cpu::decode::{
    self, ColorSpace, Conditions, DecodeOptions, Decoder, ImageInfo, JpegDecoder, Vectors,
};
use crate::error::{Error, Result};
use crate::gpu::jpeg::{Path, Wish, cores};
use crate::gpu::{Gpu, KernelSpec};
use crate::limits;
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};
use crate::waiting::{Effort, Watch};
use files::Files;
use mixed::Mixed;

/// Dimensions of a decoded image: rows, columns, channels.
const NDIM: usize = 3;

/// Pixels of so many bytes are worth waking other threads for.
const SHARED_BYTES: usize = 1 << 20;

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "decoders__Image",
    aliases: &["ImageDecoder", "experimental__decoders__Image"],
    doc: "Decodes JPEG, JPEG 2000, PNG, BMP, TIFF, WebP and PNM to HWC pixels",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: ARGS,
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    host_inputs: Some(0),
    ..OpDef::BASE
};

/// Arguments of every image decoder.
pub(super) const ARGS: &[ArgSpec] = &[
    ArgSpec::image_type("output_type", "0 RGB, 1 BGR, 2 gray, 3 YCbCr, 4 as in the file").or_int(0),
    ArgSpec::dtype("dtype", "element type, values scaled to its range").or_dtype(DType::U8),
    ArgSpec::bool("adjust_orientation", "turn the image as its EXIF orientation says").or_bool(true),
    ArgSpec::bool("use_fast_idct", "the accurate IDCT is always used").no_effect().or_bool(false),
    ArgSpec::bool("jpeg_fancy_upsampling", "on a GPU: upsample chroma of a JPEG smoothly, not by the nearest sample; on the CPU it is always smooth").or_bool(false),
    ArgSpec::bool("affine", "threads are not bound to cores").no_effect().or_bool(true),
    ArgSpec::bool("cache_batch_copy", "no cache of decoded images").no_effect().or_bool(true),
    ArgSpec::bool("cache_debug", "no cache of decoded images").no_effect().or_bool(false),
    ArgSpec::int("cache_size", "no cache of decoded images").no_effect().or_int(0),
    ArgSpec::int("cache_threshold", "no cache of decoded images").no_effect().or_int(0),
    ArgSpec::string("cache_type", "no cache of decoded images").no_effect().or_string(""),
    ArgSpec::int("device_memory_padding", "a hint for DALI's decoder").no_effect().or_int(16777216),
    ArgSpec::int("device_memory_padding_jpeg2k", "a hint for DALI's decoder").no_effect().or_int(0),
    ArgSpec::int("host_memory_padding", "a hint for DALI's decoder").no_effect().or_int(8388608),
    ArgSpec::int("host_memory_padding_jpeg2k", "a hint for DALI's decoder").no_effect().or_int(0),
    ArgSpec::float("hw_decoder_load", "on a GPU: the part, 0 to 1, of the images that its JPEG engines can decode and shall").or_computed("as measured speeds say"),
    ArgSpec::int("hybrid_huffman_threshold", "a hint for the GPU").no_effect().or_int(1000000),
    ArgSpec::bool("memory_stats", "a hint for DALI's decoder").no_effect().or_bool(false).deprecated(),
    ArgSpec::int("preallocate_height_hint", "a hint for DALI's decoder").no_effect().or_int(0),
    ArgSpec::int("preallocate_width_hint", "a hint for DALI's decoder").no_effect().or_int(0),
    ArgSpec::bool("split_stages", "a hint for DALI's decoder").no_effect().or_bool(false).deprecated(),
    ArgSpec::bool("use_chunk_allocator", "a hint for DALI's decoder").no_effect().or_bool(false).deprecated(),
];

/// What the arguments of an image decoder ask for.
fn options(args: &Args) -> Result<DecodeOptions> {
    let dtype = args.dtype("dtype")?.unwrap_or(DType::U8);
    decode::check_dtype(dtype)?;
    Ok(DecodeOptions {
        color: color_space(args, "output_type")?,
        dtype,
        adjust_orientation: args.bool("adjust_orientation")?.unwrap_or(true),
        fast_idct: false,
        smooth_chroma: true,
        window: None,
        shrink: 0,
    })
}

/// The colour space in argument `name`, RGB by default.
pub(super) fn color_space(args: &Args, name: &str) -> Result<ColorSpace> {
    Ok(match args.int(name)? {
        None | Some(0) => ColorSpace::Rgb,
        Some(1) => ColorSpace::Bgr,
        Some(2) => ColorSpace::Gray,
        Some(3) => ColorSpace::YCbCr,
        Some(4) => ColorSpace::Any,
        Some(other) => return Err(Error::invalid(format!("argument `{name}` is {other}, expected 0 to 4"))),
    })
}

/// Checks that a decoder's input can be encoded images: uint8, one dimension.
pub(super) fn check_encoded(input: &ValueType) -> Result<()> {
    if input.dtype.is_some_and(|dtype| dtype != DType::U8) || input.ndim().is_some_and(|ndim| ndim != 1) {
        return Err(Error::invalid(format!(
            "expected encoded images as uint8 with 1 dimension, found {:?} with {:?} dimensions",
            input.dtype,
            input.ndim()
        )));
    }
    Ok(())
}

/// Which part of an image a decoder returns, in pixels after the image's orientation was applied.
pub(super) trait Region: Send + Sync {
    /// Height and width of the part as far as they are the same for every image.
    ///
    /// # Errors
    /// When no image has such a part.
    fn infer(&self) -> Result<Vec<Option<usize>>>;

    /// Called before the parts of a batch are placed, of which `samples` samples were before.
    fn begin(&mut self, _samples: u64) {}

    /// The part of one image of `size` (height, width). It may leave the image.
    ///
    /// # Errors
    /// When the sample's arguments make no window.
    fn place(&self, sample: &SampleInputs<'_>, size: &[usize]) -> Result<Window>;
}

/// The layout that a [`Region`] is placed in.
pub(super) fn plane() -> Layout {
    Layout::from_letters(b"HW")
}

/// What matters on a device only.
#[derive(Debug, Clone, Copy)]
struct OnDevice {
    smooth_chroma: bool,
    /// The part of the images for the JPEG engines.
    load: Option<f32>,
    /// Where JPEGs shall be decoded.
    path: Option<Path>,
}

impl OnDevice {
    fn new(args: &Args) -> Result<Self> {
        let load = args.float("hw_decoder_load")?;
        if let Some(load) = load.filter(|load| !(0.0..=1.0).contains(load)) {
            return Err(Error::invalid(format!("argument `hw_decoder_load` is {load}, expected 0 to 1")));
        }
        Ok(Self { smooth_chroma: args.bool("jpeg_fancy_upsampling")?.unwrap_or(false), load, path: None })
    }

    /// The author of the model has the last word, the author of the pipeline the one before.
    fn wish(&self) -> Option<Wish> {
        self.path.map(Wish::Path).or(self.load.map(Wish::Load))
    }
}

/// What a decoder makes of its samples, wherever it runs.
pub(super) struct Decoding {
    /// The same for every sample, except for the window.
    options: DecodeOptions,
    /// `None`: all of the image.
    region: Option<Box<dyn Region>>,
    /// Height and width that whole images are made smaller to behind the decoder, if they may be smaller before.
    enough: Option<[usize; 2]>,
    /// Pixels of an encoded image, at most.
    max_pixels: u64,
}

/// One image to decode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    /// What its header says.
    pub(super) info: ImageInfo,
    /// What is asked for. The window is inside the image and not all of it.
    pub(super) options: DecodeOptions,
}

impl Decoding {
    /// Reads [`ARGS`].
    ///
    /// # Errors
    /// When one of them has no such value.
    pub(super) fn new(args: &Args, region: Option<Box<dyn Region>>) -> Result<Self> {
        Ok(Self { options: options(args)?, region, enough: None, max_pixels: limits::MAX_IMAGE_PIXELS })
    }

    /// What is known of the pixels before there is an image.
    ///
    /// # Errors
    /// When the first of `inputs` cannot be encoded images, or when no image has such a region.
    pub(super) fn infer(&self, inputs: &[ValueType]) -> Result<ValueType> {
        check_encoded(&inputs[0])?;
        let channels = (self.options.color != ColorSpace::Any).then(|| self.options.color.channels(0));
        let mut dims = match &self.region {
            Some(region) => region.infer()?,
            None => vec![None, None],
        };
        dims.push(channels);
        Ok(ValueType { dtype: Some(self.options.dtype), dims: Some(dims), layout: Some(Layout::hwc()) })
    }

    /// What to decode for one sample, from its `file`'s header and its arguments.
    ///
    /// # Errors
    /// A header that cannot be read; a window that is empty or leaves the image.
    pub(super) fn job(&self, sample: &SampleInputs<'_>, file: &[u8]) -> Result<Job> {
        let info = decode::probe(file, self.options.adjust_orientation)?;
        let size = [info.height, info.width];
        if (info.width as u64).saturating_mul(info.height as u64) > self.max_pixels {
            return Err(Error::invalid(format!(
                "image of {} x {} pixels is larger than the model's limit of {} pixels (`max_pixels`)",
                info.width, info.height, self.max_pixels
            )));
        }
        let window = match &self.region {
            Some(region) => settle(region.place(sample, &size)?, &size)?,
            None => None,
        };
        let shrink = match (&self.region, self.enough) {
            (None, Some(enough)) if info.halves => reduction(size, enough),
            _ => 0,
        };
        Ok(Job { info, options: DecodeOptions { window, shrink, ..self.options } })
    }

    /// Type, layout and shapes of the pixels that `jobs` make; `None` stands for a sample that failed.
    pub(super) fn describe(&self, jobs: &[Option<Job>]) -> BatchDesc {
        let shapes = jobs.iter().map(|job| match job {
            Some(job) => Shape::from(decode::output_shape(&job.info, &job.options)),
            None => Shape::new(vec![0; NDIM]),
        });
        BatchDesc::new(self.options.dtype, Layout::hwc(), shapes.collect())
    }
}

/// How often the sides of an image of `size` can be halved so that neither gets smaller than `enough`.
fn reduction(size: [usize; 2], enough: [usize; 2]) -> u32 {
    let fits = |shrink: &u32| size.iter().zip(enough).all(|(side, enough)| side >> shrink >= enough);
    (1..=decode::MAX_SHRINK).rev().find(fits).unwrap_or(0)
}

/// A window of an image of `size` (height, width) as the decoders take it; `None` when it is all of the image.
fn settle(window: Window, size: &[usize]) -> Result<Option<decode::Window>> {
    let window = OutOfBounds::Error.settle(window, size)?;
    if window == Window::whole(size) {
        return Ok(None);
    }
    let start: Vec<usize> = window.anchor.iter().filter_map(|&at| usize::try_from(at).ok()).collect();
    let (&[y, x], &[height, width]) = (start.as_slice(), window.extent.as_slice()) else {
        return Err(Error::internal(format!("an image is cropped to {window:?}")));
    };
    // DALI's decoders refuse it too, unlike its `Crop` and `Slice`.
    if height == 0 || width == 0 {
        return Err(Error::invalid(format!("a window of {width} x {height} pixels of an image is empty")));
    }
    Ok(Some(decode::Window { x, y, width, height }))
}

/// An image decoder: images, or the parts of them that its [`Region`] gives.
pub(super) struct Image {
    decoding: Decoding,
    decoder: Decoder,
    on_device: OnDevice,
    mixed: Option<Mixed>,
    files: Files,
    /// Whether on a device the pixels may be left to the reader.
    leaves_planes: bool,
    /// Of the batch at hand; `None` for samples that failed.
    jobs: Vec<Option<Job>>,
    /// What each of them is expected to take on the host.
    efforts: Vec<Effort>,
    decoded: Decoded,
}

impl Image {
    /// A decoder with the arguments [`ARGS`] that returns `region` of every image.
    ///
    /// # Errors
    /// Those of [`Decoding::new`].
    pub(super) fn operator(args: &Args, region: Option<Box<dyn Region>>) -> Result<Box<dyn Operator>> {
        let (decoding, on_device) = (Decoding::new(args, region)?, OnDevice::new(args)?);
        Ok(Box::new(Self {
            decoding,
            decoder: Decoder::new(),
            on_device,
            mixed: None,
            files: Files::default(),
            leaves_planes: false,
            jobs: Vec::new(),
            efforts: Vec::new(),
            decoded: Decoded::default(),
        }))
    }
}

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Image::operator(args, None)
}

impl Operator for Image {
    fn is_steered_by(&self, _input: usize) -> bool {
        true
    }

    fn copies_itself(&self, input: usize) -> bool {
        input == 0
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![self.decoding.infer(inputs)?])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        if let Some(region) = &mut self.decoding.region {
            region.begin(inputs.first_sample());
        }
        self.files.begin(inputs.batch_size());
        self.efforts.clear();
        self.efforts.resize(inputs.batch_size(), Effort::default());
        self.jobs = inputs.map(|sample| {
            let file = self.files.look(&sample)?;
            let job = self.decoding.job(&sample, file)?;
            if let (Some(effort), None) = (self.efforts.get_mut(sample.index), &self.mixed) {
                *effort = decode::effort(file, &job.info, &job.options);
            }
            Ok(Some(job))
        });
        Ok(vec![self.decoding.describe(&self.jobs)])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.efforts.get(sample).copied().unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let failures = io.inputs().failures();
        let decoded = AtomicUsize::new(0);
        // Threads without an image help with large ones.
        let idle = self.jobs.iter().flatten().count() < cx.pool.current_num_threads();
        let done = io.for_each_sample(cx, |sample| {
            let job = self.jobs.get(sample.index()).and_then(Option::as_ref);
            let job = job.ok_or_else(|| Error::internal("an image was not looked at"))?;
            let watch = Watch::new(cx.waiting, failures.member(sample.index()));
            let (input, output) = sample.unary()?;
            let pool = (idle && output.bytes.len() >= SHARED_BYTES).then_some(cx.pool);
            let conditions = Conditions { watch: &watch, pool };
            self.decoder.decode_under(conditions, input.as_slice()?, &job.options, output.bytes)?;
            decoded.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        self.decoded.cpu += decoded.into_inner();
        done
    }

    fn take_decoded(&mut self) -> Decoded {
        if let Some(mixed) = &mut self.mixed {
            self.decoded += std::mem::take(&mut mixed.decoded);
        }
        std::mem::take(&mut self.decoded)
    }

    fn deferred(&mut self) -> Option<&mut dyn Deferred> {
        Some(self)
    }

    fn prefer(&mut self, preferences: &Preferences) {
        self.on_device.path = preferences.jpeg_path;
        self.files.may_change = preferences.inputs_may_change;
        if let Some(most) = preferences.max_pixels {
            self.decoding.max_pixels = most.min(limits::MAX_IMAGE_PIXELS);
        }
        if preferences.jpeg_decoder != JpegDecoder::default() {
            self.decoder = Decoder::with_jpeg(preferences.jpeg_decoder, Vectors::best());
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        // DALI's decoders on a device upsample as asked, wherever an image is decoded in the end; so do all paths here.
        self.decoding.options.smooth_chroma = self.on_device.smooth_chroma;
        let wish = self.on_device.wish();
        self.mixed = Some(Mixed::open(gpu, &self.decoding.options, wish, self.leaves_planes)?);
        Ok(())
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let mixed = self.mixed.as_mut().ok_or_else(|| Error::internal("the device was not prepared"))?;
        mixed.run(&self.decoder, &self.jobs, &self.files, cx, io)
    }
}

impl Deferred for Image {
    fn leave(&mut self, accepted: Accepts) -> Accepts {
        self.decoding.enough = accepted.smaller;
        let DecodeOptions { color, dtype, .. } = self.decoding.options;
        let three_bytes = dtype == DType::U8 && matches!(color, ColorSpace::Rgb | ColorSpace::Bgr);
        // Smooth chroma is made of neighbours, by a kernel of its own.
        let can = three_bytes && self.decoding.region.is_none() && !self.on_device.smooth_chroma;
        self.leaves_planes = can && accepted.planes;
        Accepts { planes: self.leaves_planes, ..accepted }
    }

    fn is_unsettled(&self) -> bool {
        self.mixed.as_ref().is_some_and(Mixed::is_unsettled)
    }

    fn settle(&mut self, cx: &mut GpuCx<'_>, inputs: Inputs<'_>) -> Result<bool> {
        match &mut self.mixed {
            Some(mixed) => mixed.settle(&self.decoder, &self.jobs, &self.files, cx, inputs),
            None => Ok(false),
        }
    }
}

pub(super) fn kernels() -> Vec<KernelSpec> {
    finish::kernels().chain(cores::kernels()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_stay_as_large_as_they_must_be() {
        let cases = [
            ([1080, 1920], 2),
            ([448, 448], 1),
            ([447, 2_000], 0),
            ([224, 224], 0),
            ([100, 100], 0),
            ([9_000, 9_000], 3),
        ];
        for (size, expected) in cases {
            assert_eq!(reduction(size, [224, 224]), expected, "{size:?}");
        }
        assert_eq!(reduction([7, 7], [1, 1]), 2);
    }
}
