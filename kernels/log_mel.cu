// Whisper's features of signals: logarithms of the powers of mel bands, and of these what is near the loudest. A row
// of the table is a signal. A block transforms two windows of LENGTH samples at a time, the product of the numbers
// RADICES, in memory that its threads share or (LARGE) in that of the device.
#include "transform.cuh"

#include "layouts/log_mel.cuh"

constexpr uint32_t BINS = LENGTH / 2 + 1;

// No logarithm is as small or as large: what nothing and a fault are among them.
constexpr float NOTHING = -3.402823466e38f, FAULT = 3.402823466e38f;

// Sample `i` of a window, times the window. A signal is mirrored beyond its ends; silence behind it belongs to it.
__device__ inline double windowed(const Row &row, const Params &params, uint64_t window, uint32_t i) {
  if (window >= row.windows) return 0;
  int64_t at = (int64_t)(window * params.step + i) - (int64_t)(LENGTH / 2);
  if (at < 0 || at >= row.samples) {
    const int64_t period = row.samples > 1 ? 2 * row.samples - 2 : 1;
    at = (at % period + period) % period;
    at = at < row.samples ? at : period - at;
  }
  return at < row.given ? (double)row.from[at] * params.window[i] : 0;
}

// The largest of what the threads of a block have.
__device__ inline float largest(float value) {
  __shared__ float found[THREADS];
  found[threadIdx.x] = value;
  for (uint32_t half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) found[threadIdx.x] = fmaxf(found[threadIdx.x], found[threadIdx.x + half]);
  }
  __syncthreads();
  return found[0];
}

// Logarithms of all bands, and the loudest that each block has made.
extern "C" __global__ void log_mel(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
#if LARGE
  Complex *memory = params.memory + ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (2 * LENGTH);
#else
  __shared__ Complex memory[2 * LENGTH];
#endif
  float loudest = NOTHING;
  for (uint64_t window = 2 * blockIdx.x; window < row.windows; window += 2 * gridDim.x) {
    for (uint32_t i = threadIdx.x; i < LENGTH; i += THREADS)
      memory[i] = {windowed(row, params, window, i), windowed(row, params, window + 1, i)};
    __syncthreads();
    const Complex *spectrum = transformed<LENGTH, 1, RADICES>(memory, memory + LENGTH, params.turns);
    double *powers = (double *)(spectrum == memory ? memory + LENGTH : memory);
    for (uint32_t bin = threadIdx.x; bin < BINS; bin += THREADS) {
      const Bins bins = apart<LENGTH>(spectrum, bin);
      for (uint32_t k = 0; k < 2; ++k) {
        const double re = bins.re[k], im = bins.im[k];
        powers[k * BINS + bin] = re * re + im * im;
      }
    }
    __syncthreads();
    // Two neighbours of a row by neighbouring threads.
    for (uint32_t i = threadIdx.x; i < 2 * params.bands && window + i % 2 < row.windows; i += THREADS) {
      const Band band = params.filters[i / 2];
      const double *from = powers + i % 2 * BINS + band.first, *weights = params.weights + band.start;
      double power = 0;
      for (uint32_t k = 0; k < band.count; ++k) power += from[k] * weights[k];
      const float value = (float)log10(power > params.floor ? power : params.floor);
      row.to[i / 2 * row.windows + window + i % 2] = value;
      // Also of what is no number.
      loudest = power - power == 0 ? fmaxf(loudest, value) : FAULT;
    }
    __syncthreads();
  }
  loudest = largest(loudest);
  if (threadIdx.x == 0) row.loudest[blockIdx.x] = loudest;
}

extern "C" __global__ void finish(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const float loudest = largest(threadIdx.x < params.parts ? row.loudest[threadIdx.x] : NOTHING);
  if (blockIdx.x == 0 && threadIdx.x == 0) *row.outcome = loudest == FAULT ? NO_NUMBERS : MADE;
  const uint64_t step = (uint64_t)gridDim.x * THREADS, elements = row.windows * params.bands;
  for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < elements; i += step)
    row.to[i] = (fmaxf(row.to[i], loudest - params.range) + 4) / 4;
}
