/* An operator in a library of its own: `Vignette` darkens images towards their corners, on the host and on a GPU.
 *
 *   cc -shared -fPIC -Iinclude examples/c/vignette_operator.c -o libvignette.so -ldl -lpthread
 *   tritonserver --backend-config=dali,plugin_libs=/path/libvignette.so ...
 *   gesso run --plugin-lib libvignette.so model.dali ...
 *
 * One input: uint8, the last three dimensions height, width, channels. One argument: `strength`, by how much the
 * corners are darker, 0 to 1 (default 0.5), a number or a tensor. A pixel at distance d of the center, 1 in the
 * corners, is multiplied by 1 - strength d^2. */
#include <gesso.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an instance of the operator knows. */
typedef struct {
  float strength;
  int is_tensor; /* then each sample brings its own */
} vignette;

static int32_t fail(gesso_message *message, const char *text) {
  snprintf(message->text, message->capacity, "%s", text);
  return GESSO_STATUS_INVALID_ARGUMENT;
}

static int32_t create(const gesso_argument *arguments, size_t argument_count, size_t input_count, void **state,
                      gesso_message *message) {
  (void)input_count;
  vignette made = {0.5f, 0};
  for (size_t i = 0; i < argument_count; i++) {
    /* `strength` is the only argument in the table below. */
    const gesso_argument *argument = GESSO_AT(const gesso_argument, arguments, i);
    if (argument->kind == GESSO_ARGUMENT_KIND_TENSOR) {
      made.is_tensor = 1;
    } else if (argument->kind == GESSO_ARGUMENT_KIND_FLOAT && argument->count == 1) {
      made.strength = *(const float *)argument->values;
    } else if (argument->kind == GESSO_ARGUMENT_KIND_INT && argument->count == 1) {
      made.strength = (float)*(const int64_t *)argument->values;
    } else {
      return fail(message, "argument `strength` is not one number");
    }
  }
  if (!(made.strength >= 0 && made.strength <= 1)) return fail(message, "argument `strength` is outside of 0 to 1");
  vignette *kept = malloc(sizeof *kept);
  if (kept == NULL) return GESSO_STATUS_UNAVAILABLE;
  *kept = made;
  *state = kept;
  return GESSO_STATUS_OK;
}

static int32_t infer(void *state, const gesso_tensor_info *inputs, const gesso_tensor *arguments, gesso_tensor_info *outputs,
                     gesso_message *message) {
  (void)state;
  (void)arguments;
  if (inputs->dtype != GESSO_DTYPE_ANY && inputs->dtype != GESSO_DTYPE_UINT8) return fail(message, "expected uint8");
  if (inputs->ndim != -1 && inputs->ndim < 3) return fail(message, "expected height, width and channels");
  memcpy(outputs, inputs, inputs->struct_size); /* what is unknown stays unknown */
  outputs->dtype = GESSO_DTYPE_UINT8;
  return GESSO_STATUS_OK;
}

static int32_t strength_of(const vignette *state, const gesso_operator_sample *sample, float *strength, gesso_message *message) {
  *strength = state->strength;
  if (!state->is_tensor) return GESSO_STATUS_OK;
  const gesso_tensor *given = sample->arguments;
  if (given->dtype != GESSO_DTYPE_FLOAT32 || given->bytes != sizeof *strength) {
    return fail(message, "argument `strength` is not one float32");
  }
  *strength = *(const float *)given->data;
  return *strength >= 0 && *strength <= 1 ? GESSO_STATUS_OK : fail(message, "argument `strength` is outside of 0 to 1");
}

/* The dimensions in front of height, width and channels count frames. */
static void extents(const gesso_tensor *tensor, long long *frames, int *height, int *width, int *channels) {
  const int64_t *last = tensor->shape + tensor->ndim - 3;
  *frames = 1;
  for (const int64_t *extent = tensor->shape; extent < last; extent++) *frames *= *extent;
  *height = (int)last[0];
  *width = (int)last[1];
  *channels = (int)last[2];
}

static int32_t run_cpu(const void *state, const gesso_operator_sample *sample, gesso_message *message) {
  float strength;
  int32_t status = strength_of(state, sample, &strength, message);
  if (status != GESSO_STATUS_OK) return status;
  long long frames;
  int height, width, channels;
  extents(sample->inputs, &frames, &height, &width, &channels);
  const unsigned char *from = sample->inputs->data;
  unsigned char *to = sample->outputs->data;
  const float corner = 0.25f * ((float)height * height + (float)width * width);
  for (long long row = 0; row < frames * height; row++) {
    for (int x = 0; x < width; x++) {
      const float dy = row % height + 0.5f - 0.5f * height, dx = x + 0.5f - 0.5f * width;
      const float factor = 1 - strength * (dy * dy + dx * dx) / corner;
      for (int c = 0; c < channels; c++) *to++ = (unsigned char)(*from++ * factor + 0.5f);
    }
  }
  return GESSO_STATUS_OK;
}

/* The same on a GPU. The kernel is compiled by NVRTC, and the driver is looked up where it is, so that the library also
 * loads on hosts without either. A real operator might bring a cubin, and do a whole batch in one launch. */
static const char KERNEL[] =
    "extern \"C\" __global__ void vignette(unsigned char *to, const unsigned char *from, long long rows, int height, int width,\n"
    "                                    int channels, float strength) {\n"
    "  const float corner = 0.25f * ((float)height * height + (float)width * width);\n"
    "  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < rows * width * channels; i += gridDim.x * 256LL) {\n"
    "    const float dy = i / channels / width % height + 0.5f - 0.5f * height, dx = i / channels % width + 0.5f - 0.5f * width;\n"
    "    to[i] = (unsigned char)(from[i] * (1 - strength * (dy * dy + dx * dx) / corner) + 0.5f);\n"
    "  }\n"
    "}\n";

typedef struct {
  int (*context)(void **);
  int (*load)(void **, const void *);
  int (*function)(void **, void *, const char *);
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
} driver;

enum { MAX_CONTEXTS = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static driver cuda;
static struct {
  void *context, *function;
} kernels[MAX_CONTEXTS];

/* ISO C has no cast from an object's pointer to a function's. */
static int find(void *library, const char *name, void *function) {
  void *found = library == NULL ? NULL : dlsym(library, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static char *compile(void) {
  int (*make)(void **, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile)(void *, int, const char *const *), (*size)(void *, size_t *), (*get)(void *, char *);
  void *nvrtc = dlopen("libnvrtc.so.13", RTLD_NOW), *program;
  if (nvrtc == NULL) nvrtc = dlopen("libnvrtc.so.12", RTLD_NOW);
  if (!find(nvrtc, "nvrtcCreateProgram", &make) || !find(nvrtc, "nvrtcCompileProgram", &compile) ||
      !find(nvrtc, "nvrtcGetPTXSize", &size) || !find(nvrtc, "nvrtcGetPTX", &get)) {
    return NULL;
  }
  const char *const options[] = {"--gpu-architecture=compute_75"};
  size_t bytes;
  if (make(&program, KERNEL, "vignette.cu", 0, NULL, NULL) != 0 || compile(program, 1, options) != 0 || size(program, &bytes) != 0) {
    return NULL;
  }
  char *ptx = malloc(bytes);
  return ptx != NULL && get(program, ptx) == 0 ? ptx : NULL;
}

/* The kernel in the context that is current; NULL if there is none. Called with the lock. */
static void *kernel(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *context, *module;
  if (!find(library, "cuCtxGetCurrent", &cuda.context) || !find(library, "cuModuleLoadData", &cuda.load) ||
      !find(library, "cuModuleGetFunction", &cuda.function) || !find(library, "cuLaunchKernel", &cuda.launch) ||
      cuda.context(&context) != 0) {
    return NULL;
  }
  int i = 0;
  while (i < MAX_CONTEXTS && kernels[i].context != NULL && kernels[i].context != context) i++;
  if (i == MAX_CONTEXTS) return NULL;
  if (kernels[i].context == NULL) {
    char *ptx = compile();
    if (ptx != NULL && cuda.load(&module, ptx) == 0 && cuda.function(&kernels[i].function, module, "vignette") == 0) {
      kernels[i].context = context;
    }
    free(ptx);
  }
  return kernels[i].context == NULL ? NULL : kernels[i].function;
}

static int32_t run_gpu(void *state, const gesso_operator_sample *samples, size_t count, void *stream, gesso_message *message) {
  pthread_mutex_lock(&lock);
  void *function = kernel();
  pthread_mutex_unlock(&lock);
  if (function == NULL) {
    fail(message, "the kernel of `Vignette` cannot be made: NVRTC or the driver is missing");
    return GESSO_STATUS_UNAVAILABLE;
  }
  for (size_t i = 0; i < count; i++) {
    const gesso_operator_sample *sample = GESSO_AT(const gesso_operator_sample, samples, i);
    float strength;
    int32_t status = strength_of(state, sample, &strength, message);
    if (status != GESSO_STATUS_OK) return status;
    long long frames;
    int height, width, channels;
    extents(sample->inputs, &frames, &height, &width, &channels);
    long long rows = frames * height;
    unsigned blocks = (unsigned)((rows * width * channels + 255) / 256);
    if (blocks == 0) continue;
    void *to = sample->outputs->data, *from = sample->inputs->data;
    void *parameters[] = {&to, &from, &rows, &height, &width, &channels, &strength};
    if (cuda.launch(function, blocks < 65535 ? blocks : 65535, 1, 1, 256, 1, 1, 0, stream, parameters, NULL) != 0) {
      fail(message, "the kernel of `Vignette` could not be launched");
      return GESSO_STATUS_INTERNAL;
    }
  }
  return GESSO_STATUS_OK;
}

static const char *const ARGUMENTS[] = {"strength", NULL};

static const gesso_operator VIGNETTE = {
    .struct_size = sizeof(gesso_operator),
    .name = "Vignette",
    .doc = "Darkens images towards their corners",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .arguments = ARGUMENTS,
    .create = create,
    .destroy = free,
    .infer = infer,
    .run_cpu = run_cpu,
    .run_gpu = run_gpu,
};

static const gesso_operator *const OPERATORS[] = {&VIGNETTE, NULL};

const gesso_operator *const *gesso_operators(uint32_t abi_version);
const gesso_operator *const *gesso_operators(uint32_t abi_version) {
  return abi_version == GESSO_OPERATOR_ABI_VERSION ? OPERATORS : NULL;
}
