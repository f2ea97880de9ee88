//! Random numbers as DALI has drawn them since 1.53: the generator Philox4x32-10, positioned by seed, batch, sample and
//! element, so that numbers depend neither on threads nor on how samples are batched; the seeds of a pipeline's
//! operators; and distributions as libstdc++ and DALI compute them.

pub mod standard;

use multiversion::multiversion;

/// Words that [`Philox`] leaves between the numbers of neighbouring elements.
const ELEMENT_STRIDE: u64 = 257;

/// Sequences that lie between neighbouring samples.
const SAMPLE_STRIDE: u64 = 65_537;

/// 2^-32.
const UNIT: f32 = 1.0 / 4_294_967_296.0;

/// The generator Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3": each block of four
/// words is a function of a key and a counter, so any place in the sequence is reached at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Philox {
    key: u64,
    /// Block, and sequence of blocks.
    counter: [u64; 2],
    /// Which word of the block is next.
    phase: usize,
    /// The block that was computed last.
    block: Option<[u32; 4]>,
}

impl Philox {
    /// The beginning of sequence `sequence` for `key`.
    pub fn new(key: u64, sequence: u64) -> Self {
        Self { key, counter: [0, sequence], phase: 0, block: None }
    }

    /// The generator for element `element` of the sample whose generator this is.
    #[must_use]
    pub fn element(&self, element: u64) -> Self {
        let words = element.wrapping_mul(ELEMENT_STRIDE) + self.phase as u64;
        let counter = [self.counter[0].wrapping_add(words / 4), self.counter[1]];
        Self { key: self.key, counter, phase: (words % 4) as usize, block: None }
    }

    /// The generators for the elements of that sample, one after the other: much faster than one by one.
    pub fn elements(self) -> Elements {
        Elements { sample: self, next: 0, blocks: [[0; 4]; LANES] }
    }

    /// The next 32 bits.
    #[inline(always)]
    pub fn next_u32(&mut self) -> u32 {
        let word = self.block.get_or_insert_with(|| block(self.key, self.counter))[self.phase];
        self.phase += 1;
        if self.phase == 4 {
            self.phase = 0;
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.block = None;
        }
        word
    }

    /// The next 64 bits, low word first.
    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        let low = u64::from(self.next_u32());
        low | u64::from(self.next_u32()) << 32
    }

    /// The next float from 0 to 1, both included.
    #[inline(always)]
    pub fn unit_f32(&mut self) -> f32 {
        self.next_u32() as f32 * UNIT
    }

    /// The next double from 0 to 1.
    #[inline(always)]
    pub fn unit_f64(&mut self) -> f64 {
        self.next_u64() as f64 * 2f64.powi(-64)
    }
}

/// Of the function that makes blocks.
const ROUNDS: usize = 10;
const FACTORS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

fn block(key: u64, counter: [u64; 2]) -> [u32; 4] {
    let words = |value: u64| [value as u32, (value >> 32) as u32];
    let ([mut k0, mut k1], [mut x, mut y], [mut z, mut w]) =
        (words(key), words(counter[0]), words(counter[1]));
    for _ in 0..ROUNDS {
        let [low0, high0] = words(FACTORS[0] * u64::from(x));
        let [low1, high1] = words(FACTORS[1] * u64::from(z));
        (x, y, z, w) = (high1 ^ y ^ k0, low1, high0 ^ w ^ k1, low0);
        k0 = k0.wrapping_add(STEPS[0]);
        k1 = k1.wrapping_add(STEPS[1]);
    }
    [x, y, z, w]
}

/// Blocks that are computed side by side.
const LANES: usize = 16;

/// The generators of [`Philox::elements`].
pub struct Elements {
    sample: Philox,
    next: u64,
    /// The first blocks of as many elements, of which the next is one.
    blocks: [[u32; 4]; LANES],
}

impl Iterator for Elements {
    type Item = Philox;

    #[inline(always)]
    fn next(&mut self) -> Option<Philox> {
        let lane = self.next as usize % LANES;
        if lane == 0 {
            self.blocks = blocks(&self.sample, self.next);
        }
        let words = self.next.wrapping_mul(ELEMENT_STRIDE) + self.sample.phase as u64;
        let [first, sequence] = self.sample.counter;
        self.next += 1;
        Some(Philox {
            key: self.sample.key,
            counter: [first.wrapping_add(words / 4), sequence],
            phase: (words % 4) as usize,
            block: Some(self.blocks[lane]),
        })
    }
}

/// The first blocks of elements `first` and following.
#[multiversion(targets("x86_64+avx+avx2"))]
fn blocks(sample: &Philox, first: u64) -> [[u32; 4]; LANES] {
    let (mut x, mut y) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        let words = (first + lane as u64).wrapping_mul(ELEMENT_STRIDE) + sample.phase as u64;
        let counter = sample.counter[0].wrapping_add(words / 4);
        (x[lane], y[lane]) = (counter as u32, (counter >> 32) as u32);
    }
    let (mut z, mut w) = ([sample.counter[1] as u32; LANES], [(sample.counter[1] >> 32) as u32; LANES]);
    let [mut k0, mut k1] = [sample.key as u32, (sample.key >> 32) as u32];
    for _ in 0..ROUNDS {
        for lane in 0..LANES {
            let (first, second) = (FACTORS[0] * u64::from(x[lane]), FACTORS[1] * u64::from(z[lane]));
            x[lane] = (second >> 32) as u32 ^ y[lane] ^ k0;
            z[lane] = (first >> 32) as u32 ^ w[lane] ^ k1;
            (y[lane], w[lane]) = (second as u32, first as u32);
        }
        k0 = k0.wrapping_add(STEPS[0]);
        k1 = k1.wrapping_add(STEPS[1]);
    }
    std::array::from_fn(|lane| [x[lane], y[lane], z[lane], w[lane]])
}

/// What an operator's random numbers follow from, beside the place of a sample: nothing is left behind by a batch, so
/// batches may run in any order and in different instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// The seed `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed with the bits of `mask` flipped.
    #[must_use]
    pub fn masked(self, mask: u64) -> Self {
        Self(self.0 ^ mask)
    }

    /// The numbers of a batch before which there were `samples` samples.
    pub fn batch(self, samples: u64) -> BatchRandom {
        BatchRandom { seed: self.0, first: samples }
    }
}

/// The random numbers of one operator for one batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchRandom {
    seed: u64,
    first: u64,
}

impl BatchRandom {
    /// The generator of sample `sample`.
    pub fn sample(&self, sample: usize) -> Philox {
        let (key, sequence) = self.position(sample);
        Philox::new(key, sequence)
    }

    /// Key and sequence of that generator.
    pub fn position(&self, sample: usize) -> (u64, u64) {
        (self.seed, self.first.wrapping_add((sample as u64).wrapping_mul(SAMPLE_STRIDE)))
    }
}

/// The seeds that a pipeline with seed `seed` has for its operators, in their order.
pub fn operator_seeds(seed: i64) -> Vec<u32> {
    seed_sequence(seed, 1024)
}

/// So many words of C++'s `std::seed_seq` of one number, at least 2.
pub fn seed_sequence(seed: i64, n: usize) -> Vec<u32> {
    let mix = |value: u32| value ^ (value >> 27);
    // The distances that the standard asks for when so many are wanted.
    let t = match n {
        623.. => 11,
        68.. => 7,
        39.. => 5,
        7.. => 3,
        _ => (n.max(2) - 1) / 2,
    };
    let p = (n - t) / 2;
    let q = p + t;
    let mut all = vec![0x8b8b_8b8b_u32; n];
    for k in 0..n {
        let (at, near, far) = (k % n, (k + p) % n, (k + q) % n);
        let r1 = mix(all[at] ^ all[near] ^ all[(k + n - 1) % n]).wrapping_mul(1_664_525);
        let more = match k {
            0 => 1,
            1 => 1u32.wrapping_add(seed as u32),
            k => k as u32,
        };
        let r2 = r1.wrapping_add(more);
        all[near] = all[near].wrapping_add(r1);
        all[far] = all[far].wrapping_add(r2);
        all[at] = r2;
    }
    for k in n..2 * n {
        let (at, near, far) = (k % n, (k + p) % n, (k + q) % n);
        let sum = all[at].wrapping_add(all[near]).wrapping_add(all[(k + n - 1) % n]);
        let r3 = mix(sum).wrapping_mul(1_566_083_941);
        let r4 = r3.wrapping_sub(at as u32);
        all[near] ^= r3;
        all[far] ^= r4;
        all[at] = r4;
    }
    all
}

/// How DALI scales 32 bits to floats from `low` up to `high`: the factor, and the largest.
#[inline(always)]
pub fn scale_f32(low: f32, high: f32) -> (f32, f32) {
    let last = high.next_down();
    ((last - low) * UNIT, last)
}

/// The same for 64 bits and doubles.
#[inline(always)]
pub fn scale_f64(low: f64, high: f64) -> (f64, f64) {
    let last = high.next_down();
    ((last - low) * 2f64.powi(-64), last)
}

/// A float from `low` up to `high`.
#[inline(always)]
pub fn uniform_f32(random: &mut Philox, low: f32, high: f32) -> f32 {
    let (factor, last) = scale_f32(low, high);
    (random.next_u32() as f32).mul_add(factor, low).min(last)
}

/// A double from `low` up to `high`.
#[inline(always)]
pub fn uniform_f64(random: &mut Philox, low: f64, high: f64) -> f64 {
    let (factor, last) = scale_f64(low, high);
    (random.next_u64() as f64).mul_add(factor, low).min(last)
}

/// A float from `low` up to `high`, as libstdc++'s `uniform_real_distribution` does it.
pub fn canonical_f32(random: &mut Philox, low: f32, high: f32) -> f32 {
    random.unit_f32().min(1f32.next_down()) * (high - low) + low
}

/// An integer from 0 to `last`, as libstdc++'s `uniform_int_distribution` does it.
pub fn uniform_int(random: &mut Philox, last: u32) -> u32 {
    let Some(range) = last.checked_add(1) else { return random.next_u32() };
    let mut product = u64::from(random.next_u32()) * u64::from(range);
    if (product as u32) < range {
        let least = range.wrapping_neg() % range;
        while (product as u32) < least {
            product = u64::from(random.next_u32()) * u64::from(range);
        }
    }
    (product >> 32) as u32
}

/// An integer from 0 to `last`, as libstdc++ draws one that may have more than 32 bits: its upper half first.
pub fn uniform_u64(random: &mut Philox, last: u64) -> u64 {
    if let Ok(last) = u32::try_from(last) {
        return u64::from(uniform_int(random, last));
    }
    loop {
        let upper = u64::from(uniform_int(random, (last >> 32) as u32));
        let drawn = upper << 32 | u64::from(random.next_u32());
        if drawn <= last {
            return drawn;
        }
    }
}

/// A normal float, by the cosine of Box and Muller.
#[inline(always)]
pub fn normal_f32(random: &mut Philox, mean: f32, stddev: f32) -> f32 {
    let (mut u1, mut u2) = (random.unit_f32(), random.unit_f32());
    if u1 == 0.0 {
        (u1, u2) = if u2 == 0.0 { (1e-30, u2) } else { (u2, u1) };
    }
    let x = (-2.0 * u1.ln()).sqrt() * (2.0 * std::f32::consts::PI * u2).cos();
    x.mul_add(stddev, mean)
}

/// A normal double.
#[inline(always)]
pub fn normal_f64(random: &mut Philox, mean: f64, stddev: f64) -> f64 {
    let (mut u1, mut u2) = (random.unit_f64(), random.unit_f64());
    if u1 == 0.0 {
        (u1, u2) = if u2 == 0.0 { (1e-30, u2) } else { (u2, u1) };
    }
    let x = (-2.0 * u1.ln()).sqrt() * (2.0 * std::f64::consts::PI * u2).cos();
    x.mul_add(stddev, mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first answers of Random123's known-answer tests.
    #[test]
    fn blocks_are_those_of_the_paper() {
        assert_eq!(block(0, [0, 0]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            block(u64::MAX, [u64::MAX, u64::MAX]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        let (key, counter) = (0x299f_31d0_a409_3822, [0x85a3_08d3_243f_6a88, 0x0370_7344_1319_8a2e]);
        assert_eq!(block(key, counter), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn elements_are_the_same_together() {
        for skipped in 0..4 {
            let mut sample = Philox::new(0x1234_5678_9abc_def0, u64::MAX - 7);
            for _ in 0..skipped {
                sample.next_u32();
            }
            let together = sample.clone().elements().take(3 * LANES + 1);
            for (i, mut random) in together.enumerate() {
                let mut alone = sample.element(i as u64);
                assert_eq!([(); 6].map(|()| random.next_u32()), [(); 6].map(|()| alone.next_u32()), "{i}");
            }
        }
    }

    #[test]
    fn seeds_are_those_of_dali() {
        let seeds = operator_seeds(42);
        assert_eq!(seeds[..4], [1_153_314_634, 1_765_093_571, 4_209_470_911, 239_395_042]);
        // Only the low half of a seed counts.
        assert_eq!(operator_seeds(42 + (5 << 32)), seeds);
    }

    /// What DALI 2.4 drew with seed 7: the first element of the first sample.
    #[test]
    fn a_uniform_number_is_that_of_dali() {
        let mut random = Seed::new(7).batch(0).sample(0).element(0);
        assert_eq!(uniform_f32(&mut random, -1.0, 1.0), 0.909_194_23);
    }

    #[test]
    fn elements_samples_and_batches_are_places_in_one_sequence() {
        let (first, second) = (Seed::new(1).batch(0), Seed::new(1).batch(3));
        assert_eq!(first.sample(2), Philox::new(1, 2 * 65_537));
        assert_eq!(second.sample(0), Philox::new(1, 3));
        let mut walked = first.sample(0);
        (0..257 * 3).for_each(|_| {
            walked.next_u32();
        });
        assert_eq!(first.sample(0).element(3).next_u64(), walked.next_u64());
    }

    #[test]
    fn integers_cover_their_range() {
        let mut random = Philox::new(3, 0);
        let seen: std::collections::HashSet<u32> = (0..200).map(|_| uniform_int(&mut random, 5)).collect();
        assert_eq!(seen.len(), 6);
        assert_eq!(uniform_int(&mut random, 0), 0);
        uniform_int(&mut random, u32::MAX);
    }
}
