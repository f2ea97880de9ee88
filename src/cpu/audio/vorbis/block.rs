//! Audio packets of Vorbis to frames: spectra of floors and residues, their transforms, and sums of blocks that
//! overlap. It must not know pages.

use super::floor0::Filter;
use super::floor1::Heights;
use super::imdct::Imdct;
use super::residue::Scratch;
use super::setup::{Floor, Identification, Mapping, Mode, Setup};
use super::{damaged, zeros};
use crate::cpu::audio::bits::LowFirst;
use crate::error::Result;

/// Decodes one block after the other.
pub(crate) struct Blocks {
    channels: usize,
    /// Coefficients of a short and of a long block: half of its samples.
    sizes: [usize; 2],
    transforms: [Imdct; 2],
    /// For each channel the spectrum of the block at hand, which becomes the middle of its samples.
    spectra: Vec<Vec<f32>>,
    /// For each channel the same of the block before, and which size that had.
    before: Vec<Vec<f32>>,
    last: Option<usize>,
    floors: Vec<Curve>,
    scratch: Scratch,
    frames: Vec<f32>,
}

/// The floor of a channel in a block.
enum Curve {
    Silent,
    Pairs(Box<Filter>),
    Lines(Box<Heights>),
}

impl Blocks {
    pub(crate) fn new(identification: &Identification) -> Result<Self> {
        let &Identification { channels, sizes: [short, long], .. } = identification;
        let spectra = || (0..channels).map(|_| zeros(long / 2)).collect::<Result<Vec<_>>>();
        Ok(Self {
            channels,
            sizes: [short / 2, long / 2],
            transforms: [Imdct::new(short)?, Imdct::new(long)?],
            spectra: spectra()?,
            before: spectra()?,
            last: None,
            floors: Vec::new(),
            scratch: Scratch::default(),
            frames: zeros(long / 2 * channels)?,
        })
    }

    /// The frames between the middle of the block before and that of this one.
    pub(crate) fn decode(&mut self, setup: &Setup, mode: Mode, bits: &mut LowFirst<'_>) -> Result<&[f32]> {
        let unknown = || damaged("a mode has no mapping");
        let mapping = setup.mappings.get(mode.mapping).ok_or_else(unknown)?;
        if mode.is_long {
            // Sizes of the blocks beside it, which are known.
            bits.read(2);
        }
        self.read_floors(setup, mapping, bits);
        let size = self.sizes[usize::from(mode.is_long)];
        self.read_residues(setup, mapping, size, bits)?;
        for &[magnitude, angle] in mapping.couplings.iter().rev() {
            if let Ok([magnitude, angle]) = self.spectra.get_disjoint_mut([magnitude, angle]) {
                uncouple(
                    magnitude.get_mut(..size).unwrap_or_default(),
                    angle.get_mut(..size).unwrap_or_default(),
                );
            }
        }
        let transform = &mut self.transforms[usize::from(mode.is_long)];
        for (channel, (spectrum, curve)) in self.spectra.iter_mut().zip(&self.floors).enumerate() {
            let spectrum = spectrum.get_mut(..size).unwrap_or_default();
            match (curve, floor(setup, mapping, channel)) {
                (Curve::Pairs(filter), Some(Floor::Pairs(floor))) => {
                    floor.apply(filter, mode.is_long, spectrum);
                }
                (Curve::Lines(heights), Some(Floor::Lines(floor))) => floor.apply(heights, spectrum),
                _ => {
                    spectrum.fill(0.0);
                    continue;
                }
            }
            transform.run(spectrum);
        }
        let frames = self.last.map_or(0, |last| self.add(last, usize::from(mode.is_long)));
        std::mem::swap(&mut self.spectra, &mut self.before);
        self.last = Some(usize::from(mode.is_long));
        Ok(self.frames.get(..frames * self.channels).unwrap_or_default())
    }

    fn read_floors(&mut self, setup: &Setup, mapping: &Mapping, bits: &mut LowFirst<'_>) {
        self.floors.clear();
        for channel in 0..self.channels {
            let curve = match floor(setup, mapping, channel) {
                Some(Floor::Pairs(floor)) => {
                    floor.filter(bits, &setup.books).map(|filter| Curve::Pairs(Box::new(filter)))
                }
                Some(Floor::Lines(floor)) => {
                    floor.heights(bits, &setup.books).map(|heights| Curve::Lines(Box::new(heights)))
                }
                None => None,
            };
            self.floors.push(curve.unwrap_or(Curve::Silent));
        }
    }

    fn read_residues(
        &mut self,
        setup: &Setup,
        mapping: &Mapping,
        size: usize,
        bits: &mut LowFirst<'_>,
    ) -> Result<()> {
        let mut is_used: Vec<bool> =
            self.floors.iter().map(|curve| !matches!(curve, Curve::Silent)).collect();
        for &[magnitude, angle] in &mapping.couplings {
            if let Ok([magnitude, angle]) = is_used.get_disjoint_mut([magnitude, angle]) {
                (*magnitude, *angle) = (*magnitude || *angle, *magnitude || *angle);
            }
        }
        for spectrum in &mut self.spectra {
            spectrum.get_mut(..size).unwrap_or_default().fill(0.0);
        }
        for (submap, &[_, residue]) in mapping.parts.iter().enumerate() {
            let mine = |channel: &usize| mapping.submaps.get(*channel) == Some(&submap);
            let used: Vec<bool> = is_used
                .iter()
                .enumerate()
                .filter(|(channel, _)| mine(channel))
                .map(|(_, &used)| used)
                .collect();
            let mut data: Vec<&mut [f32]> = self
                .spectra
                .iter_mut()
                .enumerate()
                .filter(|(channel, _)| mine(channel))
                .filter_map(|(_, spectrum)| spectrum.get_mut(..size))
                .collect();
            if let Some(residue) = setup.residues.get(residue) {
                residue.decode(bits, &setup.books, &mut data, &used, &mut self.scratch)?;
            }
        }
        Ok(())
    }

    /// Writes the frames between the middles of two blocks of sizes `last` and `this`, and says how many there are.
    fn add(&mut self, last: usize, this: usize) -> usize {
        let [before, after] = [self.sizes[last], self.sizes[this]];
        let slope = &self.transforms[last.min(this)].slope;
        let frames = (before + after) / 2;
        let channels = self.channels;
        for (channel, (old, new)) in self.before.iter().zip(&self.spectra).enumerate() {
            let mut out = self.frames.iter_mut().skip(channel).step_by(channels);
            let (Some(old), Some(new)) = (old.get(..before), new.get(..after)) else { return 0 };
            // The second half of the block before: the rest of its middle, then that backwards.
            let (_, middle) = old.split_at(before / 2);
            let mut old = middle.iter().chain(middle.iter().rev()).copied();
            // The first half of this one: the start of its middle backwards with the other sign, then as it is.
            let (middle, _) = new.split_at(after / 2);
            let mut new = middle.iter().rev().map(|value| -value).chain(middle.iter().copied());
            let plain = before.saturating_sub(slope.len()) / 2;
            old.by_ref().take(plain).zip(out.by_ref()).for_each(|(value, to)| *to = value);
            let silent = after.saturating_sub(slope.len()) / 2;
            let overlapped = old.zip(new.by_ref().skip(silent)).zip(slope.iter().zip(slope.iter().rev()));
            for (to, ((old, new), (rise, fall))) in out.by_ref().take(slope.len()).zip(overlapped) {
                *to = old * fall + new * rise;
            }
            out.zip(new).take(silent).for_each(|(to, value)| *to = value);
        }
        frames
    }
}

/// The floor of a channel.
fn floor<'s>(setup: &'s Setup, mapping: &Mapping, channel: usize) -> Option<&'s Floor> {
    let &[floor, _] = mapping.parts.get(*mapping.submaps.get(channel)?)?;
    setup.floors.get(floor)
}

/// Makes two channels of a magnitude and an angle.
fn uncouple(magnitudes: &mut [f32], angles: &mut [f32]) {
    for (magnitude, angle) in magnitudes.iter_mut().zip(angles) {
        let (m, a) = (*magnitude, *angle);
        let other = if (m > 0.0) == (a > 0.0) { m - a } else { m + a };
        (*magnitude, *angle) = if a > 0.0 { (m, other) } else { (other, m) };
    }
}
