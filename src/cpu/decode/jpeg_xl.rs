//! JPEG XL by crate `jxl`: files with boxes, and bare codestreams; of an animation the first frame. It must not know
//! other formats.

mod codestream;
mod frames;

use std::borrow::Cow;
use std::io::IoSliceMut;

use jxl::api::{
    AlphaMode, Endianness, Event, ExtraChannel, JxlBasicInfo, JxlBitDepth, JxlBitstreamInput,
    JxlColorEncoding, JxlColorProfile, JxlColorType, JxlDataFormat, JxlDecoder, JxlDecoderOptions,
    JxlOutputBuffer, JxlParallelRunner, JxlParallelRunnerFun, JxlPixelFormat, JxlTransferFunction,
};
use jxl::error::Error as Cause;

use super::color::Luma;
use super::effort::{Cost, Measures};
use super::format::ImageFormat;
use super::orientation::Orientation;
use super::picture::{Picture, Samples};
use super::profile::Profile;
use super::{ColorSpace, Header, Job};
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::zeroed;
use frames::{Input, KEPT_HALVES, Picture as OfPicture, SPARE_PIXELS};

/// Channels of colours that the decoder counts for its limit, of gray too.
const COLORS: usize = 3;

/// How often the decoder may go on without reading a byte.
const IDLE: usize = 4;

/// What a narrower picture counts as.
const LEAST_WIDTH: usize = 16;

/// Samples by which a frame may be larger than the picture: what repeats in a small one lies in a frame of its own. Up
/// to four frames that are not shown are kept as floats.
const LARGER_FRAME_SAMPLES: usize = 1 << 20;

/// Nanoseconds for each sample: 8 of a lossy one, up to 24 of a lossless one; and for each byte of codes, 15 or 40.
const SAMPLE: f64 = 12.0;
const BYTE: f64 = 40.0;

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "JPEG XL",
    parameter: "jpegxl",
    is_one: |bytes| matches!(bytes, [0xFF, 0x0A, ..] | [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..]),
    header,
    decode: |_, bytes, job, out| decode(bytes, job, out),
    profile,
    effort: |image: &Measures<'_>| Cost {
        nanoseconds: image.samples * SAMPLE + image.length * BYTE,
        // Two or three bytes a sample, and floats of frames that are not shown.
        scratch: 4.0 * image.samples + kept_bytes(image.bytes, image.info.width * image.info.height),
    },
};

/// A file whose header was read.
struct Opened<'a> {
    decoder: JxlDecoder,
    /// What was not read yet.
    input: Input<'a>,
    /// Bytes of all.
    length: usize,
    /// The most that the picture, or a frame of it, may have.
    samples: usize,
}

impl<'a> Opened<'a> {
    fn new(bytes: &'a [u8], samples: usize) -> Result<Self> {
        let mut options = JxlDecoderOptions::default();
        options.adjust_orientation = false;
        options.sample_limit = Some(samples);
        options.alpha_mode = AlphaMode::Unpremultiplied;
        let mut opened = Self {
            decoder: JxlDecoder::new(options),
            input: Input::new(bytes),
            length: bytes.len(),
            samples,
        };
        match opened.go_on(None, None) {
            Ok(Event::BasicInfo) => Ok(opened),
            Ok(_) => Err(Error::invalid(format!("truncated header: the input has {} bytes", bytes.len()))),
            Err(error) => Err(opened.failed(error)),
        }
    }

    /// Decodes up to what comes next.
    fn go_on(
        &mut self,
        mut frame: Option<&mut [JxlOutputBuffer<'_>]>,
        mut runner: Option<&mut (dyn JxlParallelRunner + '_)>,
    ) -> jxl::error::Result<Event> {
        let mut idle = 0;
        loop {
            let left = self.input.left();
            let runner = runner.as_mut().map(|runner| &mut **runner as &mut (dyn JxlParallelRunner + '_));
            match self.decoder.process(&mut self.input, frame.as_deref_mut(), runner)? {
                // Of a header it gets a byte at a time, and none between two.
                Event::NeedMoreInput { .. } if self.input.left() > 0 && idle < IDLE => {
                    idle = if self.input.left() < left { 0 } else { idle + 1 };
                }
                event => return Ok(event),
            }
        }
    }

    /// What frames need to know of the picture.
    fn picture(&self) -> Result<OfPicture> {
        let info = self.info()?;
        Ok(OfPicture {
            size: [info.size.0 as u64, info.size.1 as u64],
            xyb: !info.uses_original_profile,
            extra_channels: info.extra_channels.len(),
            animated: info.animation.is_some(),
            timed: info.animation.as_ref().is_some_and(|animation| animation.have_timecodes),
        })
    }

    fn failed(&self, error: Cause) -> Error {
        if let Some(why) = self.input.refused() {
            return Error::invalid(why);
        }
        match error {
            Cause::ImageSizeTooLarge(width, height) => Error::invalid(format!(
                "{width} x {height} pixels with all their channels are more samples than the limit of {}",
                self.samples
            )),
            error => Error::invalid(format!("damaged: {error}")),
        }
    }

    fn info(&self) -> Result<&JxlBasicInfo> {
        self.decoder.basic_info().ok_or_else(|| Error::internal("a decoder without a header"))
    }

    fn is_gray(&self) -> bool {
        self.decoder.current_pixel_format().is_some_and(|format| format.color_type.is_grayscale())
    }

    /// Decodes up to the end of the first frame that is shown, which has `rows` rows, to `out`.
    fn first_frame(
        &mut self,
        format: JxlPixelFormat,
        rows: usize,
        out: &mut [u8],
        watch: &'a Watch<'a>,
    ) -> Result<()> {
        let picture = self.picture()?;
        self.input.frames_follow(picture, watch);
        self.decoder.set_pixel_format(format).map_err(|error| self.failed(error))?;
        let row = out.len() / rows;
        let mut frame = [JxlOutputBuffer::new(out, rows, row)];
        loop {
            let mut groups = Groups { watch };
            match self.go_on(Some(&mut frame), Some(&mut groups)) {
                Ok(Event::FrameComplete { .. }) => return Ok(()),
                Ok(Event::BasicInfo | Event::FrameHeader) => {}
                Ok(Event::NeedMoreInput { .. } | Event::Complete) => {
                    return Err(Error::invalid(format!(
                        "truncated: the input of {} bytes ends before the image does",
                        self.length
                    )));
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
    }
}

fn has(info: &JxlBasicInfo, kind: ExtraChannel) -> bool {
    info.extra_channels.iter().any(|channel| channel.ec_type == kind)
}

impl JxlBitstreamInput for Input<'_> {
    fn available_bytes(&mut self) -> std::io::Result<usize> {
        self.begin_sections()
    }

    fn read(&mut self, buffers: &mut [IoSliceMut<'_>]) -> std::io::Result<usize> {
        if !self.reads_sections() {
            return match buffers.iter_mut().find(|buffer| !buffer.is_empty()) {
                Some(buffer) => self.some(buffer),
                None => Ok(0),
            };
        }
        let mut all = 0;
        for buffer in buffers {
            all += self.section(buffer)?;
        }
        Ok(all)
    }

    fn skip(&mut self, bytes: usize) -> std::io::Result<usize> {
        Ok(Input::skip(self, bytes))
    }
}

/// Bytes of frames that may be kept for others while a file with so many pixels is decoded: none of one with a single
/// frame.
pub(super) fn kept_bytes(bytes: &[u8], pixels: usize) -> f64 {
    let look = || {
        let stream = codestream::codestream(bytes)?;
        let mut opened = Opened::new(&stream, limits::MAX_JPEG_XL_SAMPLES)?;
        let (picture, channels) = (opened.picture()?, COLORS + opened.info()?.extra_channels.len());
        opened.input.look_at_frame(picture);
        // The error is that it was looked at.
        let _ = opened.go_on(None, None);
        let kept = pixels as f64 * KEPT_HALVES as f64 / 2.0 + SPARE_PIXELS as f64;
        let bytes = if opened.input.is_alone() { 0.0 } else { kept * (channels * size_of::<f32>()) as f64 };
        Ok::<_, Error>(bytes + if let Cow::Owned(stream) = &stream { stream.len() as f64 } else { 0.0 })
    };
    look().unwrap_or_default()
}

/// Reads a header.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    let stream = codestream::codestream(bytes)?;
    let opened = Opened::new(&stream, limits::MAX_JPEG_XL_SAMPLES)?;
    let info = opened.info()?;
    if has(info, ExtraChannel::Black) {
        return Err(Error::unsupported("an image of inks, expected gray or red, green and blue"));
    }
    let (width, height) = info.size;
    let colors = if opened.is_gray() { 1 } else { 3 };
    Ok(Header {
        width,
        height,
        channels: colors + usize::from(has(info, ExtraChannel::Alpha)),
        bit_depth: info.bit_depth.bits_per_sample() as usize,
        orientation: Orientation::from_exif(info.orientation as u32),
        halves: false,
    })
}

/// Of what colours decoded pixels are.
///
/// # Errors
/// Unsupported, for colours of high dynamic range.
fn profile(bytes: &[u8]) -> Result<Option<Profile<'_>>> {
    let stream = codestream::codestream(bytes)?;
    let opened = Opened::new(&stream, limits::MAX_JPEG_XL_SAMPLES)?;
    let Some(profile) = opened.decoder.output_color_profile() else { return Ok(None) };
    let srgb = JxlColorProfile::Simple(JxlColorEncoding::srgb(opened.is_gray()));
    if profile.same_color_encoding(&srgb) {
        return Ok(None);
    }
    if let Some(JxlTransferFunction::PQ | JxlTransferFunction::HLG) = profile.transfer_function() {
        return Err(Error::unsupported(
            "colours of high dynamic range, which need a choice of tones to become sRGB",
        ));
    }
    let profile =
        profile.try_as_icc().ok_or_else(|| Error::unsupported("colours that no profile describes"))?;
    Ok(Some(Profile::Icc(Cow::Owned(profile.into_owned()))))
}

/// The type that holds samples of `depth`: that of the file, or a wider one.
fn sample_format(depth: &JxlBitDepth) -> JxlDataFormat {
    match depth {
        JxlBitDepth::Int { bits_per_sample: ..=8 } => JxlDataFormat::U8 { bit_depth: 8 },
        JxlBitDepth::Int { bits_per_sample: ..=16 } => {
            JxlDataFormat::U16 { endianness: Endianness::native(), bit_depth: 16 }
        }
        _ => JxlDataFormat::f32(),
    }
}

/// Decodes what `job` asks for to `out`, whose size was checked. Alpha is decoded where it is asked for.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    let (width, height) = job.info.stored_size();
    let stream = codestream::codestream(bytes)?;
    let header = Opened::new(&stream, limits::MAX_JPEG_XL_SAMPLES)?;
    let extra = header.info()?.extra_channels.len();
    // The header was held against the limits, so this does not overflow.
    let largest_frame = width.max(LEAST_WIDTH) * height * (COLORS + extra) + LARGER_FRAME_SAMPLES;
    let mut opened = Opened::new(&stream, largest_frame.min(limits::MAX_JPEG_XL_SAMPLES))?;
    let data = sample_format(&opened.info()?.bit_depth);
    let with_alpha = job.options.color == ColorSpace::Any && job.info.channels.is_multiple_of(2);
    let color_type = match (opened.is_gray(), with_alpha) {
        (true, false) => JxlColorType::Grayscale,
        (true, true) => JxlColorType::GrayscaleAlpha,
        (false, false) => JxlColorType::Rgb,
        (false, true) => JxlColorType::Rgba,
    };
    let format =
        JxlPixelFormat { color_type, color_data_format: Some(data), extra_channel_format: vec![None; extra] };
    let channels = color_type.samples_per_pixel();
    let as_asked = match job.options.color {
        ColorSpace::Rgb => channels == 3,
        ColorSpace::Gray => channels == 1,
        ColorSpace::Any => true,
        ColorSpace::Bgr | ColorSpace::YCbCr => false,
    };
    let mut pixels = |to: &mut [u8]| opened.first_frame(format.clone(), height, to, job.conditions.watch);
    let count = width * height * channels;
    match data {
        JxlDataFormat::U8 { .. } if job.is_plain() && as_asked => pixels(out),
        JxlDataFormat::U8 { .. } => {
            let mut samples = zeroed::<u8>(count)?;
            pixels(&mut samples)?;
            Picture { samples: Samples::U8(&samples), channels, luma: Luma::Bits15 }.write(job, out)
        }
        JxlDataFormat::U16 { .. } => {
            let mut samples = zeroed::<u16>(count)?;
            pixels(bytemuck::cast_slice_mut(&mut samples))?;
            Picture { samples: Samples::U16(&samples), channels, luma: Luma::Bits15 }.write(job, out)
        }
        _ => {
            let mut samples = zeroed::<f32>(count)?;
            pixels(bytemuck::cast_slice_mut(&mut samples))?;
            Picture { samples: Samples::F32(&samples), channels, luma: Luma::Bits15 }.write(job, out)
        }
    }
}

/// Decodes groups of pixels, also those of frames that are not shown, one after the other for as long as somebody
/// waits.
struct Groups<'a> {
    watch: &'a Watch<'a>,
}

impl JxlParallelRunner for Groups<'_> {
    fn run(&mut self, count: usize, group: &JxlParallelRunnerFun<'_>) -> jxl::error::Result<()> {
        for number in 0..count {
            // Why nobody waits is asked for again behind the library.
            self.watch.check().map_err(|error| std::io::Error::other(error.to_string()))?;
            group(number)?;
        }
        Ok(())
    }

    fn num_threads(&self) -> usize {
        1
    }

    fn run_ordered(
        &mut self,
        count: usize,
        _most_threads: Option<usize>,
        group: &JxlParallelRunnerFun<'_>,
    ) -> jxl::error::Result<()> {
        self.run(count, group)
    }
}
