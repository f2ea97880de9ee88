//! `decoders__Numpy`: arrays in numpy's file format.

use crate::cpu::convert::convert_slice;
use crate::cpu::npy::Npy;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::operator::shared::majority::most;
use crate::operator::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, Shape, ValueType};

struct DecodersNumpy {
    /// The output's type; the file's when it is not given.
    dtype: Option<DType>,
    /// What the output is declared as.
    expected: ValueType,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "decoders__Numpy",
    doc: "Decodes arrays in numpy's file format",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[ArgSpec::dtype("dtype", "element type of the output").or_computed("that of the files")],
    build: &build,
    outputs: &one_output,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(DecodersNumpy { dtype: args.given_dtype("dtype")?, expected: ValueType::default() }))
}

impl DecodersNumpy {
    /// Type and shape of what a file becomes.
    fn describe(&self, file: &[u8]) -> Result<(DType, Shape)> {
        let array = Npy::parse(file)?;
        let dtype = self.dtype.unwrap_or(array.dtype);
        let (types, ranks) = (self.expected.dtype, self.expected.ndim());
        if types.is_some_and(|expected| expected != dtype)
            || ranks.is_some_and(|ndim| ndim != array.shape.len())
        {
            let name = types.map_or_else(|| "any type".to_owned(), |expected| expected.to_string());
            let rank = ranks.map_or_else(|| "any number of".to_owned(), |ndim| ndim.to_string());
            return Err(Error::invalid(format!(
                "an array of {dtype} with {} dimensions, but the output is declared as {name} with {rank} dimensions",
                array.shape.len()
            )));
        }
        Ok((dtype, array.shape))
    }
}

impl Operator for DecodersNumpy {
    fn expect(&mut self, outputs: &[ValueType]) {
        self.expected = outputs.first().cloned().unwrap_or_default();
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        if let Some(dtype) = inputs[0].dtype.filter(|&dtype| dtype != DType::U8) {
            return Err(Error::invalid(format!("encoded arrays of type {dtype}, expected uint8")));
        }
        Ok(vec![ValueType { dtype: self.dtype, dims: None, layout: Some(Layout::NONE) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let arrays = inputs.map(|sample| self.describe(sample.input(0)?.as_slice()?).map(Some));
        let kinds = arrays.iter().flatten().map(|(dtype, shape)| (*dtype, shape.len()));
        // Nothing is made of a batch without any array.
        let (dtype, ndim) = most(kinds).unwrap_or((DType::U8, 0));
        let shape = |(i, array): (usize, Option<(DType, Shape)>)| match array {
            Some((found, shape)) if (found, shape.len()) == (dtype, ndim) => shape,
            None => Shape::new(vec![0; ndim]),
            Some((found, shape)) => {
                let text = format!(
                    "an array of {found} with {} dimensions in a batch of {dtype} with {ndim}",
                    shape.len()
                );
                inputs.fail(i, Error::invalid(text));
                Shape::new(vec![0; ndim])
            }
        };
        Ok(vec![BatchDesc::new(dtype, Layout::NONE, arrays.into_iter().enumerate().map(shape).collect())])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            let array = Npy::parse(input.as_slice::<u8>()?)?;
            if array.dtype == output.dtype {
                array.copy_to(output.bytes);
                return Ok(());
            }
            dispatch!(array.dtype, S => {
                let elements = in_order::<S>(&array);
                dispatch!(output.dtype, T => convert_slice::<S, T>(&elements, output.as_slice_mut()?));
            });
            Ok(())
        })
    }
}

/// The elements of `array` row by row.
#[inline(never)]
fn in_order<S: Element>(array: &Npy<'_>) -> Vec<S> {
    let elements: Vec<S> =
        array.bytes.chunks_exact(size_of::<S>()).map(bytemuck::pod_read_unaligned).collect();
    if array.is_fortran { array.places().map(|place| elements[place]).collect() } else { elements }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing;

    #[test]
    fn an_array_that_does_not_fit_the_batch_fails_alone() {
        let file = |descr: &str, data: &[u8]| {
            let header = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': (2, 2)}}");
            [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
        };
        let (bytes, words) = (file("|u1", &[1, 2, 3, 4]), file("<i2", &[0; 8]));
        let input =
            || testing::batch::<u8>(&[(&[bytes.len()], &bytes), (&[words.len()], &words), (&[2], &[0, 1])]);
        let done = testing::run(&DEF, &testing::args(&[], &[]), &[input()], &[]).unwrap();
        assert_eq!(done.values::<u8>(0), [1, 3, 2, 4]);
        assert!(done.error(1).contains("int16") && done.error(2).contains("numpy"));
        // Where an odd one comes first, most are right all the same.
        let odd = testing::batch::<u8>(&[
            (&[words.len()], &words),
            (&[bytes.len()], &bytes),
            (&[bytes.len()], &bytes),
        ]);
        let done = testing::run(&DEF, &testing::args(&[], &[]), &[odd], &[]).unwrap();
        assert!(done.error(0).contains("int16") && done.values::<u8>(2) == [1, 3, 2, 4]);
        // What the output is declared as decides, however many are of another type.
        let mut operator = DEF.instantiate(&testing::args(&[], &[]), 1).unwrap();
        operator.expect(&[ValueType::ranked(DType::U8, 2, Layout::NONE)]);
        let odd = testing::batch::<u8>(&[
            (&[words.len()], &words),
            (&[words.len()], &words),
            (&[bytes.len()], &bytes),
        ]);
        let failures = crate::operator::Failures::none(3);
        let desc = operator.setup(&Inputs::new(&"numpy".into(), &[&odd], &[], &failures)).unwrap().remove(0);
        assert_eq!((desc.dtype, &desc.shapes[2]), (DType::U8, &Shape::from([2, 2])));
        assert!(failures.get(2).is_none());
        let error = failures.get(0).unwrap().to_string();
        assert!(error.contains("int16 with 2 dimensions, but the output is declared as uint8"), "{error}");
        let args = testing::args(&[("dtype", Value::Ints(vec![9]))], &[]);
        let done = testing::run(&DEF, &args, &[input()], &[]).unwrap();
        assert_eq!(done.values::<f32>(0), [1.0, 3.0, 2.0, 4.0]);
        assert_eq!(done.values::<f32>(1), [0.0; 4]);
    }
}
