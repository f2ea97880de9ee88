// Images seen through a projective map, to the SAMPLING of src/cpu/perspective.rs: 0 nearest, 1 linear, 2 cubic, in the
// host's arithmetic. ELEMENT is the type; a row of the table is an image.
#include "common.cuh"
#include "weights.cuh"

#include "layouts/perspective.cuh"

#include "border.cuh"

struct Place {
  float x, y;
};

// Where the pixel in column `x` and row `y` of the output is, in float32. Of each 16 columns that are whole the sum is
// in another order than behind them.
__device__ inline Place exact_place(const Row &row, uint32_t x, uint32_t y) {
  float sums[3];
#pragma unroll
  for (int i = 0; i < 3; i++) {
    const float along = row.matrix[i][0], down = row.matrix[i][1], offset = row.matrix[i][2];
    sums[i] = x < row.width / 16 * 16 ? fmaf(along, x, down * (float)y + offset) : fmaf(along, x, down * (float)y) + offset;
  }
  return {sums[0] / sums[2], sums[1] / sums[2]};
}

// The same in parts of which a pixel has so many; what is no number is far outside.
__device__ inline void coarse_place(const Row &row, uint32_t x, uint32_t y, double parts, int place[2]) {
  double sums[3];
#pragma unroll
  for (int i = 0; i < 3; i++) sums[i] = row.matrix[i][0] * x + row.matrix[i][1] * y + row.matrix[i][2];
  const double scale = sums[2] == 0 ? 0 : parts / sums[2];
  for (int i = 0; i < 2; i++) {
    const double at = rint(sums[i] * scale);
    place[i] = (int)fmin(fmax(at, -2147483648.0), 2147483647.0);
  }
}

__device__ inline const ELEMENT *pixel(const Row &row, int x, int y) {
  x = source_of(x, row.source[0], row.border);
  y = source_of(y, row.source[1], row.border);
  return x < 0 || y < 0 ? nullptr : row.from + ((uint64_t)y * row.source[0] + x) * row.channels;
}

__device__ inline float value(const Row &row, const ELEMENT *pixel, uint32_t c) {
  return pixel ? convert<float>(pixel[c]) : row.fill[c];
}

#if SAMPLING == 0
// The column or row next to a place; what an int cannot hold is far outside.
__device__ inline int next_to(float place) {
  place = rintf(place);
  return place >= -2147483648.0f && place < 2147483648.0f ? (int)place : -2147483647 - 1;
}

__device__ inline void show(const Row &row, uint32_t x, uint32_t y, ELEMENT *to) {
  int place[2];
  if (row.is_coarse) {
    coarse_place(row, x, y, 1, place);
  } else {
    const Place exact = exact_place(row, x, y);
    place[0] = next_to(exact.x), place[1] = next_to(exact.y);
  }
  const ELEMENT *from = pixel(row, place[0], place[1]);
  for (uint32_t c = 0; c < row.channels; c++) to[c] = from ? from[c] : (ELEMENT)row.fill[c];
}
#else
// So that the coordinate of a neighbour does not overflow.
__device__ inline int cell(float place) { return (int)fminf(fmaxf(place, -2147483520.0f), 2147483520.0f); }
#endif

#if SAMPLING == 1
__device__ inline void show(const Row &row, uint32_t x, uint32_t y, ELEMENT *to) {
  int first[2];
  float px, py;
  if (row.is_coarse) {
    coarse_place(row, x, y, 32, first);
    px = (first[0] & 31) / 32.0f, py = (first[1] & 31) / 32.0f;
    first[0] >>= 5, first[1] >>= 5;
  } else {
    const Place place = exact_place(row, x, y);
    const float left = floorf(place.x), top = floorf(place.y);
    px = place.x - left, py = place.y - top;
    first[0] = cell(left), first[1] = cell(top);
  }
  const ELEMENT *corners[4];
#pragma unroll
  for (int j = 0; j < 4; j++) corners[j] = pixel(row, first[0] + (j & 1), first[1] + (j >> 1));
  for (uint32_t c = 0; c < row.channels; c++) {
    float s[4];
#pragma unroll
    for (int j = 0; j < 4; j++) s[j] = value(row, corners[j], c);
    if (row.is_coarse) {
      const float sum = s[0] * ((1 - px) * (1 - py)) + s[1] * (px * (1 - py)) + s[2] * ((1 - px) * py) + s[3] * (px * py);
      // Bytes are summed in fixed point, which rounds halves up.
      to[c] = convert<ELEMENT>(sizeof(ELEMENT) == 1 ? roundf(sum) : sum);
    } else {
      const float above = s[0] + px * (s[1] - s[0]), below = s[2] + px * (s[3] - s[2]);
      to[c] = convert<ELEMENT>(above + py * (below - above));
    }
  }
}
#endif

#if SAMPLING == 2
// An image is repeated only so often; what is no number is far outside.
__device__ inline float not_farther(float place, int extent) {
  const float most = max(16, extent);
  return fminf(fmaxf(place, -most), 2 * most);
}

__device__ inline void show(const Row &row, uint32_t x, uint32_t y, ELEMENT *to) {
  const Place place = exact_place(row, x, y);
  const float px = not_farther(place.x, row.source[0]), py = not_farther(place.y, row.source[1]);
  const float left = floorf(px), top = floorf(py);
  float across[4], down[4];
  cubic_weights(px - left, across);
  cubic_weights(py - top, down);
  for (uint32_t c = 0; c < row.channels; c++) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float line = 0;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float term = value(row, pixel(row, cell(left) - 1 + i, cell(top) - 1 + j), c) * across[i];
        line = i == 0 ? term : line + term;
      }
      sum = j == 0 ? line * down[j] : sum + line * down[j];
    }
    to[c] = convert<ELEMENT>(sum);
  }
}
#endif

extern "C" __global__ void perspective(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.pixels; i += step)
    show(row, i % row.width, i / row.width, row.to + i * row.channels);
}
