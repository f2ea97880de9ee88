//! What luma and chroma add to red, green and blue. It must not know pictures.

/// How much red and blue count in luma.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cpu) struct Matrix {
    red: f64,
    blue: f64,
}

impl Matrix {
    pub(in crate::cpu) const BT601: Self = Self { red: 0.299, blue: 0.114 };
    pub(in crate::cpu) const BT709: Self = Self { red: 0.2126, blue: 0.0722 };
    pub(in crate::cpu) const BT2020: Self = Self { red: 0.2627, blue: 0.0593 };
    const FCC: Self = Self { red: 0.30, blue: 0.11 };
    const SMPTE240M: Self = Self { red: 0.212, blue: 0.087 };

    /// The one with a number of ISO/IEC 23091-2, as H.264, H.265 and AV1 have it; BT.601 where a stream does not say.
    pub(in crate::cpu) fn numbered(number: u8) -> Self {
        match number {
            1 => Self::BT709,
            4 => Self::FCC,
            7 => Self::SMPTE240M,
            9 | 10 => Self::BT2020,
            _ => Self::BT601,
        }
    }
}

/// What samples mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cpu) struct Color {
    pub(in crate::cpu) matrix: Matrix,
    /// Whether samples take the whole range of their bits; else 16 to 235 (chroma: 240) of 255.
    pub(in crate::cpu) full_range: bool,
}

/// From luma and the distances of chroma from gray to RGB: factors of 2^-13, for differences of 2^-9 of a level.
#[derive(Debug, Clone, Copy)]
pub struct Factors {
    /// Luma of black.
    pub black: i32,
    /// What luma adds to each colour.
    pub luma: i32,
    /// What red chroma adds to red.
    pub red_of_red: i32,
    /// What red chroma adds to green.
    pub green_of_red: i32,
    /// What blue chroma adds to green.
    pub green_of_blue: i32,
    /// What blue chroma adds to blue.
    pub blue_of_blue: i32,
}

impl Factors {
    pub(in crate::cpu) fn new(color: Color) -> Self {
        let Matrix { red, blue } = color.matrix;
        let green = 1.0 - red - blue;
        let one = f64::from(1 << 16);
        // First in 2^-16 for limited chroma, from which all others are made.
        let limited = |factor: f64| (factor * 255.0 / 224.0 * one).round() as i64;
        let chroma = |factor: f64| {
            let factor = limited(factor);
            let factor = if color.full_range { factor * 224 / 255 } else { factor };
            ((factor + 4) >> 3) as i32
        };
        let (black, luma) =
            if color.full_range { (0, 8_192) } else { (16 << 9, (65_536 * 255 / 219 + 4) >> 3) };
        Self {
            black,
            luma,
            red_of_red: chroma(2.0 * (1.0 - red)),
            green_of_red: -chroma(2.0 * red * (1.0 - red) / green),
            green_of_blue: -chroma(2.0 * blue * (1.0 - blue) / green),
            blue_of_blue: chroma(2.0 * (1.0 - blue)),
        }
    }
}
