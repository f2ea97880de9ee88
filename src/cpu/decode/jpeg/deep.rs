//! JPEGs of 12 bits and lossless ones, by libjpeg-turbo, whose own colours are taken where it converts none: from
//! lossless files. Samples are scaled to the whole range of 8 or of 16 bits. It must not know how codes are read.

use std::borrow::Cow;

use super::behind::check_components;
use super::handle;
use super::header::read_header;
use super::turbo::{self, quiet_header};
use super::{Ask, Kind, ask, finish};
use crate::cpu::decode::color::{Level, Luma, Stored};
use crate::cpu::decode::picture::{Picture, Samples};
use crate::cpu::decode::{ColorSpace, Job};
use crate::error::Result;
use crate::memory::zeroed;

/// Binary digits behind the point of the factors below.
const POINT: u32 = 16;
/// Red of Cr, green of Cb and of Cr, blue of Cb (T.871), times 2^[`POINT`].
const RED: i64 = 91_881;
const GREEN: [i64; 2] = [-22_554, -46_802];
const BLUE: i64 = 116_130;

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    let file = File::new(bytes, job)?;
    let (width, height) = job.info.stored_size();
    let count = width * height * file.ask.kind.channels();
    if file.bits <= 8 {
        let mut samples = zeroed::<u8>(count)?;
        turbo::decode(&file.quiet, &file.ask, (width, height), handle::Samples::U8(&mut samples))?;
        return file.finish(samples, |samples| Samples::U8(samples), job, out);
    }
    let mut samples = zeroed::<u16>(count)?;
    let to = match file.bits {
        ..=12 => handle::Samples::U12(bytemuck::cast_slice_mut(&mut samples)),
        _ => handle::Samples::U16(&mut samples),
    };
    turbo::decode(&file.quiet, &file.ask, (width, height), to)?;
    file.finish(samples, |samples| Samples::U16(samples), job, out)
}

/// A file, and what libjpeg-turbo makes of it.
struct File<'a> {
    bytes: &'a [u8],
    /// What libjpeg-turbo is given.
    quiet: Cow<'a, [u8]>,
    ask: Ask,
    bits: u32,
    /// Whether samples come as luma and chroma.
    has_chroma: bool,
}

impl<'a> File<'a> {
    fn new(bytes: &'a [u8], job: &Job<'_>) -> Result<Self> {
        let (bits, ask) = (job.info.bit_depth as u32, ask(job, false));
        if job.info.halves {
            return Ok(Self { bytes, quiet: Cow::Borrowed(bytes), ask, bits, has_chroma: false });
        }
        let kind = match job.info.channels {
            1 => Kind::Gray,
            3 => Kind::Rgb,
            _ => Kind::Inks,
        };
        check_components(bytes)?;
        let has_chroma = read_header(bytes)?.1.has_chroma(job.info.channels);
        let quiet = Cow::Owned(quiet_header(bytes, false)?);
        Ok(Self { bytes, quiet, ask: Ask { kind, ..ask }, bits, has_chroma })
    }

    /// Samples to what `job` asks for.
    fn finish<S: Stored>(
        &self,
        mut samples: Vec<S>,
        stored: impl FnOnce(&[S]) -> Samples<'_>,
        job: &Job<'_>,
        out: &mut [u8],
    ) -> Result<()> {
        let most = (1_u32 << self.bits) - 1;
        let mut channels = self.ask.kind.channels();
        if self.has_chroma && channels == 3 && job.options.color == ColorSpace::Gray {
            samples = samples.iter().step_by(channels).copied().collect();
            channels = 1;
        } else if self.has_chroma {
            let (inks, zero) = (channels == 4, 1 << (self.bits - 1));
            for pixel in samples.chunks_exact_mut(channels) {
                let [luma, blue, red, ..] = pixel else { continue };
                let rgb = rgb_of([*luma, *blue, *red].map(|sample| sample.to_f32() as i64), zero);
                for (sample, value) in pixel.iter_mut().zip(rgb) {
                    let value = value.clamp(0, i64::from(most));
                    *sample = S::from_f32((if inks { i64::from(most) - value } else { value }) as f32);
                }
            }
        }
        if channels == 4 {
            let mut inks: Vec<u8> = samples.iter().map(|&sample| scaled(sample, most)).collect();
            return finish(self.bytes, job, &mut inks, out);
        }
        if f64::from(most) < S::MAX {
            samples.iter_mut().for_each(|sample| *sample = scaled(*sample, most));
        }
        Picture { samples: stored(&samples), channels, luma: Luma::Bits15 }.write(job, out)
    }
}

/// Red, green and blue of luma and chroma, of which `zero` is none. They may be out of range.
fn rgb_of([luma, blue, red]: [i64; 3], zero: i64) -> [i64; 3] {
    let (blue, red) = (blue - zero, red - zero);
    let part = |sum: i64| (sum + (1 << (POINT - 1))) >> POINT;
    [luma + part(RED * red), luma + part(GREEN[0] * blue + GREEN[1] * red), luma + part(BLUE * blue)]
}

/// A sample, `most` at most, in the whole range of another type, rounded.
fn scaled<S: Stored, D: Level>(sample: S, most: u32) -> D {
    let most = u64::from(most);
    D::from_f32(((sample.to_f32() as u64 * D::MAX as u64 + most / 2) / most) as f32)
}
