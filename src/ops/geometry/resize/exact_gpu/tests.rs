//! Rows and tables, against the CPU: what the kernels do with them is done here, element by element.

use std::sync::Arc;

use super::*;
use crate::cpu::exact::Scratch;
use crate::deadline::Watch;

/// A device's memory, with what the kernels do.
struct Memory(Vec<u8>);

impl Memory {
    fn word(&self, address: u64, index: usize) -> i32 {
        let at = address as usize + index * 4;
        i32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    fn byte(&self, address: u64, index: usize) -> u8 {
        self.0[address as usize + index]
    }

    fn copy(&mut self, row: &CopyRow) {
        let step = row.step as usize;
        for (i, e) in
            (0..row.height as usize).flat_map(|i| (0..row.width as usize * step).map(move |e| (i, e)))
        {
            let (y, x) = (self.word(row.rows, i), self.word(row.columns, e / step));
            let at = y as isize * row.pitch as isize + x as isize * step as isize;
            let value = if y < 0 || x < 0 { 0 } else { self.byte(row.src, at as usize + e % step) };
            self.0[row.dst as usize + i * row.width as usize * step + e] = value;
        }
    }

    /// The sum of one element, whose products are of the elements at `places`: `sum`, `weight`, `value` of each.
    fn element(
        &self,
        pass: Pass,
        row: &PassRow,
        output: usize,
        e: usize,
        place: impl Fn(usize) -> usize,
    ) -> i32 {
        let (outputs, step) = (row.outputs as usize, row.step as usize);
        let (first, count) = (self.word(row.axis, output), self.word(row.axis, outputs + output) as usize);
        let bytes = matches!(pass, Pass::Across(..) | Pass::Down(Method::Bytes));
        let taps: Vec<(i32, i32)> = (0..count)
            .map(|k| {
                let at = place(((first + k as i32).clamp(0, row.length - 1) - row.origin) as usize);
                let weight = self.word(row.axis, (2 + k) * outputs + output);
                if !bytes {
                    return (weight, self.word(row.src, at));
                }
                let value = u32::from(self.byte(row.src, at));
                let (c, alpha) = (e % step, u32::from(self.byte(row.src, at - e % step + step - 1)));
                let product = value * alpha + 128;
                let is_colour = row.alpha & MULTIPLY != 0 && c + 1 < step;
                (weight, if is_colour { (product + (product >> 8)) >> 8 } else { value } as i32)
            })
            .collect();
        let sum = || taps.iter().fold(0_i32, |sum, &(w, v)| sum.wrapping_add(w.wrapping_mul(v)));
        let float = |v: i32| f32::from_bits(v.cast_unsigned());
        let floats = |all: bool| {
            let of = |v: i32| if matches!(pass, Pass::Across(..)) { v as f32 } else { float(v) };
            taps.iter().enumerate().fold(0.0_f32, |sum, (k, &(w, v))| {
                if all || k <= (count - 1) / 4 * 4 {
                    sum + of(v) * float(w)
                } else {
                    of(v).mul_add(float(w), sum)
                }
            })
        };
        let byte = |v: f32| v.round_ties_even().clamp(0.0, 255.0) as i32;
        match pass {
            Pass::Across(Method::Floats | Method::Means, _) => {
                floats(matches!(pass, Pass::Across(Method::Means, _))).to_bits().cast_signed()
            }
            Pass::Down(Method::Floats) => byte(floats(false)),
            Pass::Down(Method::Means) => byte(floats(true)),
            Pass::Across(Method::Bytes, _) | Pass::Down(Method::Bytes) => {
                (sum().wrapping_add(1 << (row.bits - 1)) >> row.bits).clamp(0, 255)
            }
            Pass::Across(..) => sum(),
            Pass::Down(Method::Linear) => {
                let sum: i32 = taps.iter().map(|&(w, v)| (w * (v >> 4)) >> 16).sum();
                ((sum + 2) >> 2).clamp(0, 255)
            }
            Pass::Down(Method::Cubic) => {
                let x = row.start + row.direction * (e / step) as i32;
                if (x as usize * step + e % step) < row.whole as usize {
                    let product =
                        |k: usize| taps[k].1 as f32 * (taps[k].0 as f32 * (1.0 / (2048.0 * 2048.0)));
                    byte(product(0) + (product(1) + (product(2) + product(3))))
                } else {
                    (sum().wrapping_add(1 << 21) >> 22).clamp(0, 255)
                }
            }
            Pass::Down(_) if row.share == 0.0 => (sum() + 2) >> 2,
            Pass::Down(_) => byte(sum() as f32 * row.share),
        }
    }

    fn pass(&mut self, pass: Pass, row: &PassRow) {
        let (step, src_pitch, dst_pitch) =
            (row.step as usize, row.src_pitch as usize, row.dst_pitch as usize);
        for (output, line) in
            (0..row.outputs as usize).flat_map(|i| (0..row.lines as usize).map(move |l| (i, l)))
        {
            let elements = if matches!(pass, Pass::Across(..)) { 0..step } else { line..line + 1 };
            for e in elements {
                let (to, made) = match pass {
                    Pass::Across(..) => (
                        line * dst_pitch + output * step + e,
                        self.element(pass, row, output, e, |p| line * src_pitch + p * step + e),
                    ),
                    Pass::Down(_) => {
                        (output * dst_pitch + e, self.element(pass, row, output, e, |p| p * src_pitch + e))
                    }
                };
                if matches!(pass, Pass::Down(_) | Pass::Across(Method::Bytes, _)) {
                    self.0[row.dst as usize + to] = made as u8;
                } else {
                    let at = row.dst as usize + to * 4;
                    self.0[at..at + 4].copy_from_slice(&made.to_le_bytes());
                }
            }
        }
        if row.alpha & DIVIDE == 0 {
            return;
        }
        let (lines, row_len) = match pass {
            Pass::Across(..) => (row.lines as usize, row.outputs as usize * step),
            Pass::Down(_) => (row.outputs as usize, row.lines as usize),
        };
        for line in 0..lines {
            let start = row.dst as usize + line * dst_pitch;
            for pixel in self.0[start..start + row_len].chunks_exact_mut(step) {
                let alpha = u32::from(pixel[step - 1]);
                if alpha != 0 && alpha != 255 {
                    pixel[..step - 1]
                        .iter_mut()
                        .for_each(|value| *value = (255 * u32::from(*value) / alpha).min(255) as u8);
                }
            }
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn range(&mut self, length: usize) -> (usize, usize) {
        let start = self.below(length);
        (start, start + 1 + self.below(length - start))
    }
}

fn drawn(random: &mut Random) -> Task {
    let arithmetic = Arithmetic::ALL[random.below(Arithmetic::ALL.len())];
    let filters: Vec<_> = arithmetic.filters().map(|(_, filter)| filter).collect();
    let image = [1 + random.below(60), 1 + random.below(60)];
    let size = match random.below(4) {
        0 => image.map(|extent| extent.div_ceil(2)),
        1 => image,
        _ => [1 + random.below(50), 1 + random.below(50)],
    };
    let filter = filters[random.below(filters.len())];
    let mut task = Task::whole(arithmetic, filter, image, 1 + random.below(4), size);
    for d in 0..2 {
        if random.below(2) == 0 {
            task.crop[d] = random.range(image[d]);
        }
        let extent = task.crop[d].1 - task.crop[d].0;
        task.region[d] = (0.0, extent as f32);
        if arithmetic.is_pillow() && random.below(3) == 0 {
            let (start, end) = random.range(extent);
            task.region[d] = (start as f32, end as f32 - 0.25);
        }
        if random.below(2) == 0 {
            task.window[d] = random.range(size[d]);
            task.mirror[d] = random.below(2) == 0;
        }
    }
    task
}

#[test]
fn rows_and_tables_make_what_the_cpu_makes() {
    let mut random = Random(7);
    for case in 0..1500 {
        let task = drawn(&mut random);
        let source: Vec<u8> =
            (0..task.image[0] * task.image[1] * task.channels).map(|_| random.below(256) as u8).collect();
        let mut expected = vec![0; task.made()[0] * task.made()[1] * task.channels];
        task.run(&source, &mut expected, &mut Scratch::default(), &Watch::forever()).unwrap();
        let steps = task.steps().unwrap();
        let mut memory = Memory(source.clone());
        let tables = steps.axes.map(|axis| {
            memory.0.resize(memory.0.len().next_multiple_of(4), 0);
            let placed = Placed { table: Arc::new(axis.table()), address: memory.0.len() as u64 };
            memory.0.extend(bytemuck::cast_slice::<_, u8>(&placed.table.words));
            placed
        });
        let target = memory.0.len() as u64;
        let image = Image { task, steps, tables, source: 0, target };
        let between = memory.0.len() + expected.len().next_multiple_of(4);
        memory.0.resize(between + image.between().bytes, 0x5A);
        let launches = Launches::of(&[image], between as u64);
        for (&pass, rows) in launches.first.iter().chain(&launches.second) {
            rows.iter().for_each(|row| memory.pass(pass, row));
        }
        launches.copies.iter().for_each(|row| memory.copy(row));
        let made = &memory.0[target as usize..][..expected.len()];
        assert!(made == expected, "case {case}: {task:?}");
    }
}
