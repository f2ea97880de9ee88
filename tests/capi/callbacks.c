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

int main(void) {
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
