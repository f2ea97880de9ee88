//! Augmentations of training as Pillow and torchvision compute them, to the bit: of RGB images of 8 bits, rows of
//! pixels one behind the other. It must not know which operator wants them.

mod affine;
pub mod blur;
mod color;
mod hue;
mod sharpness;
mod tables;

pub use affine::Filter;

use crate::error::{Error, Result};

/// Channels of a pixel.
pub const CHANNELS: usize = 3;

/// A pixel.
pub type Rgb = [u8; CHANNELS];

/// Whose sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// Pillow's, which torchvision uses for its images.
    Pillow,
    /// torchvision's of tensors, version 1 of its transforms.
    Torchvision,
    /// torchvision's of tensors, version 2.
    TorchvisionV2,
}

/// What a step does. The numbers are those of the operator's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Nothing.
    Keep = 0,
    /// Mixes with black.
    Brightness = 1,
    /// Mixes with the mean gray.
    Contrast = 2,
    /// Mixes with each pixel's gray.
    Saturation = 3,
    /// Moves hues; 1 is the whole circle.
    Hue = 4,
    /// Mixes with a smoothed image.
    Sharpness = 5,
    /// Keeps so many upper bits.
    Posterize = 6,
    /// Inverts levels from a threshold on.
    Solarize = 7,
    /// Spreads each channel over all levels.
    AutoContrast = 8,
    /// Equalizes each channel's histogram.
    Equalize = 9,
    /// Inverts all levels.
    Invert = 10,
    /// Makes all channels gray.
    Grayscale = 11,
    /// Shears along rows; the magnitude is the tangent.
    ShearX = 12,
    /// Shears along columns.
    ShearY = 13,
    /// Moves to the right by whole pixels.
    TranslateX = 14,
    /// Moves down by whole pixels.
    TranslateY = 15,
    /// Rotates around the middle, counter-clockwise, by degrees.
    Rotate = 16,
}

impl Operation {
    const ALL: [Self; 17] = [
        Self::Keep,
        Self::Brightness,
        Self::Contrast,
        Self::Saturation,
        Self::Hue,
        Self::Sharpness,
        Self::Posterize,
        Self::Solarize,
        Self::AutoContrast,
        Self::Equalize,
        Self::Invert,
        Self::Grayscale,
        Self::ShearX,
        Self::ShearY,
        Self::TranslateX,
        Self::TranslateY,
        Self::Rotate,
    ];

    /// The operation of a number.
    pub fn of(number: i64) -> Option<Self> {
        usize::try_from(number).ok().and_then(|number| Self::ALL.get(number)).copied()
    }

    /// Whether it moves pixels.
    fn moves(self) -> bool {
        matches!(self, Self::ShearX | Self::ShearY | Self::TranslateX | Self::TranslateY | Self::Rotate)
    }
}

/// One operation and how much of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    operation: Operation,
    magnitude: f32,
}

impl Step {
    /// A step whose magnitude is one that the libraries take.
    pub fn new(operation: Operation, magnitude: f32, library: Library) -> Result<Self> {
        let (name, is_taken, expected) = match operation {
            Operation::Brightness | Operation::Contrast | Operation::Saturation | Operation::Sharpness => {
                ("a factor", magnitude >= 0.0 && magnitude.is_finite(), "a number from 0 on")
            }
            Operation::Hue => ("a shift of hues", (-0.5..=0.5).contains(&magnitude), "-0.5 to 0.5"),
            Operation::Posterize => ("bits", (0.0..=8.0).contains(&magnitude), "0 to 8"),
            Operation::Solarize => ("a threshold", magnitude.is_finite(), "a number"),
            _ => ("a magnitude", magnitude.is_finite(), "a number"),
        };
        if operation.moves() && library != Library::Pillow {
            return Err(Error::unsupported(format!(
                "operation {} moves pixels: expected `arithmetic` `pillow`",
                operation as i64
            )));
        }
        if !is_taken {
            return Err(Error::invalid(format!("{name} of {magnitude}, expected {expected}")));
        }
        Ok(Self { operation, magnitude })
    }
}

/// How pixels are moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moves {
    /// Between pixels.
    pub filter: Filter,
    /// Where there is no image.
    pub fill: Rgb,
}

/// Applies steps in their order to an image of that width. `image` is the input and becomes the output; `spare` is as
/// long.
pub fn apply(
    steps: &[Step],
    image: &mut Vec<Rgb>,
    spare: &mut Vec<Rgb>,
    width: usize,
    library: Library,
    moves: Moves,
) {
    if image.is_empty() {
        return;
    }
    for step in steps {
        let amount = step.magnitude;
        match step.operation {
            Operation::Keep => {}
            Operation::Brightness => color::brightness(image, amount, library),
            Operation::Contrast => color::contrast(image, amount, library),
            Operation::Saturation => color::saturation(image, amount, library),
            Operation::Grayscale => color::grayscale(image, library),
            Operation::Hue => hue::shift(image, amount, library),
            Operation::Sharpness => {
                sharpness::sharpen(image, spare, width, amount, library);
                std::mem::swap(image, spare);
            }
            Operation::Posterize => tables::posterize(image, amount as u32),
            Operation::Solarize => tables::solarize(image, amount),
            Operation::AutoContrast => tables::auto_contrast(image, library),
            Operation::Equalize => tables::equalize(image),
            Operation::Invert => tables::map_all(image, |level| 255 - level),
            Operation::ShearX
            | Operation::ShearY
            | Operation::TranslateX
            | Operation::TranslateY
            | Operation::Rotate => {
                let size = [image.len() / width, width];
                affine::warp(image, spare, size, step.operation, f64::from(amount), moves);
                std::mem::swap(image, spare);
            }
        }
    }
}

#[cfg(test)]
mod tests;
