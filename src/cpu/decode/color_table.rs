//! A profile's colours to sRGB as a table that a device reads: colours are converted at the corners of a lattice, and
//! interpolated between them. It must not know devices.

use moxcms::ColorProfile;

use super::black::{light, linear_pro_photo};
use super::profile::Profile;
use super::srgb::{caught, converter};
use super::{Format, ImageInfo, format, profile_of};
use crate::error::Result;

/// Corners of the lattice along each colour.
pub const SIDE: usize = 65;

/// Levels of a colour of a file.
const LEVELS: usize = 256;

/// How much of a level's place is its own number: places ascend also where a profile makes all of them the same gray.
const EVEN: f32 = 0.05;

/// White in 16 bits.
const WHITE: f32 = 65_535.0;

/// What tells profiles apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProfileKey(Vec<u8>);

/// The table.
pub struct ColorTable {
    /// For each level of a colour of the file, where in the lattice it is: 0 to SIDE - 1. Corners lie so that from one
    /// gray to the next sRGB changes by about as much, and what is interpolated is nearly straight.
    pub places: [f32; LEVELS],
    /// At each corner light of red, green and blue of ProPhoto in 16 bits, and nothing: of sRGB some would be negative.
    /// Corners of the next blue come next, then those of the next green, then those of the next red.
    pub corners: Vec<[u16; 4]>,
    /// From that, 0 to 1, to the light of sRGB's red, green and blue.
    pub to_srgb: [[f32; 3]; 3],
    /// The light that is black.
    pub black: f32,
}

/// What tells the profile of a file from others, if its colours are three of 8 bits each.
///
/// # Errors
/// A file whose header cannot be read.
pub fn profile_key(bytes: &[u8], info: &ImageInfo) -> Result<Option<ProfileKey>> {
    if info.channels != 3 || info.bit_depth != 8 {
        return Ok(None);
    }
    Ok(match profile_of(bytes, format::detect(bytes)?)? {
        Some(Profile::Icc(profile)) => Some(ProfileKey(profile.into_owned())),
        Some(Profile::Codes(codes)) => Some(ProfileKey(codes.to_vec())),
        Some(Profile::Measured(..)) | None => None,
    })
}

impl ColorTable {
    /// The table of a file's profile. `None` where there is no profile for red, green and blue that can be applied:
    /// what is to be said of others, the host's decoder says.
    pub fn of(bytes: &[u8], format: Format) -> Option<Self> {
        let profile =
            caught(|| profile_of(bytes, format)?.map_or(Ok(None), |profile| profile.read())).ok()??;
        let all = linear_pro_photo();
        let convert = converter(&profile, &all).ok()?;
        let black = light(&profile);
        let to_srgb =
            all.transform_matrix(&ColorProfile::new_srgb()).v.map(|row| row.map(|factor| factor as f32));
        let grays: Vec<u16> = (0..=u8::MAX).flat_map(|level| [u16::from(level) * 257; 3]).collect();
        let places = places(&convert(&grays).ok()?, black);
        let levels: Vec<u16> = (0..SIDE).map(|corner| level_at(&places, corner as f32)).collect();
        let mut colors = Vec::with_capacity(SIDE.pow(3) * 3);
        for &red in &levels {
            for &green in &levels {
                colors.extend(levels.iter().flat_map(|&blue| [red, green, blue]));
            }
        }
        let converted = convert(&colors).ok()?;
        let corners =
            converted.as_chunks().0.iter().map(|&[red, green, blue]| [red, green, blue, 0]).collect();
        Some(Self { places, corners, to_srgb, black })
    }
}

/// Where levels lie, of the light of grays.
fn places(grays: &[u16], black: f32) -> [f32; LEVELS] {
    // Of green, which of any gray is about as much as the others.
    let level = |pixel: &[u16; 3]| encoded((f32::from(pixel[1]) / WHITE - black) / (1.0 - black));
    let (mut most, mut places) = (0.0_f32, [0.0; LEVELS]);
    for (number, (place, pixel)) in places.iter_mut().zip(grays.as_chunks().0).enumerate() {
        let even = number as f32 / (LEVELS - 1) as f32;
        most = most.max(level(pixel));
        *place = (EVEN * even + (1.0 - EVEN) * most) * (SIDE - 1) as f32;
    }
    places
}

/// Light as sRGB has it (IEC 61966-2-1), both 0 to 1.
fn encoded(light: f32) -> f32 {
    let light = light.clamp(0.0, 1.0);
    if light <= 0.003_130_8 { 12.92 * light } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 }
}

/// The level, in 16 bits, that lies at a place.
fn level_at(places: &[f32; LEVELS], at: f32) -> u16 {
    let behind = places.partition_point(|&place| place < at).min(LEVELS - 1);
    let before = behind.saturating_sub(1);
    let [from, to] = [before, behind].map(|level| places.get(level).copied().unwrap_or_default());
    let part = if to > from { (at - from) / (to - from) } else { 0.0 };
    ((before as f32 + part.clamp(0.0, 1.0)) * 257.0).round() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel does.
    fn interpolated(table: &ColorTable, pixel: [u8; 3]) -> [f32; 3] {
        let at = pixel.map(|level| table.places[usize::from(level)]);
        let cell = at.map(|place| (place as usize).min(SIDE - 2));
        let mut found = [0.0; 3];
        for corner in 0..8 {
            let (mut weight, mut place) = (1.0, 0);
            for color in 0..3 {
                let step = corner >> (2 - color) & 1;
                let part = at[color] - cell[color] as f32;
                weight *= if step == 1 { part } else { 1.0 - part };
                place = place * SIDE + cell[color] + step;
            }
            for (sum, &sample) in found.iter_mut().zip(&table.corners[place]) {
                *sum += weight * f32::from(sample) / WHITE;
            }
        }
        table.to_srgb.map(|row| {
            let light: f32 = row.iter().zip(found).map(|(factor, light)| factor * light).sum();
            encoded((light - table.black) / (1.0 - table.black)) * 255.0
        })
    }

    /// A JPEG with codes has no place for them: a PNG's, as its profile is read alike.
    fn png(chunk: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\0\0\0\0".to_vec();
        bytes.extend_from_slice(&(chunk.len() as u32 - 4).to_be_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(&[0; 4]);
        bytes
    }

    #[test]
    fn between_corners_colours_are_those_of_the_profile() {
        // Display P3, and light itself, whose dark levels are far apart in sRGB.
        for codes in [[12, 13], [1, 8], [9, 4]] {
            let file = png(&[b"cICP".as_slice(), &codes, &[0, 1]].concat());
            let profile = profile_of(&file, Format::Png).unwrap().unwrap().read().unwrap().unwrap();
            let table = ColorTable::of(&file, Format::Png).unwrap();
            let convert = converter(&profile, &ColorProfile::new_srgb()).unwrap();
            let mut worst = 0.0_f32;
            for seed in 0..20_000_u32 {
                let pixel = seed.wrapping_mul(2_654_435_761).to_be_bytes();
                let pixel = [pixel[0], pixel[1], pixel[2]];
                let expected = convert(&pixel.map(|level| u16::from(level) * 257)).unwrap();
                let found = interpolated(&table, pixel);
                let off = found
                    .iter()
                    .zip(&expected)
                    .map(|(found, &sample)| (found - f32::from(sample) / 257.0).abs());
                worst = off.fold(worst, f32::max);
            }
            assert!(worst < 1.0, "{codes:?}: {worst}");
        }
    }

    #[test]
    fn there_is_no_table_without_a_profile() {
        assert!(ColorTable::of(&png(b"cICP\x01\x0d\0\x01"), Format::Png).is_none());
        assert!(ColorTable::of(b"\xff\xd8", Format::Jpeg).is_none());
    }
}
