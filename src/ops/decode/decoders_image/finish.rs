//! Pixels as engines and SMs store them to what was asked for, by one kernel for all images of a batch: orientation,
//! window, colours, type. It must not know who stored them.

use super::Job;
use crate::cpu::decode::{self, COLOR_TABLE_SIDE, ColorSpace, DecodeOptions, Scaling, View, stored_window};
use crate::error::{Error, Result};
use crate::gpu::jpeg::Format;
use crate::gpu::jpeg::sm::Part;
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::memory::DeviceBytes;
use crate::operator::GpuCx;
use crate::tensor::DType;

/// Alignment of pictures in memory of the batch.
pub(super) const ALIGNMENT: usize = 256;

/// How much of a picture is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Picture,
    /// What the window shows.
    Window,
}

/// Pixels that were stored.
pub(super) struct Stored<'a> {
    pub(super) job: &'a Job,
    pub(super) extent: Extent,
    pub(super) pixels: &'a DeviceBytes<'a>,
    /// Where the output is.
    pub(super) target: &'a DeviceBytes<'a>,
    /// Where the table is that makes sRGB of its colours, if that is asked for.
    pub(super) colors: Option<u64>,
}

/// The kernel, for outputs of one type and colour space.
pub(super) struct Finish {
    kernel: KernelSpec,
    params: Params,
    color: ColorSpace,
}

impl Finish {
    /// Compiles the kernel.
    ///
    /// # Errors
    /// When it does not compile.
    pub(super) fn open(gpu: &Gpu, options: &DecodeOptions) -> Result<Self> {
        let (kernel, color) = (kernel(options.dtype, options.color), options.color);
        gpu.kernel(&kernel)?;
        Ok(Self { kernel, params: Params::new(options.dtype)?, color })
    }

    /// What is stored for its outputs.
    pub(super) fn format(&self) -> Format {
        format(self.color)
    }

    /// Whether what is stored is the output.
    pub(super) fn is_needless(&self, job: &Job, extent: Extent) -> bool {
        let window = job.options.window.filter(|_| extent == Extent::Picture);
        decode::is_plain(&job.info, &DecodeOptions { window, ..job.options })
            && self.color != ColorSpace::YCbCr
            && !job.options.to_srgb
            && self.color.channels(job.info.channels) == self.format().channels()
    }

    /// Bytes that are stored.
    pub(super) fn bytes(&self, job: &Job, extent: Extent) -> usize {
        let (width, height) = match extent {
            Extent::Picture => job.info.stored_size(),
            Extent::Window => {
                let part = part(job);
                (part.width, part.height)
            }
        };
        width * height * self.format().channels()
    }

    /// Memory of the batch for them: none when they are the output.
    pub(super) fn scratch_bytes(&self, job: &Job, extent: Extent) -> usize {
        match self.is_needless(job, extent) {
            true => 0,
            false => self.bytes(job, extent).next_multiple_of(ALIGNMENT),
        }
    }

    /// Records the kernel for those that are not the output yet, and copies of those that are all of it but elsewhere.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn record(&self, cx: &mut GpuCx<'_>, images: &[Stored<'_>]) -> Result<()> {
        let (mut rows, mut copies) = (Vec::new(), Vec::new());
        let mut most = 0;
        for Stored { job, extent, pixels, target, colors } in images {
            if self.is_needless(job, *extent) {
                if pixels.address() != target.address() {
                    copies.push(((*target).clone(), (*pixels).clone()));
                }
                continue;
            }
            let [height, width, channels] = decode::output_shape(&job.info, &job.options);
            let view = match extent {
                Extent::Picture => View::new(&job.info, job.options.window)?,
                // The window is the picture.
                Extent::Window => View::new(&decode::ImageInfo { width, height, ..job.info }, None)?,
            };
            most = most.max(height * width);
            rows.push(Row {
                to: target.address(),
                from: pixels.address(),
                start: view.start as i64,
                step_x: view.step_x as i64,
                step_y: view.step_y as i64,
                width: width as u32,
                height: height as u32,
                channels: channels as u32,
                unused: 0,
                colors: colors.unwrap_or_default(),
            });
        }
        cx.copy(&copies)?;
        cx.launch(&self.kernel, most, &self.params, &rows)
    }
}

/// The part of a stored picture that is asked for, or all of it reduced.
pub(super) fn part(job: &Job) -> Part {
    if job.options.shrink > 0 {
        let (width, height) = job.info.stored_size();
        return Part::whole([width, height], job.options.shrink);
    }
    let window = stored_window(&job.info, job.options.window);
    Part { left: window.x, top: window.y, width: window.width, height: window.height, shrink: 0 }
}

/// What is stored for an output of `color`.
fn format(color: ColorSpace) -> Format {
    match color {
        ColorSpace::Gray => Format::Gray,
        ColorSpace::Bgr => Format::Bgr,
        ColorSpace::Rgb | ColorSpace::YCbCr | ColorSpace::Any => Format::Rgb,
    }
}

device_struct! {
    /// What stands before the corners of a colour table, as `kernels/decoded.cu` sees it.
    pub(super) struct ColorHead as ColorHead {
        /// Of levels, in the lattice.
        pub(super) places: [f32; 256],
        /// From light of corners to that of sRGB.
        pub(super) to_srgb: [[f32; 3]; 3],
        /// The light that is black.
        pub(super) black: f32,
        pub(super) unused: [u32; 6],
    }
}

device_struct! {
    /// An image, as `kernels/decoded.cu` sees it.
    struct Row as Row {
        to: u64 = "TO *",
        from: u64 = "const uint8_t *",
        /// Output pixel (x, y) is stored at start + x * step_x + y * step_y, in pixels.
        start: i64,
        step_x: i64,
        step_y: i64,
        width: u32,
        height: u32,
        /// Samples of an output pixel: IN, or 1 for the first of them.
        channels: u32,
        unused: u32,
        /// Null: colours stay.
        colors: u64 = "const ColorHead *" of ColorHead,
    }
}

device_struct! {
    /// What samples are multiplied by, as `kernels/decoded.cu` sees it.
    struct Params as Params {
        level: f32,
        /// Weights of red, green and blue, and what is added.
        studio: [[f32; 4]; 3],
    }
}

impl Params {
    fn new(dtype: DType) -> Result<Self> {
        let scaling =
            Scaling::to(dtype).ok_or_else(|| Error::internal(format!("images are decoded to `{dtype}`")))?;
        let studio = scaling.studio.map(|([r, g, b], offset)| [r, g, b, offset]);
        Ok(Self { level: scaling.level, studio })
    }
}

fn kernel(dtype: DType, color: ColorSpace) -> KernelSpec {
    KernelSpec::of::<Row, Params>("decoded", "decoded")
        .dtype("TO", dtype)
        .define("IN", format(color).channels())
        .define("STUDIO", u8::from(color == ColorSpace::YCbCr))
        .define("SIDE", COLOR_TABLE_SIDE)
}

/// One for each path through the source and each type.
pub(super) fn kernels() -> impl Iterator<Item = KernelSpec> {
    let dtypes = DType::ALL.into_iter().filter(|&dtype| decode::check_dtype(dtype).is_ok());
    let colors = [ColorSpace::Rgb, ColorSpace::Gray, ColorSpace::YCbCr];
    dtypes.flat_map(move |dtype| colors.map(|color| kernel(dtype, color)))
}
