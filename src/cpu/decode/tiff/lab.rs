//! CIE L*a*b* to sRGB as libtiff computes it, in single precision and by a table. It must not know files.

/// Steps of the table from light to levels.
const STEPS: usize = 1_500;

/// The white point where a file has none: that of D50.
const D50: [f32; 3] = [96.425, 100.0, 82.468];

/// From XYZ to red, green and blue of sRGB.
const MATRIX: [[f32; 3]; 3] =
    [[3.2410, -1.5374, -0.4986], [-0.9692, 1.8760, 0.0416], [0.0556, -0.2040, 1.0570]];

/// The exponent of a screen, and its light for black and white.
const GAMMA: f64 = 2.4;
const BLACK: f32 = 1.0;
const WHITE: f32 = 100.0;

/// Converts pixels of one white point.
pub(super) struct Lab {
    white: [f32; 3],
    levels: Vec<f32>,
}

impl Lab {
    /// For a white point, as x and y.
    pub(super) fn new(white: Option<[f32; 2]>) -> Self {
        let known = white.filter(|[x, y]| x.is_finite() && *y > 0.0);
        let white = known.map_or(D50, |[x, y]| [x / y * 100.0, 100.0, (1.0 - x - y) / y * 100.0]);
        let level = |i: usize| (255.0 * (i as f64 / STEPS as f64).powf(1.0 / GAMMA)) as f32;
        Self { white, levels: (0..=STEPS).map(level).collect() }
    }

    /// RGB of L* from 0 to 100, a* and b*.
    pub(super) fn rgb(&self, [l, a, b]: [f32; 3]) -> [u8; 3] {
        let [x0, y0, z0] = self.white;
        let (y, root) = if l < 8.856 {
            let y = l * y0 / 903.292;
            (y, 7.787 * (y / y0) + 16.0 / 116.0)
        } else {
            let root = (l + 16.0) / 116.0;
            (y0 * root * root * root, root)
        };
        let other = |root: f32, full: f32| match root {
            root if root < 0.2069 => full * (root - 0.137_93) / 7.787,
            root => full * root * root * root,
        };
        let xyz = [other(a / 500.0 + root, x0), y, other(root - b / 200.0, z0)];
        MATRIX.map(|row| {
            let light = row[0] * xyz[0] + row[1] * xyz[1] + row[2] * xyz[2];
            let step = (light.clamp(BLACK, WHITE) - BLACK) / ((WHITE - BLACK) / STEPS as f32);
            self.levels[(step as usize).min(STEPS)].round().min(255.0) as u8
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gray_has_the_tint_of_its_white_point() {
        let lab = Lab::new(None);
        assert_eq!(lab.rgb([0.0; 3]), [0; 3]);
        let [r, g, b] = lab.rgb([100.0, 0.0, 0.0]);
        assert!(r == 255 && (240..=255).contains(&g) && (200..240).contains(&b), "{r} {g} {b}");
        // That of sRGB itself.
        assert_eq!(Lab::new(Some([0.3127, 0.3290])).rgb([100.0, 0.0, 0.0]), [255; 3]);
        assert_eq!(Lab::new(Some([0.3, 0.0])).rgb([0.0, 127.0, -128.0])[1], 0);
    }
}
