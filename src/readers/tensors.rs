//! One output of a sample, made of numbers or of a part of what was read. It must not know readers.

use std::ops::Range;
use std::sync::Arc;

use super::Tensor;
use crate::error::Result;
use crate::memory::{HostBuffer, HostPool};
use crate::tensor::{DType, Element, Sample, Shape};

/// A list of numbers.
pub(super) fn list<T: Element>(numbers: &[T], memory: &Arc<HostPool>) -> Result<Tensor> {
    shaped(Shape::from([numbers.len()]), numbers, memory)
}

/// Numbers of a shape that has as many elements.
pub(super) fn shaped<T: Element>(shape: Shape, numbers: &[T], memory: &Arc<HostPool>) -> Result<Tensor> {
    let bytes: &[u8] = bytemuck::cast_slice(numbers);
    let mut buffer = memory.take(bytes.len())?;
    buffer.bytes_mut().get_mut(..bytes.len()).unwrap_or_default().copy_from_slice(bytes);
    Ok(Tensor { shape, ..part(&Arc::new(buffer), 0..bytes.len(), T::DTYPE) })
}

/// A list of elements: a part of what was read, which begins where such an element may.
pub(super) fn part(buffer: &Arc<HostBuffer>, range: Range<usize>, dtype: DType) -> Tensor {
    let shape = Shape::from([range.len() / dtype.size()]);
    Tensor { dtype, shape, bytes: Sample::Pooled(Arc::clone(buffer), range), source: String::new() }
}
