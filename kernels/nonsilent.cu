// Where signals are louder than a threshold. FROM is the type of their elements, SUM one that holds sums of squares; a
// row of the table is a signal.
#include "common.cuh"

#include "layouts/nonsilent.cuh"

__device__ inline SUM square(FROM value) { return (SUM)convert<SUM>(value) * convert<SUM>(value); }

extern "C" __global__ void mean_squares(const Row *rows, uint32_t count, Params) {
  const Row &row = rows[blockIdx.y];
  const float factor = 1.0f / (float)row.window;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x * RUN;
  for (uint64_t first = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) * RUN; first < row.positions; first += step) {
    SUM sum = 0;
    for (uint64_t i = first; i < first + row.window; ++i) sum += square(row.from[i]);
    for (uint64_t i = first;; ++i) {
      row.means[i] = (float)sum * factor;
      if (i + 1 == row.positions || i + 1 == first + RUN) break;
      sum += square(row.from[i + row.window]) - square(row.from[i]);
    }
  }
}

// For one block of THREADS a row.
extern "C" __global__ void nonsilent(const Row *rows, uint32_t count, Params params) {
  __shared__ float loudest[THREADS];
  __shared__ uint64_t firsts[THREADS], lasts[THREADS];
  const Row &row = rows[blockIdx.y];
  const uint32_t own = threadIdx.x;
  float most = -3.402823466e38f;
  for (uint64_t i = own; i < row.positions; i += THREADS) most = row.means[i] > most ? row.means[i] : most;
  loudest[own] = most;
  for (uint32_t half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (own < half && loudest[own + half] > loudest[own]) loudest[own] = loudest[own + half];
  }
  __syncthreads();
  const float threshold = params.ratio * (params.reference < 0 ? loudest[0] : params.reference);
  // Behind the last when there is none; lasts count from 1.
  uint64_t first = row.positions, last = 0;
  for (uint64_t i = own; i < row.positions; i += THREADS) {
    if (!(row.means[i] >= threshold)) continue;
    first = i < first ? i : first;
    last = i + 1;
  }
  firsts[own] = first;
  lasts[own] = last;
  for (uint32_t half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (own >= half) continue;
    if (firsts[own + half] < firsts[own]) firsts[own] = firsts[own + half];
    if (lasts[own + half] > lasts[own]) lasts[own] = lasts[own + half];
  }
  if (own > 0) return;
  const bool is_silent = lasts[0] == 0;
  *row.begin = is_silent ? 0 : (int32_t)firsts[0];
  *row.length = is_silent ? 0 : (int32_t)(lasts[0] - 1 - firsts[0] + row.window);
}
