//! HEIF, the container of AVIF and HEIC (ISO/IEC 23008-12): one picture, or a grid of several, with alpha. Colours are
//! converted as the file says, to 8 bits. It must not know which formats there are.

mod canvas;
mod coding;
mod items;
mod pixels;
mod properties;
mod tiles;

use std::borrow::Cow;

use super::color::Luma;
use super::picture::{Picture, Samples};
use super::profile::Profile;
use super::{ColorSpace, Header, Job, Window};
use crate::cpu::atoms::atoms;
use crate::error::{Context, Error, Result};
use crate::memory::zeroed;
use items::Items;
use pixels::Still;

pub(super) use coding::Coding;
pub use tiles::Tiles;

/// Brands of files whose pictures are AV1.
pub(super) const AV1_BRANDS: &[&[u8; 4]] = &[b"avif", b"avis"];

/// Whether the box `ftyp` that `bytes` begin with has one of these brands, or is cut off behind one.
pub(super) fn has_brand(bytes: &[u8], wanted: &[&[u8; 4]]) -> bool {
    if bytes.get(4..8) != Some(b"ftyp".as_slice()) {
        return false;
    }
    let brands = atoms(bytes).next().map(|ftyp| ftyp.body).unwrap_or_default();
    // Between the first one and those that it is compatible with stands a version.
    let (brands, _) = brands.as_chunks();
    brands.iter().enumerate().any(|(place, brand)| place != 1 && wanted.contains(&brand))
}

/// Reads a header: what the container says, without a look at coded pictures.
pub(super) fn header(bytes: &[u8], coding: Coding) -> Result<Header> {
    let Items { color, alpha, .. } = Items::read(bytes, coding)?;
    let properties = color.properties;
    let [width, height] = properties.window.map_or(properties.size, |window| [window.width, window.height]);
    Ok(Header {
        width,
        height,
        channels: color_channels(properties.gray) + usize::from(alpha.is_some()),
        bit_depth: properties.depth,
        orientation: properties.orientation,
        halves: false,
    })
}

/// What the container says of the file's colours: a profile before codes.
pub(super) fn profile(bytes: &[u8], coding: Coding) -> Result<Option<Profile<'_>>> {
    let properties = Items::read(bytes, coding)?.color.properties;
    let codes = properties.codes.filter(|codes| *codes != [1, 13]).map(Profile::Codes);
    Ok(properties.profile.map(|profile| Profile::Icc(Cow::Borrowed(profile))).or(codes))
}

/// Whether chroma has a quarter of the picture's samples, as of most pictures, at up to 10 bits.
pub(super) fn has_halved_chroma(bytes: &[u8], coding: Coding) -> bool {
    Items::read(bytes, coding)
        .is_ok_and(|items| items.color.properties.halved_twice && items.color.properties.depth <= 10)
}

fn color_channels(gray: bool) -> usize {
    if gray { 1 } else { 3 }
}

/// Decodes what `job` asks for to `out`, whose size was checked. Alpha is decoded where it is asked for, or colours
/// depend on it.
pub(super) fn decode(bytes: &[u8], coding: Coding, job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    job.must_end_in_time()?;
    let Items { color, alpha, premultiplied } = Items::read(bytes, coding)?;
    let picture = Still::decode(&color, job)?;
    let mut channels = color_channels(color.properties.gray);
    let as_asked = match job.options.color {
        ColorSpace::Rgb => channels == 3,
        ColorSpace::Gray => channels == 1,
        ColorSpace::Any => true,
        ColorSpace::Bgr | ColorSpace::YCbCr => false,
    };
    let alpha = alpha.filter(|_| job.options.color == ColorSpace::Any || premultiplied);
    let window = color.properties.window;
    if alpha.is_none() && window.is_none() && job.is_plain() && as_asked {
        return picture.write(out);
    }
    let [width, height] = color.properties.size;
    let mut samples = zeroed(width * height * channels)?;
    picture.write(&mut samples)?;
    drop(picture);
    if let Some(alpha) = alpha {
        if alpha.properties.size != color.properties.size {
            let [[width, height], [alpha_width, alpha_height]] =
                [color, alpha].map(|item| item.properties.size);
            return Err(Error::unsupported(format!(
                "alpha of {alpha_width} x {alpha_height} pixels in a picture of {width} x {height}"
            )));
        }
        let levels = Still::decode(&alpha, job).context(|| "alpha".to_owned())?.levels()?;
        samples = with_alpha(&samples, channels, &levels, premultiplied);
        channels += 1;
    }
    if let Some(window) = window {
        samples = cut(&samples, width, channels, window);
    }
    Picture { samples: Samples::U8(&samples), channels, luma: Luma::Bits15 }.write(job, out)
}

/// The part of a picture of such a width that is in a window inside of it.
fn cut(samples: &[u8], width: usize, channels: usize, window: Window) -> Vec<u8> {
    let rows = samples.chunks_exact(width * channels).skip(window.y).take(window.height);
    rows.flat_map(|row| &row[window.x * channels..][..window.width * channels]).copied().collect()
}

/// The samples with alpha behind those of each pixel; if they were multiplied by it, divided by it.
fn with_alpha(samples: &[u8], channels: usize, alpha: &[u8], premultiplied: bool) -> Vec<u8> {
    let mut all = Vec::with_capacity(samples.len() + alpha.len());
    for (pixel, &alpha) in samples.chunks_exact(channels).zip(alpha) {
        let divided = |&sample: &u8| match (u32::from(sample), u32::from(alpha)) {
            (_, 0) => 0,
            (sample, alpha) => ((sample * 255 + alpha / 2) / alpha).min(255) as u8,
        };
        if premultiplied {
            all.extend(pixel.iter().map(divided));
        } else {
            all.extend(pixel);
        }
        all.push(alpha);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_cut_out_of_rows() {
        let samples: Vec<u8> = (0..24).collect();
        let window = Window { x: 1, y: 1, width: 2, height: 2 };
        assert_eq!(cut(&samples, 4, 2, window), [10, 11, 12, 13, 18, 19, 20, 21]);
    }

    #[test]
    fn colours_that_were_multiplied_by_alpha_are_divided_by_it() {
        assert_eq!(with_alpha(&[7, 8, 9, 10], 2, &[255, 3], false), [7, 8, 255, 9, 10, 3]);
        assert_eq!(
            with_alpha(&[7, 255, 0, 64, 200, 9], 3, &[255, 128], true),
            [7, 255, 0, 255, 128, 255, 18, 128]
        );
        assert_eq!(with_alpha(&[7], 1, &[0], true), [0, 0]);
    }
}
