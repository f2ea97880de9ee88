//! What an operator sees of a batch on a device: addresses instead of bytes, and a recorder instead of threads. A
//! sample that failed before is skipped, as on the host.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::io::{CpuCx, Inputs, SampleInputs};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, Grid, KernelSpec, NoParams, Recorder, Slot};
use crate::memory::DeviceBytes;
use crate::tensor::{BatchDesc, Shape, View};

/// Threads of a block in kernels without a reason for another number.
pub(crate) const THREADS: u32 = 256;

/// Blocks of a row: enough for any device.
const MAX_BLOCKS: usize = 2048;

/// Rows of one launch: the largest extent of a grid along y.
const MAX_ROWS: usize = 65_535;

/// Samples from which on several threads look at them, each at a quarter of as many at a time.
const SPREAD_SAMPLES: usize = 32;

/// What `run_gpu` may use: the recorder of the batch, and the instance's threads for work on the host.
pub struct GpuCx<'a> {
    /// Takes launches, copies, staged tables.
    pub recorder: &'a mut Recorder,
    /// Worker threads of the instance.
    pub cpu: CpuCx<'a>,
    /// Whether samples may turn out to have failed after the batch has run, see [`super::Deferred::settle`].
    pub may_settle: bool,
}

impl GpuCx<'_> {
    /// Lets what `record` records run at `slot`, behind everything before it, and everything behind it once more. The
    /// batch has run.
    ///
    /// # Errors
    /// Those of `record`; internal, for a slot of another batch.
    pub(crate) fn mend(&mut self, slot: Slot, record: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let begin = self.recorder.recorded();
        record(self)?;
        self.recorder.mend(slot, begin)
    }

    /// Records a launch of blocks of `THREADS` over a table whose rows have at most `elements` elements each: x counts
    /// blocks of a row, y rows. A kernel loops when a row has more elements than its blocks have threads.
    ///
    /// # Errors
    /// Those of [`Recorder::launch`].
    pub fn launch<R: bytemuck::Pod, P: bytemuck::Pod>(
        &mut self,
        spec: &KernelSpec,
        elements: usize,
        params: &P,
        rows: &[R],
    ) -> Result<()> {
        self.launch_blocks(spec, (elements.div_ceil(THREADS as usize), THREADS), params, rows)
    }

    /// Records a launch of blocks of so many threads over a table: x counts blocks of a row, y rows. A kernel loops
    /// when a row would need more blocks than it gets.
    ///
    /// # Errors
    /// Those of [`Recorder::launch`].
    pub fn launch_blocks<R: bytemuck::Pod, P: bytemuck::Pod>(
        &mut self,
        spec: &KernelSpec,
        (blocks, threads): (usize, u32),
        params: &P,
        rows: &[R],
    ) -> Result<()> {
        let blocks = blocks.clamp(1, MAX_BLOCKS) as u32;
        for rows in rows.chunks(MAX_ROWS) {
            let grid = Grid { blocks: [blocks, rows.len() as u32, 1], threads };
            self.recorder.launch(spec, grid, params, rows)?;
        }
        Ok(())
    }
}

device_struct! {
    /// Runs of bytes to copy, as `kernels/copy.cu` sees them: adjacent where they come from, at equal distances where
    /// they go.
    #[derive(Debug, PartialEq, Eq)]
    pub(crate) struct Runs as Row {
        /// Address of the first in the output.
        pub(crate) to: u64 = "uint8_t *",
        /// Address of all in the input.
        pub(crate) from: u64 = "const uint8_t *",
        /// Bytes of each.
        pub(crate) bytes: u64,
        /// How many.
        pub(crate) count: u64,
        /// Bytes from one to the next in the output.
        pub(crate) pitch: u64,
    }
}

/// The kernel that copies.
fn copy_kernel() -> KernelSpec {
    KernelSpec::of::<Runs, NoParams>("copy", "copy")
}

pub(crate) fn kernels() -> Vec<KernelSpec> {
    vec![copy_kernel()]
}

/// Compiles the kernel of [`GpuCx::copy`], which many operators use.
///
/// # Errors
/// Those of [`Gpu::kernel`].
pub fn prepare_copy(gpu: &Gpu) -> Result<()> {
    gpu.kernel(&copy_kernel()).map(drop)
}

impl GpuCx<'_> {
    /// Records copies of whole samples within the device, as one launch.
    ///
    /// # Errors
    /// Internal, when a pair is not equally long; those of [`Recorder::launch`].
    pub fn copy(&mut self, pairs: &[(DeviceBytes<'_>, DeviceBytes<'_>)]) -> Result<()> {
        let row = |(to, from): &(DeviceBytes<'_>, DeviceBytes<'_>)| {
            if to.len() != from.len() {
                return Err(Error::internal(format!("a copy of {} bytes to {}", from.len(), to.len())));
            }
            let bytes = to.len() as u64;
            Ok(Runs { to: to.address(), from: from.address(), bytes, count: 1, pitch: bytes })
        };
        let rows = pairs.iter().map(row).collect::<Result<Vec<_>>>()?;
        self.copy_runs(&rows)
    }

    /// Records copies of runs of bytes within the device, as one launch.
    ///
    /// # Errors
    /// Those of [`Recorder::launch`].
    pub(crate) fn copy_runs(&mut self, rows: &[Runs]) -> Result<()> {
        let most = rows.iter().map(|row| row.bytes * row.count).max().unwrap_or_default() as usize;
        self.launch(&copy_kernel(), most.div_ceil(16), &NoParams::default(), rows)
    }
}

/// One output on the device.
pub struct DeviceOutput<'a> {
    /// Type, layout and shapes.
    pub desc: &'a BatchDesc,
    /// Where each sample goes; `None` for one that failed.
    pub samples: Vec<Option<DeviceBytes<'a>>>,
}

/// Where a sample of an input is on a device, by its address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Source {
    /// Nowhere yet.
    #[default]
    Absent,
    /// All of its elements.
    Elements(u64),
    /// Planes of its components (`kernels/planes.cuh`), of which an image of bytes with three channels is to be made.
    Planes(u64),
}

/// Inputs and outputs of an operator while it records.
pub struct GpuIo<'a> {
    inputs: Inputs<'a>,
    outputs: Vec<DeviceOutput<'a>>,
    /// Where the samples of the first input are; `None`: where it says, all of them.
    sources: Option<&'a [Source]>,
}

impl<'a> GpuIo<'a> {
    /// Inputs, and outputs in order.
    pub fn new(inputs: Inputs<'a>, outputs: Vec<DeviceOutput<'a>>) -> Self {
        Self { inputs, outputs, sources: None }
    }

    /// The same for the samples whose first input `sources` has, and no others.
    pub(crate) fn of(inputs: Inputs<'a>, outputs: Vec<DeviceOutput<'a>>, sources: &'a [Source]) -> Self {
        Self { inputs, outputs, sources: Some(sources) }
    }

    /// The outputs in order.
    pub(crate) fn outputs(&self) -> &[DeviceOutput<'a>] {
        &self.outputs
    }

    /// The inputs.
    pub fn inputs(&self) -> Inputs<'a> {
        self.inputs
    }

    /// Calls `f` for every live sample, in order, and returns what it made of each. An error or a panic fails its
    /// sample and no other.
    pub fn rows<R>(&self, mut f: impl FnMut(&DeviceSample<'_, 'a>) -> Result<R>) -> Vec<R> {
        let mut rows = Vec::with_capacity(self.inputs.batch_size());
        rows.extend(self.live().filter_map(|index| self.row(index, &mut f)));
        rows
    }

    /// The same by several threads if there are many samples.
    pub(crate) fn rows_by_threads<R: Send>(
        &self,
        cx: &CpuCx<'_>,
        f: impl Fn(&DeviceSample<'_, 'a>) -> Result<R> + Sync,
    ) -> Vec<R> {
        if self.inputs.batch_size() < SPREAD_SAMPLES {
            return self.rows(f);
        }
        let mut rows: Vec<(usize, Option<R>)> = self.live().map(|index| (index, None)).collect();
        let mut parts: Vec<_> = rows.chunks_mut(SPREAD_SAMPLES / 4).collect();
        cx.pool.for_each(&mut parts, |part| {
            for (index, row) in part.iter_mut() {
                *row = self.row(*index, &mut &f);
            }
        });
        rows.into_iter().filter_map(|(_, row)| row).collect()
    }

    /// Samples that are there.
    fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.inputs.batch_size()).filter(|&index| {
            let is_there = self
                .sources
                .is_none_or(|sources| sources.get(index).is_some_and(|&source| source != Source::Absent));
            is_there && self.inputs.failures().get(index).is_none()
        })
    }

    fn row<R>(&self, index: usize, f: &mut impl FnMut(&DeviceSample<'_, 'a>) -> Result<R>) -> Option<R> {
        let first = self.sources.and_then(|sources| sources.get(index).copied());
        let sample = DeviceSample { inputs: self.inputs.sample(index), outputs: &self.outputs, first };
        catch_unwind(AssertUnwindSafe(|| f(&sample)))
            .unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())))
            .map_err(|error| self.inputs.fail(index, error))
            .ok()
    }
}

/// One sample on the device while its work is recorded.
pub struct DeviceSample<'s, 'a> {
    /// Its inputs: shapes, and the bytes of those on the host.
    pub inputs: SampleInputs<'a>,
    outputs: &'s [DeviceOutput<'a>],
    /// Where its first input is, if that does not say so.
    first: Option<Source>,
}

impl<'s, 'a> DeviceSample<'s, 'a> {
    /// Which sample of the batch.
    pub fn index(&self) -> usize {
        self.inputs.index
    }

    /// Type, layout and shape of regular input `i`; its bytes only when it is on the host.
    ///
    /// # Errors
    /// When there is no such input.
    pub fn input(&self, i: usize) -> Result<View<'a>> {
        self.inputs.input(i)
    }

    /// Address of the elements of regular input `i`.
    ///
    /// # Errors
    /// Internal, when they are not on the device.
    pub fn source(&self, i: usize) -> Result<u64> {
        match self.first.filter(|_| i == 0) {
            None => Ok(self.inputs.device(i)?.address()),
            Some(Source::Elements(address)) => Ok(address),
            Some(_) => Err(Error::internal("an input has no elements")),
        }
    }

    /// Address of the elements of the first regular input, and that of its planes, one of them 0.
    ///
    /// # Errors
    /// Internal, when it is not on the device.
    pub(crate) fn elements_or_planes(&self) -> Result<[u64; 2]> {
        match self.first {
            Some(Source::Planes(address)) => Ok([0, address]),
            _ => Ok([self.source(0)?, 0]),
        }
    }

    /// Where output `i` goes.
    ///
    /// # Errors
    /// Internal, when there is no such output.
    pub fn output(&self, i: usize) -> Result<&'s DeviceBytes<'a>> {
        self.outputs
            .get(i)
            .and_then(|output| output.samples.get(self.index())?.as_ref())
            .ok_or_else(|| Error::internal(format!("output {i} has no memory")))
    }

    /// Address of output `i`.
    ///
    /// # Errors
    /// Internal, when there is no such output.
    pub fn target(&self, i: usize) -> Result<u64> {
        Ok(self.output(i)?.address())
    }

    /// Type, layout and shapes of output `i`.
    ///
    /// # Errors
    /// Internal, when there is no such output.
    pub fn output_desc(&self, i: usize) -> Result<&'a BatchDesc> {
        let desc = self.outputs.get(i).map(|output| output.desc);
        desc.ok_or_else(|| Error::internal(format!("there is no output {i}")))
    }

    /// Shape of output `i`.
    ///
    /// # Errors
    /// Internal, when there is no such output.
    pub fn output_shape(&self, i: usize) -> Result<&'a Shape> {
        let shape = self.output_desc(i)?.shapes.get(self.index());
        shape.ok_or_else(|| Error::internal(format!("output {i} has no shape")))
    }
}
