//! What a tensor is, without saying where its bytes are used: element type, layout, shape, the description of a batch,
//! and the batch itself as one byte range per sample. It must not know operators, Triton or files.
//!
//! ```text
//! Batch<'r>
//!   desc     dtype, layout, one shape per sample (a batch may be ragged)
//!   samples  [ Borrowed(&'r [u8]) | Pooled(buffer, range) | Missing ]   need not be adjacent
//! ```
//!
//! `'r` is the life of the request: an input that points into the request's memory cannot outlive it.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use half::f16;

use crate::cpu::memory::HostBuffer;
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

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            DType::U8 | DType::I8 | DType::Bool => 1,
            DType::U16 | DType::I16 | DType::F16 => 2,
            DType::U32 | DType::I32 | DType::F32 => 4,
            DType::U64 | DType::I64 | DType::F64 => 8,
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
                type $T = half::f16;
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

/// Extents of one sample, outermost first, without the batch dimension. Rank 0 is a scalar.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// A shape with these extents.
    pub fn new(dims: impl Into<Vec<usize>>) -> Self {
        Self(dims.into())
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
        Self(dims)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Self(dims.to_vec())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
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

/// Element type, layout and the shape of every sample of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchDesc {
    /// Element type of all samples.
    pub dtype: DType,
    /// Layout of all samples.
    pub layout: Layout,
    /// One shape per sample, all of the same rank.
    pub shapes: Vec<Shape>,
}

impl BatchDesc {
    /// A description from its parts.
    pub fn new(dtype: DType, layout: Layout, shapes: Vec<Shape>) -> Self {
        Self { dtype, layout, shapes }
    }
}

/// Where the bytes of one sample are.
#[derive(Clone)]
pub enum Sample<'r> {
    /// In memory that the request (or the response) owns.
    Borrowed(&'r [u8]),
    /// In a buffer that the batch's values share.
    Pooled(Arc<HostBuffer>, Range<usize>),
    /// Nowhere: the sample failed before it had bytes.
    Missing,
}

impl Sample<'_> {
    /// Its bytes, none when they are missing.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Sample::Borrowed(bytes) => bytes,
            Sample::Pooled(buffer, range) => &buffer.bytes()[range.clone()],
            Sample::Missing => &[],
        }
    }
}

/// Samples of one type and rank, whose shapes may differ and whose bytes need not be adjacent.
#[derive(Clone)]
pub struct Batch<'r> {
    desc: BatchDesc,
    samples: Vec<Sample<'r>>,
}

impl<'r> Batch<'r> {
    /// A batch of samples that a failed run may have left without bytes.
    ///
    /// # Errors
    /// When the number of samples is not the number of shapes, or a sample's bytes are not those of its shape.
    pub fn new(desc: BatchDesc, samples: Vec<Sample<'r>>) -> Result<Self> {
        if samples.len() != desc.shapes.len() {
            return Err(Error::internal(format!(
                "a batch of {} shapes has {} samples",
                desc.shapes.len(),
                samples.len()
            )));
        }
        for (sample, shape) in samples.iter().zip(&desc.shapes) {
            if matches!(sample, Sample::Missing) {
                continue;
            }
            let (expected, found) = (shape.bytes(desc.dtype.size())?, sample.bytes().len());
            if expected != found {
                return Err(Error::invalid(format!(
                    "a sample of shape {shape} and type {} has {found} bytes, expected {expected}",
                    desc.dtype
                )));
            }
        }
        Ok(Self { desc, samples })
    }

    /// Type, layout and shapes.
    pub fn desc(&self) -> &BatchDesc {
        &self.desc
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Sample `i` to read. An empty view when its bytes are missing.
    ///
    /// # Panics
    /// When `i` is not below [`Batch::len`].
    pub fn view(&self, i: usize) -> View<'_> {
        View {
            dtype: self.desc.dtype,
            layout: self.desc.layout,
            shape: &self.desc.shapes[i],
            bytes: self.samples[i].bytes(),
        }
    }

    /// The same bytes under another description: reshape without a copy. Samples that `failed` names lose theirs.
    ///
    /// # Errors
    /// When the bytes of another sample do not fit its new shape.
    pub fn reinterpret(&self, desc: BatchDesc, failed: impl Fn(usize) -> bool) -> Result<Self> {
        let sample =
            |(i, sample): (usize, &Sample<'r>)| if failed(i) { Sample::Missing } else { sample.clone() };
        Self::new(desc, self.samples.iter().enumerate().map(sample).collect())
    }
}

/// One sample to read.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Element type.
    pub dtype: DType,
    /// Layout.
    pub layout: Layout,
    /// Extents.
    pub shape: &'a Shape,
    /// The elements, dense and row-major.
    pub bytes: &'a [u8],
}

impl<'a> View<'a> {
    /// The elements as `T`.
    ///
    /// # Errors
    /// When the sample's type is another one.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        check_dtype::<T>(self.dtype)?;
        bytemuck::try_cast_slice(self.bytes).map_err(cast_failed)
    }
}

/// One sample to write.
pub struct ViewMut<'a> {
    /// Element type.
    pub dtype: DType,
    /// Layout.
    pub layout: Layout,
    /// Extents.
    pub shape: &'a Shape,
    /// The elements, dense and row-major. Their values are unspecified until they are written.
    pub bytes: &'a mut [u8],
}

impl ViewMut<'_> {
    /// The elements as `T`.
    ///
    /// # Errors
    /// When the sample's type is another one.
    pub fn as_slice_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        check_dtype::<T>(self.dtype)?;
        bytemuck::try_cast_slice_mut(self.bytes).map_err(cast_failed)
    }
}

fn check_dtype<T: Element>(found: DType) -> Result<()> {
    if found == T::DTYPE {
        return Ok(());
    }
    Err(Error::internal(format!("a sample of type {found} is read as {}", T::DTYPE)))
}

fn cast_failed(error: bytemuck::PodCastError) -> Error {
    Error::internal(format!("the bytes of a sample cannot be read as its type: {error}"))
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
    fn a_batch_checks_its_bytes() {
        let desc = BatchDesc::new(DType::F32, Layout::NONE, vec![Shape::from([2])]);
        assert!(Batch::new(desc.clone(), vec![Sample::Borrowed(&[0; 8])]).is_ok());
        assert!(Batch::new(desc.clone(), vec![Sample::Borrowed(&[0; 7])]).is_err());
        assert!(Batch::new(desc, vec![]).is_err());
        // A sample that failed because it is too large has a shape all the same.
        let huge = BatchDesc::new(DType::U8, Layout::NONE, vec![Shape::from([usize::MAX, 2])]);
        assert!(Batch::new(huge, vec![Sample::Missing]).is_ok());
    }

    #[test]
    fn a_failed_sample_need_not_fit_another_shape() {
        let desc = |shapes| BatchDesc::new(DType::U8, Layout::NONE, shapes);
        let samples = vec![Sample::Borrowed(&[1, 2]), Sample::Borrowed(&[3])];
        let batch = Batch::new(desc(vec![Shape::from([2]), Shape::from([1])]), samples).unwrap();
        let shapes = vec![Shape::from([0, 0]), Shape::from([1, 1])];
        let view = batch.reinterpret(desc(shapes.clone()), |i| i == 0).unwrap();
        assert_eq!((view.view(0).bytes.len(), view.view(1).bytes), (0, &[3][..]));
        assert!(batch.reinterpret(desc(shapes), |_| false).is_err());
    }

    #[test]
    fn dali_numbers_name_the_types_in_order() {
        assert_eq!(DType::from_dali(9), Some(DType::F32));
        assert_eq!(DType::from_dali(-1), None);
        assert_eq!(DType::from_dali(20), None);
    }
}
