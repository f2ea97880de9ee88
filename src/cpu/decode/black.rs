//! Black of a colour profile, and sRGB with the same one: converted to it, the darkest colour of the profile becomes
//! 0. It does what LittleCMS does on the way to sRGB of version 4 with the perceptual intent. It must not know pixels.

use moxcms::{
    ColorProfile, DataColorSpace, Layout, ProfileVersion, RenderingIntent, ToneReprCurve, TransformOptions,
};

use super::profile::{SRGB, with_curve};

/// Light of the black that all tables of version 4 share for the perceptual intent (ICC.1, reference medium).
const REFERENCE: f32 = 0.003_48;

/// Light of the lightest black that is taken for one, which is 50 of CIE L\*: such a profile is odd.
const MOST: f32 = 0.184_2;

/// Light of each colour of linear ProPhoto, in which there are all colours.
const PRO_PHOTO: [f32; 3] = [0.288_040_2, 0.711_874_1, 0.000_085_7];

/// The light, 0 to 1, that a profile says of its darkest colour. 0 where it says nothing that can be used.
pub(super) fn light(profile: &ColorProfile) -> f32 {
    let at_zero = |curve: &Option<ToneReprCurve>| {
        let evaluator = curve.as_ref().and_then(|curve| curve.make_linear_evaluator().ok());
        evaluator.map_or(0.0, |evaluator| evaluator.evaluate_value(0.0))
    };
    let is_shaper = profile.is_matrix_shaper();
    let is_new = profile.version() >= ProfileVersion::V4_0;
    let light = match profile.color_space {
        DataColorSpace::Gray => at_zero(&profile.gray_trc),
        _ if !has_table(profile) => [
            (&profile.red_trc, profile.red_colorant),
            (&profile.green_trc, profile.green_colorant),
            (&profile.blue_trc, profile.blue_colorant),
        ]
        .into_iter()
        .map(|(curve, colorant)| at_zero(curve) * colorant.y as f32)
        .sum(),
        _ if is_new && !is_shaper => REFERENCE,
        _ => by_table(profile, is_new).unwrap_or(0.0),
    };
    if (0.0..=MOST).contains(&light) { light } else { 0.0 }
}

/// sRGB whose black has such a light.
pub(super) fn srgb_with(light: f32) -> ColorProfile {
    if light == 0.0 {
        return ColorProfile::new_srgb();
    }
    let [gamma, a, b, c, d] = SRGB;
    let scale = (1.0 - light).powf(1.0 / gamma);
    let curve = vec![gamma, scale * a, scale * b, (1.0 - light) * c, d, light, light];
    with_curve(ColorProfile::new_srgb(), ToneReprCurve::Parametric(curve))
}

/// Light of ProPhoto's colours, which are all that there are.
pub(super) fn linear_pro_photo() -> ColorProfile {
    with_curve(ColorProfile::new_pro_photo_rgb(), ToneReprCurve::Lut(Vec::new()))
}

/// Whether colours are converted by a table.
pub(super) fn has_table(profile: &ColorProfile) -> bool {
    profile.lut_a_to_b_perceptual.is_some()
}

/// The light of what a table makes of no light, or of all inks.
fn by_table(profile: &ColorProfile, is_new: bool) -> Option<f32> {
    let (layout, darkest) = match profile.color_space {
        DataColorSpace::Rgb => (Layout::Rgb, &[0; 3][..]),
        DataColorSpace::Cmyk => (Layout::Rgba, &[u16::MAX; 4][..]),
        _ => return None,
    };
    let is_colorimetric = is_new && profile.lut_a_to_b_colorimetric.is_some();
    let rendering_intent =
        if is_colorimetric { RenderingIntent::RelativeColorimetric } else { RenderingIntent::Perceptual };
    let all = linear_pro_photo();
    let options = TransformOptions { rendering_intent, ..TransformOptions::default() };
    let mut found = [0_u16; 3];
    profile
        .create_transform_16bit(layout, &all, Layout::Rgb, options)
        .ok()?
        .transform(darkest, &mut found)
        .ok()?;
    let linear = found.map(|level| f32::from(level) / f32::from(u16::MAX));
    Some(linear.into_iter().zip(PRO_PHOTO).map(|(level, light)| level * light).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn black_of_curves_is_what_they_begin_with() {
        let with = |curve: ToneReprCurve| with_curve(ColorProfile::new_srgb(), curve);
        let expected = [
            (ToneReprCurve::Lut(Vec::new()), 0.0),
            (ToneReprCurve::Lut(vec![0x0233]), 0.0),
            (ToneReprCurve::Lut(vec![655, 65_535]), 0.01),
            (ToneReprCurve::Parametric(vec![2.2]), 0.0),
            (ToneReprCurve::Parametric(vec![2.2, 1.0, 0.0, 0.02]), 0.02),
            // Half of all light is no black.
            (ToneReprCurve::Lut(vec![32_768, 65_535]), 0.0),
        ];
        for (curve, light_of) in expected {
            let found = light(&with(curve.clone()));
            assert!((found - light_of).abs() < 1e-4, "{curve:?}: {found}");
        }
        let mut gray = ColorProfile::new_gray_with_gamma(2.2);
        assert_eq!(light(&gray), 0.0);
        gray.gray_trc = Some(ToneReprCurve::Lut(vec![655, 65_535]));
        assert!((light(&gray) - 0.01).abs() < 1e-4);
    }

    #[test]
    fn srgb_with_a_black_has_it_and_white() {
        for black in [0.003_48, 0.1] {
            let made = srgb_with(black);
            assert!((light(&made) - black).abs() < 1e-5);
            let to = made.create_transform_16bit(
                Layout::Rgb,
                &srgb_with(0.0),
                Layout::Rgb,
                TransformOptions::default(),
            );
            let mut found = [0; 6];
            to.unwrap().transform(&[0, 0, 0, 65_535, 65_535, 65_535], &mut found).unwrap();
            let levels = f64::from(black) * 12.92 * 65_535.0;
            assert!(black > 0.01 || (f64::from(found[0]) - levels).abs() < 60.0, "{found:?} {levels}");
            assert!(found[3..].iter().all(|&level| level > 65_500), "{found:?}");
        }
    }
}
