//! Floors of Vorbis that are filters by line spectral pairs (kind 0), which early encoders wrote. It must not know
//! residues.

use std::f64::consts::PI;

use super::codebook::Codebook;
use super::damaged;
use crate::cpu::audio::bits::LowFirst;
use crate::error::Result;

/// Numbers of a filter.
const MAX_ORDER: usize = 255;

#[derive(Debug)]
pub(crate) struct Floor0 {
    order: usize,
    rate: u32,
    /// Steps of the Bark scale.
    steps: u32,
    amplitude_bits: u32,
    /// In decibels.
    offset: f32,
    books: Vec<usize>,
    /// For both sizes of blocks, the cosine of each coefficient's place on that scale.
    cosines: [Vec<f32>; 2],
}

/// What a block's floor is made of: its amplitude and the cosines of the pairs.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    amplitude: f32,
    cosines: [f32; MAX_ORDER],
}

impl Floor0 {
    pub(crate) fn read(bits: &mut LowFirst<'_>, books: &[Codebook], sizes: [usize; 2]) -> Result<Self> {
        let mut read = |count| bits.read(count).ok_or_else(|| damaged("a floor is cut off"));
        let (order, rate, steps) = (read(8)? as usize, read(16)?, read(16)?);
        let (amplitude_bits, offset, count) = (read(6)?, read(8)? as f32, read(4)? + 1);
        if order == 0 || rate == 0 || steps == 0 || amplitude_bits > 32 {
            return Err(damaged("a floor has no order, rate or steps"));
        }
        let mut book = |_| {
            let found = read(8)? as usize;
            books
                .get(found)
                .filter(|book| book.has_vectors())
                .map(|_| found)
                .ok_or_else(|| damaged("a floor names a codebook that has no vectors"))
        };
        let books = (0..count).map(&mut book).collect::<Result<_>>()?;
        let mut floor =
            Self { order, rate, steps, amplitude_bits, offset, books, cosines: [Vec::new(), Vec::new()] };
        floor.cosines = [floor.scale(sizes[0] / 2)?, floor.scale(sizes[1] / 2)?];
        Ok(floor)
    }

    /// Cosines of the places of `count` coefficients.
    fn scale(&self, count: usize) -> Result<Vec<f32>> {
        let bark = |hertz: f64| {
            13.1 * (0.000_74 * hertz).atan() + 2.24 * (hertz * hertz * 1.85e-8).atan() + 1e-4 * hertz
        };
        let (rate, steps) = (f64::from(self.rate), f64::from(self.steps));
        let full = bark(rate / 2.0);
        let mut cosines = super::zeros(count)?;
        for (i, to) in cosines.iter_mut().enumerate() {
            let place = bark(rate / 2.0 * i as f64 / count as f64) * steps / full;
            let place = place.floor().min(steps - 1.0);
            *to = (PI * place / steps).cos() as f32;
        }
        Ok(cosines)
    }

    /// Reads what a block's floor is made of. `None` for silence, which the end of the packet is, too.
    pub(crate) fn filter(&self, bits: &mut LowFirst<'_>, books: &[Codebook]) -> Option<Filter> {
        let amplitude = bits.read(self.amplitude_bits)?;
        if amplitude == 0 {
            return None;
        }
        let choice = bits.read(self.books.len().ilog2() + 1)? as usize;
        let book = books.get(*self.books.get(choice)?)?;
        let (mut cosines, mut last, mut done) = ([0f32; MAX_ORDER], 0.0, 0);
        while done < self.order {
            let vector = book.vector(bits)?;
            let to = cosines.get_mut(done..self.order)?;
            for (to, value) in to.iter_mut().zip(vector) {
                *to = value + last;
            }
            done += vector.len();
            last = cosines.get(done.min(self.order) - 1).copied()?;
        }
        cosines.iter_mut().take(self.order).for_each(|value| *value = value.cos());
        let most = (1u64 << self.amplitude_bits) - 1;
        Some(Filter {
            amplitude: (f64::from(amplitude) / most as f64 * f64::from(self.offset)) as f32,
            cosines,
        })
    }

    /// Multiplies a spectrum of blocks of the shorter or the longer size by the floor.
    pub(crate) fn apply(&self, filter: &Filter, is_long: bool, spectrum: &mut [f32]) {
        let cosines = &self.cosines[usize::from(is_long)];
        let pairs = filter.cosines.get(..self.order).unwrap_or_default();
        let mut last = None;
        for (value, &place) in spectrum.iter_mut().zip(cosines) {
            let factor = match last {
                Some((same, factor)) if same == place => factor,
                _ => self.factor(filter.amplitude, pairs, place),
            };
            last = Some((place, factor));
            *value *= factor;
        }
    }

    /// What the filter multiplies by where the cosine is `place`.
    fn factor(&self, amplitude: f32, pairs: &[f32], place: f32) -> f32 {
        let (two, tail) = pairs.as_chunks::<2>();
        let (mut p, mut q) = (0.5f32, 0.5f32);
        for [even, odd] in two {
            q *= 2.0 * (even - place);
            p *= 2.0 * (odd - place);
        }
        let power = match tail {
            [even] => {
                q *= 2.0 * (even - place);
                p * p * (4.0 - 4.0 * place * place) + q * q
            }
            _ => p * p * (2.0 - 2.0 * place) + q * q * (2.0 + 2.0 * place),
        };
        // A decibel, as a power of e.
        ((amplitude / power.sqrt() - self.offset) * 0.115_129_25).exp()
    }
}
