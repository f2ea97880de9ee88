//! Arithmetic expressions: a tree of functions, inputs and constants of any types, now and then with its end cut off.
//! The text alone says what is computed, so random arguments (`operator`) hardly ever make one that runs.

use gesso::pipeline::{ArgumentType, ArgumentValue, Pipeline};
use gesso::tensor::{DType, Device};

use crate::bytes::Bytes;
use crate::operator::{called, fed, pipeline_of, run_on, set_argument, set_outputs};

const MAX_INPUTS: usize = 3;
const MAX_DEPTH: usize = 5;
const CONSTANTS: usize = 3;

/// Functions by the number of their operands.
const FUNCTIONS: [&[&str]; 3] = [
    &[
        "plus", "minus", "abs", "bitnot", "sqrt", "rsqrt", "cbrt", "exp", "log", "log2", "log10", "fabs",
        "floor", "ceil", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
        "acosh", "atanh",
    ],
    &[
        "add", "sub", "mul", "div", "mod", "min", "max", "pow", "fdiv", "fpow", "atan2", "eq", "neq", "lt",
        "leq", "gt", "geq", "bitand", "bitor", "bitxor", "lshift", "rshift",
    ],
    &["clamp"],
];

pub(crate) fn run(input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let mut inputs: Vec<_> = (0..=bytes.below(MAX_INPUTS)).map(|number| fed(number, &mut bytes)).collect();
    // Shapes that are drawn apart seldom fit: a scalar fits all.
    for input in inputs.iter_mut().skip(1) {
        if !bytes.once_in(4) {
            input.ndim = Some(0);
            input.layout.clear();
        }
    }
    let mut text = String::new();
    call(&mut text, inputs.len(), MAX_DEPTH, &mut bytes);
    if bytes.once_in(16) {
        text.truncate(bytes.below(text.len()));
    }
    let integers = (0..CONSTANTS).map(|_| bytes.int()).collect();
    let reals = (0..CONSTANTS).map(|_| bytes.float()).collect();
    let mut operator = called("ArithmeticGenericOp", &inputs);
    set_argument(
        &mut operator,
        "expression_desc",
        (ArgumentValue::Strings(vec![text]), ArgumentType::String, false),
    );
    set_argument(
        &mut operator,
        "integer_constants",
        (ArgumentValue::Ints(integers), ArgumentType::Int64, true),
    );
    set_argument(&mut operator, "real_constants", (ArgumentValue::Floats(reals), ArgumentType::Float, true));
    let mut description = pipeline_of(operator, inputs);
    set_outputs(&mut description, 1);
    let Ok(file) = Pipeline::author(&description) else { return };
    if let Ok(pipeline) = Pipeline::load(&file, Device::Cpu) {
        run_on(&pipeline, &mut bytes);
    }
}

fn call(text: &mut String, inputs: usize, depth: usize, bytes: &mut Bytes<'_>) {
    // Mostly two operands.
    let functions = match bytes.below(8) {
        0 | 1 => 0,
        2 => 2,
        _ => 1,
    };
    text.push_str(bytes.pick(FUNCTIONS[functions]).unwrap_or("add"));
    text.push('(');
    for number in 0..=functions {
        if number > 0 {
            text.push(' ');
        }
        operand(text, inputs, depth - 1, bytes);
    }
    text.push(')');
}

fn operand(text: &mut String, inputs: usize, depth: usize, bytes: &mut Bytes<'_>) {
    match bytes.below(4) {
        0 if depth > 0 => call(text, inputs, depth, bytes),
        1 => {
            let dtype = bytes.pick(&DType::ALL).unwrap_or(DType::I32);
            *text += &format!("${}:{}", bytes.below(CONSTANTS), dtype.name());
        }
        _ => *text += &format!("&{}", bytes.below(inputs)),
    }
}
