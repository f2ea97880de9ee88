//! Random numbers as C++'s standard engines make them and GNU's library draws from them: what decides DALI's order of
//! samples. It must not know what is shuffled.

use crate::cpu::random::seed_sequence;

/// An engine: numbers from 0 to `SPAN`.
pub(super) trait Engine {
    /// The largest number.
    const SPAN: u64;
    /// The next number.
    fn draw(&mut self) -> u64;
}

/// `std::minstd_rand0`, whose numbers begin at 1, seeded by a `std::seed_seq` of one number.
pub(super) struct Minimal(u64);

impl Minimal {
    const MODULUS: u64 = 2_147_483_647;

    pub(super) fn new(seed: i64) -> Self {
        let word = seed_sequence(seed, 4).last().copied().unwrap_or_default();
        Self((u64::from(word) % Self::MODULUS).max(1))
    }
}

impl Engine for Minimal {
    const SPAN: u64 = Self::MODULUS - 2;

    fn draw(&mut self) -> u64 {
        self.0 = self.0 * 16_807 % Self::MODULUS;
        self.0 - 1
    }
}

macro_rules! mersenne {
    ($name:ident $word:ident $size:literal, $doc:literal, $middle:literal, $high:literal, $multiplier:literal, $matrix:literal, $temper:expr) => {
        #[doc = $doc]
        pub(super) struct $name {
            words: [$word; $size],
            next: usize,
        }

        impl $name {
            pub(super) fn new(seed: $word) -> Self {
                let mut words = [seed; $size];
                for i in 1..$size {
                    let before = words[i - 1];
                    words[i] = (before ^ before >> ($word::BITS - 2))
                        .wrapping_mul($multiplier)
                        .wrapping_add(i as $word);
                }
                Self { words, next: $size }
            }

            fn twist(&mut self) {
                for k in 0..$size {
                    let mixed = self.words[k] & !$high | self.words[(k + 1) % $size] & $high;
                    let odd = if mixed & 1 == 1 { $matrix } else { 0 };
                    self.words[k] = self.words[(k + $middle) % $size] ^ mixed >> 1 ^ odd;
                }
                self.next = 0;
            }
        }

        impl Engine for $name {
            const SPAN: u64 = $word::MAX as u64;

            fn draw(&mut self) -> u64 {
                if self.next == $size {
                    self.twist();
                }
                let word = self.words[self.next];
                self.next += 1;
                let temper: fn($word) -> $word = $temper;
                u64::from(temper(word))
            }
        }
    };
}

mersenne!(Mersenne32 u32 624, "`std::mt19937`", 397, 0x7FFF_FFFF, 1_812_433_253, 0x9908_B0DF, |mut y| {
    y ^= y >> 11;
    y ^= y << 7 & 0x9D2C_5680;
    y ^= y << 15 & 0xEFC6_0000;
    y ^ y >> 18
});
mersenne!(Mersenne64 u64 312, "`std::mt19937_64`", 156, 0x7FFF_FFFF, 6_364_136_223_846_793_005, 0xB502_6F5A_A966_19E9, |mut y| {
    y ^= y >> 29 & 0x5555_5555_5555_5555;
    y ^= y << 17 & 0x71D6_7FFF_EDA6_0000;
    y ^= y << 37 & 0xFFF7_EEE0_0000_0000;
    y ^ y >> 43
});

/// A number from 0 to `last`, all of them alike: `std::uniform_int_distribution`.
pub(super) fn uniform<E: Engine>(engine: &mut E, last: u64) -> u64 {
    let count = last + 1;
    if E::SPAN == u64::from(u32::MAX) || E::SPAN == u64::MAX {
        // Lemire's multiplication: the high half of a product, which is drawn again where the low half would favour
        // some numbers.
        let bits = if E::SPAN == u64::MAX { 64 } else { 32 };
        let low = |product: u128| product as u64 & E::SPAN;
        let mut product = u128::from(engine.draw()) * u128::from(count);
        if low(product) < count {
            let threshold = (E::SPAN - count + 1) % count;
            while low(product) < threshold {
                product = u128::from(engine.draw()) * u128::from(count);
            }
        }
        return (product >> bits) as u64;
    }
    let scale = E::SPAN / count;
    loop {
        let drawn = engine.draw();
        if drawn < count * scale {
            return drawn / scale;
        }
    }
}

/// `std::shuffle`: two places of one number, where the engine's range allows.
pub(super) fn shuffle<T, E: Engine>(items: &mut [T], engine: &mut E) {
    let count = items.len() as u64;
    if count == 0 {
        return;
    }
    if E::SPAN / count < count {
        for i in 1..count {
            items.swap(i as usize, uniform(engine, i) as usize);
        }
        return;
    }
    let mut i = 1;
    if count.is_multiple_of(2) {
        items.swap(1, uniform(engine, 1) as usize);
        i = 2;
    }
    while i < count {
        let drawn = uniform(engine, (i + 1) * (i + 2) - 1);
        items.swap(i as usize, (drawn / (i + 2)) as usize);
        items.swap(i as usize + 1, (drawn % (i + 2)) as usize);
        i += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The standard says what the 10,000th number of each engine is that has its usual seed.
    #[test]
    fn engines_are_those_of_the_standard() {
        let mut small = Minimal(1);
        assert_eq!((0..10_000).map(|_| small.draw() + 1).last(), Some(1_043_618_065));
        let mut word = Mersenne32::new(5489);
        assert_eq!((0..10_000).map(|_| word.draw()).last(), Some(4_123_659_995));
        let mut long = Mersenne64::new(5489);
        assert_eq!((0..10_000).map(|_| long.draw()).last(), Some(9_981_545_732_273_789_042));
    }

    #[test]
    fn shuffling_keeps_what_is_there() {
        for count in [1_usize, 2, 7, 1000, 70_001] {
            let mut items: Vec<usize> = (0..count).collect();
            shuffle(&mut items, &mut Mersenne32::new(1));
            let mut sorted = items.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..count));
        }
    }

    /// What g++ 12 makes of it: an even count, an odd one, another engine, and too many for two places of a number.
    #[test]
    fn shuffling_is_that_of_libstdcpp() {
        fn shuffled<E: Engine>(count: usize, mut engine: E) -> Vec<usize> {
            let mut items: Vec<usize> = (0..count).collect();
            shuffle(&mut items, &mut engine);
            items
        }
        assert_eq!(shuffled(10, Mersenne32::new(1)), [9, 0, 2, 5, 7, 4, 6, 3, 1, 8]);
        assert_eq!(shuffled(11, Mersenne32::new(7)), [3, 0, 7, 2, 10, 4, 5, 1, 6, 8, 9]);
        assert_eq!(shuffled(10, Mersenne64::new(1)), [6, 9, 4, 8, 1, 3, 2, 5, 0, 7]);
        let many = shuffled(70_001, Mersenne32::new(1));
        assert_eq!((&many[..3], many[70_000]), (&[7_199, 23_693, 65_840][..], 55_777));
    }
}
