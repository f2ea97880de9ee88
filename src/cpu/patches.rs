//! Images and clips cut into patches, in the order of Qwen2-VL: a row for each patch, those of a square that a model
//! merges next to each other. It must not know tensors.

/// The extents of what is cut, and how its patches lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patches {
    /// Frames that there are, at least one. The last one is repeated where patches need more.
    pub frames: usize,
    /// Channels of a pixel.
    pub channels: usize,
    /// Rows, a multiple of `side * merge`.
    pub height: usize,
    /// Columns, a multiple of `side * merge`.
    pub width: usize,
    /// Whether the channels of a pixel are neighbours, not the columns of a channel.
    pub channels_last: bool,
    /// Rows and columns of a patch.
    pub side: usize,
    /// Frames of a patch.
    pub depth: usize,
    /// Patches along each side of a square that are merged.
    pub merge: usize,
}

/// Distances of neighbours in what is cut, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    /// Of frames.
    pub frame: usize,
    /// Of channels.
    pub channel: usize,
    /// Of rows.
    pub row: usize,
    /// Of columns.
    pub column: usize,
}

impl Patches {
    /// Patches along frames, rows and columns.
    pub fn grid(&self) -> [usize; 3] {
        [self.frames.div_ceil(self.depth), self.height / self.side, self.width / self.side]
    }

    /// Elements of a patch: those of a channel, of a frame, of a row together.
    pub fn patch_len(&self) -> usize {
        self.channels * self.depth * self.side * self.side
    }

    /// Where elements lie in what is cut.
    pub fn strides(&self) -> Strides {
        let frame = self.channels * self.height * self.width;
        match self.channels_last {
            true => Strides { frame, channel: 1, row: self.width * self.channels, column: self.channels },
            false => Strides { frame, channel: self.height * self.width, row: self.width, column: 1 },
        }
    }

    /// Copies the patches of `src` to `dst`, whose lengths are those of the extents.
    pub fn cut<T: Copy>(&self, src: &[T], dst: &mut [T]) {
        // Lines of the usual patches are a few vectors each, less than a call takes.
        match (self.strides().column, self.side) {
            (1, 14) => self.lines(src, dst, copy::<14, T>),
            (1, 16) => self.lines(src, dst, copy::<16, T>),
            (1, side) => self.lines(src, dst, |from, to| to.copy_from_slice(&from[..side])),
            (step, _) => self.lines(src, dst, |from, to| {
                to.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, from)| *to = *from);
            }),
        }
    }

    /// Calls `copy` with each line of each patch: where it begins in `src`, and where it goes.
    #[inline(always)]
    fn lines<T>(&self, src: &[T], dst: &mut [T], copy: impl Fn(&[T], &mut [T])) {
        let ([deep, high, wide], strides) = (self.grid(), self.strides());
        let merge = self.merge;
        let squares = (0..deep).flat_map(|frame| (0..high / merge).map(move |row| (frame, row)));
        let squares =
            squares.flat_map(|(frame, row)| (0..wide / merge).map(move |column| (frame, row, column)));
        let patches = squares.flat_map(|(frame, row, column)| {
            let of_square = (0..merge).flat_map(move |down| (0..merge).map(move |across| (down, across)));
            of_square.map(move |(down, across)| (frame, row * merge + down, column * merge + across))
        });
        for ((frame, row, column), patch) in patches.zip(dst.chunks_exact_mut(self.patch_len())) {
            let corner = row * self.side * strides.row + column * self.side * strides.column;
            let planes = patch.chunks_exact_mut(self.side * self.side);
            for (plane, number) in planes.zip(0..) {
                let (channel, of_patch) = (number / self.depth, number % self.depth);
                let taken = (frame * self.depth + of_patch).min(self.frames - 1);
                let first = corner + taken * strides.frame + channel * strides.channel;
                for (line, y) in plane.chunks_exact_mut(self.side).zip(0..) {
                    copy(&src[first + y * strides.row..], line);
                }
            }
        }
    }
}

/// Copies a line of `N` elements.
#[inline(always)]
fn copy<const N: usize, T: Copy>(from: &[T], to: &mut [T]) {
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the definition: where each element of each patch is from.
    #[test]
    fn every_element_is_where_the_definition_says() {
        for channels_last in [false, true] {
            for (frames, depth, side) in [(1, 1, 3), (1, 2, 14), (3, 2, 16), (4, 2, 3)] {
                let (height, width) = (4 * side, 8 * side);
                let cut =
                    Patches { frames, channels: 3, height, width, channels_last, side, depth, merge: 2 };
                let src: Vec<u32> = (0..(frames * 3 * height * width) as u32).collect();
                let [deep, high, wide] = cut.grid();
                let mut dst = vec![u32::MAX; deep * high * wide * cut.patch_len()];
                cut.cut(&src, &mut dst);
                for (place, &found) in dst.iter().enumerate() {
                    let digit = |below: usize, base: usize| place / below % base;
                    let (x, y, area) = (digit(1, side), digit(side, side), side * side);
                    let (of_patch, channel) = (digit(area, depth), digit(area * depth, 3));
                    let row = area * depth * 3;
                    let (across, down) = (digit(row, 2), digit(row * 2, 2));
                    let (column, line) = (digit(row * 4, wide / 2), digit(row * 4 * (wide / 2), high / 2));
                    let frame = place / (row * high * wide);
                    let frame = (frame * depth + of_patch).min(frames - 1);
                    let (y, x) = ((line * 2 + down) * side + y, (column * 2 + across) * side + x);
                    let expected = match channels_last {
                        false => ((frame * 3 + channel) * height + y) * width + x,
                        true => ((frame * height + y) * width + x) * 3 + channel,
                    };
                    assert_eq!(found as usize, expected, "{cut:?} {place}");
                }
            }
        }
    }
}
