//! What a tensor is, without saying where its bytes are used: element type, layout, shape, device. Its bytes are in
//! `tensor/batch.rs`. It must not know operators, Triton or files.

mod batch;

use std::fmt;
use std::ops::Deref;

pub use half::f16;

pub use batch::{Batch, BatchDesc, Origins, Sample, View, ViewMut};
pub(crate) use batch::{bits, elements, elements_mut, of_bits};

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::limits;

/// Element type of a tensor. Names and order follow DALI's data types 0-11.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum DType {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
    Bool,
}

impl DType {
    /// Every type, at the index that DALI's files give it.
    pub const ALL: [DType; 12] = [
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::F32,
        DType::F64,
        DType::Bool,
    ];

    /// The type with number `id` in a serialized pipeline (`DALIDataType`); `None` for types that no tensor has.
    pub fn from_dali(id: i64) -> Option<DType> {
        usize::try_from(id).ok().and_then(|id| Self::ALL.get(id).copied())
    }

    /// The same of a file, which may call a tensor one of enumerations (`IMAGE_TYPE`, `DATA_TYPE`, `INTERP_TYPE`):
    /// their numbers have 32 bits.
    pub fn in_file(id: i64) -> Option<DType> {
        if (20..=22).contains(&id) { Some(DType::I32) } else { Self::from_dali(id) }
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            DType::U8 | DType::I8 | DType::Bool => 1,
            DType::U16 | DType::I16 | DType::F16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 => 8,
        }
    }

    /// The unsigned integer of the same size: what stands for elements that are only moved.
    #[must_use]
    pub fn bits(self) -> DType {
        match self.size() {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            _ => DType::U64,
        }
    }

    /// Whether the type is a floating-point one.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::F32 | DType::F64)
    }

    /// Whether the type is a signed integer.
    pub fn is_signed(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// Lower-case name as numpy spells it.
    pub fn name(self) -> &'static str {
        match self {
            DType::U8 => "uint8",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::F16 => "float16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::Bool => "bool",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A truth value as tensors store it: one byte, zero is false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// Wraps `value` as the byte 0 or 1.
    pub fn new(value: bool) -> Self {
        Self(u8::from(value))
    }

    /// Any byte but zero is true.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

/// A Rust type that is the element of a tensor.
pub trait Element: bytemuck::Pod + Send + Sync + PartialEq + fmt::Debug + Default {
    /// The tensor type that has this element.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => { $(impl Element for $rust { const DTYPE: DType = DType::$dtype; })* };
}
elements!(u8 => U8, u16 => U16, u32 => U32, u64 => U64, i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    f16 => F16, f32 => F32, f64 => F64, Bool => Bool);

/// Runs `$body` with `$T` bound to the element type of `$dtype`: one dispatch, outside of any loop.
#[macro_export]
macro_rules! dispatch {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::tensor::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::tensor::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::tensor::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::tensor::DType::U64 => {
                type $T = u64;
                $body
            }
            $crate::tensor::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::tensor::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::tensor::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::tensor::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::tensor::DType::F16 => {
                type $T = $crate::tensor::f16;
                $body
            }
            $crate::tensor::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::tensor::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::tensor::DType::Bool => {
                type $T = $crate::tensor::Bool;
                $body
            }
        }
    };
}

/// One letter per dimension (`HWC`, `CHW`, ...); empty when the tensor has no layout.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Layout {
    letters: [u8; limits::MAX_NDIM],
    len: u8,
}

impl Layout {
    /// No layout.
    pub const NONE: Layout = Layout { letters: [0; limits::MAX_NDIM], len: 0 };

    /// Reads a layout; at most one letter for each of [`limits::MAX_NDIM`] dimensions, printable ASCII only.
    pub fn new(text: &str) -> Result<Self> {
        if text.len() > limits::MAX_NDIM || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Error::invalid(format!(
                "layout `{}` is not one ASCII letter for each of at most {} dimensions",
                text.escape_debug(),
                limits::MAX_NDIM
            )));
        }
        let mut layout = Self::NONE;
        layout.letters[..text.len()].copy_from_slice(text.as_bytes());
        layout.len = text.len() as u8;
        Ok(layout)
    }

    /// `HWC`: an image with interleaved channels.
    pub fn hwc() -> Self {
        Self::from_letters(b"HWC")
    }

    /// The layout with these letters, as many as fit.
    pub fn from_letters(letters: &[u8]) -> Self {
        let mut layout = Self::NONE;
        let len = letters.len().min(limits::MAX_NDIM);
        layout.letters[..len].copy_from_slice(&letters[..len]);
        layout.len = len as u8;
        layout
    }

    /// The letters in order.
    pub fn letters(&self) -> &[u8] {
        &self.letters[..usize::from(self.len)]
    }

    /// The letters as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.letters()).unwrap_or_default()
    }

    /// Whether there is no layout.
    pub fn is_none(&self) -> bool {
        self.len == 0
    }

    /// The dimension that carries `letter`.
    pub fn find(&self, letter: u8) -> Option<usize> {
        self.letters().iter().position(|&l| l == letter)
    }

    /// This layout, or `default` when there is none and the tensor has as many dimensions as `default` letters.
    #[must_use]
    pub fn or_default(self, default: Layout, ndim: usize) -> Layout {
        if self.is_none() && default.letters().len() == ndim { default } else { self }
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Dimensions that a shape has room for without memory of its own: those of images, volumes and sequences of them.
const INLINE_NDIM: usize = 5;

/// Extents of one sample, outermost first, without the batch dimension. Rank 0 is a scalar.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Shape(SmallVec<[usize; INLINE_NDIM]>);

impl Shape {
    /// A shape with these extents.
    pub fn new(dims: impl Into<Vec<usize>>) -> Self {
        Self(SmallVec::from_vec(dims.into()))
    }

    /// Elements of a sample; an error when it passes [`limits::MAX_SAMPLE_BYTES`] even at one byte an element.
    pub fn volume(&self) -> Result<usize> {
        self.bytes(1)
    }

    /// Bytes of a sample with elements of `element_size` bytes; an error above [`limits::MAX_SAMPLE_BYTES`].
    pub fn bytes(&self, element_size: usize) -> Result<usize> {
        self.0
            .iter()
            .try_fold(element_size, |bytes, &extent| bytes.checked_mul(extent))
            .filter(|&bytes| bytes <= limits::MAX_SAMPLE_BYTES)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "a sample of shape {self} with {element_size} bytes an element is larger than the limit of {} bytes",
                    limits::MAX_SAMPLE_BYTES
                ))
            })
    }

    /// [`Shape::bytes`] of a sample that strangers send: an error also for one without elements whose other extents
    /// pass the limit. Else the product of some of its extents could overflow, although that of all is 0.
    pub fn bytes_of_input(&self, element_size: usize) -> Result<usize> {
        let bytes = self.bytes(element_size)?;
        let others = self.0.iter().map(|&extent| extent.max(1)).collect();
        let refused =
            |_| Error::invalid(format!("a sample of shape {self}, which has no elements, but huge extents"));
        Shape(others).bytes(element_size).map_err(refused).map(|_| bytes)
    }

    /// Distance, in elements, between neighbours along each dimension of a dense row-major sample.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.0.len()];
        for d in (1..self.0.len()).rev() {
            strides[d - 1] = strides[d] * self.0[d];
        }
        strides
    }
}

impl Deref for Shape {
    type Target = [usize];
    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl From<Vec<usize>> for Shape {
    fn from(dims: Vec<usize>) -> Self {
        Self::new(dims)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Self(SmallVec::from_slice(&dims))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &self.0[..])
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where an operator runs and where a value's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Device {
    /// Host memory, host threads.
    Cpu,
    /// One CUDA device.
    Gpu,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Device::Cpu => "cpu",
            Device::Gpu => "gpu",
        })
    }
}

/// What is known about a value before there is a batch. `None` means "decided at run time".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValueType {
    /// Element type.
    pub dtype: Option<DType>,
    /// Extents of a sample; the outer `None`: not even the rank is known.
    pub dims: Option<Vec<Option<usize>>>,
    /// Layout; `Some(Layout::NONE)` is "known to have none".
    pub layout: Option<Layout>,
}

impl ValueType {
    /// A type of which everything but the extents is known.
    pub fn ranked(dtype: DType, ndim: usize, layout: Layout) -> Self {
        Self { dtype: Some(dtype), dims: Some(vec![None; ndim]), layout: Some(layout) }
    }

    /// Rank, when it is known.
    pub fn ndim(&self) -> Option<usize> {
        self.dims.as_ref().map(Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_shape_is_an_error_not_an_overflow() {
        let shape = Shape::from([usize::MAX, 2]);
        assert!(shape.volume().unwrap_err().to_string().contains("limit"));
    }

    #[test]
    fn huge_extents_beside_one_of_none_do_not_come_in() {
        let shape = Shape::from([0, 1 << 40, 1 << 40]);
        assert_eq!(shape.bytes(1).unwrap(), 0);
        assert!(shape.bytes_of_input(1).is_err());
        assert_eq!(Shape::from([0, 400, 400, 3]).bytes_of_input(8).unwrap(), 0);
        assert_eq!(Shape::from([2, 3]).bytes_of_input(4).unwrap(), 24);
        assert!(Shape::from([1 << 40]).bytes_of_input(1).is_err());
    }

    #[test]
    fn layout_knows_its_dimensions() {
        let layout = Layout::new("FHWC").unwrap();
        assert_eq!(layout.find(b'W'), Some(2));
        assert_eq!(layout.to_string(), "FHWC");
        assert!(Layout::new("H\u{e4}").is_err());
        assert!(Layout::new(&"A".repeat(17)).is_err());
        assert_eq!(Layout::NONE.or_default(Layout::hwc(), 3), Layout::hwc());
        assert!(Layout::NONE.or_default(Layout::hwc(), 2).is_none());
    }

    #[test]
    fn dali_numbers_name_the_types_in_order() {
        assert_eq!(DType::from_dali(9), Some(DType::F32));
        assert_eq!(DType::from_dali(-1), None);
        assert_eq!(DType::from_dali(20), None);
        assert_eq!(DType::in_file(22), Some(DType::I32));
        assert_eq!([DType::in_file(19), DType::in_file(23)], [None; 2]);
    }
}
