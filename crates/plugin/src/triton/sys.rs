//! Triton's C API as Rust types and two tables of functions that are looked up at run time. Made by bindgen from
//! `include/triton.h` and `include/triton_newer.h`: edit those, then run `GESSO_BLESS=1 cargo test --test project`.

#[doc = " What went wrong in a call: a code and a text."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONSERVER_Error {
    _unused: [u8; 0],
}
#[doc = " A JSON document."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONSERVER_Message {
    _unused: [u8; 0],
}
#[doc = " This plugin, once per loaded library."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONBACKEND_Backend {
    _unused: [u8; 0],
}
#[doc = " One version of one model that names this backend."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONBACKEND_Model {
    _unused: [u8; 0],
}
#[doc = " One copy of a model on one device; executes one batch at a time."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONBACKEND_ModelInstance {
    _unused: [u8; 0],
}
#[doc = " What one client sent."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONBACKEND_Request {
    _unused: [u8; 0],
}
#[doc = " One tensor of a request. Lives as long as the request."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONBACKEND_Input {
    _unused: [u8; 0],
}
#[doc = " What one client gets back."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONBACKEND_Response {
    _unused: [u8; 0],
}
#[doc = " One tensor of a response. Lives as long as the response."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONBACKEND_Output {
    _unused: [u8; 0],
}
impl TRITONSERVER_Error_Code {
    pub const TRITONSERVER_ERROR_UNKNOWN: TRITONSERVER_Error_Code = TRITONSERVER_Error_Code(0);
    pub const TRITONSERVER_ERROR_INTERNAL: TRITONSERVER_Error_Code = TRITONSERVER_Error_Code(1);
    pub const TRITONSERVER_ERROR_NOT_FOUND: TRITONSERVER_Error_Code = TRITONSERVER_Error_Code(2);
    pub const TRITONSERVER_ERROR_INVALID_ARG: TRITONSERVER_Error_Code = TRITONSERVER_Error_Code(3);
    pub const TRITONSERVER_ERROR_UNAVAILABLE: TRITONSERVER_Error_Code = TRITONSERVER_Error_Code(4);
    pub const TRITONSERVER_ERROR_UNSUPPORTED: TRITONSERVER_Error_Code = TRITONSERVER_Error_Code(5);
    pub const TRITONSERVER_ERROR_ALREADY_EXISTS: TRITONSERVER_Error_Code = TRITONSERVER_Error_Code(6);
    pub const TRITONSERVER_ERROR_CANCELLED: TRITONSERVER_Error_Code = TRITONSERVER_Error_Code(7);
}
#[repr(transparent)]
#[doc = " Classes of errors. CANCELLED came after backend API 1.0: older servers call it unknown."]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct TRITONSERVER_Error_Code(pub ::std::os::raw::c_uint);
impl TRITONSERVER_LogLevel {
    pub const TRITONSERVER_LOG_INFO: TRITONSERVER_LogLevel = TRITONSERVER_LogLevel(0);
    pub const TRITONSERVER_LOG_WARN: TRITONSERVER_LogLevel = TRITONSERVER_LogLevel(1);
    pub const TRITONSERVER_LOG_ERROR: TRITONSERVER_LogLevel = TRITONSERVER_LogLevel(2);
    pub const TRITONSERVER_LOG_VERBOSE: TRITONSERVER_LogLevel = TRITONSERVER_LogLevel(3);
}
#[repr(transparent)]
#[doc = " Levels of the server's log."]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct TRITONSERVER_LogLevel(pub ::std::os::raw::c_uint);
impl TRITONSERVER_DataType {
    pub const TRITONSERVER_TYPE_INVALID: TRITONSERVER_DataType = TRITONSERVER_DataType(0);
    pub const TRITONSERVER_TYPE_BOOL: TRITONSERVER_DataType = TRITONSERVER_DataType(1);
    pub const TRITONSERVER_TYPE_UINT8: TRITONSERVER_DataType = TRITONSERVER_DataType(2);
    pub const TRITONSERVER_TYPE_UINT16: TRITONSERVER_DataType = TRITONSERVER_DataType(3);
    pub const TRITONSERVER_TYPE_UINT32: TRITONSERVER_DataType = TRITONSERVER_DataType(4);
    pub const TRITONSERVER_TYPE_UINT64: TRITONSERVER_DataType = TRITONSERVER_DataType(5);
    pub const TRITONSERVER_TYPE_INT8: TRITONSERVER_DataType = TRITONSERVER_DataType(6);
    pub const TRITONSERVER_TYPE_INT16: TRITONSERVER_DataType = TRITONSERVER_DataType(7);
    pub const TRITONSERVER_TYPE_INT32: TRITONSERVER_DataType = TRITONSERVER_DataType(8);
    pub const TRITONSERVER_TYPE_INT64: TRITONSERVER_DataType = TRITONSERVER_DataType(9);
    pub const TRITONSERVER_TYPE_FP16: TRITONSERVER_DataType = TRITONSERVER_DataType(10);
    pub const TRITONSERVER_TYPE_FP32: TRITONSERVER_DataType = TRITONSERVER_DataType(11);
    pub const TRITONSERVER_TYPE_FP64: TRITONSERVER_DataType = TRITONSERVER_DataType(12);
    pub const TRITONSERVER_TYPE_BYTES: TRITONSERVER_DataType = TRITONSERVER_DataType(13);
    pub const TRITONSERVER_TYPE_BF16: TRITONSERVER_DataType = TRITONSERVER_DataType(14);
}
#[repr(transparent)]
#[doc = " Element types of tensors. Elements of BYTES have any length: each is a little-endian 4-byte length and that many\n bytes."]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct TRITONSERVER_DataType(pub ::std::os::raw::c_uint);
impl TRITONSERVER_MemoryType {
    pub const TRITONSERVER_MEMORY_CPU: TRITONSERVER_MemoryType = TRITONSERVER_MemoryType(0);
    pub const TRITONSERVER_MEMORY_CPU_PINNED: TRITONSERVER_MemoryType = TRITONSERVER_MemoryType(1);
    pub const TRITONSERVER_MEMORY_GPU: TRITONSERVER_MemoryType = TRITONSERVER_MemoryType(2);
}
#[repr(transparent)]
#[doc = " Where the bytes of a buffer are. CPU_PINNED is host memory that is locked for transfers to a GPU."]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct TRITONSERVER_MemoryType(pub ::std::os::raw::c_uint);
impl TRITONSERVER_InstanceGroupKind {
    pub const TRITONSERVER_INSTANCEGROUPKIND_AUTO: TRITONSERVER_InstanceGroupKind =
        TRITONSERVER_InstanceGroupKind(0);
    pub const TRITONSERVER_INSTANCEGROUPKIND_CPU: TRITONSERVER_InstanceGroupKind =
        TRITONSERVER_InstanceGroupKind(1);
    pub const TRITONSERVER_INSTANCEGROUPKIND_GPU: TRITONSERVER_InstanceGroupKind =
        TRITONSERVER_InstanceGroupKind(2);
    pub const TRITONSERVER_INSTANCEGROUPKIND_MODEL: TRITONSERVER_InstanceGroupKind =
        TRITONSERVER_InstanceGroupKind(3);
}
#[repr(transparent)]
#[doc = " What an instance runs on. The numbers differ from those of the model configuration's protobuf."]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct TRITONSERVER_InstanceGroupKind(pub ::std::os::raw::c_uint);
impl TRITONSERVER_RequestReleaseFlag {
    #[doc = " Every part of the request is given back."]
    pub const TRITONSERVER_REQUEST_RELEASE_ALL: TRITONSERVER_RequestReleaseFlag =
        TRITONSERVER_RequestReleaseFlag(1);
}
#[repr(transparent)]
#[doc = " Flags of TRITONBACKEND_RequestRelease."]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct TRITONSERVER_RequestReleaseFlag(pub ::std::os::raw::c_uint);
impl TRITONSERVER_ResponseCompleteFlag {
    #[doc = " No further response follows for this request."]
    pub const TRITONSERVER_RESPONSE_COMPLETE_FINAL: TRITONSERVER_ResponseCompleteFlag =
        TRITONSERVER_ResponseCompleteFlag(1);
}
#[repr(transparent)]
#[doc = " Flags of TRITONBACKEND_ResponseSend."]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct TRITONSERVER_ResponseCompleteFlag(pub ::std::os::raw::c_uint);
impl TRITONBACKEND_ArtifactType {
    #[doc = " As a directory."]
    pub const TRITONBACKEND_ARTIFACT_FILESYSTEM: TRITONBACKEND_ArtifactType = TRITONBACKEND_ArtifactType(0);
}
#[repr(transparent)]
#[doc = " How a model's files reach the backend."]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct TRITONBACKEND_ArtifactType(pub ::std::os::raw::c_uint);
pub struct Required {
    __library: ::libloading::Library,
    pub TRITONSERVER_ErrorNew: unsafe extern "C" fn(
        code: TRITONSERVER_Error_Code,
        message: *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONSERVER_ErrorDelete: unsafe extern "C" fn(error: *mut TRITONSERVER_Error),
    pub TRITONSERVER_ErrorCode:
        unsafe extern "C" fn(error: *mut TRITONSERVER_Error) -> TRITONSERVER_Error_Code,
    pub TRITONSERVER_ErrorMessage:
        unsafe extern "C" fn(error: *mut TRITONSERVER_Error) -> *const ::std::os::raw::c_char,
    pub TRITONSERVER_LogIsEnabled: unsafe extern "C" fn(level: TRITONSERVER_LogLevel) -> bool,
    pub TRITONSERVER_LogMessage: unsafe extern "C" fn(
        level: TRITONSERVER_LogLevel,
        file: *const ::std::os::raw::c_char,
        line: ::std::os::raw::c_int,
        message: *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONSERVER_MessageNewFromSerializedJson: unsafe extern "C" fn(
        message: *mut *mut TRITONSERVER_Message,
        json: *const ::std::os::raw::c_char,
        size: usize,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONSERVER_MessageSerializeToJson: unsafe extern "C" fn(
        message: *mut TRITONSERVER_Message,
        json: *mut *const ::std::os::raw::c_char,
        size: *mut usize,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONSERVER_MessageDelete:
        unsafe extern "C" fn(message: *mut TRITONSERVER_Message) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ApiVersion:
        unsafe extern "C" fn(major: *mut u32, minor: *mut u32) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_BackendName: unsafe extern "C" fn(
        backend: *mut TRITONBACKEND_Backend,
        name: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_BackendConfig: unsafe extern "C" fn(
        backend: *mut TRITONBACKEND_Backend,
        config: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_BackendState: unsafe extern "C" fn(
        backend: *mut TRITONBACKEND_Backend,
        state: *mut *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_BackendSetState: unsafe extern "C" fn(
        backend: *mut TRITONBACKEND_Backend,
        state: *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelName: unsafe extern "C" fn(
        model: *mut TRITONBACKEND_Model,
        name: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelVersion:
        unsafe extern "C" fn(model: *mut TRITONBACKEND_Model, version: *mut u64) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelRepository: unsafe extern "C" fn(
        model: *mut TRITONBACKEND_Model,
        type_: *mut TRITONBACKEND_ArtifactType,
        location: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelConfig: unsafe extern "C" fn(
        model: *mut TRITONBACKEND_Model,
        config_version: u32,
        config: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelAutoCompleteConfig:
        unsafe extern "C" fn(model: *mut TRITONBACKEND_Model, wanted: *mut bool) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelSetConfig: unsafe extern "C" fn(
        model: *mut TRITONBACKEND_Model,
        config_version: u32,
        config: *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelBackend: unsafe extern "C" fn(
        model: *mut TRITONBACKEND_Model,
        backend: *mut *mut TRITONBACKEND_Backend,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelState: unsafe extern "C" fn(
        model: *mut TRITONBACKEND_Model,
        state: *mut *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelSetState: unsafe extern "C" fn(
        model: *mut TRITONBACKEND_Model,
        state: *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelInstanceName: unsafe extern "C" fn(
        instance: *mut TRITONBACKEND_ModelInstance,
        name: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelInstanceKind: unsafe extern "C" fn(
        instance: *mut TRITONBACKEND_ModelInstance,
        kind: *mut TRITONSERVER_InstanceGroupKind,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelInstanceDeviceId: unsafe extern "C" fn(
        instance: *mut TRITONBACKEND_ModelInstance,
        device: *mut i32,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelInstanceModel: unsafe extern "C" fn(
        instance: *mut TRITONBACKEND_ModelInstance,
        model: *mut *mut TRITONBACKEND_Model,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelInstanceState: unsafe extern "C" fn(
        instance: *mut TRITONBACKEND_ModelInstance,
        state: *mut *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelInstanceSetState: unsafe extern "C" fn(
        instance: *mut TRITONBACKEND_ModelInstance,
        state: *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelInstanceReportStatistics: unsafe extern "C" fn(
        instance: *mut TRITONBACKEND_ModelInstance,
        request: *mut TRITONBACKEND_Request,
        success: bool,
        exec_start: u64,
        compute_start: u64,
        compute_end: u64,
        exec_end: u64,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ModelInstanceReportBatchStatistics: unsafe extern "C" fn(
        instance: *mut TRITONBACKEND_ModelInstance,
        batch_size: u64,
        exec_start: u64,
        compute_start: u64,
        compute_end: u64,
        exec_end: u64,
    )
        -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_RequestId: unsafe extern "C" fn(
        request: *mut TRITONBACKEND_Request,
        id: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_RequestInputCount:
        unsafe extern "C" fn(request: *mut TRITONBACKEND_Request, count: *mut u32) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_RequestInputByIndex: unsafe extern "C" fn(
        request: *mut TRITONBACKEND_Request,
        index: u32,
        input: *mut *mut TRITONBACKEND_Input,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_RequestOutputCount:
        unsafe extern "C" fn(request: *mut TRITONBACKEND_Request, count: *mut u32) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_RequestOutputName: unsafe extern "C" fn(
        request: *mut TRITONBACKEND_Request,
        index: u32,
        name: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_RequestRelease:
        unsafe extern "C" fn(request: *mut TRITONBACKEND_Request, flags: u32) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_InputProperties: unsafe extern "C" fn(
        input: *mut TRITONBACKEND_Input,
        name: *mut *const ::std::os::raw::c_char,
        type_: *mut TRITONSERVER_DataType,
        shape: *mut *const i64,
        dims: *mut u32,
        bytes: *mut u64,
        buffers: *mut u32,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_InputBuffer: unsafe extern "C" fn(
        input: *mut TRITONBACKEND_Input,
        index: u32,
        buffer: *mut *const ::std::os::raw::c_void,
        bytes: *mut u64,
        memory: *mut TRITONSERVER_MemoryType,
        memory_id: *mut i64,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ResponseNew: unsafe extern "C" fn(
        response: *mut *mut TRITONBACKEND_Response,
        request: *mut TRITONBACKEND_Request,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ResponseDelete:
        unsafe extern "C" fn(response: *mut TRITONBACKEND_Response) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ResponseOutput: unsafe extern "C" fn(
        response: *mut TRITONBACKEND_Response,
        output: *mut *mut TRITONBACKEND_Output,
        name: *const ::std::os::raw::c_char,
        type_: TRITONSERVER_DataType,
        shape: *const i64,
        dims: u32,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_OutputBuffer: unsafe extern "C" fn(
        output: *mut TRITONBACKEND_Output,
        buffer: *mut *mut ::std::os::raw::c_void,
        bytes: u64,
        memory: *mut TRITONSERVER_MemoryType,
        memory_id: *mut i64,
    ) -> *mut TRITONSERVER_Error,
    pub TRITONBACKEND_ResponseSend: unsafe extern "C" fn(
        response: *mut TRITONBACKEND_Response,
        flags: u32,
        error: *mut TRITONSERVER_Error,
    ) -> *mut TRITONSERVER_Error,
}
impl Required {
    pub unsafe fn new<P>(path: P) -> Result<Self, ::libloading::Error>
    where
        P: AsRef<::std::ffi::OsStr>,
    {
        let path = path.as_ref();
        let library = unsafe { ::libloading::Library::new(path) }?;
        unsafe { Self::from_library(library) }
    }
    pub unsafe fn from_library<L>(library: L) -> Result<Self, ::libloading::Error>
    where
        L: Into<::libloading::Library>,
    {
        let __library = library.into();
        let TRITONSERVER_ErrorNew = unsafe { __library.get(b"TRITONSERVER_ErrorNew\0") }.map(|sym| *sym)?;
        let TRITONSERVER_ErrorDelete =
            unsafe { __library.get(b"TRITONSERVER_ErrorDelete\0") }.map(|sym| *sym)?;
        let TRITONSERVER_ErrorCode = unsafe { __library.get(b"TRITONSERVER_ErrorCode\0") }.map(|sym| *sym)?;
        let TRITONSERVER_ErrorMessage =
            unsafe { __library.get(b"TRITONSERVER_ErrorMessage\0") }.map(|sym| *sym)?;
        let TRITONSERVER_LogIsEnabled =
            unsafe { __library.get(b"TRITONSERVER_LogIsEnabled\0") }.map(|sym| *sym)?;
        let TRITONSERVER_LogMessage =
            unsafe { __library.get(b"TRITONSERVER_LogMessage\0") }.map(|sym| *sym)?;
        let TRITONSERVER_MessageNewFromSerializedJson =
            unsafe { __library.get(b"TRITONSERVER_MessageNewFromSerializedJson\0") }.map(|sym| *sym)?;
        let TRITONSERVER_MessageSerializeToJson =
            unsafe { __library.get(b"TRITONSERVER_MessageSerializeToJson\0") }.map(|sym| *sym)?;
        let TRITONSERVER_MessageDelete =
            unsafe { __library.get(b"TRITONSERVER_MessageDelete\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ApiVersion =
            unsafe { __library.get(b"TRITONBACKEND_ApiVersion\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_BackendName =
            unsafe { __library.get(b"TRITONBACKEND_BackendName\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_BackendConfig =
            unsafe { __library.get(b"TRITONBACKEND_BackendConfig\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_BackendState =
            unsafe { __library.get(b"TRITONBACKEND_BackendState\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_BackendSetState =
            unsafe { __library.get(b"TRITONBACKEND_BackendSetState\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelName =
            unsafe { __library.get(b"TRITONBACKEND_ModelName\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelVersion =
            unsafe { __library.get(b"TRITONBACKEND_ModelVersion\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelRepository =
            unsafe { __library.get(b"TRITONBACKEND_ModelRepository\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelConfig =
            unsafe { __library.get(b"TRITONBACKEND_ModelConfig\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelAutoCompleteConfig =
            unsafe { __library.get(b"TRITONBACKEND_ModelAutoCompleteConfig\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelSetConfig =
            unsafe { __library.get(b"TRITONBACKEND_ModelSetConfig\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelBackend =
            unsafe { __library.get(b"TRITONBACKEND_ModelBackend\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelState =
            unsafe { __library.get(b"TRITONBACKEND_ModelState\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelSetState =
            unsafe { __library.get(b"TRITONBACKEND_ModelSetState\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelInstanceName =
            unsafe { __library.get(b"TRITONBACKEND_ModelInstanceName\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelInstanceKind =
            unsafe { __library.get(b"TRITONBACKEND_ModelInstanceKind\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelInstanceDeviceId =
            unsafe { __library.get(b"TRITONBACKEND_ModelInstanceDeviceId\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelInstanceModel =
            unsafe { __library.get(b"TRITONBACKEND_ModelInstanceModel\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelInstanceState =
            unsafe { __library.get(b"TRITONBACKEND_ModelInstanceState\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelInstanceSetState =
            unsafe { __library.get(b"TRITONBACKEND_ModelInstanceSetState\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelInstanceReportStatistics =
            unsafe { __library.get(b"TRITONBACKEND_ModelInstanceReportStatistics\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ModelInstanceReportBatchStatistics =
            unsafe { __library.get(b"TRITONBACKEND_ModelInstanceReportBatchStatistics\0") }
                .map(|sym| *sym)?;
        let TRITONBACKEND_RequestId =
            unsafe { __library.get(b"TRITONBACKEND_RequestId\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_RequestInputCount =
            unsafe { __library.get(b"TRITONBACKEND_RequestInputCount\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_RequestInputByIndex =
            unsafe { __library.get(b"TRITONBACKEND_RequestInputByIndex\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_RequestOutputCount =
            unsafe { __library.get(b"TRITONBACKEND_RequestOutputCount\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_RequestOutputName =
            unsafe { __library.get(b"TRITONBACKEND_RequestOutputName\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_RequestRelease =
            unsafe { __library.get(b"TRITONBACKEND_RequestRelease\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_InputProperties =
            unsafe { __library.get(b"TRITONBACKEND_InputProperties\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_InputBuffer =
            unsafe { __library.get(b"TRITONBACKEND_InputBuffer\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ResponseNew =
            unsafe { __library.get(b"TRITONBACKEND_ResponseNew\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ResponseDelete =
            unsafe { __library.get(b"TRITONBACKEND_ResponseDelete\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ResponseOutput =
            unsafe { __library.get(b"TRITONBACKEND_ResponseOutput\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_OutputBuffer =
            unsafe { __library.get(b"TRITONBACKEND_OutputBuffer\0") }.map(|sym| *sym)?;
        let TRITONBACKEND_ResponseSend =
            unsafe { __library.get(b"TRITONBACKEND_ResponseSend\0") }.map(|sym| *sym)?;
        Ok(Required {
            __library,
            TRITONSERVER_ErrorNew,
            TRITONSERVER_ErrorDelete,
            TRITONSERVER_ErrorCode,
            TRITONSERVER_ErrorMessage,
            TRITONSERVER_LogIsEnabled,
            TRITONSERVER_LogMessage,
            TRITONSERVER_MessageNewFromSerializedJson,
            TRITONSERVER_MessageSerializeToJson,
            TRITONSERVER_MessageDelete,
            TRITONBACKEND_ApiVersion,
            TRITONBACKEND_BackendName,
            TRITONBACKEND_BackendConfig,
            TRITONBACKEND_BackendState,
            TRITONBACKEND_BackendSetState,
            TRITONBACKEND_ModelName,
            TRITONBACKEND_ModelVersion,
            TRITONBACKEND_ModelRepository,
            TRITONBACKEND_ModelConfig,
            TRITONBACKEND_ModelAutoCompleteConfig,
            TRITONBACKEND_ModelSetConfig,
            TRITONBACKEND_ModelBackend,
            TRITONBACKEND_ModelState,
            TRITONBACKEND_ModelSetState,
            TRITONBACKEND_ModelInstanceName,
            TRITONBACKEND_ModelInstanceKind,
            TRITONBACKEND_ModelInstanceDeviceId,
            TRITONBACKEND_ModelInstanceModel,
            TRITONBACKEND_ModelInstanceState,
            TRITONBACKEND_ModelInstanceSetState,
            TRITONBACKEND_ModelInstanceReportStatistics,
            TRITONBACKEND_ModelInstanceReportBatchStatistics,
            TRITONBACKEND_RequestId,
            TRITONBACKEND_RequestInputCount,
            TRITONBACKEND_RequestInputByIndex,
            TRITONBACKEND_RequestOutputCount,
            TRITONBACKEND_RequestOutputName,
            TRITONBACKEND_RequestRelease,
            TRITONBACKEND_InputProperties,
            TRITONBACKEND_InputBuffer,
            TRITONBACKEND_ResponseNew,
            TRITONBACKEND_ResponseDelete,
            TRITONBACKEND_ResponseOutput,
            TRITONBACKEND_OutputBuffer,
            TRITONBACKEND_ResponseSend,
        })
    }
    #[doc = " Makes an error; `message` is copied. The caller owns the result, which is never NULL."]
    pub unsafe fn TRITONSERVER_ErrorNew(
        &self,
        code: TRITONSERVER_Error_Code,
        message: *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONSERVER_ErrorNew)(code, message) }
    }
    #[doc = " Frees an error."]
    pub unsafe fn TRITONSERVER_ErrorDelete(&self, error: *mut TRITONSERVER_Error) {
        unsafe { (self.TRITONSERVER_ErrorDelete)(error) }
    }
    #[doc = " The class of an error."]
    pub unsafe fn TRITONSERVER_ErrorCode(&self, error: *mut TRITONSERVER_Error) -> TRITONSERVER_Error_Code {
        unsafe { (self.TRITONSERVER_ErrorCode)(error) }
    }
    #[doc = " The text of an error."]
    pub unsafe fn TRITONSERVER_ErrorMessage(
        &self,
        error: *mut TRITONSERVER_Error,
    ) -> *const ::std::os::raw::c_char {
        unsafe { (self.TRITONSERVER_ErrorMessage)(error) }
    }
    #[doc = " Whether the server prints messages of a level."]
    pub unsafe fn TRITONSERVER_LogIsEnabled(&self, level: TRITONSERVER_LogLevel) -> bool {
        unsafe { (self.TRITONSERVER_LogIsEnabled)(level) }
    }
    #[doc = " Prints one message into the server's log."]
    pub unsafe fn TRITONSERVER_LogMessage(
        &self,
        level: TRITONSERVER_LogLevel,
        file: *const ::std::os::raw::c_char,
        line: ::std::os::raw::c_int,
        message: *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONSERVER_LogMessage)(level, file, line, message) }
    }
    #[doc = " Makes a message from `size` bytes of JSON, which are copied. The caller deletes it."]
    pub unsafe fn TRITONSERVER_MessageNewFromSerializedJson(
        &self,
        message: *mut *mut TRITONSERVER_Message,
        json: *const ::std::os::raw::c_char,
        size: usize,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONSERVER_MessageNewFromSerializedJson)(message, json, size) }
    }
    #[doc = " The JSON of a message: `size` bytes without a terminator, valid as long as the message."]
    pub unsafe fn TRITONSERVER_MessageSerializeToJson(
        &self,
        message: *mut TRITONSERVER_Message,
        json: *mut *const ::std::os::raw::c_char,
        size: *mut usize,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONSERVER_MessageSerializeToJson)(message, json, size) }
    }
    #[doc = " Frees a message that the caller owns."]
    pub unsafe fn TRITONSERVER_MessageDelete(
        &self,
        message: *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONSERVER_MessageDelete)(message) }
    }
    #[doc = " The version of the API that the server offers. A higher minor only adds functions."]
    pub unsafe fn TRITONBACKEND_ApiVersion(
        &self,
        major: *mut u32,
        minor: *mut u32,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ApiVersion)(major, minor) }
    }
    #[doc = " The name that models use for this backend."]
    pub unsafe fn TRITONBACKEND_BackendName(
        &self,
        backend: *mut TRITONBACKEND_Backend,
        name: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_BackendName)(backend, name) }
    }
    #[doc = " The settings from the command line, `{\"cmdline\": {key: text}}`. The message stays the server's."]
    pub unsafe fn TRITONBACKEND_BackendConfig(
        &self,
        backend: *mut TRITONBACKEND_Backend,
        config: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_BackendConfig)(backend, config) }
    }
    #[doc = " The pointer that was attached to the backend; NULL when there is none."]
    pub unsafe fn TRITONBACKEND_BackendState(
        &self,
        backend: *mut TRITONBACKEND_Backend,
        state: *mut *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_BackendState)(backend, state) }
    }
    #[doc = " Attaches a pointer that only the backend reads."]
    pub unsafe fn TRITONBACKEND_BackendSetState(
        &self,
        backend: *mut TRITONBACKEND_Backend,
        state: *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_BackendSetState)(backend, state) }
    }
    #[doc = " The name of the model."]
    pub unsafe fn TRITONBACKEND_ModelName(
        &self,
        model: *mut TRITONBACKEND_Model,
        name: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelName)(model, name) }
    }
    #[doc = " The version of the model: the number of its directory."]
    pub unsafe fn TRITONBACKEND_ModelVersion(
        &self,
        model: *mut TRITONBACKEND_Model,
        version: *mut u64,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelVersion)(model, version) }
    }
    #[doc = " The directory of the model, which holds a directory for each version."]
    pub unsafe fn TRITONBACKEND_ModelRepository(
        &self,
        model: *mut TRITONBACKEND_Model,
        type_: *mut TRITONBACKEND_ArtifactType,
        location: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelRepository)(model, type_, location) }
    }
    #[doc = " The model's configuration in the JSON format of `config_version` (only 1 exists). The caller deletes the message."]
    pub unsafe fn TRITONBACKEND_ModelConfig(
        &self,
        model: *mut TRITONBACKEND_Model,
        config_version: u32,
        config: *mut *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelConfig)(model, config_version, config) }
    }
    #[doc = " Whether the operator of the server wants the backend to fill what config.pbtxt leaves out."]
    pub unsafe fn TRITONBACKEND_ModelAutoCompleteConfig(
        &self,
        model: *mut TRITONBACKEND_Model,
        wanted: *mut bool,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelAutoCompleteConfig)(model, wanted) }
    }
    #[doc = " Replaces inputs, outputs, maximal batch size and, when none was chosen, the scheduler. Only while the model is being\n initialized. The message stays the caller's. The server may complete it: read the configuration again."]
    pub unsafe fn TRITONBACKEND_ModelSetConfig(
        &self,
        model: *mut TRITONBACKEND_Model,
        config_version: u32,
        config: *mut TRITONSERVER_Message,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelSetConfig)(model, config_version, config) }
    }
    #[doc = " The backend that the model names."]
    pub unsafe fn TRITONBACKEND_ModelBackend(
        &self,
        model: *mut TRITONBACKEND_Model,
        backend: *mut *mut TRITONBACKEND_Backend,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelBackend)(model, backend) }
    }
    #[doc = " The pointer that the backend attached to the model; NULL when there is none."]
    pub unsafe fn TRITONBACKEND_ModelState(
        &self,
        model: *mut TRITONBACKEND_Model,
        state: *mut *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelState)(model, state) }
    }
    #[doc = " Attaches a pointer that only the backend reads."]
    pub unsafe fn TRITONBACKEND_ModelSetState(
        &self,
        model: *mut TRITONBACKEND_Model,
        state: *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelSetState)(model, state) }
    }
    #[doc = " The name of the instance."]
    pub unsafe fn TRITONBACKEND_ModelInstanceName(
        &self,
        instance: *mut TRITONBACKEND_ModelInstance,
        name: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelInstanceName)(instance, name) }
    }
    #[doc = " What the instance runs on."]
    pub unsafe fn TRITONBACKEND_ModelInstanceKind(
        &self,
        instance: *mut TRITONBACKEND_ModelInstance,
        kind: *mut TRITONSERVER_InstanceGroupKind,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelInstanceKind)(instance, kind) }
    }
    #[doc = " The number of the GPU, for instances that run on one."]
    pub unsafe fn TRITONBACKEND_ModelInstanceDeviceId(
        &self,
        instance: *mut TRITONBACKEND_ModelInstance,
        device: *mut i32,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelInstanceDeviceId)(instance, device) }
    }
    #[doc = " The model that the instance is a copy of."]
    pub unsafe fn TRITONBACKEND_ModelInstanceModel(
        &self,
        instance: *mut TRITONBACKEND_ModelInstance,
        model: *mut *mut TRITONBACKEND_Model,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelInstanceModel)(instance, model) }
    }
    #[doc = " The pointer that the backend attached to the instance; NULL when there is none."]
    pub unsafe fn TRITONBACKEND_ModelInstanceState(
        &self,
        instance: *mut TRITONBACKEND_ModelInstance,
        state: *mut *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelInstanceState)(instance, state) }
    }
    #[doc = " Attaches a pointer that only the backend reads."]
    pub unsafe fn TRITONBACKEND_ModelInstanceSetState(
        &self,
        instance: *mut TRITONBACKEND_ModelInstance,
        state: *mut ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ModelInstanceSetState)(instance, state) }
    }
    #[doc = " Adds one request to the model's statistics. Before the request is released. Times are nanoseconds of the monotonic\n clock: start, start and end of the computation, end; they are ignored for a request that failed."]
    pub unsafe fn TRITONBACKEND_ModelInstanceReportStatistics(
        &self,
        instance: *mut TRITONBACKEND_ModelInstance,
        request: *mut TRITONBACKEND_Request,
        success: bool,
        exec_start: u64,
        compute_start: u64,
        compute_end: u64,
        exec_end: u64,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONBACKEND_ModelInstanceReportStatistics)(
                instance,
                request,
                success,
                exec_start,
                compute_start,
                compute_end,
                exec_end,
            )
        }
    }
    #[doc = " Adds one execution to the model's statistics. `batch_size` is the sum over the requests that ran together."]
    pub unsafe fn TRITONBACKEND_ModelInstanceReportBatchStatistics(
        &self,
        instance: *mut TRITONBACKEND_ModelInstance,
        batch_size: u64,
        exec_start: u64,
        compute_start: u64,
        compute_end: u64,
        exec_end: u64,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONBACKEND_ModelInstanceReportBatchStatistics)(
                instance,
                batch_size,
                exec_start,
                compute_start,
                compute_end,
                exec_end,
            )
        }
    }
    #[doc = " What the client calls the request; may be NULL or empty."]
    pub unsafe fn TRITONBACKEND_RequestId(
        &self,
        request: *mut TRITONBACKEND_Request,
        id: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_RequestId)(request, id) }
    }
    #[doc = " Number of tensors in the request."]
    pub unsafe fn TRITONBACKEND_RequestInputCount(
        &self,
        request: *mut TRITONBACKEND_Request,
        count: *mut u32,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_RequestInputCount)(request, count) }
    }
    #[doc = " The tensor at `index`. The order may differ between requests, even inside one batch."]
    pub unsafe fn TRITONBACKEND_RequestInputByIndex(
        &self,
        request: *mut TRITONBACKEND_Request,
        index: u32,
        input: *mut *mut TRITONBACKEND_Input,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_RequestInputByIndex)(request, index, input) }
    }
    #[doc = " Number of tensors that the client wants back."]
    pub unsafe fn TRITONBACKEND_RequestOutputCount(
        &self,
        request: *mut TRITONBACKEND_Request,
        count: *mut u32,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_RequestOutputCount)(request, count) }
    }
    #[doc = " Name of a tensor that the client wants back."]
    pub unsafe fn TRITONBACKEND_RequestOutputName(
        &self,
        request: *mut TRITONBACKEND_Request,
        index: u32,
        name: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_RequestOutputName)(request, index, name) }
    }
    #[doc = " Gives the request back. On success it is gone with all that came from it; on an error it is still the caller's."]
    pub unsafe fn TRITONBACKEND_RequestRelease(
        &self,
        request: *mut TRITONBACKEND_Request,
        flags: u32,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_RequestRelease)(request, flags) }
    }
    #[doc = " Describes a tensor. `shape` holds `dims` extents, the batch dimension first when the model is batched; `bytes` is\n what arrived, in `buffers` pieces. Every out pointer may be NULL."]
    pub unsafe fn TRITONBACKEND_InputProperties(
        &self,
        input: *mut TRITONBACKEND_Input,
        name: *mut *const ::std::os::raw::c_char,
        type_: *mut TRITONSERVER_DataType,
        shape: *mut *const i64,
        dims: *mut u32,
        bytes: *mut u64,
        buffers: *mut u32,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_InputProperties)(input, name, type_, shape, dims, bytes, buffers) }
    }
    #[doc = " One piece of a tensor. `memory` and `memory_id` say on the way in where the caller would like it, and on the way out\n where it is."]
    pub unsafe fn TRITONBACKEND_InputBuffer(
        &self,
        input: *mut TRITONBACKEND_Input,
        index: u32,
        buffer: *mut *const ::std::os::raw::c_void,
        bytes: *mut u64,
        memory: *mut TRITONSERVER_MemoryType,
        memory_id: *mut i64,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_InputBuffer)(input, index, buffer, bytes, memory, memory_id) }
    }
    #[doc = " Makes a response. All its outputs must have their buffers before the next response of the same request is made; it\n may be sent after the request was released."]
    pub unsafe fn TRITONBACKEND_ResponseNew(
        &self,
        response: *mut *mut TRITONBACKEND_Response,
        request: *mut TRITONBACKEND_Request,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ResponseNew)(response, request) }
    }
    #[doc = " Frees a response that will not be sent."]
    pub unsafe fn TRITONBACKEND_ResponseDelete(
        &self,
        response: *mut TRITONBACKEND_Response,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ResponseDelete)(response) }
    }
    #[doc = " Adds a tensor. Not from two threads at once."]
    pub unsafe fn TRITONBACKEND_ResponseOutput(
        &self,
        response: *mut TRITONBACKEND_Response,
        output: *mut *mut TRITONBACKEND_Output,
        name: *const ::std::os::raw::c_char,
        type_: TRITONSERVER_DataType,
        shape: *const i64,
        dims: u32,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ResponseOutput)(response, output, name, type_, shape, dims) }
    }
    #[doc = " Memory for a tensor of a response; `memory` and `memory_id` as in TRITONBACKEND_InputBuffer."]
    pub unsafe fn TRITONBACKEND_OutputBuffer(
        &self,
        output: *mut TRITONBACKEND_Output,
        buffer: *mut *mut ::std::os::raw::c_void,
        bytes: u64,
        memory: *mut TRITONSERVER_MemoryType,
        memory_id: *mut i64,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_OutputBuffer)(output, buffer, bytes, memory, memory_id) }
    }
    #[doc = " Sends a response, which is gone whatever the result. `error`, when not NULL, is sent in place of the outputs and\n stays the caller's."]
    pub unsafe fn TRITONBACKEND_ResponseSend(
        &self,
        response: *mut TRITONBACKEND_Response,
        flags: u32,
        error: *mut TRITONSERVER_Error,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONBACKEND_ResponseSend)(response, flags, error) }
    }
}

#[doc = " Answers to what the server asks about a backend before it places models."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONBACKEND_BackendAttribute {
    _unused: [u8; 0],
}
#[doc = " What the server writes of one request where it traces."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONSERVER_InferenceTrace {
    _unused: [u8; 0],
}
#[doc = " A name and a value."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONSERVER_Parameter {
    _unused: [u8; 0],
}
#[doc = " Metrics of one name on the server's metrics port."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONSERVER_MetricFamily {
    _unused: [u8; 0],
}
#[doc = " One metric of a family, told apart by its labels."]
#[repr(C)]
#[derive(Debug)]
pub struct TRITONSERVER_Metric {
    _unused: [u8; 0],
}
impl TRITONSERVER_ParameterType {
    pub const TRITONSERVER_PARAMETER_STRING: TRITONSERVER_ParameterType = TRITONSERVER_ParameterType(0);
}
#[repr(transparent)]
#[doc = " Types of the value of a parameter."]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct TRITONSERVER_ParameterType(pub ::std::os::raw::c_uint);
impl TRITONSERVER_MetricKind {
    #[doc = " A number that only grows."]
    pub const TRITONSERVER_METRIC_KIND_COUNTER: TRITONSERVER_MetricKind = TRITONSERVER_MetricKind(0);
}
#[repr(transparent)]
#[doc = " Kinds of metrics."]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct TRITONSERVER_MetricKind(pub ::std::os::raw::c_uint);
impl TRITONSERVER_RequestFlag {
    #[doc = " The first request of a sequence."]
    pub const TRITONSERVER_REQUEST_FLAG_SEQUENCE_START: TRITONSERVER_RequestFlag =
        TRITONSERVER_RequestFlag(1);
    #[doc = " The last request of a sequence."]
    pub const TRITONSERVER_REQUEST_FLAG_SEQUENCE_END: TRITONSERVER_RequestFlag = TRITONSERVER_RequestFlag(2);
}
#[repr(transparent)]
#[doc = " Bits of TRITONBACKEND_RequestFlags."]
#[derive(Debug, Copy, Clone, Hash, PartialEq, Eq)]
pub struct TRITONSERVER_RequestFlag(pub ::std::os::raw::c_uint);
pub struct Newer {
    __library: ::libloading::Library,
    pub TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup: Result<
        unsafe extern "C" fn(
            attributes: *mut TRITONBACKEND_BackendAttribute,
            kind: TRITONSERVER_InstanceGroupKind,
            count: u64,
            devices: *const u64,
            device_count: u64,
        ) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading: Result<
        unsafe extern "C" fn(
            attributes: *mut TRITONBACKEND_BackendAttribute,
            enabled: bool,
        ) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONBACKEND_RequestCorrelationId: Result<
        unsafe extern "C" fn(request: *mut TRITONBACKEND_Request, id: *mut u64) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONBACKEND_RequestCorrelationIdString: Result<
        unsafe extern "C" fn(
            request: *mut TRITONBACKEND_Request,
            id: *mut *const ::std::os::raw::c_char,
        ) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONBACKEND_RequestFlags: Result<
        unsafe extern "C" fn(request: *mut TRITONBACKEND_Request, flags: *mut u32) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONBACKEND_RequestIsCancelled: Result<
        unsafe extern "C" fn(
            request: *mut TRITONBACKEND_Request,
            cancelled: *mut bool,
        ) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONBACKEND_RequestParameterCount: Result<
        unsafe extern "C" fn(request: *mut TRITONBACKEND_Request, count: *mut u32) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONBACKEND_RequestParameter: Result<
        unsafe extern "C" fn(
            request: *mut TRITONBACKEND_Request,
            index: u32,
            name: *mut *const ::std::os::raw::c_char,
            type_: *mut TRITONSERVER_ParameterType,
            value: *mut *const ::std::os::raw::c_void,
        ) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONBACKEND_RequestTrace: Result<
        unsafe extern "C" fn(
            request: *mut TRITONBACKEND_Request,
            trace: *mut *mut TRITONSERVER_InferenceTrace,
        ) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONSERVER_InferenceTraceReportActivity: Result<
        unsafe extern "C" fn(
            trace: *mut TRITONSERVER_InferenceTrace,
            timestamp_ns: u64,
            activity_name: *const ::std::os::raw::c_char,
        ) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONSERVER_ParameterNew: Result<
        unsafe extern "C" fn(
            name: *const ::std::os::raw::c_char,
            type_: TRITONSERVER_ParameterType,
            value: *const ::std::os::raw::c_void,
        ) -> *mut TRITONSERVER_Parameter,
        ::libloading::Error,
    >,
    pub TRITONSERVER_ParameterDelete:
        Result<unsafe extern "C" fn(parameter: *mut TRITONSERVER_Parameter), ::libloading::Error>,
    pub TRITONSERVER_MetricFamilyNew: Result<
        unsafe extern "C" fn(
            family: *mut *mut TRITONSERVER_MetricFamily,
            kind: TRITONSERVER_MetricKind,
            name: *const ::std::os::raw::c_char,
            description: *const ::std::os::raw::c_char,
        ) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONSERVER_MetricNew: Result<
        unsafe extern "C" fn(
            metric: *mut *mut TRITONSERVER_Metric,
            family: *mut TRITONSERVER_MetricFamily,
            labels: *mut *const TRITONSERVER_Parameter,
            label_count: u64,
        ) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONSERVER_MetricDelete: Result<
        unsafe extern "C" fn(metric: *mut TRITONSERVER_Metric) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
    pub TRITONSERVER_MetricIncrement: Result<
        unsafe extern "C" fn(metric: *mut TRITONSERVER_Metric, value: f64) -> *mut TRITONSERVER_Error,
        ::libloading::Error,
    >,
}
impl Newer {
    pub unsafe fn new<P>(path: P) -> Result<Self, ::libloading::Error>
    where
        P: AsRef<::std::ffi::OsStr>,
    {
        let path = path.as_ref();
        let library = unsafe { ::libloading::Library::new(path) }?;
        unsafe { Self::from_library(library) }
    }
    pub unsafe fn from_library<L>(library: L) -> Result<Self, ::libloading::Error>
    where
        L: Into<::libloading::Library>,
    {
        let __library = library.into();
        let TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup =
            unsafe { __library.get(b"TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup\0") }
                .map(|sym| *sym);
        let TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading =
            unsafe { __library.get(b"TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading\0") }
                .map(|sym| *sym);
        let TRITONBACKEND_RequestCorrelationId =
            unsafe { __library.get(b"TRITONBACKEND_RequestCorrelationId\0") }.map(|sym| *sym);
        let TRITONBACKEND_RequestCorrelationIdString =
            unsafe { __library.get(b"TRITONBACKEND_RequestCorrelationIdString\0") }.map(|sym| *sym);
        let TRITONBACKEND_RequestFlags =
            unsafe { __library.get(b"TRITONBACKEND_RequestFlags\0") }.map(|sym| *sym);
        let TRITONBACKEND_RequestIsCancelled =
            unsafe { __library.get(b"TRITONBACKEND_RequestIsCancelled\0") }.map(|sym| *sym);
        let TRITONBACKEND_RequestParameterCount =
            unsafe { __library.get(b"TRITONBACKEND_RequestParameterCount\0") }.map(|sym| *sym);
        let TRITONBACKEND_RequestParameter =
            unsafe { __library.get(b"TRITONBACKEND_RequestParameter\0") }.map(|sym| *sym);
        let TRITONBACKEND_RequestTrace =
            unsafe { __library.get(b"TRITONBACKEND_RequestTrace\0") }.map(|sym| *sym);
        let TRITONSERVER_InferenceTraceReportActivity =
            unsafe { __library.get(b"TRITONSERVER_InferenceTraceReportActivity\0") }.map(|sym| *sym);
        let TRITONSERVER_ParameterNew =
            unsafe { __library.get(b"TRITONSERVER_ParameterNew\0") }.map(|sym| *sym);
        let TRITONSERVER_ParameterDelete =
            unsafe { __library.get(b"TRITONSERVER_ParameterDelete\0") }.map(|sym| *sym);
        let TRITONSERVER_MetricFamilyNew =
            unsafe { __library.get(b"TRITONSERVER_MetricFamilyNew\0") }.map(|sym| *sym);
        let TRITONSERVER_MetricNew = unsafe { __library.get(b"TRITONSERVER_MetricNew\0") }.map(|sym| *sym);
        let TRITONSERVER_MetricDelete =
            unsafe { __library.get(b"TRITONSERVER_MetricDelete\0") }.map(|sym| *sym);
        let TRITONSERVER_MetricIncrement =
            unsafe { __library.get(b"TRITONSERVER_MetricIncrement\0") }.map(|sym| *sym);
        Ok(Newer {
            __library,
            TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup,
            TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading,
            TRITONBACKEND_RequestCorrelationId,
            TRITONBACKEND_RequestCorrelationIdString,
            TRITONBACKEND_RequestFlags,
            TRITONBACKEND_RequestIsCancelled,
            TRITONBACKEND_RequestParameterCount,
            TRITONBACKEND_RequestParameter,
            TRITONBACKEND_RequestTrace,
            TRITONSERVER_InferenceTraceReportActivity,
            TRITONSERVER_ParameterNew,
            TRITONSERVER_ParameterDelete,
            TRITONSERVER_MetricFamilyNew,
            TRITONSERVER_MetricNew,
            TRITONSERVER_MetricDelete,
            TRITONSERVER_MetricIncrement,
        })
    }
    #[doc = " Where models go that do not say it themselves; the first call is the most preferred. `count` 0 and `devices` NULL\n stand for the server's defaults."]
    pub unsafe fn TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        &self,
        attributes: *mut TRITONBACKEND_BackendAttribute,
        kind: TRITONSERVER_InstanceGroupKind,
        count: u64,
        devices: *const u64,
        device_count: u64,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self
                .TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup
                .as_ref()
                .expect("Expected function, got error."))(
                attributes, kind, count, devices, device_count
            )
        }
    }
    #[doc = " Whether instances of a model may be initialized at the same time."]
    pub unsafe fn TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
        &self,
        attributes: *mut TRITONBACKEND_BackendAttribute,
        enabled: bool,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self
                .TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading
                .as_ref()
                .expect("Expected function, got error."))(attributes, enabled)
        }
    }
    #[doc = " Which sequence the request belongs to; 0 for none. An error where sequences are named by text."]
    pub unsafe fn TRITONBACKEND_RequestCorrelationId(
        &self,
        request: *mut TRITONBACKEND_Request,
        id: *mut u64,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONBACKEND_RequestCorrelationId.as_ref().expect("Expected function, got error."))(
                request, id,
            )
        }
    }
    #[doc = " The same where sequences are named by text; empty for none. An error where they are named by numbers."]
    pub unsafe fn TRITONBACKEND_RequestCorrelationIdString(
        &self,
        request: *mut TRITONBACKEND_Request,
        id: *mut *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONBACKEND_RequestCorrelationIdString.as_ref().expect("Expected function, got error."))(
                request, id,
            )
        }
    }
    #[doc = " Where the request stands in its sequence."]
    pub unsafe fn TRITONBACKEND_RequestFlags(
        &self,
        request: *mut TRITONBACKEND_Request,
        flags: *mut u32,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONBACKEND_RequestFlags.as_ref().expect("Expected function, got error."))(request, flags)
        }
    }
    #[doc = " Whether the client no longer waits for the request."]
    pub unsafe fn TRITONBACKEND_RequestIsCancelled(
        &self,
        request: *mut TRITONBACKEND_Request,
        cancelled: *mut bool,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONBACKEND_RequestIsCancelled.as_ref().expect("Expected function, got error."))(
                request, cancelled,
            )
        }
    }
    #[doc = " How many parameters the request has: those that its client gave it, behind them the headers that the server hands\n  on."]
    pub unsafe fn TRITONBACKEND_RequestParameterCount(
        &self,
        request: *mut TRITONBACKEND_Request,
        count: *mut u32,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONBACKEND_RequestParameterCount.as_ref().expect("Expected function, got error."))(
                request, count,
            )
        }
    }
    #[doc = " Name, type and value (of a string, its text) of a parameter; they live as long as the request."]
    pub unsafe fn TRITONBACKEND_RequestParameter(
        &self,
        request: *mut TRITONBACKEND_Request,
        index: u32,
        name: *mut *const ::std::os::raw::c_char,
        type_: *mut TRITONSERVER_ParameterType,
        value: *mut *const ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONBACKEND_RequestParameter.as_ref().expect("Expected function, got error."))(
                request, index, name, type_, value,
            )
        }
    }
    #[doc = " The trace of a request, which lives as long as the request; NULL where the server does not trace it. An error where\n  the server was built without tracing."]
    pub unsafe fn TRITONBACKEND_RequestTrace(
        &self,
        request: *mut TRITONBACKEND_Request,
        trace: *mut *mut TRITONSERVER_InferenceTrace,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONBACKEND_RequestTrace.as_ref().expect("Expected function, got error."))(request, trace)
        }
    }
    #[doc = " Adds an event, at a time by the clock of statistics. OpenTelemetry gets a span from `NAME_START` to `NAME_END`."]
    pub unsafe fn TRITONSERVER_InferenceTraceReportActivity(
        &self,
        trace: *mut TRITONSERVER_InferenceTrace,
        timestamp_ns: u64,
        activity_name: *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONSERVER_InferenceTraceReportActivity.as_ref().expect("Expected function, got error."))(
                trace,
                timestamp_ns,
                activity_name,
            )
        }
    }
    #[doc = " Makes a parameter; name and value (for a string, its text) are copied. NULL for a type that the server does not\n  know."]
    pub unsafe fn TRITONSERVER_ParameterNew(
        &self,
        name: *const ::std::os::raw::c_char,
        type_: TRITONSERVER_ParameterType,
        value: *const ::std::os::raw::c_void,
    ) -> *mut TRITONSERVER_Parameter {
        unsafe {
            (self.TRITONSERVER_ParameterNew.as_ref().expect("Expected function, got error."))(
                name, type_, value,
            )
        }
    }
    #[doc = " Frees a parameter."]
    pub unsafe fn TRITONSERVER_ParameterDelete(&self, parameter: *mut TRITONSERVER_Parameter) {
        unsafe {
            (self.TRITONSERVER_ParameterDelete.as_ref().expect("Expected function, got error."))(parameter)
        }
    }
    #[doc = " Makes a family of metrics, or another handle to the one of this name. An error if the server has no metrics."]
    pub unsafe fn TRITONSERVER_MetricFamilyNew(
        &self,
        family: *mut *mut TRITONSERVER_MetricFamily,
        kind: TRITONSERVER_MetricKind,
        name: *const ::std::os::raw::c_char,
        description: *const ::std::os::raw::c_char,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONSERVER_MetricFamilyNew.as_ref().expect("Expected function, got error."))(
                family,
                kind,
                name,
                description,
            )
        }
    }
    #[doc = " Makes a metric that starts at 0, or another handle to the one with these labels, which are copied."]
    pub unsafe fn TRITONSERVER_MetricNew(
        &self,
        metric: *mut *mut TRITONSERVER_Metric,
        family: *mut TRITONSERVER_MetricFamily,
        labels: *mut *const TRITONSERVER_Parameter,
        label_count: u64,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONSERVER_MetricNew.as_ref().expect("Expected function, got error."))(
                metric,
                family,
                labels,
                label_count,
            )
        }
    }
    #[doc = " Frees a handle to a metric; it is no longer shown when that was the last one."]
    pub unsafe fn TRITONSERVER_MetricDelete(
        &self,
        metric: *mut TRITONSERVER_Metric,
    ) -> *mut TRITONSERVER_Error {
        unsafe { (self.TRITONSERVER_MetricDelete.as_ref().expect("Expected function, got error."))(metric) }
    }
    #[doc = " Adds to a metric; from any thread."]
    pub unsafe fn TRITONSERVER_MetricIncrement(
        &self,
        metric: *mut TRITONSERVER_Metric,
        value: f64,
    ) -> *mut TRITONSERVER_Error {
        unsafe {
            (self.TRITONSERVER_MetricIncrement.as_ref().expect("Expected function, got error."))(
                metric, value,
            )
        }
    }
}
