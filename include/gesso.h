/* Gesso: runs pipelines that NVIDIA DALI serialized, without DALI. Made by cbindgen: change src/capi instead.
 *
 * Link with libtriton_gesso.so. Functions return a gesso_status; what they make, they put where their last argument
 * points. Nothing throws. What a caller owns, and which threads may call, stands at each function. A pointer to a
 * pipeline, an instance or a result is valid from the call that made it until it is freed.
 *
 * gesso_pipeline_load > gesso_instance_create > gesso_instance_run > gesso_result_tensor > gesso_result_free ... */


#ifndef GESSO_H
#define GESSO_H

#include <stddef.h>
#include <stdint.h>
/* A DLPack tensor; dlpack.h says what it is. */
typedef struct DLManagedTensor DLManagedTensor;

/* Element `i` of an array whose structs say how large they are; `type` is that of an element. */
#define GESSO_AT(type, array, i) ((type *)((char *)(array) + (size_t)(i) * (array)->struct_size))

// The version of this interface. It changes only when programs must be changed; functions and fields at the end of
// structs may be added without.
#define GESSO_ABI_VERSION 1

// The largest number of dimensions of a sample.
#define GESSO_MAX_NDIM 16

// The version of the interface to operators in libraries: what `gesso_operators` is called with.
#define GESSO_OPERATOR_ABI_VERSION 1

// What became of a call.
typedef enum {
  // It did what it should.
  GESSO_STATUS_OK = 0,
  // Nothing better is known.
  GESSO_STATUS_UNKNOWN = 1,
  // A defect of the library, or of one that it calls.
  GESSO_STATUS_INTERNAL = 2,
  // Something that was named does not exist.
  GESSO_STATUS_NOT_FOUND = 3,
  // The caller's data or pipeline is wrong.
  GESSO_STATUS_INVALID_ARGUMENT = 4,
  // A resource is used up or missing now, such as memory, a GPU, or an instance that is busy.
  GESSO_STATUS_UNAVAILABLE = 5,
  // Valid, but this version or this device cannot do it.
  GESSO_STATUS_UNSUPPORTED = 6,
  // A name is taken.
  GESSO_STATUS_ALREADY_EXISTS = 7,
  // Nobody wants the answer any more.
  GESSO_STATUS_CANCELLED = 8,
} gesso_status;

// What the values of an argument are.
typedef enum {
  // `int64_t`.
  GESSO_ARGUMENT_KIND_INT = 0,
  // `float`.
  GESSO_ARGUMENT_KIND_FLOAT = 1,
  // `int64_t`, 0 or 1.
  GESSO_ARGUMENT_KIND_BOOL = 2,
  // `const char *`.
  GESSO_ARGUMENT_KIND_TEXT = 3,
  // Others for each sample, see `gesso_operator_sample`.
  GESSO_ARGUMENT_KIND_TENSOR = 4,
} gesso_argument_kind;

// Where something runs, or where memory is.
typedef enum {
  // Host threads, host memory.
  GESSO_DEVICE_CPU = 0,
  // A CUDA device, its memory.
  GESSO_DEVICE_GPU = 1,
} gesso_device;

// Element types; numbered as DALI numbers them.
typedef enum {
  // Not known before there is a batch.
  GESSO_DTYPE_ANY = -1,
  // 8 bits.
  GESSO_DTYPE_UINT8 = 0,
  // 16 bits.
  GESSO_DTYPE_UINT16 = 1,
  // 32 bits.
  GESSO_DTYPE_UINT32 = 2,
  // 64 bits.
  GESSO_DTYPE_UINT64 = 3,
  // 8 bits.
  GESSO_DTYPE_INT8 = 4,
  // 16 bits.
  GESSO_DTYPE_INT16 = 5,
  // 32 bits.
  GESSO_DTYPE_INT32 = 6,
  // 64 bits.
  GESSO_DTYPE_INT64 = 7,
  // IEEE half precision.
  GESSO_DTYPE_FLOAT16 = 8,
  // IEEE single precision.
  GESSO_DTYPE_FLOAT32 = 9,
  // IEEE double precision.
  GESSO_DTYPE_FLOAT64 = 10,
  // One byte, 0 or 1.
  GESSO_DTYPE_BOOL = 11,
} gesso_dtype;

// The samples of a reader.
typedef struct gesso_dataset gesso_dataset;

// Runs one batch at a time.
typedef struct gesso_instance gesso_instance;

// A pipeline, planned for one kind of device. It never changes.
typedef struct gesso_pipeline gesso_pipeline;

// The outputs of one batch. It never changes, and may outlive its instance and its pipeline.
typedef struct gesso_result gesso_result;

// Reads, computes and gives batches in order, ahead of who takes them.
typedef struct gesso_stream gesso_stream;

// What a call or a sample failed with. Texts that say where are empty where nobody knows.
typedef struct {
  // `sizeof(gesso_error_info)`; the caller sets it.
  size_t struct_size;
  // The `gesso_status`; `GESSO_STATUS_OK` if nothing failed.
  int32_t status;
  // All of the text, for people.
  const char *message;
  // The part of it behind the name of the operator or reader that failed; all of it where none is named.
  const char *reason;
  // The name in the pipeline of the operator that failed. Operators that run as one have ` + ` between their names.
  const char *operator_name;
  // The name in the pipeline of the reader that failed, or of the input whose source did.
  const char *source_name;
  // The path of the file that failed.
  const char *file;
} gesso_error_info;

// One sample of an input.
typedef struct {
  // `sizeof(gesso_sample)`; the same in all samples of an input.
  size_t struct_size;
  // Its elements: dense, row-major, at an address that is a multiple of the size of an element. May be null when
  // there are none.
  const void *data;
  // Its extents; not read when `ndim` is 0.
  const int64_t *shape;
  // How many.
  size_t ndim;
} gesso_sample;

// One input of a batch.
typedef struct {
  // `sizeof(gesso_input)`; the same in all inputs of a batch.
  size_t struct_size;
  // The name of the input.
  const char *name;
  // The `gesso_dtype` of every sample.
  int32_t dtype;
  // The `gesso_device` that every sample's memory is on. `GESSO_DEVICE_GPU` only where `gesso_tensor_info` of the
  // input says so; what writes the memory must be done.
  int32_t device;
  // As many as the batch has.
  const gesso_sample *samples;
  // One letter for each dimension of a sample. Null or empty: as the pipeline declares it. Another than it declares
  // is refused.
  const char *layout;
  // Where each sample comes from, a file or a record: as many texts as the batch has samples, each of which may be
  // null. Operators hand them on, and `GetProperty` gives them as `source_info`. Null: nobody knows.
  const char *const *origins;
} gesso_input;

// Where a function that fails writes why: at most `capacity` bytes, the zero at the end included.
typedef struct {
  // `sizeof(gesso_message)` of the library.
  size_t struct_size;
  // Empty before.
  char *text;
  // Bytes there.
  size_t capacity;
} gesso_message;

// A function of the program: an operator `Callback` or a source `CallbackSource` of a pipeline's file, by its name
// there.
typedef struct {
  // `sizeof(gesso_callback)`.
  size_t struct_size;
  // The operator's name in the pipeline. It is read while the pipeline is loaded, not later.
  const char *name;
  // Called once for a batch, in the thread that runs it, for one batch after the other. `inputs` is the callee's, to
  // give to `gesso_result_free`: its outputs are the operator's inputs, then the tensors that feed arguments, in the
  // order of their names. Samples that are in memory of the caller's, as inputs of the batch are, are there until
  // the run returns. Fills `outputs`, as many as the operator has, with as many samples each as `inputs` has, in
  // host memory that stays until `release` is called; those of samples that failed are not looked at. Returns 0, or
  // the `gesso_status` to fail the batch with, and must not throw.
  //
  // That of a source is called by a thread of the stream, ahead of who takes the batches, also for a batch that
  // comes after one that failed. `inputs` has no outputs, but as many samples as the batch is to have. A source that
  // leaves the `samples` of its first output null has no more: the stream ends there.
  int32_t (*call)(void *user, gesso_result *inputs, gesso_input *outputs, gesso_message *message);
  // Called when the memory of the outputs of the last `call` is not needed any more, by any thread. May be null.
  void (*release)(void *user);
  // What both are called with. It must stay as long as the pipeline, its instances and streams.
  void *user;
} gesso_callback;

// An input or an output of a pipeline, as far as it is known before there is a batch.
typedef struct {
  // `sizeof(gesso_tensor_info)`; the caller sets it.
  size_t struct_size;
  // Its name. Lives as long as the pipeline.
  const char *name;
  // One letter for each dimension, such as `HWC`; empty when there is none. Lives as long as the pipeline.
  const char *layout;
  // A `gesso_dtype`; `GESSO_DTYPE_ANY` when it is not fixed.
  int32_t dtype;
  // A `gesso_device`. Of an input: `GESSO_DEVICE_GPU` if samples may be in memory of the GPU. Of an output: where it
  // is made.
  int32_t device;
  // Dimensions of a sample; -1 when not even that is fixed.
  int32_t ndim;
  // Extents of a sample, -1 where they are not fixed.
  int64_t shape[GESSO_MAX_NDIM];
} gesso_tensor_info;

// How an instance is made. Zeros are the defaults.
typedef struct {
  // `sizeof(gesso_instance_options)`.
  size_t struct_size;
  // Worker threads; 0: as many as the file asks for.
  size_t num_threads;
  // The number of the GPU, for a pipeline that was loaded for one.
  int32_t gpu;
  // Not 0: outputs that are made on the GPU are copied to host memory of the result.
  int32_t outputs_on_host;
  // Not 0: the memory of inputs may change while a batch runs, as when others can write to it. Such samples have any
  // values then, and the library copies first what it would else look at twice. 0: it must not change.
  int32_t inputs_may_change;
  // Multiprocessors of the GPU that the work of the instance may take, beside a model's for example; the driver
  // rounds them up. 0: all. Where the driver gives no part of a GPU (it does from CUDA 12.4 on), an instance with a
  // number of them is `GESSO_STATUS_UNAVAILABLE`.
  size_t gpu_multiprocessors;
  // Not 0: a file becomes the same pixels in every run on a GPU, whatever runs beside it. The JPEG engines of the
  // GPU, whose pixels differ by a level, are not used then.
  int32_t deterministic;
  // The formats of files that are decoded, with commas between: `jpeg,png` are these alone, `-avif,-av1` all but
  // these. Null: all. It is read while the instance is made, not later.
  const char *formats;
} gesso_instance_options;

// One sample of an output.
typedef struct {
  // `sizeof(gesso_tensor)`; the caller sets it.
  size_t struct_size;
  // The elements, dense and row-major; null when there are none.
  void *data;
  // How many bytes they have.
  size_t bytes;
  // A `gesso_dtype`.
  int32_t dtype;
  // The `gesso_device` whose memory `data` is in.
  int32_t device;
  // The number of that device.
  int32_t device_id;
  // Dimensions.
  int32_t ndim;
  // Extents.
  const int64_t *shape;
  // One letter for each dimension; empty when there is none.
  const char *layout;
  // Where it comes from: the file or record that a reader took it from, or what came with the inputs. Empty when
  // nobody knows.
  const char *origin;
} gesso_tensor;

// Memory that a caller offers for one sample of an output.
typedef struct {
  // `sizeof(gesso_target)` of the library.
  size_t struct_size;
  // Where the sample goes: as many bytes as it has, at a multiple of the size of an element. Null: into memory of
  // the result.
  void *data;
  // The `gesso_device` whose memory `data` is in. `GESSO_DEVICE_GPU` only for samples whose `gesso_tensor` says that
  // they are made there, and only memory of the instance's own GPU.
  int32_t device;
} gesso_target;

// Asks the caller for memory for sample `sample` of output `output`. `tensor` describes the sample (its `data` is
// null) and lives during the call; `target` is filled with its size, null and `GESSO_DEVICE_CPU` before. Called by the
// thread that runs the batch, once for each sample that did not fail. The memory must stay until the run returns.
// Returns 0; anything else fails the sample. Must not throw and must not call functions of the same instance.
typedef int32_t (*gesso_allocate)(void *user,
                                  size_t output,
                                  size_t sample,
                                  const gesso_tensor *tensor,
                                  gesso_target *target);

// How a stream is made. Zeros are the defaults.
typedef struct {
  // `sizeof(gesso_stream_options)`.
  size_t struct_size;
  // Samples of a batch; 0: as many as the file was made for.
  size_t batch_size;
  // Batches that are read and not yet taken, at most; 0: 2. That bounds the memory of a stream.
  size_t prefetch;
  // Batches that are worked on at the same time; 0: 1. Each has threads of its own.
  size_t lanes;
  // Worker threads of each of these; 0: as many as the file asks for.
  size_t num_threads;
  // Samples before the first batch: where a stream that ended goes on. A multiple of the batch size.
  uint64_t first;
  // The number of the GPU, for a pipeline that was loaded for one.
  int32_t gpu;
  // Not 0: outputs that are made on the GPU are copied to host memory of the results.
  int32_t outputs_on_host;
  // Not 0: readers begin with the epoch behind the one that `read` samples have got to, whatever `first` says.
  int32_t next_epoch;
  // Read if `next_epoch` is not 0: samples that readers have given before, batch by batch.
  uint64_t read;
  // As in `gesso_instance_options`, for all batches of the stream together.
  size_t gpu_multiprocessors;
  // As in `gesso_instance_options`.
  int32_t deterministic;
  // As in `gesso_instance_options`. It is read while the stream is made, not later.
  const char *formats;
  // Where random numbers in branches of conditionals go on: `branch_count` numbers of `gesso_result_branch_samples`,
  // of the batch that the stream goes on behind; null: they begin. Read while the stream is made, not later.
  const uint64_t *branch_samples;
  // How many.
  size_t branch_count;
} gesso_stream_options;

// Makes room for a file of so many bytes; null if there is none: then the function that asked fails.
typedef uint8_t *(*gesso_room)(void *file, size_t length);

// Takes the name of a file.
typedef void (*gesso_add_name)(void *names, const char *name);

// Functions of the program that read files which are not on this machine. Readers call them for paths that begin with
// a scheme and `://`, several at a time and from any thread. Each returns 0, or the `gesso_status` to fail with, and
// must not throw. Paths are texts that live during the call.
typedef struct {
  // `sizeof(gesso_store)`.
  size_t struct_size;
  // Says how many bytes a file has.
  int32_t (*size)(void *user, const char *path, uint64_t *size, gesso_message *message);
  // Fills `to` with the `length` bytes of a file from byte `at` on.
  int32_t (*read)(void *user,
                  const char *path,
                  uint64_t at,
                  uint8_t *to,
                  size_t length,
                  gesso_message *message);
  // Reads a whole file: calls `room` once with `file` and its length, and fills the room.
  int32_t (*get)(void *user, const char *path, gesso_room room, void *file, gesso_message *message);
  // Calls `add` with `names` and the name of each file below `root`, relative to it.
  int32_t (*list)(void *user, const char *root, gesso_add_name add, void *names, gesso_message *message);
  // What they are called with. It must stay as long as the process.
  void *user;
} gesso_store;

// An argument of an operator, as the pipeline file gives it. Lives during the call.
typedef struct {
  // `sizeof(gesso_argument)` of the library.
  size_t struct_size;
  // Its name.
  const char *name;
  // A `gesso_argument_kind`. Numbers come as the file has them: a 1 may be an integer where a float is meant.
  int32_t kind;
  // How many values; 0 for a tensor.
  size_t count;
  // The values.
  const void *values;
} gesso_argument;

// One sample of a batch. Lives during the call.
typedef struct {
  // `sizeof(gesso_operator_sample)` of the library.
  size_t struct_size;
  // Which one of the batch.
  size_t index;
  // As many as the operator has inputs.
  const gesso_tensor *inputs;
  // As many as tensors feed arguments, in the order in which `create` was told of them; always in host memory.
  const gesso_tensor *arguments;
  // As many as the operator has outputs; to be written.
  const gesso_tensor *outputs;
} gesso_operator_sample;

// An operator. It lives as long as its library, which is never unloaded; so do all its texts. Functions return 0, or
// the `gesso_status` to fail with, and must not throw. `state` is what `create` made. Each instance of a pipeline has
// states of its own, and uses one from one thread at a time; but `run_cpu` is called by several at once, for samples
// of one batch.
//
// The structs that functions get are as large as they say, which may be more or less than in the operator's header:
// elements of arrays are reached by `GESSO_AT`, and a struct is copied by its `struct_size`.
typedef struct {
  // `sizeof(gesso_operator)`.
  size_t struct_size;
  // Its name in pipeline files.
  const char *name;
  // One sentence on what it does.
  const char *doc;
  // Fewest inputs.
  size_t min_inputs;
  // Most inputs.
  size_t max_inputs;
  // Outputs, at least one.
  size_t output_count;
  // Names of the arguments that it knows, behind them a null pointer. A file with another argument does not load.
  // Null: none.
  const char *const *arguments;
  // Makes the state of one instance of the operator from its arguments, those that are tensors last. May be null.
  int32_t (*create)(const gesso_argument *arguments,
                    size_t argument_count,
                    size_t input_count,
                    void **state,
                    gesso_message *message);
  // Frees it. May be null.
  void (*destroy)(void *state);
  // Says what the outputs are, from what the inputs are: once when a pipeline loads, where types and extents may be
  // unknown (`GESSO_DTYPE_ANY`, -1, a null `layout`) and `arguments` is null, and once for each sample, where
  // everything is known and has to be said. `outputs` come with everything unknown. Type, number of dimensions and
  // layout must be the same for all samples of a batch.
  int32_t (*infer)(void *state,
                   const gesso_tensor_info *inputs,
                   const gesso_tensor *arguments,
                   gesso_tensor_info *outputs,
                   gesso_message *message);
  // Computes one sample in host memory. An error fails this sample alone.
  int32_t (*run_cpu)(const void *state, const gesso_operator_sample *sample, gesso_message *message);
  // Puts the work for `count` samples in memory of the GPU into `stream`, a `CUstream` whose context is current,
  // without waiting for it. May be called twice for a batch, with the same samples. An error fails the batch. Null:
  // pipelines that want the operator on a GPU run it on the host.
  int32_t (*run_gpu)(void *state,
                     const gesso_operator_sample *samples,
                     size_t count,
                     void *stream,
                     gesso_message *message);
} gesso_operator;

// What a library exports as `gesso_operators`: the operators that it has for version `abi_version` of this interface
// (`GESSO_OPERATOR_ABI_VERSION`), behind them a null pointer; null if it has none for that version. Called once.
typedef const gesso_operator *const *(*gesso_operators_fn)(uint32_t abi_version);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of this interface that the library has, to compare with `GESSO_ABI_VERSION` of the header. Any thread.
uint32_t gesso_abi_version(void);

// The version of the library, such as `0.1.0`. Never freed. Any thread.
const char *gesso_version(void);

// Why the last call of this thread that did not return `GESSO_STATUS_OK` failed; empty when none has. The text is the
// library's, and lives until the next call of this thread that fails. Any thread; each has its own.
const char *gesso_last_error(void);

// Fills `error`, whose `struct_size` is set, with what the last call of this thread failed with that did not return
// `GESSO_STATUS_OK`: `gesso_last_error` in its parts. The texts are the library's, and live until the next call of
// this function by this thread. Any thread; each has its own.
gesso_status gesso_last_error_info(gesso_error_info *error);

// Reads a file that DALI's `Pipeline.serialize` wrote and plans it for a `gesso_device`. For `GESSO_DEVICE_CPU` the
// devices in the file are ignored. Needs no GPU, whatever the device.
//
// The bytes are the caller's and are not kept. `*pipeline` is the caller's, to give to `gesso_pipeline_free`; it is
// null after an error. Any thread.
gesso_status gesso_pipeline_load(const uint8_t *bytes,
                                 size_t length,
                                 int32_t device,
                                 gesso_pipeline **pipeline);

// `gesso_pipeline_load` for a file in which operators `Callback` and sources `CallbackSource` are functions of the
// program: `callbacks`, of which each has the name of one. A pipeline with sources runs as a stream, one at a time.
//
// Ownership and threads as for `gesso_pipeline_load`.
gesso_status gesso_pipeline_load_with_callbacks(const uint8_t *bytes,
                                                size_t length,
                                                int32_t device,
                                                const gesso_callback *callbacks,
                                                size_t callback_count,
                                                gesso_pipeline **pipeline);

// Frees a pipeline. Instances that were made of it stay. Null is all right. Any thread, while no other uses the
// pipeline.
void gesso_pipeline_free(gesso_pipeline *pipeline);

// Says what a file holds, as JSON: inputs, operators with their arguments, outputs, and for each operator why Gesso
// does not run it, if it does not. Works for files that do not load, too. The fields are those that
// `gesso inspect --json` prints under `pipeline`.
//
// The bytes are the caller's and are not kept. `*json` is the caller's, to give to `gesso_string_free`; it is null
// after an error. Any thread.
gesso_status gesso_describe(const uint8_t *bytes,
                            size_t length,
                            char **json);

// Makes a file of a description: JSON as `gesso_describe` gives it, of which a description that somebody writes may
// leave out most. The format is that of `docs/reference/c-api.md`. Whether the pipeline can be run,
// `gesso_pipeline_load` says of the bytes.
//
// The text is the caller's and is not kept; it needs no zero at its end. `*bytes` are the caller's, to give to
// `gesso_bytes_free` with their number; they are null after an error. Any thread.
gesso_status gesso_author(const char *description,
                          size_t length,
                          uint8_t **bytes,
                          size_t *bytes_length);

// Frees bytes that the library gave away, as many as it said. Null is all right. Any thread.
void gesso_bytes_free(uint8_t *bytes, size_t length);

// Frees a text that the library gave away. Null is all right. Any thread.
void gesso_string_free(char *text);

// How many inputs a pipeline has; 0 for null. Any thread.
size_t gesso_pipeline_input_count(const gesso_pipeline *pipeline);

// How many outputs a pipeline has; 0 for null. Any thread.
size_t gesso_pipeline_output_count(const gesso_pipeline *pipeline);

// Fills `info`, whose `struct_size` is set, with what is known of input `index`. Any thread.
gesso_status gesso_pipeline_input(const gesso_pipeline *pipeline, size_t index, gesso_tensor_info *info);

// Fills `info`, whose `struct_size` is set, with what is known of output `index`. Any thread.
gesso_status gesso_pipeline_output(const gesso_pipeline *pipeline, size_t index, gesso_tensor_info *info);

// The largest batch that the file was made for; larger ones run, too. 0 for null. Any thread.
size_t gesso_pipeline_max_batch_size(const gesso_pipeline *pipeline);

// 1 if instances of the pipeline need a GPU, else 0. Any thread.
int32_t gesso_pipeline_needs_gpu(const gesso_pipeline *pipeline);

// Makes an instance of a pipeline: its threads, its memory and, where the pipeline needs one, its GPU. `options` may
// be null.
//
// `*instance` is the caller's, to give to `gesso_instance_free`; it is null after an error. The pipeline may be freed
// before. Any thread; instances of one pipeline are independent of one another.
gesso_status gesso_instance_create(const gesso_pipeline *pipeline,
                                   const gesso_instance_options *options,
                                   gesso_instance **instance);

// Frees an instance. Results stay. Null is all right. Any thread, while no other uses the instance.
void gesso_instance_free(gesso_instance *instance);

// Runs one batch of `batch_size` samples; returns when it is done. The outputs are in memory of the result: see
// `gesso_result_tensor`. A sample that fails leaves the others alone: see `gesso_result_sample_status`.
//
// The inputs and their memory are the caller's, are read during the call only, and must not change during it
// unless `inputs_may_change` is set. `*result` is the caller's, to give to
// `gesso_result_free`; it is null after an error. Any thread, but one at a time for an instance: else
// `GESSO_STATUS_UNAVAILABLE`.
gesso_status gesso_instance_run(const gesso_instance *instance,
                                size_t batch_size,
                                const gesso_input *inputs,
                                size_t input_count,
                                gesso_result **result);

// `gesso_instance_run` with outputs in memory of the caller's: `allocate` is asked for each sample, with `user`. The
// memory must stay until the call returns, and as long as the result is asked for those samples. When this returns,
// the memory is written.
//
// Ownership and threads as for `gesso_instance_run`.
gesso_status gesso_instance_run_into(const gesso_instance *instance,
                                     size_t batch_size,
                                     const gesso_input *inputs,
                                     size_t input_count,
                                     gesso_allocate allocate,
                                     void *user,
                                     gesso_result **result);

// Lets an instance go on where another one ended: there are `samples` samples before its next batch, and random
// numbers are those of that batch. Those that are drawn in branches of conditionals depend on the data before:
// `gesso_instance_go_on_in_branches`.
//
// Any thread, but one at a time for an instance: else `GESSO_STATUS_UNAVAILABLE`.
gesso_status gesso_instance_go_on(const gesso_instance *instance,
                                  uint64_t samples);

// As `gesso_instance_go_on` for numbers that are drawn in branches of conditionals: `branch_samples` are the `count`
// numbers of `gesso_result_branch_samples`, of the last batch of the instance that this one goes on from.
//
// `GESSO_STATUS_INVALID_ARGUMENT` when the pipeline has another number of branches. Any thread, but one at a time for
// an instance: else `GESSO_STATUS_UNAVAILABLE`.
gesso_status gesso_instance_go_on_in_branches(const gesso_instance *instance,
                                              const uint64_t *branch_samples,
                                              size_t count);

// Makes a stream of a pipeline whose inputs are all fed by readers, or which has none, or which takes videos: finds
// the samples, and begins to read ahead when the first batch is asked for. `options` may be null. Outputs are where
// they are made, on the host or on the GPU.
//
// `*stream` is the caller's, to give to `gesso_stream_free`; it is null after an error. The pipeline may be freed
// before. Any thread.
gesso_status gesso_stream_create(const gesso_pipeline *pipeline,
                                 const gesso_stream_options *options,
                                 gesso_stream **stream);

// Frees a stream; what it is doing ends at the next operator. Results stay. Null is all right. Any thread, while no
// other uses the stream.
void gesso_stream_free(gesso_stream *stream);

// Gives a stream one input of `count` samples, of a pipeline that takes videos: the video, after which batches of it
// come, and before it what stands beside them. The memory is read during the call only. A video that is given while
// another one is read waits for its turn.
//
// Any thread, but one at a time for a stream: else `GESSO_STATUS_UNAVAILABLE`.
gesso_status gesso_stream_feed(const gesso_stream *stream,
                               size_t count,
                               const gesso_input *input);

// As `gesso_stream_feed` for the video, one sample in host memory, but reads it where it is. The memory must stay as
// it is until `gesso_stream_next` has given a null `*result`, which is the end of all that was fed, or the stream was
// freed.
//
// Any thread, but one at a time for a stream: else `GESSO_STATUS_UNAVAILABLE`.
gesso_status gesso_stream_feed_kept(const gesso_stream *stream,
                                    const gesso_input *input);

// Waits for the next batch, which is done then, on the GPU too. Readers have no end: one epoch follows the other. A
// stream that has ended, as it has no inputs or a source that ends, gives a null `*result` and `GESSO_STATUS_OK`. An
// error is that of one batch; the call after it gives the next.
//
// `*result` is the caller's, to give to `gesso_result_free`; it is null after an error. Any thread, but one at a time
// for a stream: else `GESSO_STATUS_UNAVAILABLE`.
gesso_status gesso_stream_next(const gesso_stream *stream,
                               gesso_result **result,
                               uint64_t *first);

// `gesso_stream_next` for a pipeline that takes inputs from the caller beside its readers: `inputs` of `batch_size`
// samples, as many as the stream's batches have, are those of this batch. It runs in this thread, while readers read
// ahead. So do batches of pipelines that call functions of the program, with this function and `gesso_stream_next`.
//
// The inputs and their memory are the caller's, and are read during the call only. Ownership and threads as for
// `gesso_stream_next`.
gesso_status gesso_stream_run(const gesso_stream *stream,
                              size_t batch_size,
                              const gesso_input *inputs,
                              size_t input_count,
                              gesso_result **result,
                              uint64_t *first);

// What a stream's readers know of their data sets, as a JSON object: a name for each reader, with `epoch_size`,
// `number_of_shards`, `shard_id`, `pad_last_batch` and `stick_to_shard`.
//
// `*json` is the caller's, to give to `gesso_string_free`; it is null after an error. Any thread.
gesso_status gesso_stream_readers(const gesso_stream *stream,
                                  char **json);

// Finds the samples of the reader in a serialized pipeline, of which it is the only operator. Its order is not looked
// at.
//
// `*dataset` is the caller's, to give to `gesso_dataset_free`; it is null after an error. Any thread.
gesso_status gesso_dataset_open(const uint8_t *bytes,
                                size_t length,
                                gesso_dataset **dataset);

// Frees the samples. Results stay. Null is all right. Any thread, while no other uses them.
void gesso_dataset_free(gesso_dataset *dataset);

// How many samples there are; 0 for null. Any thread.
size_t gesso_dataset_count(const gesso_dataset *dataset);

// Says which formats of files may be decoded, as `formats` of `gesso_instance_options` does: all until then. Any
// thread, while no other uses the samples.
gesso_status gesso_dataset_allow(gesso_dataset *dataset,
                                 const char *formats);

// The files of a data set whose order `shuffle_after_epoch` changes by files, not by samples: how many there are; 0
// for other data sets. Puts behind which sample each ends into `ends`, of as many as `capacity`. Any thread.
size_t gesso_dataset_files(const gesso_dataset *dataset,
                           uint64_t *ends,
                           size_t capacity);

// Reads sample `index`: a batch of one, with the outputs of the reader.
//
// `*result` is the caller's, to give to `gesso_result_free`; it is null after an error. Any thread, several at a time.
gesso_status gesso_dataset_read(const gesso_dataset *dataset,
                                size_t index,
                                gesso_result **result);

// `gesso_dataset_read` for a reader whose `arguments` have values of their own for each sample, such as the region of
// an array: by their names, each a list of `double` in host memory.
//
// The arguments and their memory are the caller's, and are read during the call only. Ownership and threads as for
// `gesso_dataset_read`.
gesso_status gesso_dataset_read_with(const gesso_dataset *dataset,
                                     size_t index,
                                     const gesso_input *arguments,
                                     size_t argument_count,
                                     gesso_result **result);

// Frees a result. Tensors that were exported stay. Null is all right. Any thread, while no other uses the result.
void gesso_result_free(gesso_result *result);

// How many samples the batch had; 0 for null. Any thread.
size_t gesso_result_batch_size(const gesso_result *result);

// How many samples each branch of conditionals has had, in the batch and those before it: `*count` numbers, for
// `gesso_instance_go_on_in_branches` or a stream that goes on behind the batch. None, and null, unless random numbers
// are drawn in branches. They live as long as the result. Any thread.
const uint64_t *gesso_result_branch_samples(const gesso_result *result,
                                            size_t *count);

// What became of a sample: `GESSO_STATUS_OK`, or why it failed; then `*message`, unless `message` is null, says more.
// The text lives as long as the result. `gesso_result_sample_error` has it in its parts. Any thread.
gesso_status gesso_result_sample_status(const gesso_result *result,
                                        size_t sample,
                                        const char **message);

// Fills `error`, whose `struct_size` is set, with what sample `sample` failed with; its `status` is `GESSO_STATUS_OK`,
// and its texts are empty, if it did not. The texts live as long as the result. Any thread.
gesso_status gesso_result_sample_error(const gesso_result *result,
                                       size_t sample,
                                       gesso_error_info *error);

// Fills `tensor`, whose `struct_size` is set, with output `output` of sample `sample`. What it points at is the
// result's (or memory that the caller offered) and lives as long as it. `GESSO_STATUS_NOT_FOUND` for a sample that
// failed. Any thread.
gesso_status gesso_result_tensor(const gesso_result *result,
                                 size_t output,
                                 size_t sample,
                                 gesso_tensor *tensor);

// Fills `count` tensors, as many as the batch has samples, whose `struct_size` is set, with output `output`:
// `gesso_result_tensor` for all samples at once. That of a sample that failed has the type `GESSO_DTYPE_ANY` and is
// else empty. Any thread.
gesso_status gesso_result_tensors(const gesso_result *result,
                                  size_t output,
                                  gesso_tensor *tensors,
                                  size_t count);

// Exports output `output` of sample `sample` as a DLPack tensor, without copying. `*tensor` is the caller's, who calls
// its `deleter`, once, from any thread; the result may be freed before. Work on a tensor in memory of a GPU may still
// be under way then: when the last of the result and its tensors goes, that waits until the GPU is idle.
// `GESSO_STATUS_UNSUPPORTED` for a sample in memory that the caller offered, which is his already. The elements must
// not be changed while others read them. Any thread.
gesso_status gesso_result_dlpack(const gesso_result *result,
                                 size_t output,
                                 size_t sample,
                                 DLManagedTensor **tensor);

// Lets readers of all pipelines read files that are not on this machine by functions of the program, in place of those
// that were given before. `store` is copied. Any thread.
gesso_status gesso_set_store(const gesso_store *store);

// Loads a library with operators of its own, which pipelines that are loaded from then on may use. The library stays
// in the process. What it exports is described at `gesso_operators_fn`. After an error none of its operators is there.
// Any thread.
gesso_status gesso_load_operators(const char *path);

// Adds operators of the program itself, without a library: `table` points at pointers to them, behind which stands a
// null pointer. The structs and all that they point at must stay as long as the process. Pipelines that are loaded
// from then on may use them. After an error none of them is there. Any thread; the functions are called by threads of
// the library, too.
gesso_status gesso_register_operators(const gesso_operator *const *table);

// The operators that are known now, as JSON: an array of objects, as `gesso operators --json` prints it. It has those
// that were loaded or registered before, too. The text is the library's and is never freed; it is null after an error.
// Any thread.
gesso_status gesso_operators_json(const char **json);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GESSO_H */
