//! Synthetic JPEGs: waves and noise, as many bits a pixel as photographs have. Benches use it too.

use turbojpeg::{Compressor, Image, PixelFormat, Subsamp};

/// What to encode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recipe {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) sampling: Subsamp,
    pub(crate) quality: i32,
    pub(crate) seed: u32,
}

impl Recipe {
    pub(crate) fn new(width: usize, height: usize, sampling: Subsamp, seed: u32) -> Self {
        Self { width, height, sampling, quality: 90, seed }
    }

    /// Dense RGB.
    pub(crate) fn pixels(&self) -> Vec<u8> {
        let mut state = self.seed.wrapping_mul(2_654_435_769).wrapping_add(1);
        let mut noise = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as f32 / 255.0 - 0.5
        };
        let mut pixels = Vec::with_capacity(self.width * self.height * 3);
        for y in 0..self.height {
            for x in 0..self.width {
                let (x, y) = (x as f32, y as f32);
                let grain = 52.0 * noise();
                for c in 0..3 {
                    let phase = c as f32 * 1.7 + self.seed as f32;
                    let waves = 60.0 * (x / 31.0 + phase).sin() + 45.0 * (y / 19.0 - phase).cos();
                    pixels.push((128.0 + waves + grain).clamp(0.0, 255.0) as u8);
                }
            }
        }
        pixels
    }

    /// A baseline JPEG.
    pub(crate) fn jpeg(&self) -> Vec<u8> {
        self.encode(false)
    }

    /// A progressive JPEG.
    pub(crate) fn progressive(&self) -> Vec<u8> {
        self.encode(true)
    }

    fn encode(&self, progressive: bool) -> Vec<u8> {
        let pixels = self.pixels();
        let mut compressor = Compressor::new().unwrap();
        compressor.set_quality(self.quality).unwrap();
        compressor.set_subsamp(self.sampling).unwrap();
        compressor.set_progressive(progressive).unwrap();
        let image = Image {
            pixels: pixels.as_slice(),
            width: self.width,
            pitch: self.width * 3,
            height: self.height,
            format: PixelFormat::RGB,
        };
        compressor.compress_to_vec(image).unwrap()
    }

    /// A JPEG of four inks.
    pub(crate) fn inks(&self) -> Vec<u8> {
        let inks: Vec<u8> = self.pixels().chunks_exact(3).flat_map(|p| [p[0], p[1], p[2], 200]).collect();
        let mut compressor = Compressor::new().unwrap();
        compressor.set_quality(self.quality).unwrap();
        compressor.set_subsamp(Subsamp::None).unwrap();
        let image = Image {
            pixels: inks.as_slice(),
            width: self.width,
            pitch: self.width * 4,
            height: self.height,
            format: PixelFormat::CMYK,
        };
        compressor.compress_to_vec(image).unwrap()
    }
}

/// `jpeg` with an EXIF block that says how it is turned.
pub(crate) fn turned(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let mut block = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    block.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    let length = (block.len() + 2) as u16;
    let mut turned = vec![0xFF, 0xD8, 0xFF, 0xE1];
    turned.extend(length.to_be_bytes());
    turned.extend(block);
    turned.extend(&jpeg[2..]);
    turned
}

/// Samplings that the engines take.
pub(crate) const SAMPLINGS: [Subsamp; 5] =
    [Subsamp::Gray, Subsamp::None, Subsamp::Sub2x1, Subsamp::Sub1x2, Subsamp::Sub2x2];
