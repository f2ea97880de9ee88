//! Computes an expression for one sample: [`Program`] is the expression for known types, as calls in order; it runs on
//! stretches of the result that are short enough for everything in between to stay in the cache.
//!
//! ```text
//! for each stretch     for each call     operand -> (gathered -> converted) -> loop -> (converted) -> result
//! ```
//!
//! Types are decided once per stretch and call, never per element.

use crate::error::{Error, Result};
use crate::ops::math::arithmetic::broadcast::{Access, cycle};
use crate::ops::math::arithmetic::grammar::Expression;
use crate::ops::math::arithmetic::kernels::{convert, run_loop, same_bytes};
use crate::ops::math::arithmetic::promote::{Typed, typed};
use crate::tensor::DType;

/// Elements of a stretch: with operands of 4 bytes, 8 KiB each.
const STRETCH: usize = 2048;

/// A number that the file gives, as an element of its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Constant {
    /// Its type.
    pub(super) dtype: DType,
    /// Its bytes, as many as the type has.
    pub(super) bytes: [u8; 8],
}

/// One operand of one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Operand {
    /// Where it comes from.
    pub(super) source: OperandSource,
    /// Its type there.
    pub(super) dtype: DType,
}

/// Where an operand comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum OperandSource {
    /// A regular input.
    Input(usize),
    Constant(Constant),
    /// The result of an earlier call.
    Call(usize),
}

/// One call: a loop and what it reads.
pub(super) struct Call {
    /// The loop and its types.
    pub(super) typed: Typed,
    /// In the order of the loop.
    pub(super) operands: Vec<Operand>,
}

/// An expression for inputs of known types. The last call makes the result.
pub(super) struct Program {
    calls: Vec<Call>,
}

/// An input of one sample.
pub(super) struct Input<'a> {
    /// Its elements.
    pub(super) bytes: &'a [u8],
    /// Which of them are read where.
    pub(super) access: Access,
}

impl Program {
    /// The program of `expression` for inputs of the types `inputs`; `constant` looks a constant up.
    ///
    /// # Errors
    /// Those of [`typed`] and of `constant`; invalid for an input that is not there.
    pub(super) fn new(
        expression: &Expression,
        inputs: &[DType],
        constant: &impl Fn(usize, DType) -> Result<Constant>,
    ) -> Result<Self> {
        let mut program = Self { calls: Vec::new() };
        program.compile(expression, inputs, constant)?;
        Ok(program)
    }

    fn compile(
        &mut self,
        expression: &Expression,
        inputs: &[DType],
        constant: &impl Fn(usize, DType) -> Result<Constant>,
    ) -> Result<Operand> {
        Ok(match expression {
            Expression::Input(index) => {
                let dtype = *inputs.get(*index).ok_or_else(|| Error::internal("an input is missing"))?;
                Operand { source: OperandSource::Input(*index), dtype }
            }
            Expression::Constant { index, dtype } => {
                Operand { source: OperandSource::Constant(constant(*index, *dtype)?), dtype: *dtype }
            }
            Expression::Call { function, operands } => {
                let mut operands: Vec<Operand> = operands
                    .iter()
                    .map(|operand| self.compile(operand, inputs, constant))
                    .collect::<Result<_>>()?;
                let types: Vec<DType> = operands.iter().map(|operand| operand.dtype).collect();
                let typed = typed(*function, &types)?;
                if typed.swapped {
                    operands.reverse();
                }
                self.calls.push(Call { typed, operands });
                Operand { source: OperandSource::Call(self.calls.len() - 1), dtype: typed.result }
            }
        })
    }

    /// The calls in order: a call reads results of earlier ones, and the last makes the result.
    pub(super) fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Type of the result.
    pub(super) fn result(&self) -> Option<DType> {
        self.calls.last().map(|call| call.typed.result)
    }

    /// Computes the `elements` elements of `out`. `inputs` has an entry for every input that the expression names.
    ///
    /// # Errors
    /// Invalid when an integer is divided by zero; internal when bytes are missing.
    pub(super) fn run(&self, inputs: &[Option<Input<'_>>], elements: usize, out: &mut [u8]) -> Result<()> {
        let size = self.result().map_or(1, DType::size);
        let longest = elements.min(STRETCH);
        let mut work: Vec<Work> = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            work.push(Work::new(call, inputs, longest)?);
        }
        for (i, out) in out.chunks_mut(STRETCH * size).enumerate() {
            let stretch = Stretch { start: i * STRETCH, len: out.len() / size };
            for (i, call) in self.calls.iter().enumerate() {
                let (before, from) = work.split_at_mut(i);
                let Some((now, _)) = from.split_first_mut() else { continue };
                let last = i + 1 == self.calls.len();
                call.run(now, before, inputs, stretch, last.then_some(&mut *out))?;
            }
        }
        Ok(())
    }
}

/// Elements of the result that are computed at once.
#[derive(Clone, Copy)]
struct Stretch {
    start: usize,
    len: usize,
}

/// Memory of one call for one stretch.
struct Work {
    /// Operands in the types of the loop, where they are not read in place.
    operands: Vec<Buffer>,
    /// An operand in its own type, on the way there.
    gathered: Buffer,
    /// What the loop writes, where it is not the result yet.
    computed: Buffer,
    result: Buffer,
}

/// Bytes that any element type may lie in.
#[derive(Default)]
struct Buffer(Vec<u64>);

impl Buffer {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }

    /// At least `len` bytes.
    fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        let words = len.div_ceil(8);
        if self.0.len() < words {
            self.0.resize(words, 0);
        }
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

impl Work {
    /// Memory for stretches of at most `longest` elements, with operands that are one element filled in for all.
    fn new(call: &Call, inputs: &[Option<Input<'_>>], longest: usize) -> Result<Self> {
        let mut operands = Vec::with_capacity(call.operands.len());
        for (operand, &wanted) in call.operands.iter().zip(&call.typed.operands) {
            let mut buffer = Buffer::default();
            if let Some(element) = operand.scalar(inputs) {
                let (mut own, mut converted) = (Buffer(vec![0]), Buffer(vec![0]));
                own.bytes_mut(8)[..element.len()].copy_from_slice(element);
                let converted = &mut converted.bytes_mut(8)[..wanted.size()];
                convert(operand.dtype, &own.bytes()[..element.len()], wanted, converted)?;
                let len = longest * wanted.size();
                cycle(converted, 0, &mut buffer.bytes_mut(len)[..len]);
            }
            operands.push(buffer);
        }
        Ok(Self {
            operands,
            gathered: Buffer::default(),
            computed: Buffer::default(),
            result: Buffer::default(),
        })
    }
}

impl Operand {
    /// The bytes of the one element that it is for the whole sample, if it is.
    fn scalar<'a>(&'a self, inputs: &'a [Option<Input<'_>>]) -> Option<&'a [u8]> {
        match &self.source {
            OperandSource::Constant(constant) => constant.bytes.get(..self.dtype.size()),
            OperandSource::Input(index) => match inputs.get(*index)? {
                Some(Input { bytes, access: Access::Scalar }) => bytes.get(..self.dtype.size()),
                _ => None,
            },
            OperandSource::Call(_) => None,
        }
    }
}

impl Call {
    /// Computes one stretch, into `out` or, without one, into `work`. `before` is the memory of the earlier calls.
    fn run(
        &self,
        work: &mut Work,
        before: &[Work],
        inputs: &[Option<Input<'_>>],
        stretch: Stretch,
        out: Option<&mut [u8]>,
    ) -> Result<()> {
        let Work { operands: buffers, gathered, computed, result } = work;
        for ((operand, buffer), &wanted) in
            self.operands.iter().zip(buffers.iter_mut()).zip(&self.typed.operands)
        {
            prepare(operand, wanted, buffer, gathered, before, inputs, stretch)?;
        }
        let mut slices: [&[u8]; 3] = [&[]; 3];
        for (i, (operand, buffer)) in self.operands.iter().zip(buffers.iter()).enumerate() {
            let wanted = self.typed.operands[i];
            let in_place = if same_bytes(operand.dtype, wanted) {
                in_place(operand, before, inputs, stretch)
            } else {
                None
            };
            slices[i] = in_place
                .or_else(|| buffer.bytes().get(..stretch.len * wanted.size()))
                .ok_or_else(|| Error::internal("an operand is too short"))?;
        }
        let Typed { kernel, operands: [dtype, ..], computed: from, result: to, .. } = self.typed;
        let len = stretch.len * to.size();
        let out = match out {
            Some(out) => out,
            None => &mut result.bytes_mut(len)[..len],
        };
        if from == to {
            return run_loop(kernel, dtype, slices, out);
        }
        let len = stretch.len * from.size();
        let computed = &mut computed.bytes_mut(len)[..len];
        run_loop(kernel, dtype, slices, computed)?;
        convert(from, computed, to, out)
    }
}

/// The bytes of an operand for a stretch, where they lie in order already.
fn in_place<'a>(
    operand: &Operand,
    before: &'a [Work],
    inputs: &'a [Option<Input<'_>>],
    stretch: Stretch,
) -> Option<&'a [u8]> {
    let size = operand.dtype.size();
    match operand.source {
        OperandSource::Input(index) => match inputs.get(index)? {
            Some(Input { bytes, access: Access::Dense }) => {
                bytes.get(stretch.start * size..)?.get(..stretch.len * size)
            }
            _ => None,
        },
        OperandSource::Call(i) => before.get(i)?.result.bytes().get(..stretch.len * size),
        OperandSource::Constant(_) => None,
    }
}

/// Brings an operand into `buffer`, in the type `wanted`, unless it can be read in place or is there for all stretches.
fn prepare(
    operand: &Operand,
    wanted: DType,
    buffer: &mut Buffer,
    gathered: &mut Buffer,
    before: &[Work],
    inputs: &[Option<Input<'_>>],
    stretch: Stretch,
) -> Result<()> {
    let len = stretch.len * wanted.size();
    if let Some(bytes) = in_place(operand, before, inputs, stretch) {
        if same_bytes(operand.dtype, wanted) {
            return Ok(());
        }
        return convert(operand.dtype, bytes, wanted, &mut buffer.bytes_mut(len)[..len]);
    }
    let OperandSource::Input(index) = operand.source else { return Ok(()) };
    let Some(Some(Input { bytes, access: Access::Broadcast(pattern) })) = inputs.get(index) else {
        return Ok(());
    };
    let size = operand.dtype.size();
    if same_bytes(operand.dtype, wanted) {
        pattern.gather(bytes, size, stretch.start, &mut buffer.bytes_mut(len)[..len]);
        return Ok(());
    }
    let own = &mut gathered.bytes_mut(stretch.len * size)[..stretch.len * size];
    pattern.gather(bytes, size, stretch.start, own);
    convert(operand.dtype, own, wanted, &mut buffer.bytes_mut(len)[..len])
}
