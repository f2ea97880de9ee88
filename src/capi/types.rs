//! What crosses the boundary: enumerations as numbers, and structs that say how large they are, so that either side may
//! be newer than the other.

use std::ffi::{CStr, c_char, c_void};

use super::size::{Versioned, check_elements, check_pointer};
use crate::cpu::formats::Formats;
use crate::error::{Context, Error, Result};
use crate::tensor::{DType, Device};

/// The version of this interface. It changes only when programs must be changed; functions and fields at the end of
/// structs may be added without.
pub const GESSO_ABI_VERSION: u32 = 1;

/// The largest number of dimensions of a sample.
pub const GESSO_MAX_NDIM: usize = 16;

/// Element types; numbered as DALI numbers them.
#[repr(C)]
pub enum ElementType {
    /// Not known before there is a batch.
    Any = -1,
    /// 8 bits.
    Uint8 = 0,
    /// 16 bits.
    Uint16 = 1,
    /// 32 bits.
    Uint32 = 2,
    /// 64 bits.
    Uint64 = 3,
    /// 8 bits.
    Int8 = 4,
    /// 16 bits.
    Int16 = 5,
    /// 32 bits.
    Int32 = 6,
    /// 64 bits.
    Int64 = 7,
    /// IEEE half precision.
    Float16 = 8,
    /// IEEE single precision.
    Float32 = 9,
    /// IEEE double precision.
    Float64 = 10,
    /// One byte, 0 or 1.
    Bool = 11,
}

/// Where something runs, or where memory is.
#[repr(C)]
pub enum DeviceKind {
    /// Host threads, host memory.
    Cpu = 0,
    /// A CUDA device, its memory.
    Gpu = 1,
}

/// An input or an output of a pipeline, as far as it is known before there is a batch.
#[repr(C)]
pub struct TensorInfo {
    /// `sizeof(gesso_tensor_info)`; the caller sets it.
    pub struct_size: usize,
    /// Its name. Lives as long as the pipeline.
    pub name: *const c_char,
    /// One letter for each dimension, such as `HWC`; empty when there is none. Lives as long as the pipeline.
    pub layout: *const c_char,
    /// A `gesso_dtype`; `GESSO_DTYPE_ANY` when it is not fixed.
    pub dtype: i32,
    /// A `gesso_device`. Of an input: `GESSO_DEVICE_GPU` if samples may be in memory of the GPU. Of an output: where it
    /// is made.
    pub device: i32,
    /// Dimensions of a sample; -1 when not even that is fixed.
    pub ndim: i32,
    /// Extents of a sample, -1 where they are not fixed.
    pub shape: [i64; GESSO_MAX_NDIM],
}

/// How an instance is made. Zeros are the defaults.
#[repr(C)]
#[derive(Default)]
pub struct InstanceOptions {
    /// `sizeof(gesso_instance_options)`.
    pub struct_size: usize,
    /// Worker threads; 0: as many as the file asks for.
    pub num_threads: usize,
    /// The number of the GPU, for a pipeline that was loaded for one.
    pub gpu: i32,
    /// Not 0: outputs that are made on the GPU are copied to host memory of the result.
    pub outputs_on_host: i32,
    /// Not 0: the memory of inputs may change while a batch runs, as when others can write to it. Such samples have any
    /// values then, and the library copies first what it would else look at twice. 0: it must not change.
    pub inputs_may_change: i32,
    /// Multiprocessors of the GPU that the work of the instance may take, beside a model's for example; the driver
    /// rounds them up. 0: all. Where the driver gives no part of a GPU (it does from CUDA 12.4 on), an instance with a
    /// number of them is `GESSO_STATUS_UNAVAILABLE`.
    pub gpu_multiprocessors: usize,
    /// Not 0: a file becomes the same pixels in every run on a GPU, whatever runs beside it. The JPEG engines of the
    /// GPU, whose pixels differ by a level, are not used then.
    pub deterministic: i32,
    /// The formats of files that are decoded, with commas between: `jpeg,png` are these alone, `-avif,-av1` all but
    /// these. Null: all. It is read while the instance is made, not later.
    pub formats: *const c_char,
}

/// How a stream is made. Zeros are the defaults.
#[repr(C)]
#[derive(Default)]
pub struct StreamOptions {
    /// `sizeof(gesso_stream_options)`.
    pub struct_size: usize,
    /// Samples of a batch; 0: as many as the file was made for.
    pub batch_size: usize,
    /// Batches that are read and not yet taken, at most; 0: 2. That bounds the memory of a stream.
    pub prefetch: usize,
    /// Batches that are worked on at the same time; 0: 1. Each has threads of its own.
    pub lanes: usize,
    /// Worker threads of each of these; 0: as many as the file asks for.
    pub num_threads: usize,
    /// Samples before the first batch: where a stream that ended goes on. A multiple of the batch size.
    pub first: u64,
    /// The number of the GPU, for a pipeline that was loaded for one.
    pub gpu: i32,
    /// Not 0: outputs that are made on the GPU are copied to host memory of the results.
    pub outputs_on_host: i32,
    /// Not 0: readers begin with the epoch behind the one that `read` samples have got to, whatever `first` says.
    pub next_epoch: i32,
    /// Read if `next_epoch` is not 0: samples that readers have given before, batch by batch.
    pub read: u64,
    /// As in `gesso_instance_options`, for all batches of the stream together.
    pub gpu_multiprocessors: usize,
    /// As in `gesso_instance_options`.
    pub deterministic: i32,
    /// As in `gesso_instance_options`. It is read while the stream is made, not later.
    pub formats: *const c_char,
    /// Where random numbers in branches of conditionals go on: `branch_count` numbers of `gesso_result_branch_samples`,
    /// of the batch that the stream goes on behind; null: they begin. Read while the stream is made, not later.
    pub branch_samples: *const u64,
    /// How many.
    pub branch_count: usize,
}

/// One sample of an input.
#[repr(C)]
pub struct InputSample {
    /// `sizeof(gesso_sample)`; the same in all samples of an input.
    pub struct_size: usize,
    /// Its elements: dense, row-major, at an address that is a multiple of the size of an element. May be null when
    /// there are none.
    pub data: *const c_void,
    /// Its extents; not read when `ndim` is 0.
    pub shape: *const i64,
    /// How many.
    pub ndim: usize,
}

/// One input of a batch.
#[repr(C)]
pub struct InputTensor {
    /// `sizeof(gesso_input)`; the same in all inputs of a batch.
    pub struct_size: usize,
    /// The name of the input.
    pub name: *const c_char,
    /// The `gesso_dtype` of every sample.
    pub dtype: i32,
    /// The `gesso_device` that every sample's memory is on. `GESSO_DEVICE_GPU` only where `gesso_tensor_info` of the
    /// input says so; what writes the memory must be done.
    pub device: i32,
    /// As many as the batch has.
    pub samples: *const InputSample,
    /// One letter for each dimension of a sample. Null or empty: as the pipeline declares it. Another than it declares
    /// is refused.
    pub layout: *const c_char,
    /// Where each sample comes from, a file or a record: as many texts as the batch has samples, each of which may be
    /// null. Operators hand them on, and `GetProperty` gives them as `source_info`. Null: nobody knows.
    pub origins: *const *const c_char,
}

/// One sample of an output.
#[repr(C)]
pub struct Tensor {
    /// `sizeof(gesso_tensor)`; the caller sets it.
    pub struct_size: usize,
    /// The elements, dense and row-major; null when there are none.
    pub data: *mut c_void,
    /// How many bytes they have.
    pub bytes: usize,
    /// A `gesso_dtype`.
    pub dtype: i32,
    /// The `gesso_device` whose memory `data` is in.
    pub device: i32,
    /// The number of that device.
    pub device_id: i32,
    /// Dimensions.
    pub ndim: i32,
    /// Extents.
    pub shape: *const i64,
    /// One letter for each dimension; empty when there is none.
    pub layout: *const c_char,
    /// Where it comes from: the file or record that a reader took it from, or what came with the inputs. Empty when
    /// nobody knows.
    pub origin: *const c_char,
}

/// Memory that a caller offers for one sample of an output.
#[repr(C)]
pub struct TargetMemory {
    /// `sizeof(gesso_target)` of the library.
    pub struct_size: usize,
    /// Where the sample goes: as many bytes as it has, at a multiple of the size of an element. Null: into memory of
    /// the result.
    pub data: *mut c_void,
    /// The `gesso_device` whose memory `data` is in. `GESSO_DEVICE_GPU` only for samples whose `gesso_tensor` says that
    /// they are made there, and only memory of the instance's own GPU.
    pub device: i32,
}

/// Asks the caller for memory for sample `sample` of output `output`. `tensor` describes the sample (its `data` is
/// null) and lives during the call; `target` is filled with its size, null and `GESSO_DEVICE_CPU` before. Called by the
/// thread that runs the batch, once for each sample that did not fail. The memory must stay until the run returns.
/// Returns 0; anything else fails the sample. Must not throw and must not call functions of the same instance.
pub type Allocate = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        output: usize,
        sample: usize,
        tensor: *const Tensor,
        target: *mut TargetMemory,
    ) -> i32,
>;

// SAFETY: numbers and pointers, the first of which is the size.
unsafe impl Versioned for TensorInfo {
    const NAME: &'static str = "gesso_tensor_info";
    const FIRST: usize = 168;
}

// SAFETY: as above.
unsafe impl Versioned for InstanceOptions {
    const NAME: &'static str = "gesso_instance_options";
    const FIRST: usize = 24;
}

// SAFETY: as above.
unsafe impl Versioned for StreamOptions {
    const NAME: &'static str = "gesso_stream_options";
    const FIRST: usize = 56;
}

// SAFETY: as above.
unsafe impl Versioned for InputSample {
    const NAME: &'static str = "gesso_sample";
    const FIRST: usize = 32;
}

// SAFETY: as above.
unsafe impl Versioned for InputTensor {
    const NAME: &'static str = "gesso_input";
    /// Without `layout`.
    const FIRST: usize = 32;
}

// SAFETY: as above.
unsafe impl Versioned for Tensor {
    const NAME: &'static str = "gesso_tensor";
    const FIRST: usize = 56;
}

// SAFETY: as above.
unsafe impl Versioned for TargetMemory {
    const NAME: &'static str = "gesso_target";
    const FIRST: usize = 24;
}

pub(super) const CPU: i32 = DeviceKind::Cpu as i32;
pub(super) const GPU: i32 = DeviceKind::Gpu as i32;

/// The number of an element type.
pub(super) fn number(dtype: Option<DType>) -> i32 {
    let place = dtype.and_then(|dtype| DType::ALL.iter().position(|&other| other == dtype));
    place.and_then(|place| i32::try_from(place).ok()).unwrap_or(ElementType::Any as i32)
}

/// The element type with this number.
pub(super) fn dtype(number: i32) -> Result<DType> {
    DType::from_dali(i64::from(number))
        .ok_or_else(|| Error::invalid(format!("`dtype` is {number}, expected a `gesso_dtype` from 0 to 11")))
}

/// The number of a device.
pub(super) fn device_number(device: Device) -> i32 {
    if device == Device::Gpu { GPU } else { CPU }
}

/// The device with this number.
pub(super) fn device(number: i32) -> Result<Device> {
    match number {
        CPU => Ok(Device::Cpu),
        GPU => Ok(Device::Gpu),
        other => Err(Error::invalid(format!("`device` is {other}, expected a `gesso_device`, 0 or 1"))),
    }
}

/// What `pointer` points at.
///
/// # Errors
/// Invalid when it is null or not aligned.
///
/// # Safety
/// Else it points at a valid value that nobody changes as long as the reference lives.
pub(super) unsafe fn reference<'a, T>(name: &str, pointer: *const T) -> Result<&'a T> {
    check_pointer(name, pointer)?;
    // SAFETY: not null and aligned; the caller vouches for the rest.
    Ok(unsafe { &*pointer })
}

/// Where a function puts what it makes.
///
/// # Errors
/// Invalid when it is null or not aligned.
///
/// # Safety
/// Else it points at memory for a value, which nobody else uses as long as the reference lives, and holds a valid one.
pub(super) unsafe fn place<'a, T>(name: &str, pointer: *mut T) -> Result<&'a mut T> {
    check_pointer(name, pointer)?;
    // SAFETY: not null and aligned; the caller vouches for the rest.
    Ok(unsafe { &mut *pointer })
}

/// `count` values from `pointer` on; none when `count` is 0.
///
/// # Errors
/// Invalid when it is null or not aligned, or when there are too many.
///
/// # Safety
/// Else it points at so many valid values that nobody changes as long as the slice lives.
pub(super) unsafe fn slice<'a, T>(name: &str, pointer: *const T, count: usize) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check_pointer(name, pointer)?;
    check_elements(name, count, size_of::<T>())?;
    // SAFETY: not null, aligned and no larger than memory; the caller vouches for the rest.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// The text that `pointer` points at.
///
/// # Errors
/// Invalid when it is null or not UTF-8.
///
/// # Safety
/// Else it ends with a zero byte, and nobody changes it as long as the text lives.
pub(super) unsafe fn text<'a>(name: &str, pointer: *const c_char) -> Result<&'a str> {
    check_pointer(name, pointer)?;
    // SAFETY: not null; the caller vouches for the rest.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Error::invalid(format!("`{name}` is not UTF-8")))
}

/// The formats that a caller's list names; all where the list is null.
///
/// # Errors
/// Invalid when it is not UTF-8 or names no formats.
///
/// # Safety
/// As for [`text`], if it is not null.
pub(super) unsafe fn formats(list: *const c_char) -> Result<Formats> {
    if list.is_null() {
        return Ok(Formats::ALL);
    }
    // SAFETY: as the caller says.
    Formats::parse(unsafe { text("formats", list) }?).context(|| "`formats`".to_owned())
}
