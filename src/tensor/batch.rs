//! A batch: one byte range per sample, borrowed from a request or in a pooled buffer, and typed views of them.
//!
//! ```text
//! Batch<'r>
//!   desc     dtype, layout, one shape per sample (a batch may be ragged)
//!   samples  [ Borrowed(&'r [u8]) | Pooled(buffer, range) | Device(address) | Missing ]   need not be adjacent
//! ```
//!
//! `'r` is the life of the request: an input that points into the request's memory, on the host or on a device, cannot
//! outlive it.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::{DType, Element, Layout, Shape};
use crate::error::{Error, Result};
use crate::memory::{DeviceBytes, HostBuffer};

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
    /// In the memory of a device: the host knows its shape, not its bytes.
    Device(DeviceBytes<'r>),
    /// Nowhere: the sample failed before it had bytes.
    Missing,
}

impl Sample<'_> {
    /// Its bytes, none when they are missing or on a device.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Sample::Borrowed(bytes) => bytes,
            Sample::Pooled(buffer, range) => &buffer.bytes()[range.clone()],
            Sample::Device(_) | Sample::Missing => &[],
        }
    }

    /// How many bytes it has, wherever they are.
    fn len(&self) -> usize {
        match self {
            Sample::Device(bytes) => bytes.len(),
            other => other.bytes().len(),
        }
    }
}

/// Where each sample of a batch comes from: a file, a record. Empty where nobody knows.
pub type Origins = Arc<[Arc<str>]>;

/// Samples of one type and rank, whose shapes may differ and whose bytes need not be adjacent.
#[derive(Clone)]
pub struct Batch<'r> {
    desc: BatchDesc,
    samples: Vec<Sample<'r>>,
    origins: Option<Origins>,
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
            let (expected, found) = (shape.bytes(desc.dtype.size())?, sample.len());
            if expected != found {
                return Err(Error::invalid(format!(
                    "a sample of shape {shape} and type {} has {found} bytes, expected {expected}",
                    desc.dtype
                )));
            }
        }
        Ok(Self { desc, samples, origins: None })
    }

    /// The same samples, which come from `origins`.
    #[must_use]
    pub fn coming_from(mut self, origins: Option<Origins>) -> Self {
        self.come_from(origins);
        self
    }

    /// Notes where its samples come from.
    pub fn come_from(&mut self, origins: Option<Origins>) {
        self.origins = origins.filter(|origins| origins.len() == self.samples.len());
    }

    /// Where its samples come from, if that is known of any.
    pub fn origins(&self) -> Option<&Origins> {
        self.origins.as_ref()
    }

    /// Where sample `i` comes from; empty where nobody knows.
    pub fn origin(&self, i: usize) -> &str {
        self.origins.as_ref().and_then(|origins| origins.get(i)).map_or("", |origin| origin)
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

    /// Where sample `i` is on the device.
    ///
    /// # Errors
    /// Internal, when it is on the host or missing.
    ///
    /// # Panics
    /// When `i` is not below [`Batch::len`].
    pub fn device(&self, i: usize) -> Result<&DeviceBytes<'r>> {
        match &self.samples[i] {
            Sample::Device(bytes) => Ok(bytes),
            _ => Err(Error::internal(format!("sample {i} is not on the device"))),
        }
    }

    /// Where sample `i` is.
    pub fn sample(&self, i: usize) -> Option<&Sample<'r>> {
        self.samples.get(i)
    }

    /// Puts the bytes of sample `i` elsewhere.
    ///
    /// # Errors
    /// Internal, when the new place has another size.
    pub fn replace(&mut self, i: usize, sample: Sample<'r>) -> Result<()> {
        match self.samples.get_mut(i) {
            Some(old) if old.len() == sample.len() => {
                *old = sample;
                Ok(())
            }
            _ => Err(Error::internal(format!("sample {i} is replaced by one of another size"))),
        }
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
    /// When the sample's type is another one, or its bytes are on a device.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        self.check(T::DTYPE)?;
        elements(self.bytes)
    }

    #[inline(never)]
    fn check(&self, dtype: DType) -> Result<()> {
        check_dtype(self.dtype, dtype)?;
        if self.bytes.is_empty() && !self.shape.contains(&0) {
            return Err(Error::unsupported(
                "values on a device are needed on the host: feed them from the host",
            ));
        }
        Ok(())
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
        check_dtype(self.dtype, T::DTYPE)?;
        elements_mut(self.bytes)
    }
}

// Every operator reads samples of every type: what need not be compiled for each of them is compiled once.
#[inline(never)]
fn check_dtype(found: DType, expected: DType) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::internal(format!("a sample of type {found} is read as {expected}")))
}

/// `bytes` as elements. No bytes may lie anywhere, also where no element could.
///
/// # Errors
/// Internal, when they do not lie as the elements need.
pub(crate) fn elements<T: Pod>(bytes: &[u8]) -> Result<&[T]> {
    if bytes.is_empty() { Ok(&[]) } else { bytemuck::try_cast_slice(bytes).map_err(cast_failed) }
}

/// [`elements`] to write.
///
/// # Errors
/// As for [`elements`].
pub(crate) fn elements_mut<T: Pod>(bytes: &mut [u8]) -> Result<&mut [T]> {
    if bytes.is_empty() { Ok(&mut []) } else { bytemuck::try_cast_slice_mut(bytes).map_err(cast_failed) }
}

/// The bytes of an element in front, zeros behind, as a number: how kernels take an element of any type.
pub(crate) fn bits<T: Element>(element: T) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    bytes.iter_mut().zip(bytemuck::bytes_of(&element)).for_each(|(to, &from)| *to = from);
    u64::from_ne_bytes(bytes)
}

/// The element that has these [`bits`].
pub(crate) fn of_bits<T: Element>(bits: u64) -> T {
    let mut element = T::default();
    bytemuck::bytes_of_mut(&mut element).iter_mut().zip(bits.to_ne_bytes()).for_each(|(to, from)| *to = from);
    element
}

#[cold]
#[inline(never)]
fn cast_failed(error: bytemuck::PodCastError) -> Error {
    Error::internal(format!("the bytes of a sample cannot be read as its type: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_sample_without_elements_may_lie_at_any_address() {
        let shape = Shape::from([2, 0]);
        let (mut words, layout) = ([0u64; 2], Layout::NONE);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
        let view = View { dtype: DType::F64, layout, shape: &shape, bytes: &bytes[1..1] };
        assert_eq!(view.as_slice::<f64>().unwrap(), [0.0; 0]);
        let mut view = ViewMut { dtype: DType::F64, layout, shape: &shape, bytes: &mut bytes[1..1] };
        assert_eq!(view.as_slice_mut::<f64>().unwrap(), [0.0; 0]);
    }
}
