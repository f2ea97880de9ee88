//! `Constant`: the same small tensor for every sample of the batch.

use std::sync::Arc;

use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::cpu::window::Span;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::shared::gather::{self, Fill, Gather};
use crate::operator::{ArgSpec, Args, CpuCx, GpuCx, GpuIo, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, Shape, ValueType};

struct Constant {
    dtype: DType,
    layout: Layout,
    shape: Shape,
    /// The elements as they are stored: all of them, or one that fills the whole shape.
    bytes: Vec<u8>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Constant",
    doc: "A tensor that is written in the pipeline, once per sample",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (0, 0),
    args: &[
        ArgSpec::floats("fdata", "elements as floats; either this or `idata` is required"),
        ArgSpec::ints("idata", "elements as integers"),
        ArgSpec::ints("shape", "shape; a single element fills it").or_computed("a list of the elements"),
        ArgSpec::dtype("dtype", "element type").or_computed("float32 for `fdata`, int32 for `idata`"),
        ArgSpec::layout("layout", "layout, as long as the shape").or_string(""),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gather::kernels],
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let dtype = args.given_dtype("dtype")?;
    let (dtype, len, bytes) = match (args.given_floats("fdata")?, args.given_ints("idata")?) {
        (Some(floats), None) => {
            let dtype = dtype.unwrap_or(DType::F32);
            (dtype, floats.len(), dispatch!(dtype, T => stored::<_, T>(&floats)))
        }
        (None, Some(ints)) => {
            let dtype = dtype.unwrap_or(DType::I32);
            (dtype, ints.len(), dispatch!(dtype, T => stored::<_, T>(&ints)))
        }
        (Some(_), Some(_)) => return Err(Error::invalid("arguments `fdata` and `idata` exclude each other")),
        (None, None) => return Err(Error::invalid("argument `fdata` or `idata` is missing")),
    };
    let shape = match args.given_ints("shape")? {
        None => Shape::from([len]),
        Some(extents) => shape(&extents)?,
    };
    shape.bytes(dtype.size())?;
    if len != 1 && shape.volume()? != len {
        return Err(Error::invalid(format!("{len} elements do not fill the shape {shape}")));
    }
    let layout = Layout::new(args.string("layout")?)?;
    if !layout.is_none() && layout.letters().len() != shape.len() {
        return Err(Error::invalid(format!("layout `{layout}` does not fit the shape {shape}")));
    }
    Ok(Box::new(Constant { dtype, layout, shape, bytes }))
}

fn shape(extents: &[i64]) -> Result<Shape> {
    if extents.len() > limits::MAX_NDIM {
        return Err(Error::invalid(format!(
            "argument `shape` has {} extents, expected at most {}",
            extents.len(),
            limits::MAX_NDIM
        )));
    }
    let extent = |&extent| {
        usize::try_from(extent).map_err(|_| {
            Error::invalid(format!("argument `shape` is {extents:?}, expected extents that are not negative"))
        })
    };
    Ok(Shape::from(extents.iter().map(extent).collect::<Result<Vec<_>>>()?))
}

/// The bytes of `values` as elements of type `T`.
fn stored<S: ConvertSat<T>, T: Element>(values: &[S]) -> Vec<u8> {
    let mut elements = vec![T::default(); values.len()];
    convert_slice(values, &mut elements);
    bytemuck::cast_slice(&elements).to_vec()
}

impl Operator for Constant {
    fn infer(&self, _inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let dims = self.shape.iter().map(|&extent| Some(extent)).collect();
        Ok(vec![ValueType { dtype: Some(self.dtype), dims: Some(dims), layout: Some(self.layout) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let shapes = vec![self.shape.clone(); inputs.batch_size()];
        Ok(vec![BatchDesc::new(self.dtype, self.layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            // One chunk when the file holds every element, one per element when it holds one for all.
            for chunk in sample.output(0)?.bytes.chunks_exact_mut(self.bytes.len().max(1)) {
                chunk.copy_from_slice(&self.bytes);
            }
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        Gather::copy(self.dtype.size()).prepare(gpu)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let gather = Gather::copy(self.dtype.size());
        let from = cx.recorder.stage(&self.bytes)?.address();
        let stride = i64::from(self.bytes.len() > self.dtype.size());
        let span = Span::whole(self.shape.volume()?, stride);
        let rows = io.rows(|sample| gather.row(sample.target(0)?, from, &[span], Fill::default()));
        gather.launch(cx, &rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::args;

    #[test]
    fn elements_that_do_not_fit_are_errors_at_load() {
        let ints = |values: &[i64]| Value::Ints(values.to_vec());
        for (values, words) in [
            (vec![], "`fdata` or `idata` is missing"),
            (vec![("idata", ints(&[1])), ("fdata", ints(&[1]))], "exclude each other"),
            (
                vec![("idata", ints(&[1, 2, 3])), ("shape", ints(&[2, 2]))],
                "3 elements do not fill the shape [2, 2]",
            ),
            (vec![("idata", ints(&[1])), ("shape", ints(&[-1]))], "not negative"),
            (vec![("idata", ints(&[1])), ("shape", ints(&[1 << 40, 1 << 40]))], "limit"),
            (vec![("idata", ints(&[1])), ("shape", ints(&[1; 17]))], "at most 16"),
            (
                vec![("idata", ints(&[1])), ("layout", Value::Strings(vec!["HW".into()]))],
                "does not fit the shape [1]",
            ),
        ] {
            let error = DEF.instantiate(&args(&values, &[]), 0).err().unwrap().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
