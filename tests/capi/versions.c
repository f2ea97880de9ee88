/* A program whose header is older (OLDER: `gesso_input` has no `layout`) or newer (NEWER: every struct has three
 * numbers more) than the library, with an operator of its own. Built with the sanitizers by tests/capi/main.rs. */
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

static int32_t infer(void *state, const gesso_tensor_info *inputs, const gesso_tensor *arguments, gesso_tensor_info *outputs,
                     gesso_message *message) {
  (void)state;
  (void)arguments;
  if (inputs->dtype != GESSO_DTYPE_ANY && inputs->dtype != GESSO_DTYPE_FLOAT32) {
    snprintf(message->text, message->capacity, "expected float32");
    return GESSO_STATUS_INVALID_ARGUMENT;
  }
  memcpy(outputs, inputs, inputs->struct_size);
  return GESSO_STATUS_OK;
}

/* The sum of two. */
static int32_t sum(const void *state, const gesso_operator_sample *sample, gesso_message *message) {
  (void)state;
  (void)message;
  const gesso_tensor *left = GESSO_AT(const gesso_tensor, sample->inputs, 0), *right = GESSO_AT(const gesso_tensor, sample->inputs, 1);
  for (size_t i = 0; i < left->bytes / sizeof(float); i++) {
    ((float *)sample->outputs->data)[i] = ((const float *)left->data)[i] + ((const float *)right->data)[i];
  }
  return GESSO_STATUS_OK;
}

static gesso_operator SUM = {
    .struct_size = sizeof(gesso_operator),
    .name = "SumOfTwo",
    .doc = "Adds",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .infer = infer,
    .run_cpu = sum,
};

static const char PIPELINE[] =
    "{\"max_batch_size\": 2,"
    " \"inputs\": [{\"name\": \"A\", \"dtype\": \"float32\", \"ndim\": 1}, {\"name\": \"B\", \"dtype\": \"float32\", \"ndim\": 1}],"
    " \"operators\": [{\"name\": \"SumOfTwo\", \"inputs\": [\"A\", \"B\"], \"outputs\": [\"C\"]}],"
    " \"outputs\": [{\"name\": \"C\"}]}";

int main(void) {
  const gesso_operator *const table[] = {&SUM, NULL};
#ifdef NEWER
  SUM.later[2] = 1;
  CHECK(gesso_register_operators(table) == GESSO_STATUS_UNSUPPORTED);
  CHECK(strstr(gesso_last_error(), "behind them something is set that it cannot do") != NULL);
  SUM.later[2] = 0;
#endif
  CHECK(gesso_register_operators(NULL) == GESSO_STATUS_INVALID_ARGUMENT);
  CHECK(gesso_register_operators(table) == GESSO_STATUS_OK);
  CHECK(gesso_register_operators(table) == GESSO_STATUS_ALREADY_EXISTS);
  const char *operators, *again;
  CHECK(gesso_operators_json(&operators) == GESSO_STATUS_OK && strstr(operators, "\"SumOfTwo\"") != NULL);
  CHECK(gesso_operators_json(&again) == GESSO_STATUS_OK && again == operators);
  CHECK(gesso_operators_json(NULL) == GESSO_STATUS_INVALID_ARGUMENT);

  uint8_t *bytes;
  size_t length;
  gesso_pipeline *pipeline;
  CHECK(gesso_author(PIPELINE, sizeof PIPELINE - 1, &bytes, &length) == GESSO_STATUS_OK);
  CHECK(gesso_pipeline_load(bytes, length, GESSO_DEVICE_CPU, &pipeline) == GESSO_STATUS_OK);
  gesso_bytes_free(bytes, length);
  gesso_tensor_info info;
  memset(&info, 0x5a, sizeof info);
  info.struct_size = sizeof info;
  CHECK(gesso_pipeline_output(pipeline, 0, &info) == GESSO_STATUS_OK);
  CHECK(strcmp(info.name, "C") == 0 && info.shape[GESSO_MAX_NDIM - 1] == -1 && info.struct_size == sizeof info);
  gesso_instance_options options = {.struct_size = sizeof options, .num_threads = 1};
  gesso_instance *instance;
#ifdef NEWER
  CHECK(info.later[0] == 0x5a5a5a5a5a5a5a5a);
  options.later[0] = 1;
  CHECK(gesso_instance_create(pipeline, &options, &instance) == GESSO_STATUS_UNSUPPORTED);
  options.later[0] = 0;
#endif
  CHECK(gesso_instance_create(pipeline, &options, &instance) == GESSO_STATUS_OK);

  float values[2][2][3] = {{{1, 2, 3}, {4, 5, 6}}, {{10, 20, 30}, {40, 50, 60}}};
  int64_t three = 3;
  gesso_sample samples[2][2];
  gesso_input inputs[2];
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 2; j++) {
      samples[i][j] = (gesso_sample){.struct_size = sizeof(gesso_sample), .data = values[i][j], .shape = &three, .ndim = 1};
    }
    inputs[i] = (gesso_input){
        .struct_size = sizeof(gesso_input), .name = i == 0 ? "A" : "B", .dtype = GESSO_DTYPE_FLOAT32, .samples = samples[i]};
  }
  gesso_result *result;
  CHECK(gesso_instance_run(instance, 2, inputs, 2, &result) == GESSO_STATUS_OK);
  gesso_tensor tensors[2];
  memset(tensors, 0x5a, sizeof tensors);
  tensors[0].struct_size = tensors[1].struct_size = sizeof tensors[0];
  CHECK(gesso_result_tensors(result, 0, tensors, 2) == GESSO_STATUS_OK);
  for (int j = 0; j < 2; j++) {
    CHECK(tensors[j].bytes == 12 && tensors[j].ndim == 1 && ((float *)tensors[j].data)[2] == values[0][j][2] + values[1][j][2]);
  }
#ifdef NEWER
  CHECK(tensors[0].later[2] == 0x5a5a5a5a5a5a5a5a);
  gesso_result *refused;
  samples[1][1].later[1] = 1;
  CHECK(gesso_instance_run(instance, 2, inputs, 2, &refused) == GESSO_STATUS_UNSUPPORTED && refused == NULL);
#endif
  gesso_result_free(result);
  gesso_instance_free(instance);
  gesso_pipeline_free(pipeline);
  puts("as promised");
  return 0;
}
