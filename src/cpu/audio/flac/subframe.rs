//! One channel of a frame of FLAC: a prediction from the samples before, and what is left of it. It must not know
//! frames.

use crate::cpu::audio::bits::HighFirst;

/// The most samples that one is predicted from.
const MAX_ORDER: usize = 32;

/// A sample.
pub(crate) trait Value: Copy + Default + Into<i64> {
    /// Of a number that fits, of a file that is not damaged.
    fn wrapped(value: i64) -> Self;
}

impl Value for i32 {
    fn wrapped(value: i64) -> Self {
        value as Self
    }
}

impl Value for i64 {
    fn wrapped(value: i64) -> Self {
        value
    }
}

/// Reads the samples of one channel, of `width` bits. `None` for what no encoder writes, and where the bits end.
pub(crate) fn read<T: Value>(bits: &mut HighFirst<'_>, width: u32, samples: &mut [T]) -> Option<()> {
    if bits.read(1)? != 0 {
        return None;
    }
    let kind = bits.read(6)? as usize;
    let unused = if bits.read(1)? == 1 { u32::try_from(bits.unary()?).ok()?.checked_add(1)? } else { 0 };
    let width = width.checked_sub(unused).filter(|&width| width > 0)?;
    match kind {
        0 => samples.fill(T::wrapped(bits.signed(width)?)),
        1 => plain(bits, width, samples)?,
        8..=12 => {
            let order = kind - 8;
            let (warm, _) = samples.split_at_mut_checked(order)?;
            plain(bits, width, warm)?;
            residual(bits, order, samples)?;
            fixed(order, samples);
        }
        32..=63 => {
            let order = kind - 31;
            let (warm, _) = samples.split_at_mut_checked(order)?;
            plain(bits, width, warm)?;
            let precision = bits.read(4)? as u32 + 1;
            let shift = bits.signed(5)?;
            // 15 more is no precision; libFLAC knows no shift to the left.
            if precision == 16 || shift < 0 {
                return None;
            }
            let mut factors = [0; MAX_ORDER];
            let factors = factors.get_mut(..order)?;
            for to in factors.iter_mut().rev() {
                *to = bits.signed(precision)?;
            }
            residual(bits, order, samples)?;
            linear(factors, shift as u32, samples);
        }
        _ => return None,
    }
    if unused > 0 {
        samples.iter_mut().for_each(|value| *value = T::wrapped((*value).into() << unused));
    }
    Some(())
}

/// Samples as they are.
fn plain<T: Value>(bits: &mut HighFirst<'_>, width: u32, samples: &mut [T]) -> Option<()> {
    samples.iter_mut().try_for_each(|to| bits.signed(width).map(|value| *to = T::wrapped(value)))
}

/// What predictions leave, of all samples behind the first `order`.
fn residual<T: Value>(bits: &mut HighFirst<'_>, order: usize, samples: &mut [T]) -> Option<()> {
    let width = match bits.read(2)? {
        0 => 4,
        1 => 5,
        _ => return None,
    };
    let partitions = 1usize << bits.read(4)?;
    let (size, rest) = (samples.len() / partitions, samples.len() % partitions);
    if rest != 0 || size < order {
        return None;
    }
    let mut left = samples.get_mut(order..)?;
    for partition in 0..partitions {
        let count = if partition == 0 { size - order } else { size };
        let (mine, behind) = left.split_at_mut_checked(count)?;
        left = behind;
        let low = bits.read(width)? as u32;
        if low == (1 << width) - 1 {
            let width = bits.read(5)? as u32;
            plain(bits, width, mine)?;
        } else {
            mine.iter_mut().try_for_each(|to| bits.rice(low).map(|value| *to = T::wrapped(value)))?;
        }
    }
    Some(())
}

/// Adds to each sample the prediction by a polynomial through the `order` before it.
fn fixed<T: Value>(order: usize, samples: &mut [T]) {
    match order {
        1 => linear(&[1], 0, samples),
        2 => linear(&[-1, 2], 0, samples),
        3 => linear(&[1, -3, 3], 0, samples),
        4 => linear(&[-1, 4, -6, 4], 0, samples),
        _ => {}
    }
}

/// Adds to each sample the sum of those before it times `factors`, shifted.
fn linear<T: Value>(factors: &[i64], shift: u32, samples: &mut [T]) {
    match factors.len() {
        // With a number of factors that is known the sum is several times as fast.
        1..=4 => predict::<T, 4>(factors, shift, samples),
        5..=8 => predict::<T, 8>(factors, shift, samples),
        9..=12 => predict::<T, 12>(factors, shift, samples),
        _ => predict::<T, MAX_ORDER>(factors, shift, samples),
    }
}

/// The same with `N` factors, the first of them 0.
fn predict<T: Value, const N: usize>(factors: &[i64], shift: u32, samples: &mut [T]) {
    let mut all = [0; N];
    let Some(to) = all.get_mut(N.saturating_sub(factors.len())..) else { return };
    to.iter_mut().zip(factors).for_each(|(to, factor)| *to = *factor);
    for i in factors.len()..samples.len() {
        let Some((before, [to, ..])) = samples.split_at_mut_checked(i) else { return };
        let add =
            |sum: i64, (factor, &value): (&i64, &T)| sum.wrapping_add(factor.wrapping_mul(value.into()));
        let sum = match before.last_chunk::<N>() {
            Some(before) => all.iter().zip(before).fold(0, add),
            None => factors.iter().rev().zip(before.iter().rev()).fold(0, add),
        };
        *to = T::wrapped((*to).into().wrapping_add(sum >> shift));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_are_added() {
        // Squares have a constant second difference.
        let mut samples: Vec<i32> = (0..20).map(|i| if i < 2 { i * i } else { 2 }).collect();
        fixed(2, &mut samples);
        assert!(samples.iter().enumerate().all(|(i, &value)| value == (i * i) as i32), "{samples:?}");
        let mut wide: Vec<i64> = vec![3, 5, 0, 0];
        linear(&[1 << 14, 1 << 14], 15, &mut wide);
        assert_eq!(wide, [3, 5, 4, 4]);
        let mut long: Vec<i32> = (1..=40).collect();
        let mut factors = [0; 20];
        factors[19] = 1;
        linear(&factors, 0, &mut long);
        assert_eq!(long[39], (20..=40).sum::<i32>());
    }

    #[test]
    fn what_no_encoder_writes_is_none() {
        let mut samples = [0i32; 4];
        // A value of 3 bits, all four the same.
        assert_eq!(read(&mut HighFirst::new(&[0b0000_0000, 0b1010_0000]), 3, &mut samples), Some(()));
        assert_eq!(samples, [-3; 4]);
        for bytes in [[0x80, 0, 0], [0b0000_0100, 0, 0], [0b0001_1010, 0, 0], [0b0000_0001, 0, 0]] {
            assert_eq!(read(&mut HighFirst::new(&bytes), 3, &mut samples), None, "{bytes:?}");
        }
    }
}
