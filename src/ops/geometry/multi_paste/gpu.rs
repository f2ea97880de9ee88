//! `MultiPaste` on a device: rows of the table for `kernels/multi_paste.cu`.

use super::{Job, Region};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{KernelSpec, NoParams};
use crate::operator::{GpuCx, GpuIo, Inputs};
use crate::tensor::DType;

impl Job {
    /// A region of an image on a device whose elements are of type `dtype`.
    fn pasted(&self, region: &Region, inputs: &Inputs<'_>, dtype: DType) -> Result<Pasted> {
        let (input, id) = region.source;
        let image = inputs.sample(id);
        let pitch = image.input(input)?.shape[1] * self.channels;
        let first = region.from[0] * pitch + region.from[1] * self.channels;
        Ok(Pasted {
            from: image.device(input)?.address() + (first * dtype.size()) as u64,
            pitch: pitch as u64,
            to: region.to.map(|at| at as u64),
            size: region.size.map(|extent| extent as u64),
        })
    }
}

/// Records the pasting of `jobs`, between these types.
///
/// # Errors
/// Those of [`GpuCx::launch`].
pub(super) fn run(
    cx: &mut GpuCx<'_>,
    io: &mut GpuIo<'_>,
    jobs: &[Job],
    [from, to]: [DType; 2],
) -> Result<()> {
    let inputs = io.inputs();
    let rows = io.rows(|sample| {
        let job = jobs.get(sample.index()).ok_or_else(|| Error::internal("a live sample has no regions"))?;
        let regions = job.regions.iter().map(|region| job.pasted(region, &inputs, from));
        let regions = regions.collect::<Result<Vec<Pasted>>>()?;
        let staged = match regions.len() {
            0 => 0,
            _ => cx.recorder.stage(bytemuck::cast_slice(&regions))?.address(),
        };
        Ok(Row {
            to: sample.target(0)?,
            regions: staged,
            count: regions.len() as u64,
            pixels: (job.canvas[0] * job.canvas[1]) as u64,
            width: job.canvas[1] as u64,
            channels: job.channels as u64,
        })
    });
    let most = rows.iter().map(|row| row.pixels).max().unwrap_or_default();
    cx.launch(&kernel(from, to), most as usize, &NoParams::default(), &rows)
}

device_struct! {
    /// A region, as `kernels/multi_paste.cu` sees it.
    struct Pasted as Region {
        /// its first element
        from: u64 = "const FROM *",
        /// elements from one line of its image to the next
        pitch: u64,
        /// row and column on the canvas
        to: [u64; 2],
        /// height and width
        size: [u64; 2],
    }
}

device_struct! {
    /// A canvas.
    struct Row as Row {
        to: u64 = "TO *",
        regions: u64 = "const Region *" of Pasted,
        count: u64,
        pixels: u64,
        width: u64,
        channels: u64,
    }
}

pub(super) fn kernel(from: DType, to: DType) -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("multi_paste", "multi_paste").dtype("FROM", from).dtype("TO", to)
}

/// Those that tests compile.
pub(super) fn kernels() -> Vec<KernelSpec> {
    vec![kernel(DType::U8, DType::U8), kernel(DType::F32, DType::I16), kernel(DType::I32, DType::F32)]
}
