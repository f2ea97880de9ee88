//! Normalization of bytes as libraries of training do it, to the bit: 256 values for each channel, worked out in a
//! library's own order of float32 operations. It must not know operators.

use half::f16;

use super::Channel;

/// A library that normalizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// `ToTensor` or `convert_image_dtype`, then `Normalize`: `(x / 255 - mean) / std`. numpy's image processors of
    /// transformers make the same: they multiply in float64 and round once, which is that quotient for every byte.
    Torchvision,
    /// `v2.ToDtype(scale=True)`, then `Normalize`: `(x * (1 / 255) - mean) / std`.
    TorchvisionV2,
    /// torch's image processors of transformers: `(x - 255 * mean) / (255 * std)`.
    TransformersFast,
}

impl Library {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Torchvision, Self::TorchvisionV2, Self::TransformersFast];

    /// The value of the argument `arithmetic`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Torchvision => "torchvision",
            Self::TorchvisionV2 => "torchvision-v2",
            Self::TransformersFast => "transformers-fast",
        }
    }

    /// What becomes of a byte.
    fn normalized(self, byte: u8, mean: f32, std: f32) -> f32 {
        let value = f32::from(byte);
        let scaled = match self {
            Self::Torchvision => value / 255.0,
            Self::TorchvisionV2 => value * (1.0 / 255.0),
            Self::TransformersFast => return (value - mean * 255.0) / (std * 255.0),
        };
        (scaled - mean) / std
    }
}

/// What each byte of a channel becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Table(Box<[f32; 256]>);

impl Table {
    /// In float32.
    pub fn new(library: Library, mean: f32, std: f32) -> Self {
        let mut values = Box::new([0.0; 256]);
        for (byte, value) in (0..=u8::MAX).zip(values.iter_mut()) {
            *value = library.normalized(byte, mean, std);
        }
        Self(values)
    }

    /// Of the bytes from 0 to 255.
    pub fn values(&self) -> &[f32; 256] {
        &self.0
    }

    /// Rounded to values that float16 has, halves to even as torch and numpy do.
    pub fn in_half_precision(mut self) -> Self {
        self.0.iter_mut().for_each(|value| *value = f16::from_f32(*value).to_f32());
        self
    }
}

impl Channel<u8> for &Table {
    #[inline(always)]
    fn apply(self, value: u8) -> f32 {
        self.0[usize::from(value)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_differ_in_last_bits_only() {
        let tables = Library::ALL.map(|library| Table::new(library, 0.485, 0.229));
        for table in &tables[1..] {
            let pairs = || tables[0].0.iter().zip(table.0.iter());
            assert!(pairs().any(|(a, b)| a != b));
            assert!(pairs().all(|(a, b)| (a - b).abs() < 1e-6));
        }
    }

    #[test]
    fn halves_are_rounded_to_even() {
        // 2049 lies between the neighbours 2048 and 2050 of float16.
        let table = Table::new(Library::TransformersFast, 0.0, 1.0 / (255.0 * 2049.0)).in_half_precision();
        assert_eq!((&table).apply(1), 2048.0);
        assert_eq!(Table::new(Library::Torchvision, 0.0, 1e-9).in_half_precision().0[255], f32::INFINITY);
    }
}
