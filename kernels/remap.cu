// Images whose pixels come from the places in two maps; 0 where those lie outside. ELEMENT is the type, SAMPLING 0 the
// pixel that holds the place, 1 the weighted mean of four around it, 2 that of 4 x 4 by cubic weights, 3 of 8 x 8 by
// those of Lanczos; a row of the table is an image.
#include "sampled.cuh"
#include "weights.cuh"

#include "layouts/remap.cuh"

// What is no number lies far outside: the difference of anything else to itself is 0.
__device__ inline float shifted(float at, float shift) { return at - at == 0 ? at + shift : -FAR; }

#if SAMPLING >= 2
constexpr int TAPS = SAMPLING == 2 ? 4 : 8;

// The first of the pixels around a place, whose centers are whole numbers, and their weights.
__device__ inline int around(float place, float weights[TAPS]) {
  place = fminf(fmaxf(place, -FAR), FAR);
  const float first = floorf(place);
#if SAMPLING == 2
  cubic_weights(place - first, weights);
#else
  lanczos_weights(place - first, weights);
#endif
  return (int)first - (TAPS / 2 - 1);
}

__device__ inline void show(const Row &row, float x, float y, ELEMENT *to) {
  float across[TAPS], down[TAPS];
  const int left = around(x, across), top = around(y, down);
  for (uint64_t c = 0; c < row.channels; c++) {
    float sum = 0;
    for (int j = 0; j < TAPS; j++) {
      if (top + j < 0 || top + j >= row.source[1]) continue;
      const ELEMENT *line = row.from + (uint64_t)(top + j) * row.source[0] * row.channels + c;
      float part = 0;
#pragma unroll
      for (int i = 0; i < TAPS; i++)
        if (left + i >= 0 && left + i < row.source[0]) part = fmaf(convert<float>(line[(left + i) * row.channels]), across[i], part);
      sum = fmaf(part, down[j], sum);
    }
    to[c] = convert<ELEMENT>(sum);
  }
}
#else
__device__ inline void show(const Row &row, float x, float y, ELEMENT *to) {
  const Image<ELEMENT> image = {row.from, {row.source[0], row.source[1]}, row.channels, ELEMENT(0)};
  image.show(x, y, SAMPLING, to);
}
#endif

extern "C" __global__ void remap(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  // Pixels that are weighted have their centers at whole numbers.
  const float shift = SAMPLING < 2 ? params.shift : params.shift - 0.5f;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.pixels; i += step)
    show(row, shifted(row.maps[0][i], shift), shifted(row.maps[1][i], shift), row.to + i * row.channels);
}
