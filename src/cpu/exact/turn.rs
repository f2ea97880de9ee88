//! Turning some rows so that the same element of all of them lies together, and back. It must not know what the
//! elements are.

use super::rows::Rows;

/// Rows that are turned together.
pub(super) const LINES: usize = 16;

type Block = [[u8; LINES]; LINES];

/// Writes to `turned` the elements of the first [`LINES`] rows of `src`; the last row stands in for those that are
/// missing.
///
/// # Panics
/// When there are no rows, or `turned` is shorter than a row.
pub(super) fn turn(src: &Rows<'_>, turned: &mut [[u8; LINES]]) {
    let lines: [&[u8]; LINES] = std::array::from_fn(|y| src.row(y.min(src.count - 1)));
    let whole = src.len / LINES * LINES;
    for (i, to) in turned[..whole].as_chunks_mut::<LINES>().0.iter_mut().enumerate() {
        let block: Block =
            std::array::from_fn(|y| lines[y][i * LINES..].first_chunk().copied().unwrap_or_default());
        *to = turn_block(block);
    }
    for (x, to) in turned[..src.len].iter_mut().enumerate().skip(whole) {
        *to = std::array::from_fn(|y| lines[y][x]);
    }
}

/// Writes the first `rows` of the rows that were turned to `dst`.
///
/// # Panics
/// When `dst` is shorter than these rows.
pub(super) fn turn_back(turned: &[[u8; LINES]], rows: usize, dst: &mut [u8]) {
    let len = turned.len();
    let (blocks, rest) = turned.as_chunks::<LINES>();
    for (i, block) in blocks.iter().enumerate() {
        for (y, line) in turn_block(*block).iter().enumerate().take(rows) {
            dst[y * len + i * LINES..][..LINES].copy_from_slice(line);
        }
    }
    let whole = len - rest.len();
    for (y, dst) in dst.chunks_exact_mut(len).enumerate().take(rows) {
        for (to, from) in dst[whole..].iter_mut().zip(rest) {
            *to = from[y];
        }
    }
}

/// Rows become columns. Four times every row is interleaved with the one half a block below.
#[inline(always)]
fn turn_block(mut block: Block) -> Block {
    for _ in 0..LINES.ilog2() {
        let mut next = Block::default();
        for i in 0..LINES / 2 {
            let (low, high) = interleave(block[i], block[i + LINES / 2]);
            (next[2 * i], next[2 * i + 1]) = (low, high);
        }
        block = next;
    }
    block
}

#[inline(always)]
fn interleave(a: [u8; LINES], b: [u8; LINES]) -> ([u8; LINES], [u8; LINES]) {
    let pick = |i: usize| if i.is_multiple_of(2) { a[i / 2] } else { b[i / 2] };
    (std::array::from_fn(pick), std::array::from_fn(|i| pick(i + LINES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_turned_twice_is_as_before() {
        for (rows, len) in [(1, 1), (3, 16), (16, 33), (16, 40), (5, 15)] {
            let data: Vec<u8> = (0..rows * len).map(|i| (i * 7 % 251) as u8).collect();
            let mut turned = vec![[0; LINES]; len];
            turn(&Rows::dense(&data, len), &mut turned);
            for (x, column) in turned.iter().enumerate() {
                for (y, &value) in column.iter().enumerate() {
                    assert_eq!(value, data[y.min(rows - 1) * len + x]);
                }
            }
            let mut back = vec![0; rows * len];
            turn_back(&turned, rows, &mut back);
            assert_eq!(back, data);
        }
    }
}
