// Spectra of windows of a signal, by transforms of LENGTH samples: fast ones where that is a power of two (FAST), else
// as defined. A row of the table is a signal, a block works on a window. Those that do not fit into the memory that the
// threads of a block share (LARGE) are made in memory of the device, and where LENGTH is no power of two by a
// convolution of SPAN samples, which is one.
#include "common.cuh"

struct Turn {
  float cos, sin;
};

#include "layouts/spectrum.cuh"

constexpr uint32_t BINS = LENGTH / 2 + 1;

// Sample `i` of the window that starts at `start`.
__device__ inline float windowed(const Row &row, const Params &params, int64_t start, uint32_t i) {
  if (i >= params.taps) return 0;
  int64_t at = start + i;
  if (at < 0 || at >= row.samples) {
    if (!params.mirrors) return 0;
    const int64_t period = row.samples > 1 ? 2 * row.samples - 2 : 1;
    at = (at % period + period) % period;
    at = at < period - at ? at : period - at;
  }
  return params.window[i] * row.from[at];
}

__device__ inline void write(const Row &row, const Params &params, uint64_t window, uint32_t bin, float re, float im) {
  const float power = fmaf(re, re, im * im);
  row.to[params.bins_last ? window * BINS + bin : bin * row.windows + window] = params.squares ? power : sqrtf(power);
}

#if LARGE
// The memory of this block.
__device__ inline float *memory(const Params &params, uint64_t floats) {
  return params.memory + ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * floats;
}
#endif

#if FAST
// A real signal as a complex one of half the length: even samples are the real parts, odd ones the imaginary.
constexpr uint32_t HALF = LENGTH / 2;

__device__ inline void transform(const Row &row, const Params &params, uint64_t window, int64_t start) {
#if LARGE
  float *re = memory(params, LENGTH), *im = re + HALF;
#else
  __shared__ float re[HALF], im[HALF];
#endif
  for (uint32_t i = threadIdx.x; i < HALF; i += blockDim.x) {
    const uint32_t place = __brev(i) / (0x80000000u / HALF * 2u);
    re[place] = windowed(row, params, start, 2 * i);
    im[place] = windowed(row, params, start, 2 * i + 1);
  }
  for (uint32_t half = 1; half < HALF; half *= 2) {
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < HALF / 2; i += blockDim.x) {
      const uint32_t k = i % half, a = 2 * i - k, b = a + half;
      const Turn turn = params.turns[LENGTH / 2 / half * k];
      const float x = fmaf(re[b], turn.cos, im[b] * turn.sin), y = fmaf(im[b], turn.cos, -re[b] * turn.sin);
      re[b] = re[a] - x, im[b] = im[a] - y;
      re[a] += x, im[a] += y;
    }
  }
  __syncthreads();
  for (uint32_t bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
    const uint32_t a = bin % HALF, b = (HALF - a) % HALF;
    // The spectra of the even and of the odd samples.
    const float even_re = 0.5f * (re[a] + re[b]), even_im = 0.5f * (im[a] - im[b]);
    const float odd_re = 0.5f * (im[a] + im[b]), odd_im = 0.5f * (re[b] - re[a]);
    const Turn turn = params.turns[bin];
    write(row, params, window, bin, even_re + fmaf(odd_re, turn.cos, odd_im * turn.sin),
          even_im + fmaf(odd_im, turn.cos, -odd_re * turn.sin));
  }
}
#elif LARGE
// Bluestein: bin * i = (bin^2 + i^2 - (bin - i)^2) / 2 makes of a transform a convolution with a chirp, whose magnitude
// is 1, and of that transforms of a length that is free. The first one leaves its result in the order of reversed bits,
// where the second begins.
__device__ inline void transform(const Row &row, const Params &params, uint64_t window, int64_t start) {
  float *re = memory(params, 2ull * SPAN), *im = re + SPAN;
  for (uint32_t i = threadIdx.x; i < SPAN; i += blockDim.x) {
    const float sample = i < LENGTH ? windowed(row, params, start, i) : 0;
    re[i] = i < LENGTH ? sample * params.chirp[i].cos : 0;
    im[i] = i < LENGTH ? -sample * params.chirp[i].sin : 0;
  }
  for (uint32_t half = SPAN / 2; half >= 1; half /= 2) {
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < SPAN / 2; i += blockDim.x) {
      const uint32_t k = i % half, a = 2 * i - k, b = a + half;
      const Turn turn = params.turns[SPAN / 2 / half * k];
      const float x = re[a] - re[b], y = im[a] - im[b];
      re[a] += re[b], im[a] += im[b];
      re[b] = fmaf(x, turn.cos, y * turn.sin), im[b] = fmaf(y, turn.cos, -x * turn.sin);
    }
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < SPAN; i += blockDim.x) {
    const Turn factor = params.filter[i];
    const float x = re[i], y = im[i];
    re[i] = fmaf(x, factor.cos, -y * factor.sin), im[i] = fmaf(x, factor.sin, y * factor.cos);
  }
  for (uint32_t half = 1; half < SPAN; half *= 2) {
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < SPAN / 2; i += blockDim.x) {
      const uint32_t k = i % half, a = 2 * i - k, b = a + half;
      const Turn turn = params.turns[SPAN / 2 / half * k];
      const float x = fmaf(re[b], turn.cos, -im[b] * turn.sin), y = fmaf(im[b], turn.cos, re[b] * turn.sin);
      re[b] = re[a] - x, im[b] = im[a] - y;
      re[a] += x, im[a] += y;
    }
  }
  __syncthreads();
  for (uint32_t bin = threadIdx.x; bin < BINS; bin += blockDim.x) write(row, params, window, bin, re[bin], im[bin]);
}
#else
__device__ inline void transform(const Row &row, const Params &params, uint64_t window, int64_t start) {
  // Whole fours, because the compiler reads the last samples as such.
  __shared__ float samples[(LENGTH + 3) / 4 * 4];
  for (uint32_t i = threadIdx.x; i < LENGTH; i += blockDim.x) samples[i] = windowed(row, params, start, i);
  __syncthreads();
  for (uint32_t bin = threadIdx.x; bin < BINS; bin += blockDim.x) {
    float re = 0, im = 0;
    for (uint32_t i = 0, angle = 0; i < params.taps; ++i) {
      const Turn turn = params.turns[angle];
      re = fmaf(samples[i], turn.cos, re);
      im = fmaf(-samples[i], turn.sin, im);
      angle += bin;
      if (angle >= LENGTH) angle -= LENGTH;
    }
    write(row, params, window, bin, re, im);
  }
}
#endif

extern "C" __global__ void spectrum(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  for (uint64_t window = blockIdx.x; window < row.windows; window += gridDim.x) {
    transform(row, params, window, (int64_t)(window * params.step) - params.before);
    // Before the next window takes the place of this one.
    __syncthreads();
  }
}
