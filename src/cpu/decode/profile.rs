//! What a file says of its colours, and as what crate `moxcms` takes it. It must not know file formats.

use std::borrow::Cow;

use moxcms::{
    Chromaticity, CicpColorPrimaries, CicpProfile, ColorPrimaries, ColorProfile, DataColorSpace, LutDataType,
    LutStore, LutType, LutWarehouse, MatrixCoefficients, ProfileVersion, ToneReprCurve,
    TransferCharacteristics,
};

use crate::error::{Error, Result};

/// Bytes of an ICC profile (those of printers have up to 3 MB). Stops a compressed one of some bytes from becoming
/// gigabytes.
pub(super) const MAX_BYTES: usize = 10 << 20;

/// White of CIE L\*a\*b\* in 16 bits, and what it is in tables of 16 bits.
const WHITE: f64 = 65_535.0;
const OLD_WHITE: f64 = 65_280.0;

/// Samples of a curve that is made of another one.
const SAMPLES: u16 = 4_096;

/// The curve of sRGB, as ICC writes it.
pub(super) const SRGB: [f32; 5] = [2.4, 1.0 / 1.055, 0.055 / 1.055, 1.0 / 12.92, 0.040_45];

/// What a file says of its colours.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Profile<'a> {
    /// An ICC profile.
    Icc(Cow<'a, [u8]>),
    /// Numbers of primaries and transfer function (ITU-T H.273).
    Codes([u8; 2]),
    /// As PNG's `gAMA` and `cHRM`: the exponent that a display has, if it is known, and x and y of white, red, green
    /// and blue.
    Measured(Option<f32>, [[f32; 2]; 4]),
}

/// White, red, green and blue of sRGB.
pub(super) const SRGB_POINTS: [[f32; 2]; 4] = [[0.3127, 0.3290], [0.64, 0.33], [0.30, 0.60], [0.15, 0.06]];

impl Profile<'_> {
    /// As `moxcms` takes it; `None` for sRGB.
    ///
    /// # Errors
    /// Invalid, for a damaged profile; unsupported, for codes that are not known, and those of high dynamic range.
    pub(super) fn read(&self) -> Result<Option<ColorProfile>> {
        match self {
            Self::Icc(bytes) if bytes.len() > MAX_BYTES => Err(too_long()),
            Self::Icc(bytes) => ColorProfile::new_from_slice(bytes)
                .map(|profile| Some(with_its_tables(profile)))
                .map_err(|error| Error::invalid(format!("damaged colour profile: {error}"))),
            &Self::Codes(codes) => of_codes(codes),
            &Self::Measured(gamma, points) => Ok(Some(of_points(points, gamma.map_or(srgb_curve(), power)))),
        }
    }
}

/// The error for a profile beyond [`MAX_BYTES`].
pub(super) fn too_long() -> Error {
    Error::unsupported(format!("a colour profile of more than {MAX_BYTES} bytes"))
}

/// A profile as it was read, with its tables as `moxcms` takes them for what they are.
fn with_its_tables(mut profile: ColorProfile) -> ColorProfile {
    if profile.lut_a_to_b_perceptual.is_none() && profile.is_matrix_shaper() {
        // Those for other intents alone are no use where there are curves and a matrix; `moxcms` would ask for the
        // missing one.
        profile.lut_a_to_b_colorimetric = None;
        profile.lut_a_to_b_saturation = None;
    }
    if profile.pcs == DataColorSpace::Lab && profile.color_space == DataColorSpace::Gray {
        if let Some(curve) = profile.gray_trc.as_ref().and_then(light_of) {
            (profile.gray_trc, profile.pcs) = (Some(curve), DataColorSpace::Xyz);
        }
    } else if profile.pcs == DataColorSpace::Lab {
        let is_new = profile.version() >= ProfileVersion::V4_0;
        for table in [&mut profile.lut_a_to_b_perceptual, &mut profile.lut_a_to_b_colorimetric] {
            if let Some(LutWarehouse::Lut(table)) = table {
                as_of_version(table, is_new);
            }
        }
    }
    profile
}

/// White is [`OLD_WHITE`] in tables of 16 bits, of any version, and the largest number in others (ICC.1:2010, 6.3.4.2
/// and 10.10). `moxcms` goes by the profile's version alone.
fn as_of_version(table: &mut LutDataType, is_new: bool) {
    let times = match (table.lut_type, is_new) {
        (LutType::Lut16, true) => WHITE / OLD_WHITE,
        (LutType::Lut8, false) => OLD_WHITE / WHITE,
        _ => return,
    };
    for store in [&mut table.input_table, &mut table.clut_table, &mut table.output_table] {
        if let LutStore::Store8(bytes) = store {
            *store = LutStore::Store16(bytes.iter().map(|&byte| u16::from(byte) * 257).collect());
        }
    }
    let LutStore::Store16(numbers) = &table.output_table else { return };
    let length = numbers.len() / usize::from(table.num_output_channels.max(1));
    if length < 2 {
        return;
    }
    // Of more samples: numbers that become too large stay at the largest from a place on that lies between samples.
    let scaled = numbers.chunks_exact(length).flat_map(|curve| {
        (0..SAMPLES).map(move |place| {
            let at = f64::from(place) * (length - 1) as f64 / f64::from(SAMPLES - 1);
            let (below, part) = (at as usize, at.fract());
            let number = |place: usize| f64::from(curve.get(place).copied().unwrap_or_default());
            let between = number(below) + part * (number((below + 1).min(length - 1)) - number(below));
            (between * times).round().min(WHITE) as u16
        })
    });
    table.output_table = LutStore::Store16(scaled.collect());
    table.num_output_table_entries = SAMPLES;
}

/// The curve of gray whose numbers are of CIE L\*, as one of light.
fn light_of(curve: &ToneReprCurve) -> Option<ToneReprCurve> {
    let evaluator = curve.make_linear_evaluator().ok()?;
    let light = |place: u16| {
        let lightness = 100.0 * evaluator.evaluate_value(f32::from(place) / f32::from(SAMPLES - 1));
        let f = (lightness + 16.0) / 116.0;
        let light = if lightness > 8.0 { f * f * f } else { lightness * 27.0 / 24_389.0 };
        (light * WHITE as f32).round().clamp(0.0, WHITE as f32) as u16
    };
    Some(ToneReprCurve::Lut((0..SAMPLES).map(light).collect()))
}

/// The curve of sRGB.
pub(super) fn srgb_curve() -> ToneReprCurve {
    ToneReprCurve::Parametric(SRGB.to_vec())
}

fn power(exponent: f32) -> ToneReprCurve {
    ToneReprCurve::Parametric(vec![exponent])
}

fn of_points(points: [[f32; 2]; 4], curve: ToneReprCurve) -> ColorProfile {
    let [white, red, green, blue] = points.map(|[x, y]| Chromaticity::new(x, y));
    let mut profile = ColorProfile::new_srgb();
    profile.update_rgb_colorimetry(white.to_xyyb(), ColorPrimaries { red, green, blue });
    with_curve(profile, curve)
}

/// A profile of colours with this curve for each.
pub(super) fn with_curve(mut profile: ColorProfile, curve: ToneReprCurve) -> ColorProfile {
    profile.cicp = None;
    profile.red_trc = Some(curve.clone());
    profile.green_trc = Some(curve.clone());
    profile.blue_trc = Some(curve);
    profile
}

/// Codes of ITU-T H.273. The curves of video are taken for that of sRGB, as browsers do: what cameras write and what
/// displays show is not the inverse of each other there.
fn of_codes([primaries, transfer]: [u8; 2]) -> Result<Option<ColorProfile>> {
    let curve = match transfer {
        1 | 2 | 6 | 13..=15 => srgb_curve(),
        4 => power(2.2),
        5 => power(2.8),
        8 => power(1.0),
        16 | 18 => {
            return Err(Error::unsupported(format!(
                "colours of high dynamic range (transfer function {transfer}), which need a choice of tones to become sRGB"
            )));
        }
        _ => return Err(Error::unsupported(format!("colours of transfer function {transfer}"))),
    };
    if matches!(primaries, 1 | 2) {
        return Ok(if curve == srgb_curve() {
            None
        } else {
            Some(with_curve(ColorProfile::new_srgb(), curve))
        });
    }
    let unknown = || Error::unsupported(format!("colours of primaries {primaries}"));
    let known = CicpColorPrimaries::try_from(primaries).map_err(|_| unknown())?;
    ColorPrimaries::try_from(known).map_err(|_| unknown())?;
    let profile = ColorProfile::new_from_cicp(CicpProfile {
        color_primaries: known,
        transfer_characteristics: TransferCharacteristics::Srgb,
        matrix_coefficients: MatrixCoefficients::Identity,
        full_range: true,
    });
    Ok(Some(with_curve(profile, curve)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_srgb_a_profile_or_an_error() {
        for codes in [[1, 13], [2, 2], [1, 1], [1, 6]] {
            assert!(of_codes(codes).unwrap().is_none(), "{codes:?}");
        }
        for codes in [[12, 13], [9, 14], [5, 4], [1, 8], [11, 13]] {
            assert!(of_codes(codes).unwrap().is_some(), "{codes:?}");
        }
        for (codes, said) in
            [([9, 16], "high dynamic range"), ([1, 9], "function 9"), ([3, 13], "primaries 3")]
        {
            assert!(of_codes(codes).unwrap_err().to_string().contains(said), "{codes:?}");
        }
    }

    #[test]
    fn what_is_no_profile_is_an_error() {
        for bytes in [&b""[..], b"acsp", &[0; 128], &[0xff; 400]] {
            let error = Profile::Icc(Cow::Borrowed(bytes)).read().unwrap_err().to_string();
            assert!(error.contains("colour profile"), "{error}");
        }
    }
}
