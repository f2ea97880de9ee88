/*
 * The part of Triton's C API that Gesso calls, as of backend API 1.0. Functions that came later are in
 * triton_newer.h.
 *
 * These are declarations of our own: names, numbers and signatures are Triton's, everything else is ours.
 * `crates/plugin/src/triton/sys.rs` is made from both files by bindgen (`cargo test --test project` compares and can
 * rewrite it).
 *
 * Rules that hold everywhere unless a function says otherwise:
 * - A function returns NULL when it succeeded, else an error that the caller must delete.
 * - Text that comes out belongs to the object it was asked from and lives as long as that object.
 * - An out parameter is written only on success.
 */
#ifndef GESSO_TRITON_H
#define GESSO_TRITON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Opaque objects -------------------------------------------------------------------------------------------- */

/** What went wrong in a call: a code and a text. */
typedef struct TRITONSERVER_Error TRITONSERVER_Error;
/** A JSON document. */
typedef struct TRITONSERVER_Message TRITONSERVER_Message;
/** This plugin, once per loaded library. */
typedef struct TRITONBACKEND_Backend TRITONBACKEND_Backend;
/** One version of one model that names this backend. */
typedef struct TRITONBACKEND_Model TRITONBACKEND_Model;
/** One copy of a model on one device; executes one batch at a time. */
typedef struct TRITONBACKEND_ModelInstance TRITONBACKEND_ModelInstance;
/** What one client sent. */
typedef struct TRITONBACKEND_Request TRITONBACKEND_Request;
/** One tensor of a request. Lives as long as the request. */
typedef struct TRITONBACKEND_Input TRITONBACKEND_Input;
/** What one client gets back. */
typedef struct TRITONBACKEND_Response TRITONBACKEND_Response;
/** One tensor of a response. Lives as long as the response. */
typedef struct TRITONBACKEND_Output TRITONBACKEND_Output;

/* ---- Enumerations: a server may send numbers that are not listed here ------------------------------------------ */

/** Classes of errors. CANCELLED came after backend API 1.0: older servers call it unknown. */
typedef enum TRITONSERVER_Error_Code {
  TRITONSERVER_ERROR_UNKNOWN = 0,
  TRITONSERVER_ERROR_INTERNAL = 1,
  TRITONSERVER_ERROR_NOT_FOUND = 2,
  TRITONSERVER_ERROR_INVALID_ARG = 3,
  TRITONSERVER_ERROR_UNAVAILABLE = 4,
  TRITONSERVER_ERROR_UNSUPPORTED = 5,
  TRITONSERVER_ERROR_ALREADY_EXISTS = 6,
  TRITONSERVER_ERROR_CANCELLED = 7
} TRITONSERVER_Error_Code;

/** Levels of the server's log. */
typedef enum TRITONSERVER_LogLevel {
  TRITONSERVER_LOG_INFO = 0,
  TRITONSERVER_LOG_WARN = 1,
  TRITONSERVER_LOG_ERROR = 2,
  TRITONSERVER_LOG_VERBOSE = 3
} TRITONSERVER_LogLevel;

/**
 * Element types of tensors. Elements of BYTES have any length: each is a little-endian 4-byte length and that many
 * bytes.
 */
typedef enum TRITONSERVER_DataType {
  TRITONSERVER_TYPE_INVALID = 0,
  TRITONSERVER_TYPE_BOOL = 1,
  TRITONSERVER_TYPE_UINT8 = 2,
  TRITONSERVER_TYPE_UINT16 = 3,
  TRITONSERVER_TYPE_UINT32 = 4,
  TRITONSERVER_TYPE_UINT64 = 5,
  TRITONSERVER_TYPE_INT8 = 6,
  TRITONSERVER_TYPE_INT16 = 7,
  TRITONSERVER_TYPE_INT32 = 8,
  TRITONSERVER_TYPE_INT64 = 9,
  TRITONSERVER_TYPE_FP16 = 10,
  TRITONSERVER_TYPE_FP32 = 11,
  TRITONSERVER_TYPE_FP64 = 12,
  TRITONSERVER_TYPE_BYTES = 13,
  TRITONSERVER_TYPE_BF16 = 14
} TRITONSERVER_DataType;

/** Where the bytes of a buffer are. CPU_PINNED is host memory that is locked for transfers to a GPU. */
typedef enum TRITONSERVER_MemoryType {
  TRITONSERVER_MEMORY_CPU = 0,
  TRITONSERVER_MEMORY_CPU_PINNED = 1,
  TRITONSERVER_MEMORY_GPU = 2
} TRITONSERVER_MemoryType;

/** What an instance runs on. The numbers differ from those of the model configuration's protobuf. */
typedef enum TRITONSERVER_InstanceGroupKind {
  TRITONSERVER_INSTANCEGROUPKIND_AUTO = 0,
  TRITONSERVER_INSTANCEGROUPKIND_CPU = 1,
  TRITONSERVER_INSTANCEGROUPKIND_GPU = 2,
  TRITONSERVER_INSTANCEGROUPKIND_MODEL = 3
} TRITONSERVER_InstanceGroupKind;

/** Flags of TRITONBACKEND_RequestRelease. */
typedef enum TRITONSERVER_RequestReleaseFlag {
  /** Every part of the request is given back. */
  TRITONSERVER_REQUEST_RELEASE_ALL = 1
} TRITONSERVER_RequestReleaseFlag;

/** Flags of TRITONBACKEND_ResponseSend. */
typedef enum TRITONSERVER_ResponseCompleteFlag {
  /** No further response follows for this request. */
  TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
} TRITONSERVER_ResponseCompleteFlag;

/** How a model's files reach the backend. */
typedef enum TRITONBACKEND_ArtifactType {
  /** As a directory. */
  TRITONBACKEND_ARTIFACT_FILESYSTEM = 0
} TRITONBACKEND_ArtifactType;

/* ---- Errors, log, messages ------------------------------------------------------------------------------------- */

/** Makes an error; `message` is copied. The caller owns the result, which is never NULL. */
TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* message);
/** Frees an error. */
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error);
/** The class of an error. */
TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error* error);
/** The text of an error. */
const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error);

/** Whether the server prints messages of a level. */
bool TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level);
/** Prints one message into the server's log. */
TRITONSERVER_Error* TRITONSERVER_LogMessage(
    TRITONSERVER_LogLevel level, const char* file, int line, const char* message);

/** Makes a message from `size` bytes of JSON, which are copied. The caller deletes it. */
TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(
    TRITONSERVER_Message** message, const char* json, size_t size);
/** The JSON of a message: `size` bytes without a terminator, valid as long as the message. */
TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(
    TRITONSERVER_Message* message, const char** json, size_t* size);
/** Frees a message that the caller owns. */
TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message);

/* ---- Backend --------------------------------------------------------------------------------------------------- */

/** The version of the API that the server offers. A higher minor only adds functions. */
TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor);
/** The name that models use for this backend. */
TRITONSERVER_Error* TRITONBACKEND_BackendName(TRITONBACKEND_Backend* backend, const char** name);
/** The settings from the command line, `{"cmdline": {key: text}}`. The message stays the server's. */
TRITONSERVER_Error* TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend* backend, TRITONSERVER_Message** config);
/** The pointer that was attached to the backend; NULL when there is none. */
TRITONSERVER_Error* TRITONBACKEND_BackendState(TRITONBACKEND_Backend* backend, void** state);
/** Attaches a pointer that only the backend reads. */
TRITONSERVER_Error* TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend* backend, void* state);

/* ---- Model ----------------------------------------------------------------------------------------------------- */

/** The name of the model. */
TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name);
/** The version of the model: the number of its directory. */
TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model* model, uint64_t* version);
/** The directory of the model, which holds a directory for each version. */
TRITONSERVER_Error* TRITONBACKEND_ModelRepository(
    TRITONBACKEND_Model* model, TRITONBACKEND_ArtifactType* type, const char** location);
/** The model's configuration in the JSON format of `config_version` (only 1 exists). The caller deletes the message. */
TRITONSERVER_Error* TRITONBACKEND_ModelConfig(
    TRITONBACKEND_Model* model, uint32_t config_version, TRITONSERVER_Message** config);
/** Whether the operator of the server wants the backend to fill what config.pbtxt leaves out. */
TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model* model, bool* wanted);
/**
 * Replaces inputs, outputs, maximal batch size and, when none was chosen, the scheduler. Only while the model is being
 * initialized. The message stays the caller's. The server may complete it: read the configuration again.
 */
TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(
    TRITONBACKEND_Model* model, uint32_t config_version, TRITONSERVER_Message* config);
/** The backend that the model names. */
TRITONSERVER_Error* TRITONBACKEND_ModelBackend(TRITONBACKEND_Model* model, TRITONBACKEND_Backend** backend);
/** The pointer that the backend attached to the model; NULL when there is none. */
TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state);
/** Attaches a pointer that only the backend reads. */
TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state);

/* ---- Instance -------------------------------------------------------------------------------------------------- */

/** The name of the instance. */
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance* instance, const char** name);
/** What the instance runs on. */
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(
    TRITONBACKEND_ModelInstance* instance, TRITONSERVER_InstanceGroupKind* kind);
/** The number of the GPU, for instances that run on one. */
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance* instance, int32_t* device);
/** The model that the instance is a copy of. */
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Model** model);
/** The pointer that the backend attached to the instance; NULL when there is none. */
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance, void** state);
/** Attaches a pointer that only the backend reads. */
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance, void* state);
/**
 * Adds one request to the model's statistics. Before the request is released. Times are nanoseconds of the monotonic
 * clock: start, start and end of the computation, end; they are ignored for a request that failed.
 */
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request, bool success, uint64_t exec_start,
    uint64_t compute_start, uint64_t compute_end, uint64_t exec_end);
/** Adds one execution to the model's statistics. `batch_size` is the sum over the requests that ran together. */
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance* instance, uint64_t batch_size, uint64_t exec_start, uint64_t compute_start,
    uint64_t compute_end, uint64_t exec_end);

/* ---- Request and its inputs ------------------------------------------------------------------------------------ */

/** What the client calls the request; may be NULL or empty. */
TRITONSERVER_Error* TRITONBACKEND_RequestId(TRITONBACKEND_Request* request, const char** id);
/** Number of tensors in the request. */
TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request* request, uint32_t* count);
/** The tensor at `index`. The order may differ between requests, even inside one batch. */
TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(
    TRITONBACKEND_Request* request, uint32_t index, TRITONBACKEND_Input** input);
/** Number of tensors that the client wants back. */
TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request, uint32_t* count);
/** Name of a tensor that the client wants back. */
TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(
    TRITONBACKEND_Request* request, uint32_t index, const char** name);
/** Gives the request back. On success it is gone with all that came from it; on an error it is still the caller's. */
TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t flags);

/**
 * Describes a tensor. `shape` holds `dims` extents, the batch dimension first when the model is batched; `bytes` is
 * what arrived, in `buffers` pieces. Every out pointer may be NULL.
 */
TRITONSERVER_Error* TRITONBACKEND_InputProperties(
    TRITONBACKEND_Input* input, const char** name, TRITONSERVER_DataType* type, const int64_t** shape, uint32_t* dims,
    uint64_t* bytes, uint32_t* buffers);
/**
 * One piece of a tensor. `memory` and `memory_id` say on the way in where the caller would like it, and on the way out
 * where it is.
 */
TRITONSERVER_Error* TRITONBACKEND_InputBuffer(
    TRITONBACKEND_Input* input, uint32_t index, const void** buffer, uint64_t* bytes, TRITONSERVER_MemoryType* memory,
    int64_t* memory_id);

/* ---- Response and its outputs ---------------------------------------------------------------------------------- */

/**
 * Makes a response. All its outputs must have their buffers before the next response of the same request is made; it
 * may be sent after the request was released.
 */
TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response, TRITONBACKEND_Request* request);
/** Frees a response that will not be sent. */
TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response* response);
/** Adds a tensor. Not from two threads at once. */
TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(
    TRITONBACKEND_Response* response, TRITONBACKEND_Output** output, const char* name, TRITONSERVER_DataType type,
    const int64_t* shape, uint32_t dims);
/** Memory for a tensor of a response; `memory` and `memory_id` as in TRITONBACKEND_InputBuffer. */
TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(
    TRITONBACKEND_Output* output, void** buffer, uint64_t bytes, TRITONSERVER_MemoryType* memory, int64_t* memory_id);
/**
 * Sends a response, which is gone whatever the result. `error`, when not NULL, is sent in place of the outputs and
 * stays the caller's.
 */
TRITONSERVER_Error* TRITONBACKEND_ResponseSend(
    TRITONBACKEND_Response* response, uint32_t flags, TRITONSERVER_Error* error);

#endif
