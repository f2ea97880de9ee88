//! Resizing with another library's arithmetic on the device: rows of the tables for `kernels/exact.cu`, two passes an image. It must not know how
//! weights are made.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::{Job, job};
use crate::cpu::exact::{Pass, Passes, Sum, Task};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::{GpuCx, GpuIo};
use crate::tensor::DType;

/// Bytes between the passes that a batch has at a time. Images that need more together run one group after the other, in the same memory; one
/// image may need up to [`crate::limits::MAX_SAMPLE_BYTES`].
const GROUP_BYTES: usize = 512 << 20;

/// One pass over an image, as the kernel sees it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Row {
    dst: u64,
    src: u64,
    table: u64,
    /// Elements of the source between lines, and between taps.
    pitch: u64,
    step: u64,
    lines: u32,
    outputs: u32,
    elements: u32,
    channels: u32,
    bits: u32,
    multiplies: u32,
    divides: u32,
    unused: u32,
}

/// Both passes of a task, and where their tables are.
struct Plan {
    passes: Passes,
    tables: [u64; 2],
}

/// One image.
struct Image {
    plan: Arc<Plan>,
    task: Task,
    src: u64,
    dst: u64,
}

impl Image {
    fn bytes_between(&self) -> usize {
        let [height, width] = self.plan.passes.between;
        height * width * self.task.channels * between(self.plan.passes.passes[0].sum).size()
    }

    /// The rows of both passes, with `between` between them.
    fn rows(&self, between: u64) -> [Row; 2] {
        let Self { task, src, dst, .. } = self;
        let Passes { from: [y, x], between: [rows, columns], has_alpha, .. } = self.plan.passes;
        let pitch = task.image[1] * task.channels;
        let first = src + (y * pitch + x * task.channels) as u64;
        let multiplied =
            Row { multiplies: has_alpha.into(), ..self.row(0, first, between, [rows, columns], pitch) };
        let own = self.row(1, between, *dst, task.made(), columns * task.channels);
        [multiplied, Row { divides: has_alpha.into(), ..own }]
    }

    /// Pass `number`, which makes `made` rows and columns of lines of `pitch` elements.
    fn row(&self, number: usize, src: u64, dst: u64, made: [usize; 2], pitch: usize) -> Row {
        let Pass { axis, sum, outputs, .. } = self.plan.passes.passes[number];
        let channels = self.task.channels;
        let [lines, elements, pitch, step] =
            if axis == 0 { [1, made[1] * channels, 0, pitch] } else { [made[0], channels, pitch, channels] };
        Row {
            dst,
            src,
            table: self.plan.tables[number],
            pitch: pitch as u64,
            step: step as u64,
            lines: lines as u32,
            outputs: outputs as u32,
            elements: elements as u32,
            channels: channels as u32,
            bits: if let Sum::Integers(bits) = sum { bits } else { 0 },
            multiplies: 0,
            divides: 0,
            unused: 0,
        }
    }
}

/// The type of what is between two passes.
fn between(sum: Sum) -> DType {
    if sum == Sum::Floats { DType::F32 } else { DType::U8 }
}

/// The kernel of the first pass or the second.
fn kernel(number: usize, sum: Sum) -> KernelSpec {
    let between = between(sum);
    let (from, to) = if number == 0 { (DType::U8, between) } else { (between, DType::U8) };
    let kernel =
        KernelSpec::new::<Row, NoParams>("exact", "exact").early().dtype("SRC", from).dtype("DST", to);
    if sum == Sum::Floats { kernel.define("FLOATS", 1) } else { kernel }
}

/// The kinds of sums, of which integers have their bits in the table.
const SUMS: [Sum; 2] = [Sum::Integers(1), Sum::Floats];

/// Those that tests compile, and that are compiled before a batch comes.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    SUMS.into_iter().flat_map(|sum| [0, 1].map(|number| kernel(number, sum))).collect()
}

/// Compiles the kernels.
pub(super) fn prepare(gpu: &Gpu) -> Result<()> {
    kernels().iter().try_for_each(|kernel| gpu.kernel(kernel).map(drop))
}

/// Makes the weights of a task, and puts them on the way to the device.
fn planned(cx: &mut GpuCx<'_>, task: &Task) -> Result<Plan> {
    let passes = Passes::new(task)?;
    let [first, second] = [0, 1].map(|number| bytemuck::cast_slice(&passes.passes[number].table));
    let tables = [cx.recorder.stage(first)?.address(), cx.recorder.stage(second)?.address()];
    Ok(Plan { passes, tables })
}

/// Records the resize of every live sample, all of which have a task.
pub(super) fn run(cx: &mut GpuCx<'_>, io: &GpuIo<'_>, jobs: &[Option<Job>]) -> Result<()> {
    // Most images of a batch have the weights of one of the last.
    let mut recent: Option<(Task, Arc<Plan>)> = None;
    let images = io.rows(|sample| {
        let Job { geometry, task, .. } = job(jobs, sample.index())?;
        let Some(task) = task else {
            return Err(Error::internal("a sample without another library's arithmetic"));
        };
        let plan = match &recent {
            Some((known, plan)) if known == task => Arc::clone(plan),
            _ => Arc::new(planned(cx, task)?),
        };
        recent = Some((*task, Arc::clone(&plan)));
        let bytes = |[height, width]: [usize; 2]| (height * width * task.channels) as u64;
        let (src, dst) = (sample.source(0)?, sample.target(0)?);
        let image = |plane: u64| Image {
            plan: Arc::clone(&plan),
            task: *task,
            src: src + plane * bytes(task.image),
            dst: dst + plane * bytes(task.made()),
        };
        Ok((0..geometry.planes as u64).map(image).collect::<Vec<_>>())
    });
    let images: Vec<Image> = images.into_iter().flatten().collect();
    for sum in SUMS {
        let is_of = |image: &&Image| between(image.plan.passes.passes[0].sum) == between(sum);
        run_sums(cx, sum, &images.iter().filter(is_of).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Records the passes of images, a group at a time.
fn run_sums(cx: &mut GpuCx<'_>, sum: Sum, images: &[&Image]) -> Result<()> {
    let groups = grouped(images.iter().map(|image| room(image.bytes_between())));
    let Some(most) = groups.iter().map(|(_, bytes)| *bytes).max() else { return Ok(()) };
    let memory = cx.recorder.allocate(most)?.address();
    let mut rest = images;
    for (count, _) in groups {
        let (group, behind) = rest.split_at(count);
        rest = behind;
        let mut place = memory;
        let mut passes = [Vec::with_capacity(count), Vec::with_capacity(count)];
        for image in group {
            let rows = image.rows(place);
            place += room(image.bytes_between()) as u64;
            passes.iter_mut().zip(rows).for_each(|(pass, row)| pass.push(row));
        }
        for (number, rows) in passes.iter().enumerate() {
            let elements =
                |row: &Row| [row.lines, row.outputs, row.elements].iter().map(|&n| n as usize).product();
            let most = rows.iter().map(elements).max().unwrap_or(0);
            cx.launch(&kernel(number, sum), most, &NoParams::default(), rows)?;
        }
    }
    Ok(())
}

/// Bytes that an image has between its passes, with those that keep the next one aligned.
fn room(bytes: usize) -> usize {
    const ALIGNMENT: usize = 256;
    bytes.next_multiple_of(ALIGNMENT)
}

/// How many images each group has, and their bytes: as many as fit, at least one.
fn grouped(bytes: impl Iterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut groups: Vec<(usize, usize)> = Vec::new();
    for bytes in bytes {
        match groups.last_mut() {
            Some((count, all)) if *all + bytes <= GROUP_BYTES => (*count, *all) = (*count + 1, *all + bytes),
            _ => groups.push((1, bytes)),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_fit_into_memory() {
        let half = GROUP_BYTES / 2;
        assert_eq!(grouped([].into_iter()), []);
        assert_eq!(grouped([half, half, 1].into_iter()), [(2, GROUP_BYTES), (1, 1)]);
        assert_eq!(grouped([1, 2 * GROUP_BYTES, 1].into_iter()), [(1, 1), (1, 2 * GROUP_BYTES), (1, 1)]);
    }
}
