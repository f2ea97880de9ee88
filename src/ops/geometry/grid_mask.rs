//! `GridMask`: zeroes squares of an image that repeat in both directions.

use std::sync::Arc;

use multiversion::multiversion;

use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::shared::dtypes;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, SampleIo,
    one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Element, ValueType};

struct GridMask {
    tile: Arg,
    ratio: Arg,
    angle: Arg,
    shift: [Arg; 2],
    grids: Vec<Grid>,
}

device_struct! {
    /// Where the squares of one sample are.
    #[derive(Debug, Default)]
    struct Grid as Grid {
        /// part of a tile's side that is zeroed
        ratio: f32,
        /// cosine and sine of the angle, and the shift, in tiles
        cos: f32,
        sin: f32,
        shift: [f32; 2],
    }
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "GridMask",
    doc: "Zeroes squares of an image in a grid",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("tile", "pixels from one square to the next").tensor().or_int(100),
        ArgSpec::float("ratio", "side of a square in tiles").tensor().or_float(0.5),
        ArgSpec::float("angle", "radians by which the grid is turned around the first pixel")
            .tensor()
            .or_float(0.0),
        ArgSpec::float("shift_x", "pixels by which the turned grid is moved along x").tensor().or_float(0.0),
        ArgSpec::float("shift_y", "pixels by which the turned grid is moved along y").tensor().or_float(0.0),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(GridMask {
        tile: args.arg("tile")?,
        ratio: args.arg("ratio")?,
        angle: args.arg("angle")?,
        shift: [args.arg("shift_x")?, args.arg("shift_y")?],
        grids: Vec::new(),
    }))
}

fn check(dtype: DType, ndim: Option<usize>) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8, DType::I16, DType::I32, DType::F32])?;
    match ndim {
        None | Some(3) => Ok(()),
        Some(other) => Err(Error::invalid(format!("a sample of {other} dimensions, expected an image of 3"))),
    }
}

impl GridMask {
    fn grid(&self, sample: &SampleInputs<'_>) -> Result<Grid> {
        let tile = self.tile.int(sample)?;
        if tile <= 0 {
            return Err(Error::invalid(format!("argument `tile` is {tile}, expected 1 or more")));
        }
        let (tile, angle) = (tile as f32, self.angle.float(sample)?);
        let [x, y] = &self.shift;
        Ok(Grid {
            ratio: self.ratio.float(sample)?,
            cos: angle.cos() / tile,
            sin: angle.sin() / tile,
            shift: [x.float(sample)? / tile, y.float(sample)? / tile],
        })
    }
}

impl Grid {
    fn run<T: Element>(&self, sample: &mut SampleIo<'_>) -> Result<()> {
        let (input, output) = sample.unary()?;
        let [_, width, channels] = input.shape[..] else {
            return Err(Error::internal("a planned image has three dimensions"));
        };
        let (src, dst) = (input.as_slice::<T>()?, output.as_slice_mut::<T>()?);
        if dst.is_empty() {
            return Ok(());
        }
        let rows = src.chunks_exact(width * channels).zip(dst.chunks_exact_mut(width * channels));
        for (y, (from, to)) in rows.enumerate() {
            mask_row(self, y as f32, from, to, channels);
        }
        Ok(())
    }

    /// Copies pixels of row `y` that the grid does not cover.
    #[inline(always)]
    fn mask<T: Element>(&self, y: f32, src: &[T], dst: &mut [T], channels: usize) {
        let start = [-self.shift[0] + y * -self.sin, -self.shift[1] + y * self.cos];
        let pixels = src.chunks_exact(channels).zip(dst.chunks_exact_mut(channels));
        for (x, (from, to)) in pixels.enumerate() {
            let x = x as f32;
            let place = [start[0] + x * self.cos, start[1] + x * self.sin];
            if place.iter().any(|place| place - place.floor() >= self.ratio) {
                to.copy_from_slice(from);
            } else {
                to.fill(T::default());
            }
        }
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn mask_row<T: Element>(grid: &Grid, y: f32, src: &[T], dst: &mut [T], channels: usize) {
    // With a number of channels that the compiler knows, loops over them disappear.
    match channels {
        1 => grid.mask(y, src, dst, 1),
        3 => grid.mask(y, src, dst, 3),
        channels => grid.mask(y, src, dst, channels),
    }
}

impl Operator for GridMask {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), |dtype| check(dtype, inputs[0].ndim()))?;
        Ok(vec![inputs[0].clone()])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype, desc.shapes.first().map(|shape| shape.len()))?;
        self.grids = inputs.map(|sample| self.grid(&sample));
        Ok(vec![desc.clone()])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let grids = &self.grids;
        match io.inputs().desc(0)?.dtype {
            DType::U8 => io.for_each_sample(cx, |sample| grids[sample.index()].run::<u8>(sample)),
            DType::I16 => io.for_each_sample(cx, |sample| grids[sample.index()].run::<i16>(sample)),
            DType::I32 => io.for_each_sample(cx, |sample| grids[sample.index()].run::<i32>(sample)),
            DType::F32 => io.for_each_sample(cx, |sample| grids[sample.index()].run::<f32>(sample)),
            other => check(other, None),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| gpu.kernel(&kernel(dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let dtype = io.inputs().desc(0)?.dtype;
        let rows = io.rows(|sample| {
            let grid = self.grids.get(sample.index()).copied().unwrap_or_default();
            let [height, width, channels] = sample.input(0)?.shape[..] else {
                return Err(Error::internal("a planned image has three dimensions"));
            };
            Ok(Row {
                to: sample.target(0)?,
                from: sample.source(0)?,
                pixels: (height * width) as u64,
                width: width as u64,
                channels: channels as u64,
                grid,
                unused: 0,
            })
        });
        let most = rows.iter().map(|row| row.pixels).max().unwrap_or_default();
        cx.launch(&kernel(dtype), most as usize, &NoParams::default(), &rows)
    }
}

device_struct! {
    /// An image, as `kernels/grid_mask.cu` sees it.
    struct Row as Row {
        to: u64 = "ELEMENT *",
        from: u64 = "const ELEMENT *",
        pixels: u64,
        width: u64,
        channels: u64,
        grid: Grid,
        unused: u32,
    }
}

fn kernel(dtype: DType) -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("grid_mask", "grid_mask").dtype("ELEMENT", dtype)
}

/// Those that tests compile.
fn kernels() -> Vec<KernelSpec> {
    vec![kernel(DType::U8), kernel(DType::F32)]
}
