// SeamlessM4T's features of signals: logarithms of the powers of Kaldi's mel bands, each band with a mean of 0 and a
// variance of 1. A row of the table is a signal.
#include "transform.cuh"

#include "layouts/seamless_features.cuh"

#include "pairwise.cuh"

constexpr uint32_t BINS = LENGTH / 2 + 1;

// Sample `i` of window `window`.
__device__ inline double sample(const Row &row, const Params &params, uint64_t window, uint64_t i) {
  return row.from[window * STEP + i] * params.levels;
}

// Sample `i` of a window around its mean, less a part of the one before, times the window.
__device__ inline double prepared(const Row &row, const Params &params, uint64_t window, double mean, uint32_t i) {
  if (i >= WINDOW || window >= row.windows) return 0;
  const double own = sample(row, params, window, i) - mean;
  const double part = params.emphasis * (i == 0 ? 0 : sample(row, params, window, i - 1) - mean);
  return (i == 0 ? own * (1 - params.emphasis) : own - part) * params.window[i];
}

// Logarithms of all bands, a row for each; what is no number says that there is none. A block transforms two windows at
// a time.
extern "C" __global__ void logarithms(const Row *rows, uint32_t count, Params params) {
  __shared__ Complex memory[2 * LENGTH];
  __shared__ double sums[2 << DEPTH];
  const Row &row = rows[blockIdx.y];
  for (uint64_t window = 2 * blockIdx.x; window < row.windows; window += 2 * gridDim.x) {
    double means[2] = {0, 0};
    for (uint32_t k = 0; k < 2; ++k) {
      // Of a window that is not there nothing is read.
      const uint64_t own = window + k < row.windows ? window + k : window;
      const auto value = [&](uint64_t i) { return sample(row, params, own, i); };
      means[k] = pairwise_sum<double>(WINDOW, DEPTH, sums, value) / WINDOW;
    }
    for (uint32_t i = threadIdx.x; i < LENGTH; i += THREADS)
      memory[i] = {prepared(row, params, window, means[0], i), prepared(row, params, window + 1, means[1], i)};
    __syncthreads();
    const Complex *spectrum = transformed<LENGTH, 1, RADICES>(memory, memory + LENGTH, params.turns);
    double *powers = (double *)(spectrum == memory ? memory + LENGTH : memory);
    for (uint32_t bin = threadIdx.x; bin < BINS; bin += THREADS) {
      const Bins bins = apart<LENGTH>(spectrum, bin);
      for (uint32_t k = 0; k < 2; ++k) {
        const double size = hypot((double)bins.re[k], (double)bins.im[k]);
        powers[k * BINS + bin] = size * size;
      }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < 2 * params.bands && window + i % 2 < row.windows; i += THREADS) {
      const Band band = params.filters[i / 2];
      const double *from = powers + i % 2 * BINS + band.first, *weights = params.weights + band.start;
      double power = 0;
      for (uint32_t k = 0; k < band.count; ++k) power += from[k] * weights[k];
      const float value = (float)log(power > params.floor ? power : params.floor);
      // Nothing but 0 is left of numbers.
      row.columns[i / 2 * row.windows + window + i % 2] = value + (float)(power - power);
    }
    __syncthreads();
  }
}

// Features of the bands' logarithms, zeros behind them, and the mask.
extern "C" __global__ void normalized(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  float *sums = row.sums + ((uint64_t)blockIdx.x << (row.depth + 1));
  for (uint32_t band = blockIdx.x; band < params.bands; band += gridDim.x) {
    const float *from = row.columns + band * row.windows;
    const float sum = pairwise_sum<float>(row.windows, row.depth, sums, [=](uint64_t i) { return from[i]; });
    const float mean = (float)((double)sum / (double)row.windows);
    const float squares = pairwise_sum<float>(row.windows, row.depth, sums, [=](uint64_t i) {
      const float distance = from[i] - mean;
      return distance * distance;
    });
    const float deviation = sqrtf((float)((double)squares / (double)(row.windows - 1)) + params.epsilon);
    for (uint64_t i = threadIdx.x; i < row.groups * params.stride; i += THREADS)
      row.to[i * params.bands + band] = i < row.windows ? (from[i] - mean) / deviation : 0;
    if (threadIdx.x == 0) row.outcome[band] = sum == sum ? MADE : NO_NUMBERS;
  }
  if (blockIdx.x > 0) return;
  for (uint64_t i = threadIdx.x; i < row.groups; i += THREADS) row.mask[i] = i * params.stride + 1 < row.windows;
}
