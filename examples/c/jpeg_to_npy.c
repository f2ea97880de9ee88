/* Runs a serialized pipeline on image files and writes its first output as numpy arrays, OUT.0.npy, OUT.1.npy, ...
 *
 *   cc -Iinclude examples/c/jpeg_to_npy.c -o jpeg_to_npy target/release/libtriton_gesso.so
 *   LD_LIBRARY_PATH=target/release ./jpeg_to_npy model.dali OUT a.jpg b.jpg
 *
 * The pipeline has one input, which takes encoded images. An image that cannot be decoded fails alone. */
#include <gesso.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const NUMPY_TYPES[] = {"|u1", "<u2", "<u4", "<u8", "|i1", "<i2",
                                          "<i4", "<i8", "<f2", "<f4", "<f8", "|b1"};

static void check(gesso_status status, const char *what) {
  if (status != GESSO_STATUS_OK) {
    fprintf(stderr, "%s: status %d: %s\n", what, (int)status, gesso_last_error());
    exit(1);
  }
}

static unsigned char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(1);
  }
  *length = (size_t)ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(*length + 1);
  if (bytes == NULL || fread(bytes, 1, *length, file) != *length) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(1);
  }
  fclose(file);
  return bytes;
}

static void write_npy(const char *path, const gesso_tensor *tensor) {
  char header[1024], shape[512] = "";
  for (int d = 0; d < tensor->ndim; d++) {
    sprintf(shape + strlen(shape), "%lld,", (long long)tensor->shape[d]);
  }
  int length = sprintf(header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                       NUMPY_TYPES[tensor->dtype], shape);
  /* The elements begin at a multiple of 64 bytes. */
  while ((10 + length + 1) % 64 != 0) header[length++] = ' ';
  header[length++] = '\n';
  const unsigned char start[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(length & 255), (unsigned char)(length >> 8)};
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(start, 1, sizeof start, file) != sizeof start ||
      fwrite(header, 1, (size_t)length, file) != (size_t)length ||
      fwrite(tensor->data, 1, tensor->bytes, file) != tensor->bytes || fclose(file) != 0) {
    fprintf(stderr, "cannot write %s\n", path);
    exit(1);
  }
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: %s PIPELINE OUT IMAGE...\n", argv[0]);
    return 2;
  }
  if (gesso_abi_version() != GESSO_ABI_VERSION) {
    fprintf(stderr, "the library is another one than the header\n");
    return 1;
  }
  size_t length, count = (size_t)argc - 3;
  unsigned char *bytes = read_file(argv[1], &length);
  gesso_pipeline *pipeline;
  check(gesso_pipeline_load(bytes, length, GESSO_DEVICE_CPU, &pipeline), "loading the pipeline");
  free(bytes);
  gesso_tensor_info info = {.struct_size = sizeof info};
  check(gesso_pipeline_input(pipeline, 0, &info), "its input");
  gesso_instance *instance;
  check(gesso_instance_create(pipeline, NULL, &instance), "making an instance");

  unsigned char **files = malloc(count * sizeof *files);
  int64_t *lengths = malloc(count * sizeof *lengths);
  gesso_sample *samples = malloc(count * sizeof *samples);
  for (size_t i = 0; i < count; i++) {
    files[i] = read_file(argv[i + 3], &length);
    lengths[i] = (int64_t)length;
    samples[i] = (gesso_sample){.struct_size = sizeof *samples, .data = files[i], .shape = &lengths[i], .ndim = 1};
  }
  gesso_input input = {.struct_size = sizeof input, .name = info.name, .dtype = GESSO_DTYPE_UINT8, .samples = samples};
  gesso_result *result;
  check(gesso_instance_run(instance, count, &input, 1, &result), "running the batch");

  int failed = 0;
  for (size_t i = 0; i < count; i++) {
    const char *message;
    if (gesso_result_sample_status(result, i, &message) != GESSO_STATUS_OK) {
      fprintf(stderr, "%s: %s\n", argv[i + 3], message);
      failed = 1;
      continue;
    }
    gesso_tensor tensor = {.struct_size = sizeof tensor};
    check(gesso_result_tensor(result, 0, i, &tensor), "its output");
    char path[4096];
    snprintf(path, sizeof path, "%s.%zu.npy", argv[2], i);
    write_npy(path, &tensor);
    printf("%s -> %s\n", argv[i + 3], path);
  }

  gesso_result_free(result);
  gesso_instance_free(instance);
  gesso_pipeline_free(pipeline);
  for (size_t i = 0; i < count; i++) free(files[i]);
  free(files);
  free(lengths);
  free(samples);
  return failed;
}
