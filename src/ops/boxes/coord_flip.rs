//! `CoordFlip`: points mirrored at a center.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::shared::dtypes;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, ValueType};

/// Names of coordinates, with their arguments: whether they are mirrored, and where.
const AXES: [(u8, &str, &str); 3] =
    [(b'x', "flip_x", "center_x"), (b'y', "flip_y", "center_y"), (b'z', "flip_z", "center_z")];

struct CoordFlip {
    /// Of each of [`AXES`].
    flips: [Arg; 3],
    centers: [Arg; 3],
    layout: Layout,
    /// Per sample, for each coordinate of a point: twice the center when it is mirrored.
    mirrors: Vec<Vec<Option<f32>>>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "CoordFlip",
    doc: "Mirrors points at a center",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("flip_x", "nonzero: mirror x").tensor().or_int(1),
        ArgSpec::int("flip_y", "nonzero: mirror y").tensor().or_int(0),
        ArgSpec::int("flip_z", "nonzero: mirror z").tensor().or_int(0),
        ArgSpec::float("center_x", "x of the center").tensor().or_float(0.5),
        ArgSpec::float("center_y", "y of the center").tensor().or_float(0.5),
        ArgSpec::float("center_z", "z of the center").tensor().or_float(0.5),
        ArgSpec::layout("layout", "order of the coordinates, such as `yx`; empty: x, y, z").or_string(""),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let [(_, x, cx), (_, y, cy), (_, z, cz)] = AXES;
    Ok(Box::new(CoordFlip {
        flips: [args.arg(x)?, args.arg(y)?, args.arg(z)?],
        centers: [args.arg(cx)?, args.arg(cy)?, args.arg(cz)?],
        layout: Layout::new(args.string("layout")?)?,
        mirrors: Vec::new(),
    }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("points", dtype, &[DType::F32])
}

impl Operator for CoordFlip {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        dtypes::like_input(inputs, check)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let layout = if self.layout.is_none() { Layout::from_letters(b"xyz") } else { self.layout };
        self.mirrors = inputs.map(|sample| {
            let shape = sample.input(0)?.shape;
            let count = shape.last().copied().unwrap_or_default();
            if !(1..=3).contains(&count) || layout.letters().len() < count {
                return Err(Error::invalid(format!(
                    "points of shape {shape}, expected 1 to 3 coordinates in the layout `{layout}`"
                )));
            }
            let mut mirrors = vec![None; count];
            for (mirror, letter) in mirrors.iter_mut().zip(layout.letters()) {
                let axis = AXES.iter().position(|(name, ..)| name == letter).ok_or_else(|| {
                    Error::invalid(format!("argument `layout` is `{layout}`, expected x, y and z in it"))
                })?;
                if self.flips[axis].int(&sample)? != 0 {
                    *mirror = Some(2.0 * self.centers[axis].float(&sample)?);
                }
            }
            Ok(mirrors)
        });
        Ok(vec![desc.clone()])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let all = &self.mirrors;
        io.for_each_sample(cx, |sample| {
            let mirrors = all.get(sample.index()).filter(|mirrors| !mirrors.is_empty());
            let mirrors = mirrors.ok_or_else(|| Error::internal("a live sample has no mirrors"))?;
            let (input, output) = sample.unary()?;
            let pairs = output.as_slice_mut::<f32>()?.iter_mut().zip(input.as_slice::<f32>()?);
            for ((to, from), mirror) in pairs.zip(mirrors.iter().cycle()) {
                *to = mirror.map_or(*from, |double| double - from);
            }
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&kernel()).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let rows = io.rows(|sample| {
            let mirrors = self.mirrors.get(sample.index()).map(Vec::as_slice).unwrap_or_default();
            let mut row = Row {
                to: sample.target(0)?,
                from: sample.source(0)?,
                elements: sample.output_shape(0)?.volume()? as u64,
                coordinates: mirrors.len() as u32,
                flipped: 0,
                twice: [0.0; AXES.len()],
                unused: 0,
            };
            for (c, (twice, mirror)) in row.twice.iter_mut().zip(mirrors).enumerate() {
                if let Some(mirror) = mirror {
                    (*twice, row.flipped) = (*mirror, row.flipped | 1 << c);
                }
            }
            Ok(row)
        });
        let most = rows.iter().map(|row| row.elements).max().unwrap_or_default();
        cx.launch(&kernel(), most as usize, &NoParams::default(), &rows)
    }
}

device_struct! {
    /// A sample, as `kernels/coord_flip.cu` sees it.
    struct Row as Row {
        to: u64 = "float *",
        from: u64 = "const float *",
        elements: u64,
        /// of a point
        coordinates: u32,
        /// a bit for each that is mirrored
        flipped: u32,
        /// the center, twice
        twice: [f32; AXES.len()],
        unused: u32,
    }
}

fn kernel() -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("coord_flip", "coord_flip")
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    vec![kernel()]
}
