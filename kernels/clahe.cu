// Contrast-limited adaptive histogram equalization, as src/cpu/clahe.rs does it: `tables` finds what each level of a
// tile becomes, `equalized` mixes what the tiles around a pixel make of it. A row of the table is a channel of an
// image; with LUMA it is the lightness of an image of three channels.
#include "common.cuh"

// Colours from and to L*a*b*, as src/cpu/lab.rs lays its tables out.
struct Lab {
  int32_t parts[3][256][4];
  int32_t roots[3072];
  int32_t lightness[256][2];
  int32_t moves[256][2];
  int32_t coefficients[3][3];
  uint8_t levels[4096];
};

#include "layouts/clahe.cuh"

__device__ inline int rounded(int value, int bits) { return (value + (1 << (bits - 1))) >> bits; }
__device__ inline int level(int value) { return min(max(value, 0), 255); }

__device__ inline void to_lab(const Lab &lab, const uint8_t *rgb, uint8_t found[3]) {
  int roots[3];
  for (int i = 0; i < 3; i++) {
    const int place = (lab.parts[0][rgb[0]][i] + lab.parts[1][rgb[1]][i] + lab.parts[2][rgb[2]][i]) >> 12;
    roots[i] = lab.roots[min(place, 3071)];
  }
  found[0] = level(rounded((116 * 255 + 50) / 100 * roots[1] - ((16 * 255 << 15) + 50) / 100, 15));
  found[1] = level(rounded(500 * (roots[0] - roots[1]) + (128 << 15), 15));
  found[2] = level(rounded(200 * (roots[1] - roots[2]) + (128 << 15), 15));
}

// X or Z of a root; dark colours are on a straight line.
__device__ inline int of_root(int root) {
  if (root <= 3390) return root * 108 / 841 - (1 << 14) * 16 / 116 * 108 / 841;
  return (((root * root) >> 14) * root) >> 14;
}

__device__ inline void to_rgb(const Lab &lab, const uint8_t colour[3], uint8_t *rgb) {
  const int root = lab.lightness[colour[0]][1];
  const int xyz[3] = {of_root(root + lab.moves[colour[1]][0]), lab.lightness[colour[0]][0], of_root(root - lab.moves[colour[2]][1])};
  for (int c = 0; c < 3; c++) {
    const int32_t *row = lab.coefficients[c];
    rgb[c] = lab.levels[min(max(rounded(row[0] * xyz[0] + row[1] * xyz[1] + row[2] * xyz[2], 14), 0), 4095)];
  }
}

// The level of a pixel that tables are made of.
__device__ inline uint8_t level_of(const Row &row, const uint8_t *pixel) {
#if LUMA
  uint8_t colour[3];
  to_lab(*row.lab, pixel, colour);
  return colour[0];
#else
  return *pixel;
#endif
}

// Where `place` is in a line of `extent` pixels that is mirrored at its last one, and again and again.
__device__ inline uint32_t mirrored(uint32_t place, uint32_t extent) {
  if (place < extent) return place;
  const uint32_t period = extent > 1 ? 2 * extent - 2 : 1;
  place %= period;
  return min(place, period - place);
}

// A block finds the tables of tiles in turn; it has at least 256 threads.
extern "C" __global__ void tables(const Row *rows, uint32_t count, NoParams) {
  __shared__ uint32_t counts[256], above, sums[2][256];
  const Row &row = rows[blockIdx.y];
  const uint32_t thread = threadIdx.x, all = row.tiles[0] * row.tiles[1];
  for (uint32_t tile = blockIdx.x; tile < all; tile += gridDim.x) {
    if (thread < 256) counts[thread] = 0;
    if (thread == 0) above = 0;
    __syncthreads();
    const uint32_t left = tile % row.tiles[0] * row.tile[0], top = tile / row.tiles[0] * row.tile[1];
    const uint64_t pixels = (uint64_t)row.tile[0] * row.tile[1];
    for (uint64_t i = thread; i < pixels; i += blockDim.x) {
      const uint32_t x = mirrored(left + i % row.tile[0], row.size[0]), y = mirrored(top + i / row.tile[0], row.size[1]);
      atomicAdd(&counts[level_of(row, row.from + ((uint64_t)y * row.size[0] + x) * row.step)], 1u);
    }
    __syncthreads();
    if (row.limit && thread < 256 && counts[thread] > row.limit) atomicAdd(&above, counts[thread] - row.limit);
    __syncthreads();
    if (thread < 256) {
      uint32_t own = counts[thread];
      if (row.limit) {
        // What is cut off goes to all levels alike, the rest to levels at equal distances.
        const uint32_t rest = above % 256, apart = rest ? 256 / rest : 256;
        own = min(own, row.limit) + above / 256 + (thread % apart == 0 && thread / apart < rest);
      }
      sums[0][thread] = own;
    }
    __syncthreads();
    // Sums up to each level, over twice as many in each round.
    int from = 0;
    for (uint32_t distance = 1; distance < 256; distance *= 2, from = 1 - from) {
      if (thread < 256) sums[1 - from][thread] = sums[from][thread] + (thread >= distance ? sums[from][thread - distance] : 0);
      __syncthreads();
    }
    if (thread < 256) row.tables[(uint64_t)tile * 256 + thread] = convert<uint8_t>((float)sums[from][thread] * row.scale);
    __syncthreads();
  }
}

// The two tiles between whose centers a pixel lies, and the share of the second.
struct Between {
  uint32_t first, second;
  float share;
};
__device__ inline Between between(uint32_t pixel, uint32_t tile, uint32_t tiles) {
  const float place = pixel * (1.0f / tile) - 0.5f, first = floorf(place);
  return {(uint32_t)fmaxf(first, 0), min((uint32_t)(first + 1), tiles - 1), place - first};
}

extern "C" __global__ void equalized(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint64_t pixels = (uint64_t)row.size[0] * row.size[1], step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += step) {
    const uint8_t *from = row.from + i * row.step;
    uint8_t *to = row.to + i * row.step;
#if LUMA
    uint8_t colour[3];
    to_lab(*row.lab, from, colour);
    const uint32_t own = colour[0];
#else
    const uint32_t own = *from;
#endif
    const Between x = between(i % row.size[0], row.tile[0], row.tiles[0]), y = between(i / row.size[0], row.tile[1], row.tiles[1]);
    const uint8_t *above = row.tables + (uint64_t)y.first * row.tiles[0] * 256 + own, *below = row.tables + (uint64_t)y.second * row.tiles[0] * 256 + own;
    const float upper = above[x.first * 256] * (1 - x.share) + above[x.second * 256] * x.share;
    const float lower = below[x.first * 256] * (1 - x.share) + below[x.second * 256] * x.share;
    const uint8_t equal = convert<uint8_t>(upper * (1 - y.share) + lower * y.share);
#if LUMA
    colour[0] = equal;
    to_rgb(*row.lab, colour, to);
#else
    *to = equal;
#endif
  }
}
