//! Weights of the pixels of a line, for each pixel of the output: where they begin, and how many there are. It must not
//! know how they are worked out, nor pixels.

/// For each output the first pixel and its weights.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis<W> {
    /// First pixel, and the end of its weights in `weights`.
    places: Vec<(usize, usize)>,
    weights: Vec<W>,
}

/// Bits behind the point of Pillow's weights: 8 bits are a pixel's, two are left for sums.
pub(super) const PILLOW_BITS: u32 = 32 - 8 - 2;

/// The most that torchvision uses, and what its weights must stay below.
const TORCHVISION_BITS: u32 = 22;
const TORCHVISION_LIMIT: i32 = 1 << 15;

impl<W: Copy> Axis<W> {
    /// For so many outputs of about so many weights each.
    pub(super) fn with_capacity(outputs: usize, taps: usize) -> Self {
        Self {
            places: Vec::with_capacity(outputs),
            weights: Vec::with_capacity(outputs.saturating_mul(taps)),
        }
    }

    /// Adds an output, whose weights it returns.
    pub(super) fn push(&mut self, first: usize, weights: impl Iterator<Item = W>) -> &mut [W] {
        let start = self.weights.len();
        self.weights.extend(weights);
        self.places.push((first, self.weights.len()));
        &mut self.weights[start..]
    }

    /// Outputs.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The first pixel and the weights of an output.
    #[inline(always)]
    pub(super) fn at(&self, output: usize) -> (usize, &[W]) {
        let (first, end) = self.places[output];
        let start = output.checked_sub(1).map_or(0, |before| self.places[before].1);
        (first, &self.weights[start..end])
    }

    /// The first pixel that an output needs, and the end of them.
    pub(super) fn span(&self) -> (usize, usize) {
        let places = || (0..self.len()).map(|output| self.at(output));
        let first = places().map(|(first, _)| first).min().unwrap_or(0);
        (first, places().map(|(first, weights)| first + weights.len()).max().unwrap_or(0))
    }

    /// The same weights for a line that begins at pixel `start`.
    pub(super) fn from(mut self, start: usize) -> Self {
        self.places.iter_mut().for_each(|(first, _)| *first -= start);
        self
    }

    /// Some of the outputs, from the first to the end, the last one first if it is mirrored.
    pub(super) fn part(self, (start, end): (usize, usize), mirror: bool) -> Self {
        if !mirror && (start, end) == (0, self.len()) {
            return self;
        }
        let mut part = Self::with_capacity(end - start, self.weights.len() / self.len().max(1));
        for i in 0..end - start {
            let (first, weights) = self.at(if mirror { end - 1 - i } else { start + i });
            part.push(first, weights.iter().copied());
        }
        part
    }

    /// One pixel for each output, of weight `one`.
    pub(super) fn identity(outputs: usize, one: W) -> Self {
        let mut axis = Self::with_capacity(outputs, 1);
        for output in 0..outputs {
            axis.push(output, std::iter::once(one));
        }
        axis
    }

    fn map<V>(&self, f: impl FnMut(W) -> V) -> Axis<V> {
        Axis { places: self.places.clone(), weights: self.weights.iter().copied().map(f).collect() }
    }
}

impl Axis<f64> {
    /// The weights times 2^bits, rounded, halves away from zero.
    pub(super) fn fixed(&self, bits: u32) -> Axis<i32> {
        let one = f64::from(1_i32 << bits);
        self.map(
            |weight| if weight < 0.0 { (weight * one - 0.5) as i32 } else { (weight * one + 0.5) as i32 },
        )
    }

    /// The bits behind the point of torchvision's weights: as many as its largest weight has room for in 16 bits.
    pub(super) fn torchvision_bits(&self) -> u32 {
        let largest = self.weights.iter().copied().fold(0.0, f64::max);
        let fits = |bits: u32| ((0.5 + largest * f64::from(1_i32 << (bits + 1))) as i32) < TORCHVISION_LIMIT;
        (0..TORCHVISION_BITS).find(|&bits| !fits(bits)).unwrap_or(TORCHVISION_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis() -> Axis<f64> {
        let mut axis = Axis::with_capacity(3, 2);
        axis.push(0, [1.0].into_iter());
        axis.push(0, [0.5, 0.5].into_iter());
        axis.push(2, [-0.25, 1.25].into_iter());
        axis
    }

    #[test]
    fn parts_and_mirrors_keep_weights() {
        assert_eq!(axis().span(), (0, 4));
        let part = axis().part((1, 3), true);
        assert_eq!(part.at(0), (2, &[-0.25, 1.25][..]));
        assert_eq!(part.at(1), (0, &[0.5, 0.5][..]));
        assert_eq!(axis().part((2, 3), false).from(2).at(0).0, 0);
    }

    #[test]
    fn halves_round_away_from_zero() {
        let mut axis = Axis::with_capacity(1, 2);
        axis.push(0, [0.125, -0.125].into_iter());
        assert_eq!(axis.fixed(2).at(0).1, [1, -1]);
        assert_eq!(self::axis().torchvision_bits(), 14);
        assert_eq!(Axis::identity(2, 1e-9).torchvision_bits(), 22);
    }
}
