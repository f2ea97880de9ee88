/* A program whose functions are operators of a pipeline, and errors in their parts. Built with the sanitizers by
 * tests/capi/main.rs. */
#include <gesso.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                          \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #condition, gesso_last_error()); \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)

enum { MOST = 4 };

/* What a function gave last, until the library has copied it. */
typedef struct {
  int calls, fails;
  float *values;
  int64_t shape[MOST];
  gesso_sample samples[MOST];
} state;

/* Each sample twice, one behind the other. */
static int32_t twice(void *user, gesso_result *inputs, gesso_input *outputs, gesso_message *message) {
  state *kept = user;
  size_t count = gesso_result_batch_size(inputs);
  kept->calls++;
  if (kept->fails) {
    snprintf(message->text, message->capacity, "not today");
    gesso_result_free(inputs);
    return GESSO_STATUS_UNSUPPORTED;
  }
  if (kept->values != NULL || count > MOST) {
    snprintf(message->text, message->capacity, "it was not released");
    gesso_result_free(inputs);
    return GESSO_STATUS_INTERNAL;
  }
  kept->values = malloc(MOST * 64 * sizeof(float));
  for (size_t i = 0; i < count; i++) {
    gesso_tensor tensor = {.struct_size = sizeof tensor};
    if (gesso_result_tensor(inputs, 0, i, &tensor) != GESSO_STATUS_OK) {
      tensor.bytes = 0;
    }
    size_t length = tensor.bytes / sizeof(float);
    for (size_t j = 0; j < 2 * length; j++) {
      kept->values[64 * i + j] = ((const float *)tensor.data)[j % length];
    }
    kept->shape[i] = (int64_t)(2 * length);
    kept->samples[i] = (gesso_sample){
        .struct_size = sizeof(gesso_sample), .data = kept->values + 64 * i, .shape = kept->shape + i, .ndim = 1};
  }
  gesso_result_free(inputs);
  gesso_input *output = GESSO_AT(gesso_input, outputs, 0);
  output->dtype = GESSO_DTYPE_FLOAT32;
  output->samples = kept->samples;
  return GESSO_STATUS_OK;
}

static void release(void *user) {
  state *kept = user;
  free(kept->values);
  kept->values = NULL;
}

static const char PIPELINE[] =
    "{\"max_batch_size\": 4,"
    " \"inputs\": [{\"name\": \"A\", \"dtype\": \"float32\", \"ndim\": 1}],"
    " \"operators\": [{\"name\": \"Callback\", \"instance\": \"twice\", \"inputs\": [\"A\"], \"outputs\": [\"B\"]},"
    "   {\"name\": \"Callback\", \"instance\": \"again\", \"inputs\": [\"B\"], \"outputs\": [\"C\"]}],"
    " \"outputs\": [{\"name\": \"C\"}, {\"name\": \"A\"}]}";

/* A data set of the program's: batches of numbers, of which the second fails and none follows the third. */
typedef struct {
  int calls, is_held;
  float values[MOST];
  gesso_sample samples[MOST];
} numbers;

static int32_t next_numbers(void *user, gesso_result *inputs, gesso_input *outputs, gesso_message *message) {
  numbers *set = user;
  size_t count = gesso_result_batch_size(inputs);
  gesso_result_free(inputs);
  int call = set->calls++;
  if (set->is_held || count > MOST) {
    return GESSO_STATUS_INTERNAL;
  }
  if (call == 1) {
    snprintf(message->text, message->capacity, "page 1 is torn");
    return GESSO_STATUS_NOT_FOUND;
  }
  if (call >= 3) {
    return GESSO_STATUS_OK;
  }
  for (size_t i = 0; i < count; i++) {
    set->values[i] = (float)(10 * call) + (float)i;
    set->samples[i] = (gesso_sample){.struct_size = sizeof(gesso_sample), .data = set->values + i, .ndim = 0};
  }
  set->is_held = 1;
  gesso_input *output = GESSO_AT(gesso_input, outputs, 0);
  output->dtype = GESSO_DTYPE_FLOAT32;
  output->samples = set->samples;
  return GESSO_STATUS_OK;
}

static void release_numbers(void *user) { ((numbers *)user)->is_held = 0; }

static const char READING[] =
    "{\"max_batch_size\": 4, \"inputs\": [],"
    " \"operators\": [{\"name\": \"CallbackSource\", \"instance\": \"set\", \"outputs\": [\"A\"],"
    "     \"arguments\": {\"output_layouts\": [\"\"]}},"
    "   {\"name\": \"Cast\", \"instance\": \"cast\", \"inputs\": [\"A\"], \"outputs\": [\"B\"], \"arguments\": {\"dtype\": [6]}}],"
    " \"outputs\": [{\"name\": \"B\"}, {\"name\": \"A\"}]}";

/* Reads it by a stream, with several batches worked on at once. */
static void read_numbers(void) {
  uint8_t *bytes;
  size_t length;
  gesso_pipeline *pipeline;
  numbers set = {0};
  gesso_callback callback = {
      .struct_size = sizeof callback, .name = "set", .call = next_numbers, .release = release_numbers, .user = &set};
  CHECK(gesso_author(READING, sizeof READING - 1, &bytes, &length) == GESSO_STATUS_OK);
  CHECK(gesso_pipeline_load(bytes, length, GESSO_DEVICE_CPU, &pipeline) == GESSO_STATUS_UNSUPPORTED);
  CHECK(gesso_pipeline_load_with_callbacks(bytes, length, GESSO_DEVICE_CPU, &callback, 1, &pipeline) == GESSO_STATUS_OK);
  gesso_bytes_free(bytes, length);
  gesso_instance *instance;
  CHECK(gesso_instance_create(pipeline, NULL, &instance) == GESSO_STATUS_INVALID_ARGUMENT);
  gesso_stream_options options = {.struct_size = sizeof options, .batch_size = 3, .prefetch = 4, .lanes = 2};
  gesso_stream *stream;
  CHECK(gesso_stream_create(pipeline, &options, &stream) == GESSO_STATUS_OK);
  gesso_result *result;
  for (int batch = 0; batch < 3; batch++) {
    gesso_error_info error = {.struct_size = sizeof error};
    if (batch == 1) {
      CHECK(gesso_stream_next(stream, &result, NULL) == GESSO_STATUS_NOT_FOUND && result == NULL);
      CHECK(gesso_last_error_info(&error) == GESSO_STATUS_OK);
      CHECK(strcmp(error.source_name, "set") == 0 && strcmp(error.reason, "page 1 is torn") == 0);
      continue;
    }
    CHECK(gesso_stream_next(stream, &result, NULL) == GESSO_STATUS_OK && gesso_result_batch_size(result) == 3);
    for (size_t i = 0; i < 3; i++) {
      gesso_tensor tensor = {.struct_size = sizeof tensor};
      CHECK(gesso_result_tensor(result, 0, i, &tensor) == GESSO_STATUS_OK);
      CHECK(*(int32_t *)tensor.data == 10 * batch + (int32_t)i);
      CHECK(gesso_result_tensor(result, 1, i, &tensor) == GESSO_STATUS_OK);
      CHECK(*(float *)tensor.data == (float)(10 * batch) + (float)i);
    }
    gesso_result_free(result);
  }
  CHECK(gesso_stream_next(stream, &result, NULL) == GESSO_STATUS_OK && result == NULL);
  gesso_stream_free(stream);
  gesso_pipeline_free(pipeline);
  CHECK(set.calls == 4 && set.is_held == 0);
}

/* A store of the program's: two files of as many bytes as their names have. */
static const char *const STORED[] = {"mem://set/a/one.bin", "mem://set/b/three.bin"};

static const char *stored(const char *path, gesso_message *message) {
  for (size_t i = 0; i < 2; i++) {
    if (strcmp(path, STORED[i]) == 0) {
      return STORED[i];
    }
  }
  snprintf(message->text, message->capacity, "no such key");
  return NULL;
}

static int32_t store_size(void *user, const char *path, uint64_t *size, gesso_message *message) {
  (void)user;
  const char *found = stored(path, message);
  *size = found ? strlen(found) : 0;
  return found ? GESSO_STATUS_OK : GESSO_STATUS_NOT_FOUND;
}

static int32_t store_read(void *user, const char *path, uint64_t at, uint8_t *to, size_t length, gesso_message *message) {
  (void)user;
  const char *found = stored(path, message);
  if (!found || at + length > strlen(found)) {
    return GESSO_STATUS_NOT_FOUND;
  }
  memcpy(to, found + at, length);
  return GESSO_STATUS_OK;
}

static int32_t store_get(void *user, const char *path, gesso_room room, void *file, gesso_message *message) {
  (void)user;
  const char *found = stored(path, message);
  uint8_t *to = found ? room(file, strlen(found)) : NULL;
  if (!to) {
    return GESSO_STATUS_NOT_FOUND;
  }
  memcpy(to, found, strlen(found));
  return GESSO_STATUS_OK;
}

static int32_t store_list(void *user, const char *root, gesso_add_name add, void *names, gesso_message *message) {
  (void)user, (void)message;
  for (size_t i = 2; i-- > 0;) {
    add(names, STORED[i] + strlen(root) + 1);
  }
  return GESSO_STATUS_OK;
}

static const char IN_STORE[] =
    "{\"max_batch_size\": 1, \"inputs\": [],"
    " \"operators\": [{\"name\": \"readers__File\", \"outputs\": [\"A\", \"B\"],"
    "   \"arguments\": {\"file_root\": [\"mem://set\"], \"file_filters\": [\"*.bin\"]}}],"
    " \"outputs\": [{\"name\": \"A\"}]}";

/* Reads files of the store, sample by sample. */
static void read_store(void) {
  uint8_t *bytes;
  size_t length;
  CHECK(gesso_author(IN_STORE, sizeof IN_STORE - 1, &bytes, &length) == GESSO_STATUS_OK);
  gesso_dataset *dataset;
  CHECK(gesso_dataset_open(bytes, length, &dataset) == GESSO_STATUS_UNSUPPORTED && dataset == NULL);
  gesso_store store = {.struct_size = sizeof store, .size = store_size, .read = store_read, .get = store_get};
  CHECK(gesso_set_store(&store) == GESSO_STATUS_INVALID_ARGUMENT && gesso_set_store(NULL) == GESSO_STATUS_INVALID_ARGUMENT);
  store.list = store_list;
  CHECK(gesso_set_store(&store) == GESSO_STATUS_OK);
  CHECK(gesso_dataset_open(bytes, length, &dataset) == GESSO_STATUS_OK && gesso_dataset_count(dataset) == 2);
  gesso_bytes_free(bytes, length);
  CHECK(gesso_dataset_allow(dataset, "none of these") == GESSO_STATUS_INVALID_ARGUMENT);
  CHECK(gesso_dataset_allow(dataset, "jpeg") == GESSO_STATUS_OK && gesso_dataset_allow(dataset, NULL) == GESSO_STATUS_OK);
  CHECK(gesso_dataset_files(dataset, NULL, 0) == 0);
  for (size_t i = 0; i < 2; i++) {
    gesso_result *result;
    gesso_tensor tensor = {.struct_size = sizeof tensor};
    CHECK(gesso_dataset_read_with(dataset, i, NULL, 0, &result) == GESSO_STATUS_OK);
    CHECK(gesso_result_tensor(result, 0, 0, &tensor) == GESSO_STATUS_OK && tensor.bytes == strlen(STORED[i]));
    CHECK(memcmp(tensor.data, STORED[i], tensor.bytes) == 0);
    gesso_result_free(result);
  }
  double value = 1;
  int64_t one = 1;
  gesso_sample sample = {.struct_size = sizeof sample, .data = &value, .shape = &one, .ndim = 1};
  gesso_input argument = {.struct_size = sizeof argument, .name = "x", .dtype = GESSO_DTYPE_FLOAT64, .samples = &sample};
  gesso_result *result;
  CHECK(gesso_dataset_read_with(dataset, 0, &argument, 1, &result) == GESSO_STATUS_UNSUPPORTED && result == NULL);
  gesso_dataset_free(dataset);
}

int main(void) {
  read_store();
  read_numbers();
  uint8_t *bytes;
  size_t length;
  gesso_pipeline *pipeline;
  state states[2] = {{0}};
  gesso_callback callbacks[2] = {
      {.struct_size = sizeof(gesso_callback), .name = "twice", .call = twice, .release = release, .user = &states[0]},
      {.struct_size = sizeof(gesso_callback), .name = "again", .call = twice, .release = release, .user = &states[1]}};
  CHECK(gesso_author(PIPELINE, sizeof PIPELINE - 1, &bytes, &length) == GESSO_STATUS_OK);
  CHECK(gesso_pipeline_load(bytes, length, GESSO_DEVICE_CPU, &pipeline) == GESSO_STATUS_UNSUPPORTED && pipeline == NULL);
  gesso_error_info error = {.struct_size = sizeof error};
  CHECK(gesso_last_error_info(&error) == GESSO_STATUS_OK && error.status == GESSO_STATUS_UNSUPPORTED);
  CHECK(strcmp(error.operator_name, "twice") == 0 && strcmp(error.message, gesso_last_error()) == 0);
  CHECK(strstr(error.message, error.reason) > error.message && *error.source_name == 0 && *error.file == 0);
  CHECK(gesso_pipeline_load_with_callbacks(bytes, length, GESSO_DEVICE_CPU, NULL, 1, &pipeline) == GESSO_STATUS_INVALID_ARGUMENT);
  CHECK(gesso_pipeline_load_with_callbacks(bytes, length, GESSO_DEVICE_CPU, callbacks, 1, &pipeline) == GESSO_STATUS_UNSUPPORTED);
  callbacks[1].name = "twice";
  CHECK(gesso_pipeline_load_with_callbacks(bytes, length, GESSO_DEVICE_CPU, callbacks, 2, &pipeline) ==
        GESSO_STATUS_INVALID_ARGUMENT);
  callbacks[1].name = "again";
  CHECK(gesso_pipeline_load_with_callbacks(bytes, length, GESSO_DEVICE_CPU, callbacks, 2, &pipeline) == GESSO_STATUS_OK);
  gesso_bytes_free(bytes, length);
  gesso_instance *instance;
  CHECK(gesso_instance_create(pipeline, NULL, &instance) == GESSO_STATUS_OK);
  CHECK(gesso_instance_go_on(NULL, 1) == GESSO_STATUS_INVALID_ARGUMENT && gesso_instance_go_on(instance, 8) == GESSO_STATUS_OK);

  /* It has no branches in which numbers are drawn. */
  uint64_t branches[1] = {1};
  CHECK(gesso_instance_go_on_in_branches(instance, branches, 1) == GESSO_STATUS_INVALID_ARGUMENT);
  CHECK(gesso_instance_go_on_in_branches(instance, NULL, 1) == GESSO_STATUS_INVALID_ARGUMENT);
  CHECK(gesso_instance_go_on_in_branches(NULL, NULL, 0) == GESSO_STATUS_INVALID_ARGUMENT);
  CHECK(gesso_instance_go_on_in_branches(instance, NULL, 0) == GESSO_STATUS_OK);

  float values[2][3] = {{1, 2, 3}, {4, 5, 6}};
  int64_t shapes[2] = {3, 2};
  gesso_sample samples[2];
  for (int i = 0; i < 2; i++) {
    samples[i] = (gesso_sample){.struct_size = sizeof(gesso_sample), .data = values[i], .shape = &shapes[i], .ndim = 1};
  }
  gesso_input input = {.struct_size = sizeof input, .name = "A", .dtype = GESSO_DTYPE_FLOAT32, .samples = samples};
  gesso_result *result;
  for (int run = 0; run < 2; run++) {
    CHECK(gesso_instance_run(instance, 2, &input, 1, &result) == GESSO_STATUS_OK);
    for (int i = 0; i < 2; i++) {
      gesso_tensor tensor = {.struct_size = sizeof tensor};
      CHECK(gesso_result_tensor(result, 0, (size_t)i, &tensor) == GESSO_STATUS_OK && tensor.shape[0] == 4 * shapes[i]);
      CHECK(((float *)tensor.data)[tensor.shape[0] - 1] == values[i][shapes[i] - 1]);
      CHECK(gesso_result_sample_error(result, (size_t)i, &error) == GESSO_STATUS_OK && error.status == GESSO_STATUS_OK);
    }
    CHECK(gesso_result_sample_error(result, 2, &error) == GESSO_STATUS_NOT_FOUND);
    size_t count = 7;
    CHECK(gesso_result_branch_samples(result, &count) == NULL && count == 0);
    CHECK(gesso_result_branch_samples(NULL, NULL) == NULL);
    gesso_result_free(result);
    CHECK(states[0].values == NULL && states[1].values == NULL);
  }
  states[1].fails = 1;
  CHECK(gesso_instance_run(instance, 2, &input, 1, &result) == GESSO_STATUS_UNSUPPORTED && result == NULL);
  CHECK(gesso_last_error_info(&error) == GESSO_STATUS_OK);
  CHECK(strcmp(error.operator_name, "again") == 0 && strcmp(error.reason, "not today") == 0);
  CHECK(states[0].calls == 3 && states[1].calls == 3 && states[0].values == NULL);
  input.dtype = GESSO_DTYPE_UINT8;
  CHECK(gesso_instance_run(instance, 2, &input, 1, &result) == GESSO_STATUS_INVALID_ARGUMENT);
  CHECK(gesso_last_error_info(&error) == GESSO_STATUS_OK && strcmp(error.source_name, "A") == 0);
  gesso_stream *stream;
  CHECK(gesso_stream_create(pipeline, NULL, &stream) == GESSO_STATUS_INVALID_ARGUMENT);
  CHECK(gesso_stream_run(NULL, 2, &input, 1, &result, NULL) == GESSO_STATUS_INVALID_ARGUMENT);
  gesso_instance_free(instance);
  gesso_pipeline_free(pipeline);
  puts("as promised");
  return 0;
}
