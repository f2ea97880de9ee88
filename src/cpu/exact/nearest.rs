//! Nearest neighbours, as each library finds them. It must not know weights.

use super::filters::Line;
use super::rows::Rows;
use crate::deadline::Watch;
use crate::error::Result;

/// Which pixel is the nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Rule {
    Pillow,
    /// Pillow's of words, for which it has other code.
    PillowWords,
    Torchvision,
    TorchvisionExact,
    OpenCv,
}

/// For outputs with at most so many rows and columns together, torch finds the exact ones by other code.
const SMALL: usize = 128;

/// Whether the output is one for which torch finds exact pixels by other code.
pub(super) fn is_small(lines: [Line; 2]) -> bool {
    lines[0].outputs + lines[1].outputs <= SMALL
}

/// torchvision's exact ones: the same place, rounded in two ways.
fn exact_places(line: &Line, is_small: bool) -> Vec<Option<usize>> {
    let (scale, last) = (line.length as f32 / line.outputs as f32, line.length - 1);
    let place = |i: usize| match is_small {
        true => ((i as f64 + 0.5) * f64::from(scale)) as f32,
        false => {
            let before = scale.mul_add(i as f32 + 0.5, -0.5).max(0.0);
            (f64::from(before) + 0.5) as f32
        }
    };
    (0..line.outputs).map(|i| Some((place(i) as usize).min(last))).collect()
}

/// The pixel of every output of a line, where the whole output [`is_small`] or not. `None`: there is none, and it is 0.
pub(super) fn places(line: &Line, rule: Rule, is_small: bool) -> Vec<Option<usize>> {
    let last = line.length - 1;
    let inside = |place: usize| (place <= last).then_some(place);
    match rule {
        Rule::Pillow => {
            // A sum of steps, whose rounding may leave the line.
            let (step, start) = (line.scale(), f64::from(line.start));
            let places = std::iter::successors(Some(start + step * 0.5), |place| Some(place + step));
            places.take(line.outputs).map(|place| inside(place as usize)).collect()
        }
        Rule::PillowWords => {
            let (step, start) = (line.scale(), f64::from(line.start));
            (0..line.outputs).map(|i| inside((step * (i as f64 + 0.5) + start) as usize)).collect()
        }
        Rule::Torchvision => {
            let scale = line.length as f32 / line.outputs as f32;
            (0..line.outputs).map(|i| Some(((i as f32 * scale) as usize).min(last))).collect()
        }
        Rule::TorchvisionExact => exact_places(line, is_small),
        Rule::OpenCv => {
            let scale = 1.0 / (line.outputs as f64 / line.length as f64);
            (0..line.outputs).map(|i| Some(((i as f64 * scale) as usize).min(last))).collect()
        }
    }
}

/// Copies pixels of `channels` elements.
///
/// # Errors
/// When nobody waits any more.
///
/// # Panics
/// When a pixel is not in `src`.
pub(super) fn copy<T: Copy + Default>(
    src: &Rows<'_, T>,
    channels: usize,
    [rows, columns]: [&[Option<usize>]; 2],
    dst: &mut [T],
    watch: &Watch<'_>,
) -> Result<()> {
    for (row, dst) in rows.iter().zip(dst.chunks_exact_mut(columns.len() * channels)) {
        match row.map(|y| src.row(y)) {
            None => dst.fill(T::default()),
            Some(row) => match channels {
                1 => pick::<1, T>(row, columns, dst),
                3 => pick::<3, T>(row, columns, dst),
                4 => pick::<4, T>(row, columns, dst),
                _ => pick_any(row, columns, channels, dst),
            },
        }
        watch.charge(dst.len())?;
    }
    Ok(())
}

fn pick<const C: usize, T: Copy + Default>(row: &[T], columns: &[Option<usize>], dst: &mut [T]) {
    let (pixels, dst) = (row.as_chunks::<C>().0, dst.as_chunks_mut::<C>().0);
    for (to, column) in dst.iter_mut().zip(columns) {
        *to = column.map_or([T::default(); C], |x| pixels[x]);
    }
}

fn pick_any<T: Copy + Default>(row: &[T], columns: &[Option<usize>], channels: usize, dst: &mut [T]) {
    for (to, column) in dst.chunks_exact_mut(channels).zip(columns) {
        match column {
            Some(x) => to.copy_from_slice(&row[x * channels..][..channels]),
            None => to.fill(T::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_differ() {
        let of = |rule, length, outputs| -> Vec<usize> {
            places(&Line::whole(length, outputs), rule, false).into_iter().flatten().collect()
        };
        assert_eq!(of(Rule::Pillow, 4, 2), [1, 3]);
        assert_eq!(of(Rule::Torchvision, 4, 2), [0, 2]);
        assert_eq!(of(Rule::TorchvisionExact, 4, 2), [1, 3]);
        assert_eq!(of(Rule::OpenCv, 4, 2), [0, 2]);
        assert_eq!(of(Rule::Torchvision, 2, 4), [0, 0, 1, 1]);
    }
}
