//! The part of NVIDIA's optical flow interface that is called (libnvidia-opticalflow, which comes with the driver),
//! loaded at run time. Written from the public documentation of version 2.0, which newer drivers keep. It must not know
//! what flow is computed for.

use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;

use crate::error::{Error, ErrorKind, Result};
use crate::gpu::{Found, Library};

/// `NV_OF_STATUS`.
pub(super) type Status = c_int;
pub(super) type RawSession = *mut c_void;
pub(super) type RawBuffer = *mut c_void;

/// Version 2.0, the first whose fields may have a vector for each pixel.
const API_VERSION: u32 = 2 << 4;

const SUCCESS: Status = 0;
const NOT_AVAILABLE: Status = 1;
const UNSUPPORTED_DEVICE: Status = 2;
const OUT_OF_MEMORY: Status = 8;

/// `NV_OF_MODE_OPTICALFLOW`.
pub(super) const OPTICAL_FLOW: c_int = 1;

/// `NV_OF_CUDA_BUFFER_TYPE_CUDEVICEPTR`: plain memory of the device.
pub(super) const PLAIN_MEMORY: c_int = 2;

/// `NV_OF_CAPS`: what can be asked of a device.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(super) enum Cap {
    OutputGrids = 0,
    HintGrids = 1,
    TakesHints = 2,
    LeastWidth = 4,
    LeastHeight = 5,
    MostWidth = 6,
    MostHeight = 7,
}

/// `NV_OF_BUFFER_USAGE`: what a buffer is for.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(super) enum Usage {
    Input = 1,
    Output = 2,
    Hint = 3,
}

/// `NV_OF_BUFFER_FORMAT`: what elements of a buffer are.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(super) enum Format {
    /// A byte for each pixel.
    Gray = 1,
    /// Red, green, blue and a fourth byte for each pixel.
    Color = 3,
    /// Two int16 for each block: along x and along y, in pixels / 32.
    Vectors = 5,
}

/// `NV_OF_INIT_PARAMS`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct InitParams {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) output_grid: c_int,
    pub(super) hint_grid: c_int,
    pub(super) mode: c_int,
    pub(super) speed: c_int,
    pub(super) takes_hints: c_int,
    pub(super) gives_cost: c_int,
    pub(super) private: *mut c_void,
    pub(super) disparity_range: c_int,
    pub(super) has_regions: c_int,
}

/// `NV_OF_BUFFER_DESCRIPTOR`; extents of fields in blocks.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct BufferDescriptor {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) usage: c_int,
    pub(super) format: c_int,
}

/// `NV_OF_CUDA_BUFFER_STRIDE_INFO`: for each plane the bytes from a row to the next one, and its rows.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct StrideInfo {
    pub(super) planes: [[u32; 2]; 3],
    pub(super) count: u32,
}

/// `NV_OF_EXECUTE_INPUT_PARAMS`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct ExecuteInput {
    pub(super) input: RawBuffer,
    pub(super) reference: RawBuffer,
    pub(super) hints: RawBuffer,
    pub(super) forgets: c_int,
    pub(super) padding: u32,
    pub(super) private: *mut c_void,
    pub(super) padding_too: u32,
    pub(super) regions: u32,
    pub(super) region_data: *mut c_void,
}

/// `NV_OF_EXECUTE_OUTPUT_PARAMS`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct ExecuteOutput {
    pub(super) field: RawBuffer,
    pub(super) cost: RawBuffer,
    pub(super) private: *mut c_void,
}

type Create = unsafe extern "C" fn(*mut c_void, *mut RawSession) -> Status;
type Init = unsafe extern "C" fn(RawSession, *const InitParams) -> Status;
type CreateBuffer =
    unsafe extern "C" fn(RawSession, *const BufferDescriptor, c_int, *mut RawBuffer) -> Status;
type BufferArray = unsafe extern "C" fn(RawBuffer) -> *mut c_void;
type BufferAddress = unsafe extern "C" fn(RawBuffer) -> u64;
type BufferStride = unsafe extern "C" fn(RawBuffer, *mut StrideInfo) -> Status;
type SetStreams = unsafe extern "C" fn(RawSession, *mut c_void, *mut c_void) -> Status;
type Execute = unsafe extern "C" fn(RawSession, *const ExecuteInput, *mut ExecuteOutput) -> Status;
type DestroyBuffer = unsafe extern "C" fn(RawBuffer) -> Status;
type Destroy = unsafe extern "C" fn(RawSession) -> Status;
type LastError = unsafe extern "C" fn(RawSession, *mut c_char, *mut u32) -> Status;
type Caps = unsafe extern "C" fn(RawSession, c_int, *mut u32, *mut u32) -> Status;

/// `NV_OF_CUDA_API_FUNCTION_LIST`, as the library fills it.
#[derive(Default)]
#[repr(C)]
struct FunctionList {
    create: Option<Create>,
    init: Option<Init>,
    create_buffer: Option<CreateBuffer>,
    buffer_array: Option<BufferArray>,
    buffer_address: Option<BufferAddress>,
    buffer_stride: Option<BufferStride>,
    set_streams: Option<SetStreams>,
    execute: Option<Execute>,
    destroy_buffer: Option<DestroyBuffer>,
    destroy: Option<Destroy>,
    last_error: Option<LastError>,
    caps: Option<Caps>,
}

/// The library, loaded.
pub(super) struct Functions {
    pub(super) create: Create,
    pub(super) init: Init,
    pub(super) create_buffer: CreateBuffer,
    pub(super) buffer_address: BufferAddress,
    pub(super) buffer_stride: BufferStride,
    pub(super) set_streams: SetStreams,
    pub(super) execute: Execute,
    pub(super) destroy_buffer: DestroyBuffer,
    pub(super) destroy: Destroy,
    pub(super) caps: Caps,
    last_error: LastError,
    /// Keeps the functions above loaded. Never closed, as the driver that it belongs to is not.
    _library: ManuallyDrop<Found>,
}

impl Functions {
    /// Loads the library.
    ///
    /// # Errors
    /// Unavailable, when it is not there or too old.
    pub(super) fn open() -> Result<Self> {
        const ENTRY: &str = "NvOFAPICreateInstanceCuda";
        let library = Library::OPTICAL_FLOW.open()?;
        // SAFETY: the type is that of the function's documentation.
        let entry: unsafe extern "C" fn(u32, *mut FunctionList) -> Status =
            unsafe { library.function(ENTRY) }?;
        let mut list = FunctionList::default();
        // SAFETY: the list is that of the version that is asked for, and valid for the call.
        let status = unsafe { entry(API_VERSION, &raw mut list) };
        let old = |what: &str| {
            Error::new(
                ErrorKind::Unavailable,
                format!("`{}` {what} of version 2.0: it is too old", library.path.display()),
            )
        };
        if status != SUCCESS {
            return Err(old(&format!("refuses the interface (`{ENTRY}`: {})", text(status))));
        }
        let lacks = || old("lacks a function");
        Ok(Self {
            create: list.create.ok_or_else(lacks)?,
            init: list.init.ok_or_else(lacks)?,
            create_buffer: list.create_buffer.ok_or_else(lacks)?,
            buffer_address: list.buffer_address.ok_or_else(lacks)?,
            buffer_stride: list.buffer_stride.ok_or_else(lacks)?,
            set_streams: list.set_streams.ok_or_else(lacks)?,
            execute: list.execute.ok_or_else(lacks)?,
            destroy_buffer: list.destroy_buffer.ok_or_else(lacks)?,
            destroy: list.destroy.ok_or_else(lacks)?,
            caps: list.caps.ok_or_else(lacks)?,
            last_error: list.last_error.ok_or_else(lacks)?,
            _library: ManuallyDrop::new(library),
        })
    }

    /// What `function` answered for `session`, with the library's own words. Without memory, or an engine, it is
    /// unavailable: no frame is to blame.
    ///
    /// # Errors
    /// Whatever is no success.
    pub(super) fn check(&self, function: &str, status: Status, session: RawSession) -> Result<()> {
        if status == SUCCESS {
            return Ok(());
        }
        let words = self.words(session).map(|words| format!(": {words}")).unwrap_or_default();
        Err(Error::new(kind(status), format!("`{function}`: {} (status {status}){words}", text(status))))
    }

    /// What the library says of the last failure of `session`.
    fn words(&self, session: RawSession) -> Option<String> {
        if session.is_null() {
            return None;
        }
        let mut bytes = [0_u8; 512];
        // One less, so that there is a zero at the end whatever happens.
        let mut size = bytes.len() as u32 - 1;
        // SAFETY: the session is valid, and so are the pointers for the call, which writes no more than `size` says.
        let status = unsafe { (self.last_error)(session, bytes.as_mut_ptr().cast(), &raw mut size) };
        let text = std::ffi::CStr::from_bytes_until_nul(&bytes).ok()?.to_string_lossy();
        (status == SUCCESS && !text.trim().is_empty()).then(|| text.trim().to_owned())
    }
}

fn kind(status: Status) -> ErrorKind {
    match status {
        NOT_AVAILABLE | UNSUPPORTED_DEVICE | OUT_OF_MEMORY => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    }
}

fn text(status: Status) -> &'static str {
    match status {
        NOT_AVAILABLE => "optical flow is not available",
        UNSUPPORTED_DEVICE => "the device is not supported",
        3 => "the device does not exist",
        4 => "invalid pointer",
        5 => "invalid parameter",
        6 => "invalid call",
        7 => "invalid version",
        OUT_OF_MEMORY => "out of memory",
        9 => "not initialized",
        10 => "unsupported feature",
        11 => "unknown error",
        _ => "see `NV_OF_STATUS`",
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn structs_have_the_documented_layouts() {
        assert_eq!(size_of::<InitParams>(), 48);
        assert_eq!([offset_of!(InitParams, speed), offset_of!(InitParams, gives_cost)], [20, 28]);
        assert_eq!([offset_of!(InitParams, private), offset_of!(InitParams, has_regions)], [32, 44]);
        assert_eq!(size_of::<BufferDescriptor>(), 16);
        assert_eq!((size_of::<StrideInfo>(), offset_of!(StrideInfo, count)), (28, 24));
        assert_eq!(size_of::<ExecuteInput>(), 56);
        assert_eq!([offset_of!(ExecuteInput, forgets), offset_of!(ExecuteInput, private)], [24, 32]);
        assert_eq!([offset_of!(ExecuteInput, regions), offset_of!(ExecuteInput, region_data)], [44, 48]);
        assert_eq!(size_of::<ExecuteOutput>(), 24);
        assert_eq!(size_of::<FunctionList>(), 12 * 8);
        assert_eq!([offset_of!(FunctionList, execute), offset_of!(FunctionList, caps)], [56, 88]);
    }

    #[test]
    fn a_status_is_named() {
        assert_eq!(kind(OUT_OF_MEMORY), ErrorKind::Unavailable);
        assert_eq!(kind(UNSUPPORTED_DEVICE), ErrorKind::Unavailable);
        assert_eq!(kind(5), ErrorKind::Internal);
        assert_eq!(text(10), "unsupported feature");
    }
}
