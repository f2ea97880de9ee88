/* What the C API promises, and what it does when a caller breaks his promises. Built with the sanitizers by
 * tests/capi/main.rs.
 *
 *   contract CLASSIFY CLASSIFY_MADE_FOR_GPU PASSED_THROUGH IMAGE */
#include <gesso.h>

#include <pthread.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As dlpack.h has it. */
struct DLManagedTensor {
  struct {
    void *data;
    struct {
      int32_t device_type, device_id;
    } device;
    int32_t ndim;
    struct {
      uint8_t code, bits;
      uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
  } dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *);
};

static int checks;

#define CHECK(condition)                                                                       \
  do {                                                                                         \
    checks++;                                                                                  \
    if (!(condition)) {                                                                        \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #condition, gesso_last_error()); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)

/* A call that fails with this status and a message that holds this text. */
#define FAILS(call, expected, text)                     \
  do {                                                  \
    CHECK((call) == (expected));                        \
    CHECK(strstr(gesso_last_error(), (text)) != NULL);  \
  } while (0)

#define INVALID GESSO_STATUS_INVALID_ARGUMENT

typedef struct {
  uint8_t *bytes;
  size_t length;
} file;

static file read_file(const char *path) {
  file f = {NULL, 0};
  FILE *stream = fopen(path, "rb");
  CHECK(stream != NULL && fseek(stream, 0, SEEK_END) == 0);
  f.length = (size_t)ftell(stream);
  rewind(stream);
  f.bytes = malloc(f.length + 1);
  CHECK(f.bytes != NULL && fread(f.bytes, 1, f.length, stream) == f.length);
  fclose(stream);
  return f;
}

static gesso_pipeline *load(const char *path, int32_t device) {
  file f = read_file(path);
  gesso_pipeline *pipeline;
  CHECK(gesso_pipeline_load(f.bytes, f.length, device, &pipeline) == GESSO_STATUS_OK);
  free(f.bytes);
  return pipeline;
}

static void null_pointers(const gesso_pipeline *pipeline) {
  gesso_pipeline *out = (gesso_pipeline *)&checks;
  FAILS(gesso_pipeline_load(NULL, 4, GESSO_DEVICE_CPU, &out), INVALID, "`bytes` is a null pointer");
  CHECK(out == NULL);
  FAILS(gesso_pipeline_load(NULL, 0, GESSO_DEVICE_CPU, &out), INVALID, "the pipeline file is empty");
  FAILS(gesso_pipeline_load((const uint8_t *)"x", 1, GESSO_DEVICE_CPU, NULL), INVALID, "`pipeline` is a null pointer");
  FAILS(gesso_pipeline_load((const uint8_t *)"x", 1, 7, &out), INVALID, "`device` is 7");
  FAILS(gesso_pipeline_load((const uint8_t *)"no pipeline", 11, 0, &out), INVALID, "not a serialized DALI pipeline");
  char *json;
  FAILS(gesso_describe(NULL, 3, &json), INVALID, "`bytes` is a null pointer");
  CHECK(json == NULL);
  gesso_tensor_info info = {.struct_size = sizeof info};
  FAILS(gesso_pipeline_input(NULL, 0, &info), INVALID, "`pipeline` is a null pointer");
  FAILS(gesso_pipeline_input(pipeline, 0, NULL), INVALID, "`info` is a null pointer");
  FAILS(gesso_pipeline_output(pipeline, 1, &info), GESSO_STATUS_NOT_FOUND, "there is no output 1: the pipeline has 1");
  info.struct_size = 0;
  FAILS(gesso_pipeline_input(pipeline, 0, &info), INVALID, "set it to `sizeof(gesso_tensor_info)`");
  gesso_instance *instance;
  FAILS(gesso_instance_create(NULL, NULL, &instance), INVALID, "`pipeline` is a null pointer");
  FAILS(gesso_instance_create(pipeline, NULL, NULL), INVALID, "`instance` is a null pointer");
  gesso_instance_options options = {.struct_size = sizeof options, .num_threads = 1000000};
  FAILS(gesso_instance_create(pipeline, &options, &instance), INVALID, "1000000 threads");
  options = (gesso_instance_options){.struct_size = sizeof options, .gpu = -1};
  FAILS(gesso_instance_create(pipeline, &options, &instance), INVALID, "`gpu` is -1");
  gesso_result *result;
  FAILS(gesso_instance_run(NULL, 1, NULL, 0, &result), INVALID, "`instance` is a null pointer");
  gesso_tensor tensor = {.struct_size = sizeof tensor};
  FAILS(gesso_result_tensor(NULL, 0, 0, &tensor), INVALID, "`result` is a null pointer");
  FAILS(gesso_result_sample_status(NULL, 0, NULL), INVALID, "`result` is a null pointer");
  CHECK(gesso_pipeline_input_count(NULL) + gesso_pipeline_output_count(NULL) + gesso_result_batch_size(NULL) == 0);
  CHECK(gesso_pipeline_max_batch_size(NULL) == 0 && gesso_pipeline_needs_gpu(NULL) == 0);
  gesso_pipeline_free(NULL);
  gesso_instance_free(NULL);
  gesso_result_free(NULL);
  gesso_string_free(NULL);
}

static void descriptions(const gesso_pipeline *pipeline, const char *path) {
  gesso_tensor_info info = {.struct_size = sizeof info};
  CHECK(gesso_pipeline_input_count(pipeline) == 1 && gesso_pipeline_output_count(pipeline) == 1);
  CHECK(gesso_pipeline_input(pipeline, 0, &info) == GESSO_STATUS_OK);
  CHECK(strcmp(info.name, "IMAGE") == 0 && info.dtype == GESSO_DTYPE_UINT8 && info.ndim == 1 && info.shape[0] == -1);
  CHECK(info.device == GESSO_DEVICE_CPU && strcmp(info.layout, "") == 0);
  CHECK(gesso_pipeline_output(pipeline, 0, &info) == GESSO_STATUS_OK);
  CHECK(strcmp(info.name, "PIXELS") == 0 && info.dtype == GESSO_DTYPE_FLOAT32 && strcmp(info.layout, "CHW") == 0);
  CHECK(info.ndim == 3 && info.shape[0] == 3 && info.shape[1] == 64 && info.shape[2] == 64);
  CHECK(gesso_pipeline_max_batch_size(pipeline) == 3);
  file f = read_file(path);
  char *json;
  CHECK(gesso_describe(f.bytes, f.length, &json) == GESSO_STATUS_OK);
  CHECK(strstr(json, "\"CropMirrorNormalize\"") != NULL);
  gesso_string_free(json);
  free(f.bytes);
}

/* A pipeline that was written by hand, and one that was described. */
static void authored(const char *path, const file *image) {
  static const char written[] =
      "{\"max_batch_size\": 2, \"inputs\": [{\"name\": \"JPEGS\", \"dtype\": \"uint8\", \"ndim\": 1}],"
      " \"operators\": ["
      "  {\"name\": \"decoders__Image\", \"device\": \"mixed\", \"inputs\": [\"JPEGS\"], \"outputs\": [\"images\"]},"
      "  {\"name\": \"Resize\", \"device\": \"gpu\", \"inputs\": [\"images\"], \"outputs\": [\"small\"],"
      "   \"arguments\": {\"size\": [6.0, 8.0]}}],"
      " \"outputs\": [{\"name\": \"small\"}]}";
  uint8_t *bytes = (uint8_t *)&checks;
  size_t length = 1;
  FAILS(gesso_author(NULL, 3, &bytes, &length), INVALID, "`description` is a null pointer");
  CHECK(bytes == NULL && length == 0);
  FAILS(gesso_author(written, SIZE_MAX, &bytes, &length), INVALID, "more than the limit of");
  FAILS(gesso_author(written, 4, NULL, &length), INVALID, "`bytes` is a null pointer");
  FAILS(gesso_author(written, 4, &bytes, NULL), INVALID, "`bytes_length` is a null pointer");
  FAILS(gesso_author("{}", 2, &bytes, &length), INVALID, "not the description of a pipeline: missing field `max_batch_size`");
  CHECK(gesso_author(written, sizeof written - 1, &bytes, &length) == GESSO_STATUS_OK);
  gesso_pipeline *pipeline;
  CHECK(gesso_pipeline_load(bytes, length, GESSO_DEVICE_CPU, &pipeline) == GESSO_STATUS_OK);
  gesso_bytes_free(bytes, length);
  gesso_instance *instance;
  CHECK(gesso_instance_create(pipeline, NULL, &instance) == GESSO_STATUS_OK);
  int64_t size = (int64_t)image->length;
  gesso_sample sample = {sizeof sample, image->bytes, &size, 1};
  gesso_input input = {.struct_size = sizeof input, .name = "JPEGS", .samples = &sample};
  gesso_result *result;
  CHECK(gesso_instance_run(instance, 1, &input, 1, &result) == GESSO_STATUS_OK);
  gesso_tensor tensor = {.struct_size = sizeof tensor};
  CHECK(gesso_result_tensor(result, 0, 0, &tensor) == GESSO_STATUS_OK);
  CHECK(tensor.ndim == 3 && tensor.shape[0] == 6 && tensor.shape[1] == 8 && tensor.bytes == 144);
  gesso_result_free(result);
  gesso_instance_free(instance);
  gesso_pipeline_free(pipeline);

  file f = read_file(path);
  char *json;
  CHECK(gesso_describe(f.bytes, f.length, &json) == GESSO_STATUS_OK);
  CHECK(gesso_author(json, strlen(json), &bytes, &length) == GESSO_STATUS_OK);
  CHECK(length == f.length && memcmp(bytes, f.bytes, length) == 0);
  gesso_string_free(json);
  gesso_bytes_free(bytes, length);
  gesso_bytes_free(NULL, 7);
  free(f.bytes);
}

/* Gives output memory out of one block, counts, and does what `refuse` says. */
typedef struct {
  alignas(64) uint8_t block[3][3 * 64 * 64 * 4 + 8];
  int asked, refuse;
} memory;

static int32_t offer(void *user, size_t output, size_t sample, const gesso_tensor *tensor, gesso_target *target) {
  memory *m = user;
  m->asked++;
  CHECK(output == 0 && tensor->data == NULL && tensor->bytes == 3 * 64 * 64 * 4 && tensor->ndim == 3);
  CHECK(tensor->device == GESSO_DEVICE_CPU && target->data == NULL && target->device == GESSO_DEVICE_CPU);
  target->data = m->block[sample];
  if (m->refuse == 1 && sample == 1) return 5;
  if (m->refuse == 2) target->data = m->block[sample] + 1;
  if (m->refuse == 3) target->device = GESSO_DEVICE_GPU;
  if (m->refuse == 4) target->data = NULL;
  return 0;
}

static void wrong_inputs(const gesso_instance *instance, const file *image) {
  int64_t length = (int64_t)image->length, negative = -1, many[17] = {0};
  gesso_sample sample = {sizeof sample, image->bytes, &length, 1};
  gesso_input input = {.struct_size = sizeof input, .name = "IMAGE", .samples = &sample};
  gesso_input two[2] = {input, input};
  gesso_result *result = (gesso_result *)&checks;
#define RUN(count, inputs, n) gesso_instance_run(instance, count, inputs, n, &result)
  FAILS(RUN(1, NULL, 0), INVALID, "input `IMAGE` is missing");
  CHECK(result == NULL);
  FAILS(RUN(1, NULL, 1), INVALID, "`inputs` is a null pointer");
  FAILS(RUN(0, &input, 1), INVALID, "a batch of 0 samples");
  FAILS(RUN(SIZE_MAX, &input, 1), INVALID, "samples, expected 1 to");
  FAILS(RUN(1, &input, SIZE_MAX), INVALID, "inputs, expected 1");
  FAILS(RUN(1, two, 2), INVALID, "input `IMAGE` is given twice");
  FAILS(gesso_instance_run(instance, 1, &input, 1, NULL), INVALID, "`result` is a null pointer");
  FAILS(gesso_instance_run_into(instance, 1, &input, 1, NULL, NULL, &result), INVALID, "`allocate` is a null pointer");
#define WRONG(change, status, text) \
  do {                              \
    gesso_input kept = input;       \
    gesso_sample held = sample;     \
    change;                         \
    FAILS(RUN(1, &input, 1), status, text); \
    input = kept;                   \
    sample = held;                  \
  } while (0)
  WRONG(input.struct_size = 1, INVALID, "set it to `sizeof(gesso_input)`");
  WRONG(sample.struct_size = 3, INVALID, "set it to `sizeof(gesso_sample)`");
  WRONG(input.layout = "HWC", INVALID, "its samples have 1 dimensions");
  WRONG(input.name = NULL, INVALID, "`name` is a null pointer");
  WRONG(input.name = "\xff", INVALID, "`name` is not UTF-8");
  WRONG(input.name = "image", GESSO_STATUS_NOT_FOUND, "no input `image`, its inputs are `IMAGE`");
  WRONG(input.dtype = GESSO_DTYPE_ANY, INVALID, "`dtype` is -1");
  WRONG(input.dtype = GESSO_DTYPE_INT8, INVALID, "input `IMAGE` is int8, expected uint8");
  WRONG(input.device = 3, INVALID, "`device` is 3");
  WRONG(input.device = GESSO_DEVICE_GPU, INVALID, "give it host memory");
  WRONG(input.samples = NULL, INVALID, "`samples` is a null pointer");
  WRONG(sample.data = NULL, INVALID, "`data` is a null pointer");
  WRONG(sample.shape = NULL, INVALID, "`shape` is a null pointer");
  WRONG(sample.shape = &negative, INVALID, "an extent is -1");
  WRONG((sample.shape = many, sample.ndim = 17), INVALID, "17 dimensions");
  WRONG((sample.shape = many, sample.ndim = 2), INVALID, "expected 1 dimensions");
  WRONG((input.dtype = GESSO_DTYPE_FLOAT64, sample.data = image->bytes + 1, sample.shape = many), INVALID, "no multiple of 8");
  int64_t huge = INT64_MAX;
  WRONG(sample.shape = &huge, INVALID, "larger than the limit");
}

static void batches(const gesso_pipeline *pipeline, const gesso_instance *instance, const file *image) {
  int64_t lengths[3] = {(int64_t)image->length, 40, (int64_t)image->length};
  gesso_sample samples[3];
  for (int i = 0; i < 3; i++) samples[i] = (gesso_sample){sizeof *samples, image->bytes, &lengths[i], 1};
  gesso_input input = {.struct_size = sizeof input, .name = "IMAGE", .samples = samples};
  gesso_result *result;
  CHECK(gesso_instance_run(instance, 3, &input, 1, &result) == GESSO_STATUS_OK);
  CHECK(gesso_result_batch_size(result) == 3);
  const char *message;
  CHECK(gesso_result_sample_status(result, 0, &message) == GESSO_STATUS_OK && strcmp(message, "") == 0);
  CHECK(gesso_result_sample_status(result, 1, &message) == INVALID && strlen(message) > 0);
  CHECK(gesso_result_sample_status(result, 2, NULL) == GESSO_STATUS_OK);
  FAILS(gesso_result_sample_status(result, 3, &message), GESSO_STATUS_NOT_FOUND, "there is no sample 3");
  gesso_tensor tensor = {.struct_size = sizeof tensor}, other = {.struct_size = sizeof other};
  CHECK(gesso_result_tensor(result, 0, 0, &tensor) == GESSO_STATUS_OK);
  CHECK(gesso_result_tensor(result, 0, 2, &other) == GESSO_STATUS_OK);
  CHECK(tensor.bytes == 3 * 64 * 64 * 4 && memcmp(tensor.data, other.data, tensor.bytes) == 0);
  FAILS(gesso_result_tensor(result, 0, 1, &other), GESSO_STATUS_NOT_FOUND, "sample 1 failed");
  FAILS(gesso_result_tensor(result, 1, 0, &other), GESSO_STATUS_NOT_FOUND, "there is no output 1");
  FAILS(gesso_result_tensor(result, SIZE_MAX, 0, &other), GESSO_STATUS_NOT_FOUND, "there is no output");
  gesso_tensor all[3] = {tensor, tensor, tensor};
  CHECK(gesso_result_tensors(result, 0, all, 3) == GESSO_STATUS_OK);
  CHECK(memcmp(&all[0], &tensor, sizeof tensor) == 0 && all[2].data == other.data);
  CHECK(all[1].data == NULL && all[1].dtype == GESSO_DTYPE_ANY && all[1].struct_size == sizeof tensor);
  FAILS(gesso_result_tensors(result, 0, all, 2), INVALID, "2 tensors, expected one for each of 3 samples");
  FAILS(gesso_result_tensors(result, 1, all, 3), GESSO_STATUS_NOT_FOUND, "there is no output 1");
  FAILS(gesso_result_tensors(result, 0, NULL, 3), INVALID, "`tensors` is a null pointer");
  all[1].struct_size = 80;
  FAILS(gesso_result_tensors(result, 0, all, 3), INVALID, "element 1 of `tensors` is 80");
  other.struct_size = 3;
  FAILS(gesso_result_tensor(result, 0, 0, &other), INVALID, "sizeof(gesso_tensor)");

  memory *m = aligned_alloc(64, sizeof *m);
  CHECK(m != NULL);
  for (int refuse = 0; refuse <= 4; refuse++) {
    m->asked = 0;
    m->refuse = refuse;
    gesso_result *into;
    CHECK(gesso_instance_run_into(instance, 3, &input, 1, offer, m, &into) == GESSO_STATUS_OK);
    if (refuse != 2 && refuse != 3) CHECK(m->asked >= 2);
    gesso_status first = gesso_result_sample_status(into, 0, &message);
    if (refuse == 2) CHECK(first == INVALID && strstr(message, "no multiple of 4") != NULL);
    if (refuse == 3) CHECK(first == INVALID && strstr(message, "is made on the host") != NULL);
    if (refuse == 0 || refuse == 1 || refuse == 4) {
      other = (gesso_tensor){.struct_size = sizeof other};
      CHECK(first == GESSO_STATUS_OK && gesso_result_tensor(into, 0, 0, &other) == GESSO_STATUS_OK);
      CHECK((other.data == m->block[0]) == (refuse != 4));
      CHECK(memcmp(other.data, tensor.data, tensor.bytes) == 0);
      DLManagedTensor *mine;
      if (refuse != 4) FAILS(gesso_result_dlpack(into, 0, 0, &mine), GESSO_STATUS_UNSUPPORTED, "that the caller offered");
    }
    gesso_result_free(into);
  }
  free(m);

  /* A tensor outlives everything that it came from. */
  DLManagedTensor *exported;
  FAILS(gesso_result_dlpack(result, 0, 1, &exported), GESSO_STATUS_NOT_FOUND, "sample 1 failed");
  CHECK(exported == NULL);
  FAILS(gesso_result_dlpack(result, 0, 0, NULL), INVALID, "`tensor` is a null pointer");
  gesso_instance *second;
  CHECK(gesso_instance_create(pipeline, NULL, &second) == GESSO_STATUS_OK);
  gesso_result *theirs;
  CHECK(gesso_instance_run(second, 3, &input, 1, &theirs) == GESSO_STATUS_OK);
  CHECK(gesso_result_dlpack(theirs, 0, 2, &exported) == GESSO_STATUS_OK);
  gesso_instance_free(second);
  gesso_result_free(theirs);
  CHECK(exported->dl_tensor.device.device_type == 1 && exported->dl_tensor.ndim == 3 && exported->dl_tensor.strides == NULL);
  CHECK(exported->dl_tensor.dtype.code == 2 && exported->dl_tensor.dtype.bits == 32 && exported->dl_tensor.dtype.lanes == 1);
  CHECK(exported->dl_tensor.shape[0] == 3 && exported->dl_tensor.shape[2] == 64 && exported->dl_tensor.byte_offset == 0);
  CHECK(memcmp(exported->dl_tensor.data, tensor.data, tensor.bytes) == 0);
  exported->deleter(exported);
  gesso_result_free(result);
}

/* An input that is an output, twice: the result keeps a copy, as the caller's memory goes. */
static void passed_through(const char *path) {
  gesso_pipeline *pipeline = load(path, GESSO_DEVICE_CPU);
  gesso_instance *instance;
  CHECK(gesso_instance_create(pipeline, NULL, &instance) == GESSO_STATUS_OK);
  gesso_pipeline_free(pipeline);
  float *values = malloc(3 * sizeof *values);
  for (int i = 0; i < 3; i++) values[i] = (float)i + 0.5f;
  int64_t three = 3;
  gesso_sample sample = {sizeof sample, values, &three, 1};
  gesso_input input = {.struct_size = sizeof input, .name = "X", .dtype = GESSO_DTYPE_FLOAT32, .samples = &sample};
  gesso_result *result;
  CHECK(gesso_instance_run(instance, 1, &input, 1, &result) == GESSO_STATUS_OK);
  free(values);
  gesso_instance_free(instance);
  for (size_t output = 0; output < 2; output++) {
    gesso_tensor tensor = {.struct_size = sizeof tensor};
    CHECK(gesso_result_tensor(result, output, 0, &tensor) == GESSO_STATUS_OK);
    CHECK(tensor.bytes == 12 && ((float *)tensor.data)[2] == 2.5f);
  }
  gesso_result_free(result);
}

/* Loads anywhere; runs where there is a GPU, and says what to do where there is none. */
static void on_a_gpu(const char *path, const file *image) {
  gesso_pipeline *pipeline = load(path, GESSO_DEVICE_GPU);
  CHECK(gesso_pipeline_needs_gpu(pipeline) == 1);
  gesso_tensor_info info = {.struct_size = sizeof info};
  CHECK(gesso_pipeline_output(pipeline, 0, &info) == GESSO_STATUS_OK && info.device == GESSO_DEVICE_GPU);
  for (int32_t on_host = 0; on_host < 2; on_host++) {
    gesso_instance_options options = {.struct_size = sizeof options, .outputs_on_host = on_host};
    gesso_instance *instance;
    if (gesso_instance_create(pipeline, &options, &instance) != GESSO_STATUS_OK) {
      CHECK(strstr(gesso_last_error(), "GESSO_DEVICE_CPU") != NULL && instance == NULL);
      printf("skipped: no GPU (%s)\n", gesso_last_error());
      break;
    }
    int64_t length = (int64_t)image->length;
    gesso_sample sample = {sizeof sample, image->bytes, &length, 1};
    gesso_input input = {.struct_size = sizeof input, .name = "IMAGE", .samples = &sample};
    gesso_result *result;
    CHECK(gesso_instance_run(instance, 1, &input, 1, &result) == GESSO_STATUS_OK);
    gesso_tensor tensor = {.struct_size = sizeof tensor};
    CHECK(gesso_result_tensor(result, 0, 0, &tensor) == GESSO_STATUS_OK);
    CHECK(tensor.device == (on_host ? GESSO_DEVICE_CPU : GESSO_DEVICE_GPU) && tensor.data != NULL);
    DLManagedTensor *exported;
    CHECK(gesso_result_dlpack(result, 0, 0, &exported) == GESSO_STATUS_OK);
    gesso_instance_free(instance);
    gesso_result_free(result);
    CHECK(exported->dl_tensor.device.device_type == (on_host ? 1 : 2));
    exported->deleter(exported);
  }
  gesso_pipeline_free(pipeline);
}

typedef struct {
  const gesso_instance *instance;
  const file *image;
  int ran, busy;
} worker;

static void *work(void *argument) {
  worker *w = argument;
  int64_t length = (int64_t)w->image->length;
  gesso_sample sample = {sizeof sample, w->image->bytes, &length, 1};
  gesso_input input = {.struct_size = sizeof input, .name = "IMAGE", .samples = &sample};
  for (int i = 0; i < 50; i++) {
    gesso_result *result;
    gesso_status status = gesso_instance_run(w->instance, 1, &input, 1, &result);
    if (status == GESSO_STATUS_OK) w->ran++;
    if (status == GESSO_STATUS_UNAVAILABLE && strstr(gesso_last_error(), "make one for each thread")) w->busy++;
    gesso_result_free(result);
  }
  return NULL;
}

/* Two threads with one instance: no harm is done, and one of them is told. */
static void threads(const gesso_instance *instance, const file *image) {
  pthread_t ids[2];
  worker workers[2];
  for (int i = 0; i < 2; i++) {
    workers[i] = (worker){instance, image, 0, 0};
    CHECK(pthread_create(&ids[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < 2; i++) {
    CHECK(pthread_join(ids[i], NULL) == 0);
    CHECK(workers[i].ran + workers[i].busy == 50);
  }
  CHECK(workers[0].ran + workers[1].ran >= 1);
}

int main(int argc, char **argv) {
  CHECK(argc == 5);
  CHECK(gesso_abi_version() == GESSO_ABI_VERSION && strchr(gesso_version(), '.') != NULL);
  CHECK(strcmp(gesso_last_error(), "") == 0);
  gesso_pipeline *pipeline = load(argv[1], GESSO_DEVICE_CPU);
  file image = read_file(argv[4]);
  gesso_instance *instance;
  CHECK(gesso_instance_create(pipeline, NULL, &instance) == GESSO_STATUS_OK);
  null_pointers(pipeline);
  descriptions(pipeline, argv[1]);
  authored(argv[1], &image);
  wrong_inputs(instance, &image);
  batches(pipeline, instance, &image);
  passed_through(argv[3]);
  on_a_gpu(argv[2], &image);
  threads(instance, &image);
  gesso_instance_free(instance);
  gesso_pipeline_free(pipeline);
  free(image.bytes);
  printf("%d passed, 0 failed\n", checks);
  return 0;
}
