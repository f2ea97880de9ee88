// Lets g++ compile a kernel whose threads do not wait for each other: one thread does all the work, as its loops allow.
#define __device__
#define __global__
#define __shared__ static

extern "C" {
float fmaf(float, float, float);
float floorf(float);
float rintf(float);
float roundf(float);
float truncf(float);
float fmodf(float, float);
float fminf(float, float);
float fmaxf(float, float);
float ceilf(float);
float log2f(float);
float logf(float);
float sqrtf(float);
float cosf(float);
float sinf(float);
double floor(double);
double round(double);
double trunc(double);
double rint(double);
double fma(double, double, double);
double fmin(double, double);
double fmax(double, double);
double log(double);
double sqrt(double);
double exp(double);
double lgamma(double);
double fabs(double);
double ceil(double);
double cos(double);
}

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct Index {
  unsigned x, y, z;
};
static Index threadIdx, blockIdx, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }
static void __syncthreads() {}
template <class T> static T atomicAdd(T *p, T value) {
  const T old = *p;
  *p += value;
  return old;
}

#include KERNEL

extern "C" void run(const Row *rows, unsigned count, const PARAMS *params) {
  for (blockIdx.y = 0; blockIdx.y < count; blockIdx.y++) ENTRY(rows, count, *params);
}
