//! Colours by a variable number of gradients: a pixel gets those of the directions in which the image changes least. It
//! must not know the other algorithms.
//!
//! For each of eight directions there is how much the image changes that way, and what red, green and blue are there. A
//! direction counts when its change is below a threshold between the least and the largest; the colours that a pixel
//! lacks are its own plus the mean difference to it of the directions that count.

/// Pixels that are looked at on either side of one: the image is mirrored at its outermost pixels to have them
/// everywhere.
const REACH: usize = 2;

/// Pixels that OpenCV computes side by side. Those that are left of a row it computes with a factor of [`ROUNDED`]
/// where there are seven directions, which decides halves otherwise.
const BLOCK: usize = 8;
const ROUNDED: f32 = 0.071_428_6;

/// Smallest side of an image that there is anything to choose from in.
pub(super) const LEAST_SIDE: usize = 8;

/// How a row changes at each pixel, seen from the pixel: sums of differences on both sides of it.
#[derive(Default)]
struct Changes {
    upright: Vec<i32>,
    beside: Vec<i32>,
    /// From below left to above right, and from above left to below right; alone, and with those of the colour between.
    rising: Vec<i32>,
    falling: Vec<i32>,
    rising_near: Vec<i32>,
    falling_near: Vec<i32>,
    /// Half of the sum of the four neighbours.
    around: Vec<i32>,
}

impl Changes {
    /// Those of the second of three lines; of its first and its last pixel there are none.
    fn of(&mut self, [above, own, below]: [&[u8]; 3]) {
        for values in [
            &mut self.upright,
            &mut self.beside,
            &mut self.rising,
            &mut self.falling,
            &mut self.rising_near,
            &mut self.falling_near,
            &mut self.around,
        ] {
            values.resize(own.len(), 0);
        }
        for (x, ((above, own), below)) in
            (1..).zip(above.array_windows().zip(own.array_windows()).zip(below.array_windows()))
        {
            let ([nw, n, ne], [w, _, e], [sw, s, se]) =
                (above.map(i32::from), own.map(i32::from), below.map(i32::from));
            let change = |a: i32, b: i32| (a - b).abs();
            self.upright[x] = change(nw, sw) + 2 * change(n, s) + change(ne, se);
            self.beside[x] = change(nw, ne) + 2 * change(w, e) + change(sw, se);
            self.rising[x] = 2 * change(ne, sw);
            self.falling[x] = 2 * change(nw, se);
            self.rising_near[x] = self.rising[x] + change(n, w) + change(s, e);
            self.falling_near[x] = self.falling[x] + change(n, e) + change(s, w);
            self.around[x] = (n + w + e + s) >> 1;
        }
    }
}

/// Fills in what the pixels of `src` lack; `blue` are the row and the column of the first blue pixel. Both sides have
/// at least [`LEAST_SIDE`] pixels.
pub(super) fn fill(src: &[u8], dst: &mut [[u8; 3]], [height, width]: [usize; 2], blue: [usize; 2]) {
    let mirrored = |place: usize, extent: usize| {
        let place = place.abs_diff(REACH);
        place.min(2 * (extent - 1) - place)
    };
    let line = |y: usize| -> Vec<u8> {
        let line = &src[mirrored(y, height) * width..][..width];
        (0..width + 2 * REACH).map(|x| line[mirrored(x, width)]).collect()
    };
    // Five lines around a row, and how the three in the middle change.
    let mut lines: [Vec<u8>; 5] = std::array::from_fn(line);
    let mut changes: [Changes; 3] = Default::default();
    for (i, changes) in changes.iter_mut().enumerate() {
        changes.of([&lines[i], &lines[i + 1], &lines[i + 2]]);
    }
    for (y, row) in dst.chunks_exact_mut(width).enumerate() {
        let is_blue = y % 2 == blue[0];
        // Blocks begin at the first pixel that is not green.
        let first = usize::from(is_blue == (blue[1] == 1));
        let blocks = first..first + (width - first) / BLOCK * BLOCK;
        for (x, to) in row.iter_mut().enumerate() {
            let in_blue_column = x % 2 == blue[1];
            let seventh = if blocks.contains(&x) { 1.0 / 14.0 } else { ROUNDED };
            let [own, green, other] = if is_blue == in_blue_column {
                at_colour(&lines, &changes, x + REACH, seventh)
            } else {
                at_green(&lines, &changes, x + REACH, seventh)
            };
            *to = if is_blue { [other, green, own] } else { [own, green, other] };
        }
        if y + 1 < height {
            lines.rotate_left(1);
            lines[4] = line(y + 5);
            changes.rotate_left(1);
            changes[2].of([&lines[2], &lines[3], &lines[4]]);
        }
    }
}

/// The row's own colour, green and the other colour of a pixel in column `x` that sees the first.
fn at_colour(lines: &[Vec<u8>; 5], changes: &[Changes; 3], x: usize, seventh: f32) -> [u8; 3] {
    let at = |dy: usize, dx: usize| i32::from(lines[dy][x + dx - REACH]);
    let [above, here, below] = changes;
    let own = at(2, 2);
    let [green, other] = chosen(
        (own, seventh),
        [
            (above.upright[x] + here.upright[x], [at(0, 2) + own, 2 * at(1, 2), at(1, 1) + at(1, 3)]),
            (here.upright[x] + below.upright[x], [at(4, 2) + own, 2 * at(3, 2), at(3, 1) + at(3, 3)]),
            (here.beside[x - 1] + here.beside[x], [at(2, 0) + own, 2 * at(2, 1), at(1, 1) + at(3, 1)]),
            (here.beside[x] + here.beside[x + 1], [at(2, 4) + own, 2 * at(2, 3), at(1, 3) + at(3, 3)]),
            (
                above.rising_near[x + 1] + here.rising_near[x],
                [at(0, 4) + own, above.around[x + 1], 2 * at(1, 3)],
            ),
            (
                here.rising_near[x] + below.rising_near[x - 1],
                [at(4, 0) + own, below.around[x - 1], 2 * at(3, 1)],
            ),
            (
                above.falling_near[x - 1] + here.falling_near[x],
                [at(0, 0) + own, above.around[x - 1], 2 * at(1, 1)],
            ),
            (
                here.falling_near[x] + below.falling_near[x + 1],
                [at(4, 4) + own, below.around[x + 1], 2 * at(3, 3)],
            ),
        ],
    );
    [own as u8, green, other]
}

/// The same of a pixel that sees green.
fn at_green(lines: &[Vec<u8>; 5], changes: &[Changes; 3], x: usize, seventh: f32) -> [u8; 3] {
    let at = |dy: usize, dx: usize| i32::from(lines[dy][x + dx - REACH]);
    let [above, here, below] = changes;
    let two = |values: &[i32], first: usize| values[first] + values[first + 1];
    let green = at(2, 2);
    // Green, the row's own colour and the other one.
    let [own, other] = chosen(
        (green, seventh),
        [
            (above.upright[x] + here.upright[x], [at(0, 2) + green, at(0, 1) + at(0, 3), 2 * at(1, 2)]),
            (here.upright[x] + below.upright[x], [at(4, 2) + green, at(4, 1) + at(4, 3), 2 * at(3, 2)]),
            (here.beside[x - 1] + here.beside[x], [at(2, 0) + green, 2 * at(2, 1), at(1, 0) + at(3, 0)]),
            (here.beside[x] + here.beside[x + 1], [at(2, 4) + green, 2 * at(2, 3), at(1, 4) + at(3, 4)]),
            (
                two(&above.rising, x) + two(&here.rising, x),
                [2 * at(1, 3), at(0, 3) + at(2, 3), at(1, 2) + at(1, 4)],
            ),
            (
                two(&here.rising, x - 1) + two(&below.rising, x - 1),
                [2 * at(3, 1), at(4, 1) + at(2, 1), at(3, 2) + at(3, 0)],
            ),
            (
                two(&above.falling, x - 1) + two(&here.falling, x - 1),
                [2 * at(1, 1), at(0, 1) + at(2, 1), at(1, 0) + at(1, 2)],
            ),
            (
                two(&here.falling, x) + two(&below.falling, x),
                [2 * at(3, 3), at(4, 3) + at(2, 3), at(3, 4) + at(3, 2)],
            ),
        ],
    );
    [own, green as u8, other]
}

/// Two colours of a pixel whose `known` one has a value, from the change and the doubled values of the known colour and
/// of those two in each direction; half of a `seventh` where seven count.
fn chosen((known, seventh): (i32, f32), directions: [(i32, [i32; 3]); 8]) -> [u8; 2] {
    let least = directions.iter().fold(i32::MAX, |least, (change, _)| least.min(*change));
    let most = directions.iter().fold(0, |most, (change, _)| most.max(*change));
    let threshold = least + (most / 2).max(1);
    let (mut count, mut sums) = (0, [0; 3]);
    for (change, values) in directions {
        if change < threshold {
            count += 1;
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value;
            }
        }
    }
    let part = if count == 7 { seventh } else { 0.5 / count as f32 };
    [1, 2].map(|c: usize| {
        let difference = ((sums[c] - sums[0]) as f32 * part).round_ties_even() as i32;
        (known + difference).clamp(0, 255) as u8
    })
}
