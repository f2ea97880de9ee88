//! `CoordTransform`: points multiplied by a matrix and moved.

use std::sync::Arc;

use crate::cpu::convert::ConvertSat;
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::shared::dtypes;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Element, Shape, ValueType};

/// Most coordinates of a point.
const MAX_COORDINATES: usize = 6;

struct CoordTransform {
    /// `M`, or `MT` with the translation as its last column.
    matrix: Option<Arg>,
    is_fused: bool,
    translation: Option<Arg>,
    /// The type of the output: float32 or the input's.
    dtype: DType,
    maps: Vec<Option<PointMap>>,
}

/// What the points of one sample are multiplied by and moved by.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PointMap {
    from: usize,
    to: usize,
    /// `to` rows, of which `from` elements are used.
    matrix: [[f32; MAX_COORDINATES]; MAX_COORDINATES],
    translation: [f32; MAX_COORDINATES],
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "CoordTransform",
    doc: "Multiplies points by a matrix and moves them",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::floats("M", "the matrix, or one number for its diagonal")
            .tensor()
            .per_frame()
            .or_computed("the identity"),
        ArgSpec::floats("T", "what is added, or one number for all coordinates")
            .tensor()
            .per_frame()
            .or_computed("0"),
        ArgSpec::floats("MT", "`M` with `T` as a further column, instead of both").tensor().per_frame(),
        ArgSpec::dtype("dtype", "element type of the output: float32 or the input's").or_dtype(DType::F32),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let (separate, fused) = (args.given_arg("M")?, args.given_arg("MT")?);
    let translation = args.given_arg("T")?;
    let is_fused = fused.is_some();
    if is_fused && (separate.is_some() || translation.is_some()) {
        return Err(Error::invalid("expected the argument `MT` or `M` and `T`, found both"));
    }
    let dtype = args.dtype("dtype")?;
    Ok(Box::new(CoordTransform {
        matrix: separate.or(fused),
        is_fused,
        translation,
        dtype,
        maps: Vec::new(),
    }))
}

impl CoordTransform {
    fn check(&self, from: DType) -> Result<()> {
        dtypes::accepted("points", from, &[DType::U8, DType::U16, DType::I16, DType::I32, DType::F32])?;
        if self.dtype != from && self.dtype != DType::F32 {
            return Err(Error::unsupported(format!(
                "argument `dtype` is {}, expected float32 or {from} as the input",
                self.dtype
            )));
        }
        Ok(())
    }

    /// What becomes of a batch without points, of whatever type: points without coordinates where a matrix would say
    /// how many.
    fn without_points(&self, desc: &BatchDesc) -> BatchDesc {
        let shapes = desc.shapes.iter().map(|shape| {
            let mut dims = shape.to_vec();
            if self.matrix.is_some() {
                dims.last_mut().into_iter().for_each(|last| *last = 0);
            }
            Shape::new(dims)
        });
        BatchDesc::new(self.dtype, desc.layout, shapes.collect())
    }

    /// The map of one sample with points of `from` coordinates.
    fn map(&self, sample: &SampleInputs<'_>, from: usize) -> Result<PointMap> {
        let wrong = |name: &str, values: usize| {
            Err(Error::invalid(format!(
                "argument `{name}` has {values} values, which do not fit points of {from} coordinates"
            )))
        };
        let name = if self.is_fused { "MT" } else { "M" };
        let values = self.matrix.as_ref().map_or(Ok(vec![1.0]), |matrix| matrix.floats(sample))?;
        let columns = from + usize::from(self.is_fused);
        let is_diagonal = values.len() == 1;
        let to = if is_diagonal { from } else { values.len() / columns.max(1) };
        if !is_diagonal && values.len() != to * columns {
            return wrong(name, values.len());
        }
        if !(1..=MAX_COORDINATES).contains(&from) || !(1..=MAX_COORDINATES).contains(&to) {
            return Err(Error::unsupported(format!(
                "points of {from} coordinates to points of {to}, expected 1 to {MAX_COORDINATES}"
            )));
        }
        let mut map = PointMap { from, to, matrix: Default::default(), translation: Default::default() };
        if is_diagonal {
            (0..from).for_each(|i| map.matrix[i][i] = values[0]);
        } else {
            for (i, row) in values.chunks_exact(columns).enumerate() {
                map.matrix[i][..from].copy_from_slice(&row[..from]);
                map.translation[i] = row.get(from).copied().unwrap_or_default();
            }
        }
        if let Some(translation) = &self.translation {
            match translation.floats(sample)?[..] {
                [value] => map.translation[..to].fill(value),
                ref values if values.len() == to => map.translation[..to].copy_from_slice(values),
                ref values => return wrong("T", values.len()),
            }
        }
        Ok(map)
    }
}

impl PointMap {
    fn run<S, T>(&self, src: &[S], dst: &mut [T])
    where
        S: Element + ConvertSat<f32>,
        f32: ConvertSat<T>,
    {
        for (to, from) in dst.chunks_exact_mut(self.to).zip(src.chunks_exact(self.from)) {
            let rows = self.matrix.iter().map(|row| &row[..self.from]).zip(self.translation);
            for (to, (row, translation)) in to.iter_mut().zip(rows) {
                let first = row[0] * from[0].convert_sat();
                let sum =
                    row[1..].iter().zip(&from[1..]).fold(first, |sum, (m, x)| sum + m * x.convert_sat());
                *to = (sum + translation).convert_sat();
            }
        }
    }
}

/// Whether nothing is to be computed of a batch.
fn has_no_points(desc: &BatchDesc) -> bool {
    desc.shapes.iter().all(|shape| shape.contains(&0))
}

fn map_of(maps: &[Option<PointMap>], index: usize) -> Result<&PointMap> {
    let map = maps.get(index).and_then(Option::as_ref);
    map.ok_or_else(|| Error::internal("a live sample has no map of points"))
}

impl Operator for CoordTransform {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), |from| self.check(from))?;
        ty.dtype = Some(self.dtype);
        if self.matrix.is_some()
            && let Some(last) = ty.dims.as_mut().and_then(|dims| dims.last_mut())
        {
            *last = None;
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        if has_no_points(desc) {
            return Ok(vec![self.without_points(desc)]);
        }
        self.check(desc.dtype)?;
        self.maps = inputs.map(|sample| match sample.input(0)?.shape[..] {
            [.., _, from] => self.map(&sample, from).map(Some),
            ref shape => {
                Err(Error::invalid(format!("a sample of shape {shape:?}, expected at least 2 dimensions")))
            }
        });
        let shapes = desc.shapes.iter().zip(&self.maps).map(|(shape, map)| {
            let mut dims = shape.to_vec();
            match (map, dims.last_mut()) {
                (Some(map), Some(last)) => *last = map.to,
                _ => dims.fill(0),
            }
            Shape::new(dims)
        });
        Ok(vec![BatchDesc::new(self.dtype, desc.layout, shapes.collect())])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        if has_no_points(io.inputs().desc(0)?) {
            return Ok(());
        }
        let maps = &self.maps;
        macro_rules! run {
            ($from:ty, $to:ty) => {
                io.for_each_sample(cx, |sample| {
                    let map = map_of(maps, sample.index())?;
                    let (input, output) = sample.unary()?;
                    map.run::<$from, $to>(input.as_slice()?, output.as_slice_mut()?);
                    Ok(())
                })
            };
        }
        match (io.inputs().desc(0)?.dtype, self.dtype) {
            (DType::F32, _) => run!(f32, f32),
            (DType::U8, DType::F32) => run!(u8, f32),
            (DType::U8, _) => run!(u8, u8),
            (DType::U16, DType::F32) => run!(u16, f32),
            (DType::U16, _) => run!(u16, u16),
            (DType::I16, DType::F32) => run!(i16, f32),
            (DType::I16, _) => run!(i16, i16),
            (DType::I32, DType::F32) => run!(i32, f32),
            (DType::I32, _) => run!(i32, i32),
            (from, _) => self.check(from),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |from| gpu.kernel(&kernel(from, self.dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        if has_no_points(io.inputs().desc(0)?) {
            return Ok(());
        }
        let mut most = 0;
        let rows = io.rows(|sample| {
            let map = map_of(&self.maps, sample.index())?;
            let points = sample.output_shape(0)?.volume()? / map.to;
            most = most.max(points);
            Ok(Row {
                to: sample.target(0)?,
                from: sample.source(0)?,
                points: points as u64,
                from_coordinates: map.from as u32,
                to_coordinates: map.to as u32,
                matrix: map.matrix,
                translation: map.translation,
            })
        });
        cx.launch(&kernel(io.inputs().desc(0)?.dtype, self.dtype), most, &NoParams::default(), &rows)
    }
}

device_struct! {
    /// A sample, as `kernels/points.cu` sees it.
    struct Row as Row {
        to: u64 = "TO *",
        from: u64 = "const FROM *",
        points: u64,
        from_coordinates: u32,
        to_coordinates: u32,
        matrix: [[f32; MAX_COORDINATES]; MAX_COORDINATES],
        translation: [f32; MAX_COORDINATES],
    }
}

fn kernel(from: DType, to: DType) -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("points", "points")
        .dtype("FROM", from)
        .dtype("TO", to)
        .define("MAX", MAX_COORDINATES)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    vec![kernel(DType::F32, DType::F32), kernel(DType::I16, DType::I16)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    #[test]
    fn a_matrix_must_fit_the_points() {
        let points = batch::<f32>(&[(&[1, 2], &[3.0, 4.0]), (&[1, 3], &[3.0, 4.0, 5.0])]);
        let matrix = args(&[("M", Value::Floats(vec![1.0, 2.0, 0.0, 1.0]))], &[]);
        let outcome = run(&DEF, &matrix, &[points], &[]).unwrap();
        assert_eq!(outcome.values::<f32>(0), [11.0, 4.0]);
        assert!(outcome.error(1).contains("do not fit points of 3"));
        let many = batch::<f32>(&[(&[0, 1 << 20], &[]), (&[1, 2], &[3.0, 4.0])]);
        let outcome = run(&DEF, &args(&[], &[]), &[many], &[]).unwrap();
        assert!(outcome.error(0).contains("expected 1 to 6"));
    }
}
