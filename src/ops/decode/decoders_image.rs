//! `decoders__Image`: encoded images to HWC pixels. And [`Image`], which every image decoder is.

mod colors;
mod decoding;
mod files;
mod finish;
mod mixed;
mod on_engines;
mod on_host;
mod on_nvjpeg2000;
mod on_sms;
mod on_video_engines;
mod reading;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cpu::decode::{
    self, ColorSpace, Conditions, DecodeOptions, Decoder, JpegDecoder, RowSink, Vectors,
};
use crate::cpu::encoded::Encoded;
use crate::cpu::exact::Arithmetic;
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::jpeg::{Path, Wish, sm};
use crate::gpu::{Gpu, KernelSpec};
use crate::limits;
use crate::operator::{
    ArgSpec, Args, CpuCx, Decoded, Deferred, Failures, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator,
    Preferences, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, ValueType};
use decoding::Decoding;
use files::Files;
use mixed::DeviceDecoder;

pub(in crate::ops) use decoding::{Job, Region, check_encoded, color_space, plane};
pub(in crate::ops) use reading::Read;

/// Pixels of so many bytes are worth waking other threads for.
const SHARED_BYTES: usize = 1 << 20;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "decoders__Image",
    aliases: &["ImageDecoder", "experimental__decoders__Image"],
    doc: "Decodes JPEG, JPEG 2000, PNG, BMP, GIF, TIFF, WebP, AVIF, HEIC, JPEG XL and PNM to HWC pixels",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: ARGS,
    arithmetics: &Arithmetic::PILLOW,
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    host_inputs: Some(0),
    copies_input: InputSet::First,
    encoded: Some(Encoded::Picture),
    ..OpDef::BASE
};

/// Arguments of every image decoder.
pub(in crate::ops) const ARGS: &[ArgSpec] = &[
    ArgSpec::image_type("output_type", "0 RGB, 1 BGR, 2 gray, 3 YCbCr, 4 as in the file").or_int(0),
    ArgSpec::dtype("dtype", "element type, values scaled to its range").or_dtype(DType::U8),
    ArgSpec::bool("adjust_orientation", "turn the image as its EXIF orientation says").or_bool(true),
    ArgSpec::string(
        "arithmetic",
        "whose arithmetic makes RGB of inks and of 16 bits: `dali`, or `pillow` or `pillow13`, which are the same, to the bit; then a GPU also decodes JPEGs as the CPU does",
    )
    .or_string("dali"),
    ArgSpec::string(
        "color_management",
        "`srgb`: colours become those of sRGB, from the profile of the file; on a GPU those of JPEG and HEIC by a table, nearly the same. `none`: they stay those of the file, as in DALI",
    )
    .or_string("none"),
    ArgSpec::bool("use_fast_idct", "the accurate IDCT is always used").no_effect().or_bool(false),
    ArgSpec::bool("jpeg_fancy_upsampling", "on a GPU: upsample chroma of a JPEG smoothly, not by the nearest sample; on the CPU it is always smooth").or_computed("whether another library's `arithmetic` is asked for, here or behind it"),
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

/// What matters on a device only.
#[derive(Debug, Clone, Copy)]
struct OnDevice {
    /// `None`: smooth where pixels are exact.
    smooth_chroma: Option<bool>,
    /// Whether pixels must be those of libjpeg-turbo, as the CPU makes them.
    exact: bool,
    /// The part of the images for the JPEG engines.
    load: Option<f32>,
    /// Where JPEGs shall be decoded.
    path: Option<Path>,
    deterministic: bool,
}

impl OnDevice {
    /// Pillow decodes as libjpeg-turbo does, with smooth chroma.
    fn new(args: &Args, as_pillow: bool) -> Result<Self> {
        let load = args.given_float("hw_decoder_load")?;
        if let Some(load) = load.filter(|load| !(0.0..=1.0).contains(load)) {
            return Err(Error::invalid(format!("argument `hw_decoder_load` is {load}, expected 0 to 1")));
        }
        let smooth_chroma = args.given_bool("jpeg_fancy_upsampling")?.filter(|_| !as_pillow);
        Ok(Self { smooth_chroma, exact: as_pillow, load, path: None, deterministic: false })
    }

    fn smooth_chroma(&self) -> bool {
        self.smooth_chroma.unwrap_or(self.exact)
    }

    /// The author of the model has the last word, the author of the pipeline the one before. Engines round otherwise
    /// than libjpeg-turbo.
    fn wish(&self) -> Option<Wish> {
        let is_exact_anyway = matches!(self.path, Some(Path::Sm | Path::Threads));
        if self.deterministic || self.exact && !is_exact_anyway {
            return Some(Wish::Repeatable);
        }
        self.path.map(Wish::Path).or(self.load.map(Wish::Load))
    }
}

/// An image decoder: images, or the parts of them that its [`Region`] gives.
pub(in crate::ops) struct Image {
    decoding: Decoding,
    decoder: Decoder,
    on_device: OnDevice,
    mixed: Option<DeviceDecoder>,
    files: Files,
    /// Whether on a device the pixels may be left to the reader.
    leaves_planes: bool,
    /// Of the batch at hand; `None` for samples that failed.
    jobs: Vec<Option<Job>>,
    /// What each of them is expected to take on the host.
    efforts: Vec<Effort>,
    decoded: Decoded,
    decoded_on_host: AtomicUsize,
}

impl Image {
    /// A decoder with the arguments [`ARGS`] that returns `region` of every image.
    ///
    /// # Errors
    /// Those of [`Decoding::new`].
    pub(in crate::ops) fn new(args: &Args, region: Option<Box<dyn Region>>) -> Result<Self> {
        let decoding = Decoding::new(args, region)?;
        let on_device = OnDevice::new(args, decoding.options.as_pillow)?;
        Ok(Self {
            decoding,
            decoder: Decoder::new(),
            on_device,
            mixed: None,
            files: Files::default(),
            leaves_planes: false,
            jobs: Vec::new(),
            efforts: Vec::new(),
            decoded: Decoded::default(),
            decoded_on_host: AtomicUsize::new(0),
        })
    }

    /// [`Image::new`] as an operator.
    ///
    /// # Errors
    /// Those of [`Image::new`].
    pub(in crate::ops) fn operator(
        args: &Args,
        region: Option<Box<dyn Region>>,
    ) -> Result<Box<dyn Operator>> {
        Ok(Box::new(Self::new(args, region)?))
    }

    /// Lets whole images be left as planes on a device (`kernels/planes.cuh`) to who reads them at once. Returns
    /// whether some may be.
    pub(in crate::ops) fn may_leave_planes(&mut self) -> bool {
        let DecodeOptions { color, dtype, .. } = self.decoding.options;
        let three_bytes = dtype == DType::U8 && matches!(color, ColorSpace::Rgb | ColorSpace::Bgr);
        // Smooth chroma is made of neighbours, by a kernel of its own.
        self.leaves_planes = three_bytes && self.decoding.region.is_none() && !self.on_device.smooth_chroma();
        self.leaves_planes
    }

    /// Records what decodes the batch that was set up, on the device and for `read`, which reads the images a group at
    /// a time. They are nowhere else.
    ///
    /// # Errors
    /// What a broken device answers, or one without memory; those of `read`.
    pub(in crate::ops) fn run_for(
        &mut self,
        cx: &mut GpuCx<'_>,
        inputs: Inputs<'_>,
        read: Read<'_>,
    ) -> Result<()> {
        self.record(cx, &GpuIo::new(inputs, Vec::new()), Some(read))
    }

    /// [`Deferred::settle`] after that: `read` reads again what came out wrong.
    ///
    /// # Errors
    /// The same.
    pub(in crate::ops) fn settle_for(
        &mut self,
        cx: &mut GpuCx<'_>,
        inputs: Inputs<'_>,
        read: Read<'_>,
    ) -> Result<bool> {
        self.put_right(cx, &GpuIo::new(inputs, Vec::new()), Some(read))
    }

    fn record(&mut self, cx: &mut GpuCx<'_>, io: &GpuIo<'_>, read: Option<Read<'_>>) -> Result<()> {
        let mixed = self.mixed.as_mut().ok_or_else(|| Error::internal("the device was not prepared"))?;
        mixed.run(&self.decoder, &self.jobs, &self.files, cx, io, read)
    }

    fn put_right(&mut self, cx: &mut GpuCx<'_>, io: &GpuIo<'_>, read: Option<Read<'_>>) -> Result<bool> {
        match &mut self.mixed {
            Some(mixed) => mixed.settle(&self.decoder, &self.jobs, &self.files, cx, io, read),
            None => Ok(false),
        }
    }

    /// What decodes the batch that was set up on the host's threads.
    pub(in crate::ops) fn by_threads<'a>(&'a self, cx: &'a CpuCx<'a>) -> ByThreads<'a> {
        // Threads without an image help with large ones.
        let idle = self.jobs.iter().flatten().count() < cx.pool.current_num_threads();
        ByThreads { decoder: &self.decoder, jobs: &self.jobs, decoded: &self.decoded_on_host, cx, idle }
    }
}

/// Decodes the images of a batch on threads of the host.
pub(in crate::ops) struct ByThreads<'a> {
    decoder: &'a Decoder,
    jobs: &'a [Option<Job>],
    decoded: &'a AtomicUsize,
    cx: &'a CpuCx<'a>,
    idle: bool,
}

impl ByThreads<'_> {
    /// Decodes `file`, which is sample `index`, to `out`, of the size that was told when the batch was set up.
    ///
    /// # Errors
    /// Those of [`Decoder::decode_under`].
    pub(in crate::ops) fn decode(
        &self,
        failures: &Failures,
        index: usize,
        file: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let job = self.jobs.get(index).and_then(Option::as_ref);
        let job = job.ok_or_else(|| Error::internal("an image was not looked at"))?;
        let watch = Watch::new(self.cx.deadline, failures.member(index));
        let pool = self.share(out.len()).then_some(&**self.cx.pool);
        self.decoder.decode_under(Conditions { watch: &watch, pool }, file, &job.options, out)?;
        self.decoded.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Whether several threads decode an image of so many bytes.
    pub(in crate::ops) fn share(&self, bytes: usize) -> bool {
        self.idle && bytes >= SHARED_BYTES
    }

    /// The same row by row, if the decoder can: see [`Decoder::decode_rows`].
    pub(in crate::ops) fn decode_rows(
        &self,
        failures: &Failures,
        index: usize,
        file: &[u8],
        rows: &mut dyn RowSink,
    ) -> bool {
        let Some(Some(job)) = self.jobs.get(index) else { return false };
        let watch = Watch::new(self.cx.deadline, failures.member(index));
        let done =
            self.decoder.decode_rows(Conditions { watch: &watch, pool: None }, file, &job.options, rows);
        self.decoded.fetch_add(usize::from(done), Ordering::Relaxed);
        done
    }
}

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Image::operator(args, None)
}

impl Operator for Image {
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
        let (failures, threads) = (io.inputs().failures(), self.by_threads(cx));
        io.for_each_sample(cx, |sample| {
            let index = sample.index();
            let (input, output) = sample.unary()?;
            threads.decode(failures, index, input.as_slice()?, output.bytes)
        })
    }

    fn take_decoded(&mut self) -> Decoded {
        self.decoded.cpu += std::mem::take(self.decoded_on_host.get_mut());
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
        self.on_device.deterministic |= preferences.deterministic;
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
        self.decoding.options.smooth_chroma = self.on_device.smooth_chroma();
        let wish = self.on_device.wish();
        self.mixed = Some(DeviceDecoder::open(gpu, &self.decoding.options, wish, self.leaves_planes)?);
        Ok(())
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        self.record(cx, io, None)
    }
}

impl Deferred for Image {
    fn must_be_exact(&mut self) {
        self.on_device.exact = true;
    }

    fn may_reduce_to(&mut self, enough: Option<[usize; 2]>) {
        self.decoding.enough = enough;
    }

    fn is_unsettled(&self) -> bool {
        self.mixed.as_ref().is_some_and(DeviceDecoder::is_unsettled)
    }

    fn settle(&mut self, cx: &mut GpuCx<'_>, io: &GpuIo<'_>) -> Result<bool> {
        self.put_right(cx, io, None)
    }
}

pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    finish::kernels().chain(sm::kernels()).collect()
}
