//! `gesso__EncodeJpeg` on a device: the same bytes, made by kernels. Codes of optimised and of progressive files, and
//! images too large for numbers of 32 bits, are made on the host.
//!
//! The floor of an image of 500 x 375 pixels at 4:2:0: 560 kB of pixels are read once; 590 kB of coefficients are
//! written once and read three times, to count bits, to count the bytes that a 0 follows and to write the file. A batch
//! is five launches and a wait, which tells how long the files are, and one more launch.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Encode, Encoder, check, image};
use crate::cpu::encode::{self, Image, Jpeg, JpegHead, Subsampling};
use crate::error::{Error, Result, caught};
use crate::gpu::layout::{Header, device_constants, device_struct, text_with};
use crate::gpu::{Gpu, KernelSpec};
use crate::memory::DeviceBytes;
use crate::operator::{CpuCx, GpuCx, GpuIo, Inputs, Io, Operator};
use crate::tensor::{BatchDesc, DType, Layout, Shape, ValueType};

/// The operator of an encoder of JPEGs on the host and on a device.
pub(super) struct OnBoth<E> {
    host: Encode<E>,
    /// Of the files of the batch at hand, where it is on a device: of each sample.
    made: Option<Vec<Made>>,
    /// Those that were needed so far.
    heads: BTreeMap<(usize, Jpeg), JpegHead>,
    /// Codes as kernels have them, made for the first batch.
    codes: Vec<u32>,
}

/// What is known of a file before there is memory for it.
#[derive(Default)]
enum Made {
    #[default]
    Nothing,
    /// The host made it.
    File(Vec<u8>),
    /// The device has its coefficients; and how many bytes it becomes.
    Coefficients(Row, usize),
}

impl Made {
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::File(file) => file.len(),
            Self::Coefficients(_, bytes) => *bytes,
        }
    }
}

/// An image that the batch has, and what its file is to be.
#[derive(Clone, Copy)]
struct Job<'a> {
    sample: usize,
    image: Image<'a>,
    how: Jpeg,
    pixels: &'a DeviceBytes<'a>,
}

/// How an image is divided.
struct Parts {
    /// Blocks of luma of an MCU, along and down.
    factors: [usize; 2],
    /// MCUs of a row, and rows.
    mcus: [usize; 2],
    blocks: usize,
    pieces: usize,
}

impl Job<'_> {
    fn parts(&self) -> Parts {
        let factors = match (self.image.channels, self.how.subsampling) {
            (1, _) | (_, Subsampling::S444) => [1, 1],
            (_, Subsampling::S422) => [2, 1],
            (_, Subsampling::S420) => [2, 2],
        };
        let mcus = [self.image.width.div_ceil(8 * factors[0]), self.image.height.div_ceil(8 * factors[1])];
        let chroma = if self.image.channels == 3 { 2 } else { 0 };
        let blocks = mcus[0] * mcus[1] * (factors[0] * factors[1] + chroma);
        Parts { factors, mcus, blocks, pieces: blocks.div_ceil(PIECE as usize) }
    }

    fn is_for_host(&self) -> bool {
        self.how.optimize || self.how.progressive || self.parts().blocks > MAX_BLOCKS
    }
}

/// Places in memory that is allocated when it is known how much is needed.
#[derive(Default)]
struct Places(u64);

impl Places {
    fn take(&mut self, bytes: usize) -> u64 {
        let place = self.0;
        self.0 += bytes.next_multiple_of(ALIGNMENT) as u64;
        place
    }
}

/// What kernels read a head from, on the device.
#[derive(Clone, Copy)]
struct StagedHead {
    head: u64,
    head_bytes: usize,
    sides_at: usize,
    steps: u64,
}

impl<E: Encoder<Settings = Jpeg>> OnBoth<E> {
    pub(super) fn new(host: Encode<E>) -> Self {
        Self { host, made: None, heads: BTreeMap::new(), codes: Vec::new() }
    }

    fn head(&mut self, channels: usize, how: &Jpeg) -> Result<&JpegHead> {
        use std::collections::btree_map::Entry;
        match self.heads.entry((channels, *how)) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(JpegHead::new(channels, how)?)),
        }
    }

    /// Puts the head of a file on its way to the device.
    fn stage_head(&mut self, cx: &mut GpuCx<'_>, channels: usize, how: &Jpeg) -> Result<StagedHead> {
        let head = self.head(channels, how)?;
        let steps: Vec<Step> = head.steps.iter().flatten().map(|&step| Step::of(step)).collect();
        Ok(StagedHead {
            head: cx.recorder.stage(&head.bytes)?.address(),
            head_bytes: head.bytes.len(),
            sides_at: head.sides_at,
            steps: cx.recorder.stage(bytemuck::cast_slice(&steps))?.address(),
        })
    }

    /// The codes of luma and of chroma: the same for every image.
    fn params(&mut self, cx: &mut GpuCx<'_>) -> Result<Params> {
        if self.codes.is_empty() {
            let how =
                Jpeg { quality: 50, subsampling: Subsampling::S444, optimize: false, progressive: false };
            let codes = &self.head(3, &how)?.codes;
            let all = codes.iter().flat_map(|codes| codes.means.iter().chain(&codes.coefficients));
            self.codes = all.map(|&(code, bits)| u32::from(code) << 8 | u32::from(bits)).collect();
        }
        Ok(Params { codes: cx.recorder.stage(bytemuck::cast_slice(&self.codes))?.address() })
    }

    /// Records what makes coefficients and counts the bytes of files.
    fn record(&mut self, cx: &mut GpuCx<'_>, jobs: &[Job<'_>], sizes: u64) -> Result<Vec<Row>> {
        let (mut places, mut heads) = (Places::default(), BTreeMap::new());
        let mut rows = Vec::with_capacity(jobs.len());
        for (i, job) in jobs.iter().enumerate() {
            let channels = job.image.channels;
            let staged = match heads.get(&(channels, job.how)) {
                Some(&staged) => staged,
                None => {
                    let staged = self.stage_head(cx, channels, &job.how)?;
                    heads.insert((channels, job.how), staged);
                    staged
                }
            };
            let Parts { factors, mcus, blocks, pieces } = job.parts();
            rows.push(Row {
                to: 0,
                pixels: job.pixels.address(),
                head: staged.head,
                steps: staged.steps,
                coefficients: places.take(blocks * 64 * size_of::<i16>()),
                present: places.take(blocks * 8),
                bits: places.take(blocks * size_of::<u16>()),
                starts: places.take((pieces + 1) * size_of::<u32>()),
                stuffed: places.take((pieces + 1) * size_of::<u32>()),
                size: sizes + (i * size_of::<u32>()) as u64,
                width: job.image.width as u32,
                height: job.image.height as u32,
                channels: channels as u32,
                across: factors[0] as u32,
                down: factors[1] as u32,
                columns: mcus[0] as u32,
                lines: mcus[1] as u32,
                blocks: blocks as u32,
                pieces: pieces as u32,
                head_bytes: staged.head_bytes as u32,
                sides_at: staged.sides_at as u32,
                unused: 0,
            });
        }
        cx.recorder.wait_for_room(places.0 as usize);
        let memory = cx.recorder.scratch(places.0 as usize)?;
        for row in &mut rows {
            for place in
                [&mut row.coefficients, &mut row.present, &mut row.bits, &mut row.starts, &mut row.stuffed]
            {
                *place += memory;
            }
        }
        let params = self.params(cx)?;
        let tiles = rows.iter().map(Row::tiles).max().unwrap_or_default();
        cx.launch_blocks(&kernel("jpeg_coefficients"), (tiles, TRANSFORM_THREADS), &params, &rows)?;
        let pieces = most_pieces(&rows);
        cx.launch_blocks(&kernel("jpeg_lengths"), (pieces, PIECE_THREADS), &params, &rows)?;
        cx.launch_blocks(&kernel("jpeg_starts"), (1, PIECE_THREADS), &params, &rows)?;
        cx.launch_blocks(&kernel("jpeg_stuffed"), (pieces, PIECE_THREADS), &params, &rows)?;
        cx.launch_blocks(&kernel("jpeg_sizes"), (1, PIECE_THREADS), &params, &rows)?;
        Ok(rows)
    }
}

fn most_pieces(rows: &[Row]) -> usize {
    rows.iter().map(|row| row.pieces as usize).max().unwrap_or_default()
}

impl<E: Encoder<Settings = Jpeg>> Operator for OnBoth<E> {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        self.host.infer(inputs)
    }

    fn work_ahead(&mut self, cx: &CpuCx<'_>, inputs: &Inputs<'_>) -> Result<()> {
        self.host.work_ahead(cx, inputs)
    }

    fn work_ahead_on_gpu(&mut self, cx: &mut GpuCx<'_>, inputs: &Inputs<'_>) -> Result<()> {
        check::<E>(inputs)?;
        let jobs = inputs.map(|sample| {
            let image = image(&sample)?;
            image.check_for_jpeg()?;
            let how = self.host.encoder.settings(&sample)?;
            Ok(Some(Job { sample: sample.index, image, how, pixels: sample.device(0)? }))
        });
        let (on_host, on_device): (Vec<Job<'_>>, Vec<_>) =
            jobs.into_iter().flatten().partition(Job::is_for_host);
        let report = cx.recorder.report(on_device.len().max(1))?;
        let rows =
            if on_device.is_empty() { Vec::new() } else { self.record(cx, &on_device, report.address())? };
        let mut made: Vec<Made> = (0..inputs.batch_size()).map(|_| Made::Nothing).collect();
        let pixels: Vec<_> = on_host.iter().map(|job| job.pixels.clone()).collect();
        let landed = cx.recorder.flush(&pixels)?;
        let mut files: Vec<_> = on_host.iter().zip(landed).map(|job| (job, Made::Nothing)).collect();
        cx.cpu.pool.for_each(&mut files, |((job, bytes), file)| {
            match caught(|| encode::jpeg(&Image { bytes, ..job.image }, &job.how)) {
                Ok(bytes) => *file = Made::File(bytes),
                Err(error) => inputs.fail(job.sample, error),
            }
        });
        for ((job, _), file) in files {
            made[job.sample] = file;
        }
        let sizes = cx.recorder.reported(report);
        for ((job, row), &bytes) in on_device.iter().zip(rows).zip(sizes) {
            made[job.sample] = Made::Coefficients(row, bytes as usize);
        }
        self.made = Some(made);
        Ok(())
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let Some(made) = &self.made else { return self.host.setup(inputs) };
        let shapes = made.iter().map(|made| Shape::new(vec![made.len()])).collect();
        Ok(vec![BatchDesc::new(DType::U8, Layout::NONE, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        self.host.run_cpu(cx, io)
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        kernels().iter().try_for_each(|spec| gpu.kernel(spec).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let made = self.made.take().unwrap_or_default();
        let (mut rows, mut files) = (Vec::new(), Vec::new());
        io.rows(|sample| {
            let made = made.get(sample.index()).unwrap_or(&Made::Nothing);
            let output = sample.output(0)?;
            if output.len() != made.len() {
                return Err(Error::internal("a file of another length than was told"));
            }
            match made {
                Made::Nothing => {}
                Made::File(file) => files.push((output.clone(), file)),
                Made::Coefficients(row, _) => rows.push(Row { to: output.address(), ..*row }),
            }
            Ok(())
        });
        let staged = files.into_iter().map(|(output, file)| Ok((output, cx.recorder.stage(file)?)));
        let staged = staged.collect::<Result<Vec<_>>>()?;
        cx.copy(&staged)?;
        if rows.is_empty() {
            return Ok(());
        }
        let params = self.params(cx)?;
        cx.launch_blocks(&kernel("jpeg_write"), (most_pieces(&rows), PIECE_THREADS), &params, &rows)
    }
}

device_constants! {
    fn constants;

    /// Columns of the pixels that a block of threads transforms at a time, and threads of such a block.
    const TILE: u32 = 128;
    const TRANSFORM_THREADS: u32 = 128;
    /// Blocks of samples of a piece, each of a thread, and more behind it: as many as have the rest of a byte.
    const PIECE: u32 = 126;
    const PIECE_THREADS: u32 = 128;
    /// Bits of a block, at most: a mean of 11 bits behind a code of 11, and 63 times 10 behind 16.
    const MAX_BITS: u32 = 1660;
    /// Codes of sizes of means, and with those of coefficients behind them all of a component: each is its bits and, in
    /// the lowest byte, how many these are.
    const MEANS: u32 = 16;
    const CODES: u32 = 272;
}

/// Blocks of an image whose bits are counted in 32 bits.
const MAX_BLOCKS: usize = (u32::MAX / MAX_BITS) as usize;

/// Bytes that each place in memory begins at a multiple of.
const ALIGNMENT: usize = 256;

const HEADER: Header = Header { name: "jpeg_encode", text: || text_with::<Row, Params>(&constants()) };

device_struct! {
    /// How a coefficient is divided: `half` is added to its size, and the upper half of that times `inverse` taken.
    struct Step as Step {
        inverse: u32,
        half: u32,
    }
}

impl Step {
    /// For a divisor in the file; coefficients have eight times their size.
    fn of(step: u8) -> Self {
        let divisor = 8 * u32::from(step.max(1));
        Self { inverse: (1_u64 << 32).div_ceil(u64::from(divisor)) as u32, half: divisor / 2 }
    }
}

device_struct! {
    /// An image, as `kernels/jpeg_encode.cu` and `kernels/jpeg_write.cu` see it.
    struct Row as Row {
        /// the file; of the last kernel
        to: u64 = "uint8_t *",
        pixels: u64 = "const uint8_t *",
        head: u64 = "const uint8_t *",
        /// of luma and chroma, in their order in the file
        steps: u64 = "const Step *" of Step,
        /// of all blocks in their order in the file
        coefficients: u64 = "int16_t *",
        /// a bit for each coefficient that is not 0
        present: u64 = "uint8_t *",
        /// of each block, how many
        bits: u64 = "uint16_t *",
        /// of each piece its first bit, and behind them the end
        starts: u64 = "uint32_t *",
        /// zeros behind bytes of 255 before each piece, and all
        stuffed: u64 = "uint32_t *",
        /// bytes of the file
        size: u64 = "uint32_t *",
        width: u32,
        height: u32,
        /// 1 or 3
        channels: u32,
        /// blocks of luma of an MCU
        across: u32,
        down: u32,
        /// MCUs of a row, and rows
        columns: u32,
        lines: u32,
        blocks: u32,
        pieces: u32,
        head_bytes: u32,
        /// where the head has height and width
        sides_at: u32,
        unused: u32,
    }
}

impl Row {
    /// Tiles of the image.
    fn tiles(&self) -> usize {
        self.columns.div_ceil(TILE / (8 * self.across)) as usize * self.lines as usize
    }
}

device_struct! {
    struct Params as Params {
        /// CODES of luma, CODES of chroma
        codes: u64 = "const uint32_t *",
    }
}

fn kernel(entry: &'static str) -> KernelSpec {
    let source = if entry == "jpeg_coefficients" { "jpeg_encode" } else { "jpeg_write" };
    KernelSpec::of::<Row, Params>(source, entry).header(HEADER)
}

/// All that the operator launches.
pub(super) fn kernels() -> Vec<KernelSpec> {
    ["jpeg_coefficients", "jpeg_lengths", "jpeg_starts", "jpeg_stuffed", "jpeg_sizes", "jpeg_write"]
        .map(kernel)
        .to_vec()
}
