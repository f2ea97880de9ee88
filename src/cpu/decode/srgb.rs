//! Colours of a file's own profile to sRGB: the file is decoded in its own colours, these are converted by crate
//! `moxcms` with the perceptual intent, and become what was asked for. It must not know file formats, but that JPEGs
//! have inks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use moxcms::{ColorProfile, DataColorSpace, Layout, RenderingIntent, TransformExecutor, TransformOptions};

use super::black::{light, srgb_with};
use super::color::Luma;
use super::picture::{Picture, Samples, View};
use super::profile::Profile;
use super::{ColorSpace, DecodeOptions, Decoder, Format, ImageInfo, Job, Orientation, output_shape};
use crate::error::{Error, Result};
use crate::memory::zeroed;
use crate::tensor::DType;

/// Pixels that are converted between two looks at whether somebody waits.
const PIXELS: usize = 1 << 16;

/// Samples of a pixel of inks, and of colours.
const INKS: usize = 4;
const COLORS: usize = 3;

/// Nanoseconds for each pixel: twenty for a curve and a matrix, more for a table of colours.
pub(super) const PIXEL: f64 = 60.0;

/// Decodes what `job` asks for to `out`, whose size was checked, of a file with `profile`.
pub(super) fn decode(
    decoder: &Decoder,
    bytes: &[u8],
    profile: &Profile<'_>,
    job: &Job<'_>,
    out: &mut [u8],
) -> Result<()> {
    let plain = |job: &Job<'_>, out: &mut [u8]| (job.info.format.row().decode)(decoder, bytes, job, out);
    let Some(profile) = caught(|| profile.read())? else { return plain(job, out) };
    if profile.color_space == DataColorSpace::Cmyk
        && job.info.format == Format::Jpeg
        && job.info.channels == INKS
    {
        return decode_inks(plain, &profile, job, out);
    }
    let is_gray = job.info.channels <= 2;
    let color = match job.options.color {
        ColorSpace::Any => ColorSpace::Any,
        _ if is_gray => ColorSpace::Gray,
        _ => ColorSpace::Rgb,
    };
    if !is_gray {
        check(&profile)?;
    }
    let is_wide = job.info.bit_depth > 8 && !job.options.as_pillow;
    let dtype = if is_wide { DType::U16 } else { DType::U8 };
    let own = DecodeOptions { color, dtype, ..*job.options };
    let own = Job { options: &own, ..*job };
    // The size of the job's info is that of the reduced picture.
    let [height, width, channels] = output_shape(&job.info, &DecodeOptions { shrink: 0, ..*own.options });
    let count = height * width * channels;
    let seen = Seen { height, width, channels, is_gray };
    if is_wide {
        let mut samples = zeroed::<u16>(count)?;
        plain(&own, bytemuck::cast_slice_mut(&mut samples))?;
        convert(&mut samples, &seen, &profile, job)?;
        seen.write(Samples::U16(&samples), job, out)
    } else {
        let mut samples = zeroed::<u8>(count)?;
        plain(&own, &mut samples)?;
        convert(&mut samples, &seen, &profile, job)?;
        seen.write(Samples::U8(&samples), job, out)
    }
}

/// Decodes inks by `plain`, and makes the colours of them that their profile says.
fn decode_inks(
    plain: impl Fn(&Job<'_>, &mut [u8]) -> Result<()>,
    profile: &ColorProfile,
    job: &Job<'_>,
    out: &mut [u8],
) -> Result<()> {
    let color = ColorSpace::Any;
    if job.options.color == color {
        // As many samples as the header tells of cannot be colours. What the decoder says of it.
        return plain(job, out);
    }
    let own = DecodeOptions { color, dtype: DType::U8, ..*job.options };
    let own = Job { options: &own, inks: true, ..*job };
    let [height, width, _] = output_shape(&job.info, &DecodeOptions { shrink: 0, ..*own.options });
    let mut inks = zeroed::<u8>(height * width * INKS)?;
    plain(&own, &mut inks)?;
    let executor = caught(|| u8::executor(profile, Layout::Rgba))?;
    let mut converted = vec![0; (PIXELS * COLORS).min(height * width * COLORS)];
    // Colours take the place of inks, of which there are more.
    for first in (0..height * width).step_by(PIXELS) {
        job.conditions.watch.check()?;
        let count = PIXELS.min(height * width - first);
        let (from, to) = (&inks[first * INKS..][..count * INKS], &mut converted[..count * COLORS]);
        caught(|| executor.transform(from, to).map_err(|error| Error::invalid(error.to_string())))?;
        inks[first * COLORS..][..count * COLORS].copy_from_slice(to);
    }
    inks.truncate(height * width * COLORS);
    Seen { height, width, channels: COLORS, is_gray: false }.write(Samples::U8(&inks), job, out)
}

/// Fails for a profile that is not of red, green and blue.
fn check(profile: &ColorProfile) -> Result<()> {
    match profile.color_space {
        DataColorSpace::Rgb => Ok(()),
        other => Err(Error::unsupported(format!(
            "a colour profile for {other:?}, expected one for RGB: without `color_management` colours are converted as without a profile"
        ))),
    }
}

/// `moxcms` is given bytes that nobody has checked: what it panics at is a damaged profile.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| Err(Error::invalid("damaged colour profile: no colours can be converted by it")))
}

/// The picture that was decoded: turned, cut, in its own colours.
struct Seen {
    height: usize,
    width: usize,
    channels: usize,
    is_gray: bool,
}

impl Seen {
    /// Writes what `job` asks for of its samples.
    fn write(&self, samples: Samples<'_>, job: &Job<'_>, out: &mut [u8]) -> Result<()> {
        let &Self { height, width, channels, .. } = self;
        let info = ImageInfo { width, height, channels, orientation: Orientation::default(), ..job.info };
        let options = DecodeOptions { window: None, shrink: 0, ..*job.options };
        let view = View::new(&info, None)?;
        let job = Job { info, options: &options, view, ..*job };
        Picture { samples, channels, luma: Luma::Bits15 }.write(&job, out)
    }
}

/// A type of samples that colours are converted in.
trait Sample: Copy + Default + Send + Sync + 'static {
    /// All its values, in order.
    fn all() -> Vec<Self>;
    /// Where in [`Sample::all`] it is.
    fn place(self) -> usize;
    /// What converts pixels of `from` to those of `to`.
    fn executor_to(
        from: &ColorProfile,
        layout: Layout,
        to: &ColorProfile,
    ) -> Result<std::sync::Arc<Executor<Self>>>;
    /// What converts pixels of `from` to sRGB.
    fn executor(from: &ColorProfile, layout: Layout) -> Result<std::sync::Arc<Executor<Self>>> {
        Self::executor_to(from, layout, &srgb_with(light(from)))
    }
}

/// What converts pixels of red, green and blue by `profile`, 16 bits each, to those of `to`.
///
/// # Errors
/// A profile that is not of these, or cannot be applied.
pub(super) fn converter(
    profile: &ColorProfile,
    to: &ColorProfile,
) -> Result<impl Fn(&[u16]) -> Result<Vec<u16>> + use<>> {
    check(profile)?;
    let executor = caught(|| u16::executor_to(profile, Layout::Rgb, to))?;
    Ok(move |from: &[u16]| {
        let mut to = vec![0; from.len()];
        caught(|| executor.transform(from, &mut to).map_err(|error| Error::invalid(error.to_string())))?;
        Ok(to)
    })
}

type Executor<T> = dyn TransformExecutor<T> + Send + Sync;

macro_rules! samples {
    ($($sample:ident $create:ident),*) => { $(impl Sample for $sample {
        fn all() -> Vec<Self> {
            (0..=Self::MAX).collect()
        }
        fn place(self) -> usize {
            usize::from(self)
        }
        fn executor_to(
            from: &ColorProfile,
            layout: Layout,
            to: &ColorProfile,
        ) -> Result<std::sync::Arc<Executor<Self>>> {
            let is_rgb = from.color_space == DataColorSpace::Rgb;
            let to_layout = if is_rgb { layout } else { Layout::Rgb };
            let options =
                TransformOptions { rendering_intent: RenderingIntent::Perceptual, ..TransformOptions::default() };
            from.$create(layout, to, to_layout, options)
                .map_err(|error| Error::unsupported(format!("a colour profile that cannot be applied: {error}")))
        }
    })* };
}
samples!(u8 create_transform_8bit, u16 create_transform_16bit);

/// Converts the colours of a picture in place. Alpha stays.
fn convert<T: Sample>(samples: &mut [T], seen: &Seen, profile: &ColorProfile, job: &Job<'_>) -> Result<()> {
    if seen.is_gray {
        let table = caught(|| grays::<T>(profile))?;
        for pixel in samples.chunks_exact_mut(seen.channels) {
            pixel[0] = table.get(pixel[0].place()).copied().unwrap_or_default();
        }
        return Ok(());
    }
    let layout = if seen.channels == 4 { Layout::Rgba } else { Layout::Rgb };
    let executor = caught(|| T::executor(profile, layout))?;
    let mut converted = vec![T::default(); (PIXELS * seen.channels).min(samples.len())];
    for from in samples.chunks_mut(PIXELS * seen.channels) {
        job.conditions.watch.check()?;
        let to = converted.get_mut(..from.len()).unwrap_or_default();
        let convert = || executor.transform(from, to).map_err(|error| Error::invalid(error.to_string()));
        caught(convert)?;
        from.copy_from_slice(to);
    }
    Ok(())
}

/// What each level of gray becomes. By a profile of colours, gray has as much of each.
fn grays<T: Sample>(profile: &ColorProfile) -> Result<Vec<T>> {
    let levels = T::all();
    let (layout, from) = match profile.color_space {
        DataColorSpace::Gray => (Layout::Gray, levels),
        _ => {
            check(profile)?;
            (Layout::Rgb, levels.iter().flat_map(|&level| [level; 3]).collect())
        }
    };
    let mut to = vec![T::default(); 3 * (T::all().len())];
    let transformed = T::executor(profile, layout)?.transform(&from, &mut to);
    transformed.map_err(|error| Error::invalid(error.to_string()))?;
    Ok(to.chunks_exact(3).map(|pixel| pixel[0]).collect())
}
