//! Samples of components and their blocks: content to encode, the cosine transform there and back. It must not know
//! files.

use std::f64::consts::PI;

/// A source of numbers that a seed determines.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// From 0 to `end`, which is not reached.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// From 0 to 1.
    pub(crate) fn part(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }
}

/// What is on an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Noise,
    /// Waves with grain, as many bits a pixel as photographs have.
    Waves,
    Gradient,
    Flat,
    /// Dark marks on white.
    Text,
}

impl Content {
    pub(crate) const ALL: [Self; 5] = [Self::Noise, Self::Waves, Self::Gradient, Self::Flat, Self::Text];

    /// Samples of a plane.
    pub(crate) fn plane(self, width: usize, height: usize, dice: &mut Dice) -> Plane {
        let [a, b, c] = [(); 3].map(|()| dice.part());
        let mut plane = Plane::new(width, height);
        for y in 0..height {
            for x in 0..width {
                let (u, v) = (x as f64, y as f64);
                let value = match self {
                    Self::Noise => 255.0 * dice.part(),
                    Self::Waves => {
                        let waves =
                            60.0 * (u / (5.0 + 40.0 * a) + c).sin() + 45.0 * (v / (5.0 + 30.0 * b)).cos();
                        128.0 + waves + 28.0 * (dice.part() - 0.5)
                    }
                    Self::Gradient => 255.0 * (a * u / width as f64 + (1.0 - a) * v / height as f64),
                    Self::Flat => 255.0 * a,
                    Self::Text => 255.0,
                };
                plane.set(x, y, value);
            }
        }
        if self == Self::Text {
            for _ in 0..width * height / 60 {
                let (left, top) = (dice.below(width), dice.below(height));
                let (across, down, ink) = (1 + dice.below(9), 1 + dice.below(9), 60.0 * dice.part());
                for y in top..(top + down).min(height) {
                    (left..(left + across).min(width)).for_each(|x| plane.set(x, y, ink));
                }
            }
        }
        plane
    }
}

/// Samples of one component.
#[derive(Debug, Clone)]
pub(crate) struct Plane {
    pub(crate) width: usize,
    pub(crate) height: usize,
    samples: Vec<f64>,
}

/// Coefficients of a block, row by row.
pub(crate) type Block = [i32; 64];

impl Plane {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        Self { width, height, samples: vec![0.0; width * height] }
    }

    /// The sample at a place; beyond the edge that of the edge.
    pub(crate) fn get(&self, x: usize, y: usize) -> f64 {
        self.samples[y.min(self.height - 1) * self.width + x.min(self.width - 1)]
    }

    pub(crate) fn set(&mut self, x: usize, y: usize, value: f64) {
        self.samples[y * self.width + x] = value;
    }

    /// Means of boxes of `across` x `down` samples.
    pub(crate) fn shrunk(&self, [across, down]: [usize; 2]) -> Self {
        let mut shrunk = Self::new(self.width.div_ceil(across), self.height.div_ceil(down));
        for y in 0..shrunk.height {
            for x in 0..shrunk.width {
                let samples =
                    (0..across * down).map(|i| self.get(x * across + i % across, y * down + i / across));
                shrunk.set(x, y, samples.sum::<f64>() / (across * down) as f64);
            }
        }
        shrunk
    }

    /// Quantised coefficients of the block at a place, given in blocks.
    pub(crate) fn block(&self, x: usize, y: usize, quantisation: &[u16; 64]) -> Block {
        let samples: [f64; 64] = std::array::from_fn(|i| self.get(8 * x + i % 8, 8 * y + i / 8) - 128.0);
        let coefficients = transform(&samples, cosine);
        std::array::from_fn(|i| {
            let value = (coefficients[i] / f64::from(quantisation[i])).round() as i32;
            // What 10 bits can hold, and the difference of two of them 11.
            value.clamp(-1_023, 1_023)
        })
    }

    /// Puts the samples of a block to a place, given in blocks, as far as they are inside; rounded, as decoders do.
    pub(crate) fn put(&mut self, x: usize, y: usize, block: &Block, quantisation: &[u16; 64]) {
        let coefficients = std::array::from_fn(|i| f64::from(block[i]) * f64::from(quantisation[i]));
        let samples = transform(&coefficients, |from, to| cosine(to, from));
        for (i, sample) in samples.iter().enumerate() {
            let (x, y) = (8 * x + i % 8, 8 * y + i / 8);
            if x < self.width && y < self.height {
                self.set(x, y, (sample + 128.0).round().clamp(0.0, 255.0));
            }
        }
    }
}

/// The weight of sample `at` in coefficient `frequency`.
fn cosine(at: usize, frequency: usize) -> f64 {
    let scale = if frequency == 0 { 0.125_f64.sqrt() } else { 0.5 };
    scale * ((2 * at + 1) as f64 * frequency as f64 * PI / 16.0).cos()
}

/// Rows, then columns.
fn transform(block: &[f64; 64], weight: impl Fn(usize, usize) -> f64) -> [f64; 64] {
    let weights: [[f64; 8]; 8] = std::array::from_fn(|to| std::array::from_fn(|from| weight(from, to)));
    let dot = |to: usize, at: &dyn Fn(usize) -> f64| (0..8).map(|from| weights[to][from] * at(from)).sum();
    let rows: [f64; 64] = std::array::from_fn(|i| dot(i % 8, &|from| block[i / 8 * 8 + from]));
    std::array::from_fn(|i| dot(i / 8, &|from| rows[from * 8 + i % 8]))
}
