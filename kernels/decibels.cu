// Decibels of a reference: a given one, or the largest value of the sample. A row of the table is a sample.
#include "common.cuh"

#include "layouts/decibels.cuh"

__device__ inline float larger(float most, float value) { return value > most ? value : most; }

// The largest value of each part, for PARTS blocks of THREADS a row.
extern "C" __global__ void largest(const Row *rows, uint32_t count, Params) {
  __shared__ float found[THREADS];
  const Row &row = rows[blockIdx.y];
  float most = 0;
  for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < row.elements; i += PARTS * THREADS)
    most = larger(most, row.from[i]);
  found[threadIdx.x] = most;
  for (uint32_t half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) found[threadIdx.x] = larger(found[threadIdx.x], found[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) row.largest[blockIdx.x] = found[0];
}

extern "C" __global__ void decibels(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  float inverse = params.inverse;
  if (row.largest) {
    float most = 0;
    for (uint32_t i = 0; i < PARTS; ++i) most = larger(most, row.largest[i]);
    inverse = most == 0 ? 1.0f : 1.0f / most;
  }
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step)
    row.to[i] = params.factor * log2f(larger(params.floor, row.from[i] * inverse));
}
