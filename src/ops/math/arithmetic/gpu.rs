//! Expressions on a device: one kernel evaluates the whole expression for the types at hand. Which function of
//! `kernels/arithmetic.cu` computes what, is said here; types and conversions are those of the [`Program`].

use crate::error::{Error, Result};
use crate::gpu::layout::{Header, device_constants, device_struct, text_with};
use crate::gpu::{KernelSpec, NoParams, cuda_type};
use crate::operator::{DeviceSample, GpuCx, GpuIo};
use crate::ops::math::arithmetic::broadcast;
use crate::ops::math::arithmetic::evaluate::{Call, Operand, OperandSource, Program};
use crate::ops::math::arithmetic::functions::{Binary, Function};
use crate::ops::math::arithmetic::grammar::Expression;
use crate::ops::math::arithmetic::kernels::same_bytes;
use crate::ops::math::arithmetic::promote::Kernel;
use crate::tensor::{DType, Sample, Shape};

device_constants! {
    fn constants;

    /// Dimensions of a result after those are joined that lie together in all operands.
    const MAX_AXES: usize = 6;
}

const HEADER: Header = Header { name: "arithmetic", text: || text_with::<Row, NoParams>(&constants()) };

device_struct! {
    /// A sample, as `kernels/arithmetic.cu` sees it.
    struct Row as Row {
        to: u64 = "RESULT *",
        /// While rows are made: the number of the first.
        operands: u64 = "const Operand *" of OperandAddress,
        elements: u64,
        axes: u64,
        /// innermost first
        extent: [u64; MAX_AXES],
    }
}

device_struct! {
    /// An operand of a sample.
    #[derive(Default)]
    struct OperandAddress as Operand {
        address: u64,
        /// in elements, innermost first
        stride: [i64; MAX_AXES],
    }
}

/// A program as the text of a kernel.
pub(super) struct DeviceProgram {
    /// Inputs and constants, in the order in which the text numbers them.
    operands: Vec<Operand>,
    /// Which of them divide integers.
    divisors: Vec<usize>,
    text: String,
    result: DType,
}

impl DeviceProgram {
    /// The text of `program`.
    ///
    /// # Errors
    /// Internal, for a program without calls.
    pub(super) fn new(program: &Program) -> Result<Self> {
        let result = program.result().ok_or_else(|| Error::internal("the expression computes nothing"))?;
        let mut device = Self { operands: Vec::new(), divisors: Vec::new(), text: String::new(), result };
        let calls = program.calls();
        device.text = device.call(calls, calls.len() - 1)?;
        Ok(device)
    }

    fn call(&mut self, calls: &[Call], index: usize) -> Result<String> {
        let Call { typed, operands } = calls
            .get(index)
            .ok_or_else(|| Error::internal("an expression names a call that is not there"))?;
        let divides = matches!(typed.kernel, Kernel::Binary(Binary::Div | Binary::Mod))
            && !typed.operands[0].is_float();
        let mut arguments = Vec::with_capacity(operands.len());
        for (i, (operand, &wanted)) in operands.iter().zip(&typed.operands).enumerate() {
            let text = match operand.source {
                OperandSource::Call(earlier) => self.call(calls, earlier)?,
                OperandSource::Input(_) | OperandSource::Constant(_) => {
                    let number = self.number(operand);
                    if divides && i == 1 {
                        self.divisors.push(number);
                    }
                    format!("IN({number}, {})", cuda_type(operand.dtype))
                }
            };
            arguments.push(converted(text, operand.dtype, wanted));
        }
        let text = format!("{}({})", function(typed.kernel), arguments.join(", "));
        Ok(converted(text, typed.computed, typed.result))
    }

    fn number(&mut self, operand: &Operand) -> usize {
        self.operands.iter().position(|known| known == operand).unwrap_or_else(|| {
            self.operands.push(*operand);
            self.operands.len() - 1
        })
    }

    /// The kernel.
    pub(super) fn spec(&self) -> KernelSpec {
        KernelSpec::of::<Row, NoParams>("arithmetic", "arithmetic")
            .header(HEADER)
            .dtype("RESULT", self.result)
            .define("OPERANDS", self.operands.len())
            .define("EXPRESSION", &self.text)
    }

    /// Records the evaluation of all samples.
    ///
    /// # Errors
    /// Those of the recorder.
    pub(super) fn run(&self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let mut constants = Vec::with_capacity(self.operands.len());
        for operand in &self.operands {
            let bytes = constant(operand);
            constants
                .push(bytes.map(|bytes| cx.recorder.stage(bytes)).transpose()?.map_or(0, |at| at.address()));
        }
        let mut places = Vec::new();
        let mut most = 0;
        let mut rows = io.rows(|sample| {
            let result = sample.output_shape(0)?;
            let elements = result.volume()?;
            let mut row = Row {
                to: sample.target(0)?,
                operands: places.len() as u64,
                elements: elements as u64,
                axes: 0,
                extent: [0; MAX_AXES],
            };
            if elements == 0 {
                return Ok(row);
            }
            let mut own = Vec::with_capacity(self.operands.len());
            let mut shapes = Vec::with_capacity(self.operands.len());
            let scalar = Shape::default();
            for (number, operand) in self.operands.iter().enumerate() {
                let (address, host, shape) = match operand.source {
                    OperandSource::Input(input) => self.input(cx, sample, input)?,
                    _ => (constants[number], constant(operand), &scalar),
                };
                if self.divisors.contains(&number) && has_zero(host.unwrap_or_default(), operand.dtype) {
                    return Err(Error::invalid("an integer is divided by zero"));
                }
                own.push(OperandAddress { address, ..OperandAddress::default() });
                shapes.push(shape);
            }
            let axes = broadcast::axes(&shapes, result);
            if axes.len() > MAX_AXES {
                return Err(Error::unsupported(format!(
                    "operands meet in {} dimensions that cannot be joined, expected at most {MAX_AXES} on a GPU",
                    axes.len()
                )));
            }
            row.axes = axes.len() as u64;
            for (a, axis) in axes.iter().enumerate() {
                row.extent[a] = axis.extent as u64;
                for (place, &stride) in own.iter_mut().zip(&axis.strides) {
                    place.stride[a] = stride as i64;
                }
            }
            places.extend(own);
            most = most.max(elements);
            Ok(row)
        });
        let base = cx.recorder.stage(bytemuck::cast_slice(&places))?.address();
        for row in &mut rows {
            row.operands = base + row.operands * size_of::<OperandAddress>() as u64;
        }
        cx.launch(&self.spec(), most, &NoParams::default(), &rows)
    }

    /// Address, bytes if it is on the host, and shape of an input. What is on the host is put on the way to the device.
    fn input<'a>(
        &self,
        cx: &mut GpuCx<'_>,
        sample: &DeviceSample<'_, 'a>,
        input: usize,
    ) -> Result<(u64, Option<&'a [u8]>, &'a Shape)> {
        let view = sample.input(input)?;
        match sample.inputs.place(input)? {
            Sample::Device(bytes) => Ok((bytes.address(), None, view.shape)),
            _ => Ok((cx.recorder.stage(view.bytes)?.address(), Some(view.bytes), view.shape)),
        }
    }
}

fn constant(operand: &Operand) -> Option<&[u8]> {
    match &operand.source {
        OperandSource::Constant(constant) => constant.bytes.get(..operand.dtype.size()),
        _ => None,
    }
}

/// Whether an element of an integer type is zero.
fn has_zero(bytes: &[u8], dtype: DType) -> bool {
    bytes.chunks_exact(dtype.size()).any(|element| element.iter().all(|&byte| byte == 0))
}

/// `text`, of type `from`, as a number of type `to`; for the pairs that occur what C++ does by a cast.
fn converted(text: String, from: DType, to: DType) -> String {
    match (from, to) {
        _ if from == to => text,
        _ if same_bytes(from, to) => format!("({})({text})", cuda_type(to)),
        _ => format!("convert<{}>({text})", cuda_type(to)),
    }
}

/// What `kernels/arithmetic.cu` calls a loop.
fn function(kernel: Kernel) -> String {
    let named = |function: Function| format!("f_{}", function.name());
    match kernel {
        Kernel::Same(f) => named(Function::Same(f)),
        Kernel::Not => named(Function::Not),
        Kernel::LogicalNot => "f_not".to_owned(),
        Kernel::Real(f) => named(Function::Real(f)),
        Kernel::Binary(f) => named(Function::Binary(f)),
        Kernel::Atan2 => "f_atan2".to_owned(),
        Kernel::Compare(f) => named(Function::Compare(f)),
        Kernel::CompareSigns(f) => named(Function::Compare(f)) + "_signs",
        Kernel::CompareReal(f) => named(Function::Compare(f)) + "_real",
        Kernel::Bits(f) => named(Function::Bits(f)),
        Kernel::Clamp => named(Function::Clamp),
    }
}

/// Expressions that name every function, each with the types of its two inputs.
const EVERY_FUNCTION: &[(&str, &[(DType, DType)])] = &[
    (
        "clamp(pow(max(min(mod(div(mul(sub(add(&0 &1) &1) &1) &1) &1) &1) &1) &1) abs(minus(plus(&0))) &1)",
        &[
            (DType::U8, DType::U8),
            (DType::I8, DType::U8),
            (DType::U32, DType::Bool),
            (DType::I32, DType::I32),
            (DType::U64, DType::U64),
            (DType::U64, DType::I64),
            (DType::F16, DType::F16),
            (DType::F32, DType::I64),
            (DType::F64, DType::F16),
        ],
    ),
    (
        "rshift(lshift(bitxor(bitor(bitand(bitnot(&0) &1) &1) &1) &1) &1)",
        &[
            (DType::Bool, DType::Bool),
            (DType::I8, DType::I8),
            (DType::U16, DType::U16),
            (DType::U32, DType::I32),
            (DType::U64, DType::U64),
            (DType::I64, DType::Bool),
        ],
    ),
    (
        "bitand(eq(&0 &1) bitand(neq(&0 &1) bitand(lt(&0 &1) bitor(leq(&0 &1) bitxor(gt(&0 &1) geq(&0 &1))))))",
        &[
            (DType::U8, DType::I16),
            (DType::Bool, DType::F16),
            (DType::U64, DType::I8),
            (DType::I64, DType::U64),
            (DType::I32, DType::F32),
            (DType::F64, DType::I64),
        ],
    ),
    (
        "atan2(fpow(fdiv(sqrt(rsqrt(cbrt(exp(log(log2(log10(fabs(floor(ceil(sin(cos(tan(asin(acos(atan(sinh(cosh(tanh(\
         asinh(acosh(atanh(&0)))))))))))))))))))))) &1) &1) &1)",
        &[(DType::F16, DType::U8), (DType::I32, DType::F32), (DType::F64, DType::F64)],
    ),
];

pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    let spec = |text: &str, types: [DType; 2]| -> Result<KernelSpec> {
        let none = |_, _| Err(Error::internal("there are no constants"));
        let program = Program::new(&Expression::parse(text)?, &types, &none)?;
        Ok(DeviceProgram::new(&program)?.spec())
    };
    let all = EVERY_FUNCTION.iter().flat_map(|(text, types)| types.iter().map(move |&(a, b)| (text, [a, b])));
    all.filter_map(|(text, types)| spec(text, types).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::math::arithmetic::evaluate::Constant;

    fn device(text: &str, types: &[DType]) -> DeviceProgram {
        let constant = |_, dtype| Ok(Constant { dtype, bytes: [0; 8] });
        let program = Program::new(&Expression::parse(text).unwrap(), types, &constant).unwrap();
        DeviceProgram::new(&program).unwrap()
    }

    #[test]
    fn the_text_has_the_types_and_conversions_of_the_program() {
        let scaled = device("mul(&0 $0:float32)", &[DType::U8]);
        assert_eq!(scaled.text, "f_mul(convert<float>(IN(0, uint8_t)), IN(1, float))");
        let compared = device("lt(&0 &1)", &[DType::I8, DType::U64]);
        assert_eq!(compared.text, "f_gt_signs(IN(0, uint64_t), convert<int64_t>(IN(1, int8_t)))");
        assert_eq!(
            device("add(&1 sqrt(&0))", &[DType::I8, DType::F16]).text,
            "f_add(convert<float>(IN(0, half_t)), f_sqrt(convert<float>(IN(1, int8_t))))"
        );
        assert_eq!(
            device("minus(&0)", &[DType::F16]).text,
            "convert<half_t>(f_minus(convert<float>(IN(0, half_t))))"
        );
        let wrapped = device("sub(&0 &1)", &[DType::U64, DType::I8]);
        assert_eq!(wrapped.text, "f_sub((int64_t)(IN(0, uint64_t)), convert<int64_t>(IN(1, int8_t)))");
    }

    #[test]
    fn an_operand_is_read_once_however_often_it_is_named() {
        let program = device("clamp(add(&0 &0) &1 &0)", &[DType::I32, DType::I32]);
        assert_eq!((program.operands.len(), program.divisors.len()), (2, 0));
        assert_eq!(device("div(&0 mod(&1 $0:uint8))", &[DType::I32, DType::I32]).divisors, [2]);
        assert!(device("div(&0 &1)", &[DType::I32, DType::F32]).divisors.is_empty());
    }

    #[test]
    fn every_function_is_compiled_by_a_test() {
        let specs = kernels();
        assert_eq!(specs.len(), EVERY_FUNCTION.iter().map(|(_, types)| types.len()).sum::<usize>());
        for name in Function::names() {
            assert!(EVERY_FUNCTION.iter().any(|(text, _)| text.contains(&format!("{name}("))), "{name}");
        }
    }
}
