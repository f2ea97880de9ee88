//! Resizing with another library's arithmetic on the device: rows of tables for `kernels/exact_*.cu`, by the weights
//! that the host makes. It must not know how these are worked out.

mod tables;

use std::collections::BTreeMap;

use super::{Job, job};
use crate::cpu::exact::{Arithmetic, Steps, Sums, Task};
use crate::error::{Error, Result};
use crate::gpu::layout::{Header, device_constants, device_struct, text_with};
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::{GpuCx, GpuIo};
use crate::tensor::ValueType;
use tables::Placed;

pub(in crate::ops) use tables::Tables;

device_constants! {
    fn constants;

    /// Rows of a pixel that a thread makes in the pass along rows.
    const ROWS_AT_ONCE: usize as "int" = 4;
    /// Elements of a row that a thread makes in the other pass, of bytes or of numbers.
    const BYTES_AT_ONCE: usize as "int" = 16;
    const NUMBERS_AT_ONCE: usize as "int" = 4;
    /// Bits of Row::alpha, of images with alpha: colours are multiplied by it before the sums, and divided behind them.
    const MULTIPLY: u32 = 1;
    const DIVIDE: u32 = 2;
    /// How sums are made, METHOD: of integers, rounded to bytes in both passes.
    const BYTES: u32 as "int" = 0;
    /// Of integers, kept as they are between the passes: across only.
    const INTEGERS: u32 as "int" = 1;
    /// Of float32 as torch adds them.
    const FLOATS: u32 as "int" = 2;
    /// Of float32, every product rounded.
    const MEANS: u32 as "int" = 3;
    /// Down only, of integers: as OpenCV does it.
    const LINEAR: u32 as "int" = 4;
    const CUBIC: u32 as "int" = 5;
    /// Down only: means of whole pixels.
    const WHOLE: u32 as "int" = 6;
}

/// Channels that a thread makes at once, at most.
const MAX_CHANNELS: usize = 4;

/// Bytes to which the place of an image between its passes is aligned.
const ALIGNMENT: usize = 256;

/// Bytes between the passes that images share, one group after the other, unless one image needs more.
const GROUP_BYTES: usize = 256 << 20;

device_struct! {
    /// An image's pass.
    #[derive(Debug, Default)]
    struct PassRow as Row {
        /// The first line that is needed.
        src: u64 = "const void *",
        dst: u64 = "void *",
        /// Of each output its first pixel, of each its number of weights, then each weight of all outputs.
        axis: u64 = "const int32_t *",
        /// Pixels that are made along the axis.
        outputs: u32,
        /// Pixels that there are: those beyond the ends are the ones at the ends.
        length: i32,
        /// The pixel with which the source begins.
        origin: i32,
        /// Across: rows; down: elements of a row.
        lines: u32,
        /// Elements from row to row.
        src_pitch: u32,
        dst_pitch: u32,
        /// Elements of a pixel.
        step: u32,
        /// BYTES: behind the point of the weights.
        bits: u32,
        alpha: u32,
        /// CUBIC: where the first pixel of a row lies in a row of the whole output, and how far the next one is.
        start: i32,
        direction: i32,
        /// CUBIC: elements of a row of the whole output that are made of floats.
        whole: u32,
        /// WHOLE: what a sum is multiplied by, or 0: halves of four pixels are rounded up.
        share: f32,
        unused: u32,
    }
}

/// What the kernels of both passes include.
const HEADER: Header = Header { name: "exact", text: || text_with::<PassRow, NoParams>(&constants()) };

device_struct! {
    /// An image whose pixels are copied.
    #[derive(Debug)]
    struct CopyRow as Row {
        /// The first pixel of the crop.
        src: u64 = "const uint8_t *",
        dst: u64 = "uint8_t *",
        /// Of each row of the output its row, -1: none, which is 0.
        rows: u64 = "const int32_t *",
        /// Of each column of the output its column.
        columns: u64 = "const int32_t *",
        height: u32,
        width: u32,
        /// Bytes from row to row of the source.
        pitch: u32,
        /// Elements of a pixel.
        step: u32,
    }
}

/// How a kernel makes sums: `METHOD` there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Method {
    Bytes,
    Integers,
    Floats,
    Means,
    Linear,
    Cubic,
    Whole,
}

impl Method {
    /// Its number in the kernels.
    fn number(self) -> u32 {
        match self {
            Self::Bytes => BYTES,
            Self::Integers => INTEGERS,
            Self::Floats => FLOATS,
            Self::Means => MEANS,
            Self::Linear => LINEAR,
            Self::Cubic => CUBIC,
            Self::Whole => WHOLE,
        }
    }
}

/// A kernel of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pass {
    /// Along rows, so many channels at once.
    Across(Method, usize),
    Down(Method),
}

impl Pass {
    fn kernel(self) -> KernelSpec {
        let of = |name| KernelSpec::of::<PassRow, NoParams>(name, name).header(HEADER).early();
        match self {
            Self::Across(method, channels) => {
                of("exact_across").define("METHOD", method.number()).define("CH", channels)
            }
            Self::Down(method) => of("exact_down").define("METHOD", method.number()),
        }
    }

    /// Threads that `row` gives work to.
    fn threads(self, row: &PassRow) -> usize {
        let (outputs, lines) = (row.outputs as usize, row.lines as usize);
        match self {
            Self::Across(_, channels) => {
                outputs * (row.step as usize / channels) * lines.div_ceil(ROWS_AT_ONCE)
            }
            Self::Down(Method::Bytes) => outputs * lines.div_ceil(BYTES_AT_ONCE),
            Self::Down(_) => outputs * lines.div_ceil(NUMBERS_AT_ONCE),
        }
    }
}

fn copy_kernel() -> KernelSpec {
    KernelSpec::of::<CopyRow, NoParams>("exact_copy", "exact_copy").early()
}

/// The methods of the passes across and down.
fn methods(sums: Sums) -> [Method; 2] {
    match sums {
        Sums::Bytes | Sums::Copies => [Method::Bytes; 2],
        Sums::Floats => [Method::Floats; 2],
        Sums::Means => [Method::Means; 2],
        Sums::Linear => [Method::Integers, Method::Linear],
        Sums::Cubic(_) => [Method::Integers, Method::Cubic],
        Sums::Whole(_) => [Method::Integers, Method::Whole],
    }
}

fn channels_at_once(channels: usize) -> usize {
    if channels <= MAX_CHANNELS { channels } else { 1 }
}

/// Kernels for images of so many channels.
fn kernels_of(arithmetic: Arithmetic, channels: usize) -> impl Iterator<Item = KernelSpec> {
    let methods: &[[Method; 2]] = match arithmetic {
        Arithmetic::Pillow | Arithmetic::Pillow13 | Arithmetic::Torchvision => &[[Method::Bytes; 2]],
        Arithmetic::TorchvisionFloat => &[[Method::Floats; 2]],
        Arithmetic::OpenCv => &[
            [Method::Integers, Method::Linear],
            [Method::Integers, Method::Cubic],
            [Method::Integers, Method::Whole],
            [Method::Means; 2],
        ],
    };
    let passes = methods.iter().flat_map(move |&[across, down]| {
        [Pass::Across(across, channels_at_once(channels)), Pass::Down(down)]
    });
    passes.map(Pass::kernel).chain([copy_kernel()])
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    Arithmetic::ALL
        .into_iter()
        .flat_map(|arithmetic| {
            [1, 3, 4].into_iter().flat_map(move |channels| kernels_of(arithmetic, channels))
        })
        .collect()
}

/// Compiles what images of type `input` need.
pub(super) fn prepare(gpu: &Gpu, input: &ValueType, arithmetic: Arithmetic) -> Result<()> {
    let channels = match (input.layout, &input.dims) {
        (Some(layout), Some(dims)) => layout.find(b'C').and_then(|axis| *dims.get(axis)?),
        _ => None,
    };
    // What the batch decides is compiled then.
    let Some(channels) = channels else { return Ok(()) };
    kernels_of(arithmetic, channels).try_for_each(|kernel| gpu.kernel(&kernel).map(drop))
}

/// One image to resize.
struct Image {
    task: Task,
    steps: Steps,
    /// Of rows and of columns.
    tables: [Placed; 2],
    source: u64,
    target: u64,
}

impl Image {
    /// What is between its passes; for copies there is nothing.
    fn between(&self) -> Between {
        let [height, width] = self.task.made();
        let [rows, columns] = [0, 1].map(|d| {
            let (first, end) = self.tables[d].table.span();
            end - first
        });
        let (rows, columns) = if self.steps.rows_first { (height, columns) } else { (rows, width) };
        let elements = columns * self.task.channels;
        // Rows begin where they can be read so many at once.
        let pitch = elements.next_multiple_of(BYTES_AT_ONCE);
        let element = match self.steps.sums {
            Sums::Copies => 0,
            Sums::Bytes => 1,
            _ => size_of::<u32>(),
        };
        Between { elements, pitch, bytes: (rows * pitch * element).next_multiple_of(ALIGNMENT) }
    }

    /// Address of the pixel of the crop in this row and column.
    fn pixel(&self, row: usize, column: usize) -> u64 {
        let Task { image, crop, channels, .. } = self.task;
        self.source + (((crop[0].0 + row) * image[1] + crop[1].0 + column) * channels) as u64
    }

    fn copy(&self) -> CopyRow {
        let [height, width] = self.task.made().map(|extent| extent as u32);
        let [rows, columns] = [0, 1].map(|d| self.tables[d].address);
        let (pitch, step) = ((self.task.image[1] * self.task.channels) as u32, self.task.channels as u32);
        CopyRow { src: self.pixel(0, 0), dst: self.target, rows, columns, height, width, pitch, step }
    }

    /// The pass along axis `d`, whatever it reads and makes.
    fn pass(&self, d: usize) -> PassRow {
        let Placed { table, address } = &self.tables[d];
        PassRow {
            axis: *address,
            outputs: table.outputs as u32,
            length: table.length as i32,
            bits: table.bits,
            step: self.task.channels as u32,
            ..PassRow::default()
        }
    }

    /// Its two passes in their order, with what is between them at `between`.
    fn passes(&self, between: u64) -> [(Pass, PassRow); 2] {
        let Self { task, steps, .. } = self;
        let [height, width] = task.made();
        let middle = self.between();
        let spans = [0, 1].map(|d| self.tables[d].table.span());
        let pitches = [task.image[1] * task.channels, middle.pitch, width * task.channels].map(|n| n as u32);
        let [mut down, mut across] = [self.pass(0), self.pass(1)];
        if steps.rows_first {
            (down.src, down.lines) = (self.pixel(0, spans[1].0), middle.elements as u32);
            (across.origin, across.lines) = (spans[1].0 as i32, height as u32);
        } else {
            (across.src, across.lines) = (self.pixel(spans[0].0, 0), (spans[0].1 - spans[0].0) as u32);
            (down.origin, down.lines) = (spans[0].0 as i32, pitches[2]);
        }
        match steps.sums {
            Sums::Cubic(whole) => {
                let (start, end) = task.window[1];
                (down.start, down.direction) =
                    if task.mirror[1] { (end as i32 - 1, -1) } else { (start as i32, 1) };
                down.whole = whole as u32;
            }
            Sums::Whole(share) => down.share = share.unwrap_or(0.0),
            Sums::Copies | Sums::Bytes | Sums::Floats | Sums::Means | Sums::Linear => {}
        }
        let [method_across, method_down] = methods(steps.sums);
        let across = (Pass::Across(method_across, channels_at_once(task.channels)), across);
        let down = (Pass::Down(method_down), down);
        let [mut first, mut second] = if steps.rows_first { [down, across] } else { [across, down] };
        (first.1.dst, first.1.src_pitch, first.1.dst_pitch) = (between, pitches[0], pitches[1]);
        (second.1.src, second.1.dst) = (between, self.target);
        (second.1.src_pitch, second.1.dst_pitch) = (pitches[1], pitches[2]);
        if steps.has_alpha {
            (first.1.alpha, second.1.alpha) = (MULTIPLY, DIVIDE);
        }
        [first, second]
    }
}

/// What is between the passes of an image.
struct Between {
    /// Elements of a row, and from one row to the next.
    elements: usize,
    pitch: usize,
    bytes: usize,
}

/// Launches by kernel.
#[derive(Default)]
struct Launches {
    copies: Vec<CopyRow>,
    first: BTreeMap<Pass, Vec<PassRow>>,
    second: BTreeMap<Pass, Vec<PassRow>>,
}

impl Launches {
    /// Of images whose passes have `between` for what is between them, one behind the other.
    fn of(images: &[Image], mut between: u64) -> Self {
        let mut launches = Self::default();
        for image in images {
            if image.steps.sums == Sums::Copies {
                launches.copies.push(image.copy());
            } else {
                let [(first, first_row), (second, second_row)] = image.passes(between);
                launches.first.entry(first).or_default().push(first_row);
                launches.second.entry(second).or_default().push(second_row);
            }
            between += image.between().bytes as u64;
        }
        launches
    }

    fn record(&self, cx: &mut GpuCx<'_>) -> Result<()> {
        for (pass, rows) in self.first.iter().chain(&self.second) {
            let most = rows.iter().map(|row| pass.threads(row)).max().unwrap_or(0);
            cx.launch(&pass.kernel(), most, &NoParams::default(), rows)?;
        }
        let bytes = |row: &CopyRow| row.height as usize * row.width as usize * row.step as usize;
        let most = self.copies.iter().map(bytes).max().unwrap_or(0);
        cx.launch(&copy_kernel(), most, &NoParams::default(), &self.copies)
    }
}

/// Images, so many that what is between their passes has at most `most` bytes, or one.
fn groups(images: &[Image], most: usize) -> Vec<(&[Image], usize)> {
    let (mut groups, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (i, image) in images.iter().enumerate() {
        let more = image.between().bytes;
        if i > start && bytes + more > most {
            groups.push((&images[start..i], bytes));
            (start, bytes) = (i, 0);
        }
        bytes += more;
    }
    groups.push((&images[start..], bytes));
    groups
}

/// Records the resize of every live sample, all of which have tasks.
pub(in crate::ops) fn run(
    cx: &mut GpuCx<'_>,
    io: &GpuIo<'_>,
    jobs: &[Option<Job>],
    tables: &mut Tables,
) -> Result<()> {
    let most = cx.recorder.gpu().most_of_a_value();
    let steps = io.rows(|sample| {
        let Job { geometry, task, .. } = job(jobs, sample.index())?;
        let task = task.ok_or_else(|| Error::internal("a resize without another library's arithmetic"))?;
        Ok((geometry.planes, task, task.steps()?, sample.index()))
    });
    let placed = tables.stage(cx, steps.iter().flat_map(|(_, _, steps, _)| steps.axes))?;
    let mut steps = steps.into_iter().peekable();
    let images = io.rows(|sample| {
        let own = steps.next_if(|(.., index)| *index == sample.index());
        let (planes, task, steps, _) = own.ok_or_else(|| Error::internal("a sample without steps"))?;
        let table =
            |axis| placed.get(axis).cloned().ok_or_else(|| Error::internal("an axis without a table"));
        let tables = [table(&steps.axes[0])?, table(&steps.axes[1])?];
        let image = Image { task, steps, tables, source: sample.source(0)?, target: sample.target(0)? };
        let bytes = image.between().bytes;
        if bytes > most {
            return Err(Error::invalid(format!(
                "resizing needs {bytes} bytes of memory between the passes, more than the limit of {most}"
            )));
        }
        Ok((image, planes))
    });
    // Planes and frames have the same tables.
    let images = images.into_iter().flat_map(|(image, planes)| {
        let bytes = |[height, width]: [usize; 2]| (height * width * image.task.channels) as u64;
        let (source, target) = (bytes(image.task.image), bytes(image.task.made()));
        (0..planes as u64).map(move |plane| Image {
            tables: image.tables.clone(),
            source: image.source + plane * source,
            target: image.target + plane * target,
            ..image
        })
    });
    let images: Vec<Image> = images.collect();
    if images.is_empty() {
        return Ok(());
    }
    // Groups come one after the other, so they have the same memory.
    let groups = groups(&images, GROUP_BYTES);
    let bytes = groups.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let between = if bytes == 0 {
        0
    } else {
        cx.recorder.wait_for_room(bytes);
        cx.recorder.scratch(bytes)?
    };
    groups.iter().try_for_each(|(images, _)| Launches::of(images, between).record(cx))
}

#[cfg(test)]
mod tests;
