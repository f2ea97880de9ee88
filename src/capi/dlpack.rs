//! Samples as DLPack has tensors, so that other libraries take them without a copy. The structs are those of DLPack's
//! own header (`dlpack.h`, `DLManagedTensor`), which a caller includes.

use std::ffi::c_void;
use std::sync::Arc;

use super::result::ResultHandle;
use super::sample::Data;
use super::status::{Status, guard, guarded};
use super::types;
use crate::error::{Error, Result};
use crate::tensor::{DType, Device};

/// DLPack's number of host memory, and of a CUDA device's.
const DL_CPU: i32 = 1;
const DL_CUDA: i32 = 2;

/// Where a tensor is.
#[repr(C)]
pub struct DLDevice {
    /// Kind of device.
    pub device_type: i32,
    /// Its number.
    pub device_id: i32,
}

/// The type of an element.
#[repr(C)]
pub struct DLDataType {
    /// Kind of number.
    pub code: u8,
    /// Bits of an element.
    pub bits: u8,
    /// Elements that are one: here always 1.
    pub lanes: u16,
}

/// A tensor.
#[repr(C)]
pub struct DLTensor {
    /// The elements.
    pub data: *mut c_void,
    /// Where they are.
    pub device: DLDevice,
    /// Dimensions.
    pub ndim: i32,
    /// What they are.
    pub dtype: DLDataType,
    /// Extents.
    pub shape: *mut i64,
    /// Distances of neighbours; null: dense, row-major.
    pub strides: *mut i64,
    /// From `data` to the first element.
    pub byte_offset: u64,
}

/// A tensor that somebody else frees.
#[repr(C)]
pub struct DLManagedTensor {
    /// The tensor.
    pub dl_tensor: DLTensor,
    /// Ours.
    pub manager_ctx: *mut c_void,
    /// Frees it.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// What an exported tensor keeps.
struct Kept {
    tensor: DLManagedTensor,
    shape: Vec<i64>,
    _data: Arc<Data>,
}

fn element(dtype: DType) -> DLDataType {
    let code = match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 1,
        DType::F16 | DType::F32 | DType::F64 => 2,
        DType::Bool => 6,
    };
    DLDataType { code, bits: 8 * dtype.size() as u8, lanes: 1 }
}

/// A tensor for output `output` of sample `sample`, which shares the memory of `data`.
///
/// # Errors
/// Not found for a sample that has none; unsupported for one in memory of the caller.
fn export(data: &Arc<Data>, output: usize, sample: usize) -> Result<*mut DLManagedTensor> {
    let made = data.made(output, sample)?;
    if made.is_callers() {
        return Err(Error::unsupported(format!(
            "sample {sample} of output {output} is in memory that the caller offered: export that"
        )));
    }
    let device = match made.device() {
        Device::Cpu => DLDevice { device_type: DL_CPU, device_id: 0 },
        Device::Gpu => DLDevice { device_type: DL_CUDA, device_id: data.ordinal },
    };
    if let Some(memory) = made.on_device() {
        data.exports.note(memory);
    }
    let shape = made.described.shape.clone();
    let tensor = DLTensor {
        data: made.data(),
        device,
        ndim: shape.len() as i32,
        dtype: element(made.described.dtype),
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed =
        DLManagedTensor { dl_tensor: tensor, manager_ctx: std::ptr::null_mut(), deleter: Some(delete) };
    let kept = Box::into_raw(Box::new(Kept { tensor: managed, shape, _data: Arc::clone(data) }));
    // SAFETY: just made, and nobody else has it yet.
    let Kept { tensor, shape, .. } = unsafe { &mut *kept };
    tensor.dl_tensor.shape = shape.as_mut_ptr();
    tensor.manager_ctx = kept.cast();
    Ok(tensor)
}

/// Exports output `output` of sample `sample` as a DLPack tensor, without copying. `*tensor` is the caller's, who calls
/// its `deleter`, once, from any thread; the result may be freed before. Work on a tensor in memory of a GPU may still
/// be under way then: when the last of the result and its tensors goes, that waits until the GPU is idle.
/// `GESSO_STATUS_UNSUPPORTED` for a sample in memory that the caller offered, which is his already. The elements must
/// not be changed while others read them. Any thread.
///
/// # Safety
/// `result` is valid; `tensor` points at a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_result_dlpack(
    result: *const ResultHandle,
    output: usize,
    sample: usize,
    tensor: *mut *mut DLManagedTensor,
) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let out = unsafe { types::place("tensor", tensor) }?;
        *out = std::ptr::null_mut();
        // SAFETY: the caller vouches for the pointer.
        let data = &unsafe { types::reference("result", result) }?.0;
        *out = export(data, output, sample)?;
        Ok(())
    })
}

/// # Safety
/// `tensor` is null or was exported by [`export`], and not deleted before.
unsafe extern "C" fn delete(tensor: *mut DLManagedTensor) {
    guarded((), || {
        if tensor.is_null() {
            return;
        }
        // SAFETY: the caller vouches for the tensor.
        let kept = unsafe { (*tensor).manager_ctx }.cast::<Kept>();
        // SAFETY: `export` put what `Box::into_raw` gave there, and this happens once.
        drop(unsafe { Box::from_raw(kept) });
    });
}
