//! `ArithmeticGenericOp`: what Python's operators and `math` functions on tensors become. The file holds an expression;
//! [`grammar`] reads it, [`promote`] says what types it has, [`broadcast`] how shapes meet, [`evaluate`] computes it.
//!
//! ```text
//! grammar -> functions <- promote        evaluate -> kernels -> loops -> numbers
//! ```

mod broadcast;
mod evaluate;
mod functions;
mod gpu;
mod grammar;
mod kernels;
mod loops;
mod numbers;
mod promote;

use std::sync::Arc;

use crate::cpu::convert::ConvertSat;
use crate::dispatch;
use crate::error::{Context, Error, Result};
use crate::gpu::Gpu;
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

use broadcast::Access;
use evaluate::{Constant, Input, Program};
use gpu::DeviceProgram;
use grammar::Expression;

struct Arithmetic {
    expression: Expression,
    constants: Constants,
    /// Which regular inputs the expression names.
    used: Vec<bool>,
    /// For the types of the batch at hand.
    program: Option<Program>,
}

/// The constants of the file, which the expression names by type and index.
struct Constants {
    integers: Vec<i64>,
    reals: Vec<f32>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "ArithmeticGenericOp",
    aliases: &["_ArithmeticGenericOp"],
    doc: "Arithmetic, comparisons, bits and mathematical functions of tensors and constants",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 64),
    args: &[
        ArgSpec::string("expression_desc", "the expression, such as `mul(&0 $0:int32)`").required(),
        ArgSpec::ints("integer_constants", "integers and bools that the expression names by `$`"),
        ArgSpec::floats("real_constants", "floats that the expression names by `$`"),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gpu::kernels],
    underscored: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    let text = args.string("expression_desc")?;
    let expression = Expression::parse(text).context(|| "argument `expression_desc`".to_owned())?;
    let mut used = vec![false; inputs];
    let mut missing = None;
    expression.for_each_input(&mut |input| match used.get_mut(input) {
        Some(used) => *used = true,
        None => missing = Some(input),
    });
    if let Some(input) = missing {
        return Err(Error::invalid(format!("the expression names input {input}, found {inputs} inputs")));
    }
    let constants = Constants {
        integers: args.given_ints("integer_constants")?.into_iter().flatten().collect(),
        reals: args.given_floats("real_constants")?.into_iter().flatten().collect(),
    };
    constants.check(&expression)?;
    Ok(Box::new(Arithmetic { expression, constants, used, program: None }))
}

impl Constants {
    fn check(&self, expression: &Expression) -> Result<()> {
        match expression {
            Expression::Input(_) => Ok(()),
            Expression::Constant { index, dtype } => self.get(*index, *dtype).map(|_| ()),
            Expression::Call { operands, .. } => operands.iter().try_for_each(|operand| self.check(operand)),
        }
    }

    /// Constant `index` among those of its kind, as an element of `dtype`.
    ///
    /// # Errors
    /// Invalid when the file has no such constant, or the type does not hold it.
    fn get(&self, index: usize, dtype: DType) -> Result<Constant> {
        let missing = |name, len| {
            Error::invalid(format!("the expression names constant {index} of `{name}`, which has {len}"))
        };
        let bytes;
        if dtype.is_float() {
            let value = *self.reals.get(index).ok_or_else(|| missing("real_constants", self.reals.len()))?;
            dispatch!(dtype, T => bytes = element_bytes::<T>(value.convert_sat()));
            return Ok(Constant { dtype, bytes });
        }
        let value =
            *self.integers.get(index).ok_or_else(|| missing("integer_constants", self.integers.len()))?;
        let held: i64 = dispatch!(dtype, T => {
            let element: T = value.convert_sat();
            bytes = element_bytes(element);
            element.convert_sat()
        });
        if held != value && dtype != DType::Bool {
            return Err(Error::invalid(format!("constant {value} is out of range for {dtype}")));
        }
        Ok(Constant { dtype, bytes })
    }
}

fn element_bytes<T: bytemuck::Pod>(element: T) -> [u8; 8] {
    let mut bytes = [0; 8];
    let source = bytemuck::bytes_of(&element);
    bytes[..source.len()].copy_from_slice(source);
    bytes
}

/// The type of `expression`, as far as the types of the inputs tell.
fn result(expression: &Expression, inputs: &[ValueType]) -> Result<Option<DType>> {
    match expression {
        Expression::Input(index) => Ok(inputs[*index].dtype),
        Expression::Constant { dtype, .. } => Ok(Some(*dtype)),
        Expression::Call { function, operands } => {
            let types: Vec<_> =
                operands.iter().map(|operand| result(operand, inputs)).collect::<Result<_>>()?;
            promote::result(*function, &types)
        }
    }
}

impl Arithmetic {
    fn program(&self, types: &[DType]) -> Result<Program> {
        Program::new(&self.expression, types, &|index, dtype| self.constants.get(index, dtype))
    }

    fn used<'a, T>(&'a self, inputs: &'a [T]) -> impl Iterator<Item = &'a T> {
        inputs.iter().zip(&self.used).filter(|&(_, &used)| used).map(|(input, _)| input)
    }

    fn shape(&self, sample: &SampleInputs<'_>) -> Result<Shape> {
        let used = self.used.iter().enumerate().filter(|&(_, &used)| used);
        let shapes: Vec<&Shape> =
            used.map(|(i, _)| sample.input(i).map(|view| view.shape)).collect::<Result<_>>()?;
        broadcast::shape(&shapes)
    }
}

/// The layout of a result of `ndim` dimensions. An operand with fewer dimensions but with a layout does not name them.
fn result_layout(layouts: impl IntoIterator<Item = Layout>, ndim: usize) -> Result<Layout> {
    let layout = broadcast::layout(layouts)?;
    Ok(if layout.letters().len() == ndim { layout } else { Layout::NONE })
}

impl Operator for Arithmetic {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let dtype = result(&self.expression, inputs)?;
        let known: Option<Vec<&[Option<usize>]>> =
            self.used(inputs).map(|input| input.dims.as_deref()).collect();
        let dims = known.map(|dims| broadcast::dims(&dims)).transpose()?;
        let layouts: Option<Vec<Layout>> = self.used(inputs).map(|input| input.layout).collect();
        let layout = match (layouts, &dims) {
            (Some(layouts), Some(dims)) => Some(result_layout(layouts, dims.len())?),
            (Some(layouts), None) if layouts.iter().all(Layout::is_none) => Some(Layout::NONE),
            _ => None,
        };
        Ok(vec![ValueType { dtype, dims, layout }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let descs = (0..inputs.len()).map(|i| inputs.desc(i)).collect::<Result<Vec<_>>>()?;
        let types: Vec<DType> = descs.iter().map(|desc| desc.dtype).collect();
        let program = self.program(&types)?;
        let dtype = program.result().ok_or_else(|| Error::internal("the expression computes nothing"))?;
        self.program = Some(program);

        let rank = |desc: &BatchDesc| desc.shapes.first().map_or(0, |shape| shape.len());
        let ndim = self.used(&descs).map(|desc| rank(desc)).max().unwrap_or_default();
        let layout = result_layout(self.used(&descs).map(|desc| desc.layout), ndim)?;
        let shapes = inputs.map_shapes(ndim, |sample| self.shape(&sample));
        Ok(vec![BatchDesc::new(dtype, layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let program = self.program.as_ref().ok_or_else(|| Error::internal("ran before its setup"))?;
        io.for_each_sample(cx, |sample| {
            let inputs = sample.inputs;
            let output = sample.output(0)?;
            if output.bytes.is_empty() {
                return Ok(());
            }
            let input = |(i, &used): (usize, &bool)| {
                if !used {
                    return Ok(None);
                }
                let view = inputs.input(i)?;
                Ok(Some(Input { bytes: view.bytes, access: Access::new(view.shape, output.shape) }))
            };
            let inputs = self.used.iter().enumerate().map(input).collect::<Result<Vec<_>>>()?;
            program.run(&inputs, output.shape.volume()?, output.bytes)
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        // The type of an input that the expression does not name is of no consequence.
        let dtype = |(input, &used): (&ValueType, &bool)| if used { input.dtype } else { Some(DType::U8) };
        let Some(types) = inputs.iter().zip(&self.used).map(dtype).collect::<Option<Vec<_>>>() else {
            return Ok(());
        };
        gpu.kernel(&DeviceProgram::new(&self.program(&types)?)?.spec()).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let program = self.program.as_ref().ok_or_else(|| Error::internal("ran before its setup"))?;
        DeviceProgram::new(program)?.run(cx, io)
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{Outcome, args, batch, run};
    use crate::tensor::{Batch, Bool};

    fn with(text: &str, integers: &[i64], reals: &[f32]) -> Args {
        args(
            &[
                ("expression_desc", Value::Strings(vec![text.to_owned()])),
                ("integer_constants", Value::Ints(integers.to_vec())),
                ("real_constants", Value::Floats(reals.to_vec())),
            ],
            &[],
        )
    }

    fn compute(text: &str, integers: &[i64], inputs: &[Batch<'_>]) -> Result<Outcome> {
        run(&DEF, &with(text, integers, &[]), inputs, &[])
    }

    fn build_error(text: &str, integers: &[i64], reals: &[f32]) -> String {
        DEF.instantiate(&with(text, integers, reals), 2).err().unwrap().to_string()
    }

    #[test]
    fn both_spellings_of_files_are_found() {
        for name in ["ArithmeticGenericOp", "_ArithmeticGenericOp"] {
            assert_eq!(crate::ops::find(name).unwrap().name, DEF.name);
        }
    }

    #[test]
    fn a_division_by_zero_fails_its_sample_alone() {
        let (x, y) = ([6i32, 9], [[3i32, 2], [0, 1], [2, 3]]);
        let inputs = [
            batch(&[(&[2], &x), (&[2], &x), (&[2], &x)]),
            batch(&[(&[2], &y[0]), (&[2], &y[1]), (&[2], &y[2])]),
        ];
        let outcome = compute("div(&0 &1)", &[], &inputs).unwrap();
        assert_eq!(outcome.values::<i32>(0), [2, 4]);
        assert!(outcome.error(1).contains("divided by zero"), "{}", outcome.error(1));
        assert_eq!(outcome.values::<i32>(2), [3, 3]);
        let outcome = compute("mod(&0 $0:uint8)", &[0], &[batch(&[(&[1], &[7u8])])]).unwrap();
        assert!(outcome.error(0).contains("divided by zero"));
    }

    #[test]
    fn shapes_that_do_not_meet_fail_their_sample_alone() {
        let (x, y) = ([1u8; 6], [1u8; 3]);
        let inputs = [batch(&[(&[2, 3], &x), (&[3, 2], &x)]), batch(&[(&[3], &y), (&[3], &y)])];
        let outcome = compute("add(&0 &1)", &[], &inputs).unwrap();
        assert_eq!(*outcome.desc.shapes[0], [2, 3]);
        assert!(outcome.error(1).contains("[3, 2] and [3]"), "{}", outcome.error(1));
    }

    #[test]
    fn nested_calls_have_the_types_of_single_ones() {
        let x: Vec<u8> = (0..5000).map(|i| i as u8).collect();
        let y = [1.5f32];
        let inputs = [batch(&[(&[5000], &x[..])]), batch(&[(&[], &y[..])])];
        let outcome = compute("sub(mul(&0 &0) fdiv(&0 $0:uint8))", &[2], &inputs).unwrap();
        let expected: Vec<f32> =
            x.iter().map(|&x| f32::from(x.wrapping_mul(x)) - f32::from(x) / 2.0).collect();
        assert_eq!(outcome.values::<f32>(0), expected);
        let outcome = compute("lt(add(&0 &1) minus(&0))", &[], &inputs).unwrap();
        let expected: Vec<Bool> =
            x.iter().map(|&x| Bool::new(f32::from(x) + 1.5 < f32::from(x.wrapping_neg()))).collect();
        assert_eq!(outcome.values::<Bool>(0), expected);
    }

    #[test]
    fn float16_is_computed_in_float32() {
        let (x, y) = ([1.0, 2048.0, -0.5].map(f16::from_f32), [3i32, 1, 2]);
        let inputs = [batch(&[(&[3], &x)]), batch(&[(&[3], &y)])];
        let outcome = compute("add(&0 &1)", &[], &inputs).unwrap();
        assert_eq!(outcome.values::<f16>(0), [4.0, 2050.0, 1.5].map(f16::from_f32));
        let outcome = compute("fdiv(&1 &0)", &[], &inputs).unwrap();
        assert_eq!(outcome.values::<f16>(0)[0], f16::from_f32(3.0));
        let outcome = compute("mod(&1 &0)", &[], &inputs).unwrap();
        assert_eq!(outcome.values::<f16>(0), [0.0, 1.0, 0.0].map(f16::from_f32));
        let outcome = compute("gt(&1 &0)", &[], &inputs).unwrap();
        assert_eq!(outcome.values::<Bool>(0), [true, false, true].map(Bool::new));
    }

    #[test]
    fn extents_of_zero_meet_extents_of_one() {
        let none: [u8; 0] = [];
        let inputs = [batch(&[(&[0, 2], &none)]), batch(&[(&[1, 2], &[1u8, 2])])];
        assert_eq!(*compute("add(&0 &1)", &[], &inputs).unwrap().desc.shapes[0], [0, 2]);
    }

    /// A request that costs nothing may name extents whose product no number holds.
    #[test]
    fn huge_extents_of_nothing_are_harmless() {
        let (none, shape): ([u8; 0], [usize; 3]) = ([], [0, 1 << 40, 1 << 40]);
        let inputs = [batch(&[(&shape, &none)]), batch(&[(&[1, 1], &[7u8])])];
        let outcome = compute("add(&0 &1)", &[], &inputs).unwrap();
        assert_eq!((&outcome.desc.shapes[0][..], outcome.values::<u8>(0)), (&shape[..], vec![]));
    }

    #[test]
    fn a_truth_value_is_any_byte_but_zero() {
        let raw: [Bool; 3] = bytemuck::cast([2u8, 0, 255]);
        let inputs = [batch(&[(&[3], &raw)])];
        let expected = [true, false, true].map(Bool::new);
        for text in ["bitand(&0 &0)", "mul(&0 &0)", "bitor(&0 $0:bool)", "neq(&0 $0:bool)"] {
            assert_eq!(compute(text, &[0], &inputs).unwrap().values::<Bool>(0), expected, "{text}");
        }
        assert_eq!(compute("add(&0 $0:uint8)", &[1], &inputs).unwrap().values::<u8>(0), [2, 1, 2]);
        let inverted = compute("bitnot(&0)", &[], &inputs).unwrap().values::<Bool>(0);
        assert_eq!(inverted, [false, true, false].map(Bool::new));
    }

    #[test]
    fn what_the_file_names_must_be_there() {
        assert!(build_error("add(&0 &2)", &[], &[]).contains("names input 2, found 2 inputs"));
        assert!(
            build_error("add(&0 $1:int8)", &[1], &[])
                .contains("constant 1 of `integer_constants`, which has 1")
        );
        assert!(build_error("add(&0 $0:float64)", &[1], &[]).contains("`real_constants`, which has 0"));
        assert!(
            build_error("add(&0 $0:uint8)", &[300], &[]).contains("constant 300 is out of range for uint8")
        );
        assert!(
            build_error("add(&0 $0:uint64)", &[-1], &[]).contains("constant -1 is out of range for uint64")
        );
        assert!(build_error("add(&0", &[], &[]).contains("argument `expression_desc`"));
    }

    #[test]
    fn inference_says_what_is_certain() {
        let infer = |text: &str, inputs: &[ValueType]| {
            let operator = DEF.instantiate(&with(text, &[1], &[1.0]), inputs.len()).unwrap();
            operator.infer(inputs).map(|mut types| types.remove(0))
        };
        let image = ValueType {
            dtype: Some(DType::U8),
            dims: Some(vec![None, None, Some(3)]),
            layout: Some(Layout::hwc()),
        };
        let unknown = ValueType::default();
        let found = infer("mul(&0 $0:float32)", std::slice::from_ref(&image)).unwrap();
        assert_eq!(found, ValueType { dtype: Some(DType::F32), ..image.clone() });
        let found = infer("add(&0 &1)", &[image.clone(), unknown.clone()]).unwrap();
        assert_eq!(found, unknown);
        let found = infer("lt(&0 &1)", &[image.clone(), unknown.clone()]).unwrap();
        assert_eq!(found, ValueType { dtype: Some(DType::Bool), ..unknown });
        // A rank that is not known may hide that the layout does not name every dimension.
        let named = ValueType { dims: None, ..image.clone() };
        assert_eq!(infer("add(&0 $0:int8)", &[named]).unwrap().layout, None);

        let row = ValueType::ranked(DType::I8, 1, Layout::NONE);
        let four = ValueType { dims: Some(vec![Some(4)]), ..row.clone() };
        assert_eq!(infer("add(&0 &1)", &[image.clone(), row]).unwrap().dims, image.dims);
        let error = infer("add(&0 &1)", &[image, four]).unwrap_err().to_string();
        assert!(error.contains("[?, ?, 3] and [4]"), "{error}");
    }
}
