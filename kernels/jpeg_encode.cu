// Images to coefficients of JPEGs, those that libjpeg-turbo makes: colours, means of neighbours where chroma is stored
// less often, the accurate integer transform, and the quantisation. A row of the table is an image. A block of threads
// takes TILE columns of the rows of an MCU: each pixel is read once, and its colours lie in shared memory from there
// on; then eight threads share a block of samples, of which each has a row and then a column.
#include "jpeg_encode.cuh"

constexpr uint32_t AT_ONCE = TRANSFORM_THREADS / 8, MAX_ROWS = 16, PITCH = 9;

// Where coefficient 8 * row + column comes in the file.
__constant__ uint8_t ZIGZAG[64] = {0,  1,  5,  6,  14, 15, 27, 28, 2,  4,  7,  13, 16, 26, 29, 42, 3,  8,  12, 17, 25, 30,
                                   41, 43, 9,  11, 18, 24, 31, 40, 44, 53, 10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38,
                                   46, 51, 55, 60, 21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63};

__device__ inline int32_t rounded(int32_t v, uint32_t shift) { return (v + (1 << (shift - 1))) >> shift; }

// One dimension of the transform (Loeffler, Ligtenberg, Moschytz 1989) with constants of 13 bits. That of rows keeps
// two more bits, which that of columns drops.
template <bool of_rows> __device__ inline void transform(int32_t *v) {
  constexpr uint32_t shift = of_rows ? 11 : 15;
  const int32_t s0 = v[0] + v[7], s1 = v[1] + v[6], s2 = v[2] + v[5], s3 = v[3] + v[4];
  const int32_t d0 = v[0] - v[7], d1 = v[1] - v[6], d2 = v[2] - v[5], d3 = v[3] - v[4];
  const int32_t outer = s0 + s3, inner = s1 + s2, e0 = s0 - s3, e1 = s1 - s2;
  v[0] = of_rows ? (outer + inner) * 4 : rounded(outer + inner, 2);
  v[4] = of_rows ? (outer - inner) * 4 : rounded(outer - inner, 2);
  const int32_t even = (e0 + e1) * 4433;
  v[2] = rounded(even + e0 * 6270, shift);
  v[6] = rounded(even - e1 * 15137, shift);
  const int32_t all = (d0 + d1 + d2 + d3) * 9633;
  const int32_t z1 = (d3 + d0) * -7373, z2 = (d2 + d1) * -20995;
  const int32_t z3 = (d3 + d1) * -16069 + all, z4 = (d2 + d0) * -3196 + all;
  v[1] = rounded(d0 * 12299 + z1 + z4, shift);
  v[3] = rounded(d1 * 25172 + z2 + z3, shift);
  v[5] = rounded(d2 * 16819 + z2 + z4, shift);
  v[7] = rounded(d3 * 2446 + z1 + z3, shift);
}

// Colours of a tile. Beyond the edges of the image they are those at the edges.
__device__ inline void load_tile(const Row &row, uint8_t planes[3][MAX_ROWS][TILE], uint32_t left, uint32_t top) {
  for (uint32_t i = threadIdx.x; i < TILE * 8 * row.down; i += TRANSFORM_THREADS) {
    const uint32_t x = min(left + i % TILE, row.width - 1), y = min(top + i / TILE, row.height - 1);
    const uint8_t *from = row.pixels + ((uint64_t)y * row.width + x) * row.channels;
    if (row.channels == 1) {
      planes[0][i / TILE][i % TILE] = *from;
      continue;
    }
    const int32_t r = from[0], g = from[1], b = from[2], half = 1 << 15, middle = 128 << 16;
    planes[0][i / TILE][i % TILE] = (19595 * r + 38470 * g + 7471 * b + half) >> 16;
    planes[1][i / TILE][i % TILE] = (middle + half - 1 - 11059 * r - 21709 * g + 32768 * b) >> 16;
    planes[2][i / TILE][i % TILE] = (middle + half - 1 + 32768 * r - 27439 * g - 5329 * b) >> 16;
  }
}

// Eight samples of luma, or of chroma that is stored as often.
__device__ inline void whole_samples(const uint8_t *from, int32_t *v) {
  const uint2 bytes = *(const uint2 *)from;
  for (uint32_t i = 0; i < 4; ++i) {
    v[i] = (int32_t)(bytes.x >> 8 * i & 255) - 128;
    v[i + 4] = (int32_t)(bytes.y >> 8 * i & 255) - 128;
  }
}

// Eight means of two samples, or of two and two below. What is halfway is rounded down and up in turn.
__device__ inline void mean_samples(const uint8_t *upper, const uint8_t *lower, int32_t *v) {
  const bool is_one_row = upper == lower;
  for (uint32_t i = 0; i < 8; ++i) {
    const int32_t sum = upper[2 * i] + upper[2 * i + 1];
    v[i] = (is_one_row ? (sum + (i & 1)) >> 1 : (sum + lower[2 * i] + lower[2 * i + 1] + 1 + (i & 1)) >> 2) - 128;
  }
}

extern "C" __global__ void jpeg_coefficients(const Row *rows, uint32_t count, Params) {
  __shared__ __align__(16) uint8_t planes[3][MAX_ROWS][TILE];
  __shared__ int32_t squares[AT_ONCE][8 * PITCH];
  __shared__ __align__(16) int16_t ordered[AT_ONCE][64];
  const Row row = rows[blockIdx.y];
  const uint32_t lumas = row.across * row.down, each = blocks_of_mcu(row), own = threadIdx.x % 8;
  const uint32_t wide = TILE / (8 * row.across), tiles_across = (row.columns + wide - 1) / wide;
  int32_t *square = squares[threadIdx.x / 8];
  int16_t *order = ordered[threadIdx.x / 8];
  for (uint32_t tile = blockIdx.x; tile < tiles_across * row.lines; tile += gridDim.x) {
    const uint32_t line = tile / tiles_across, column = tile % tiles_across * wide;
    const uint32_t begin = (line * row.columns + column) * each, blocks = min(wide, row.columns - column) * each;
    load_tile(row, planes, column * 8 * row.across, line * 8 * row.down);
    __syncthreads();
    for (uint32_t first = 0; first < blocks; first += AT_ONCE) {
      const uint32_t i = first + threadIdx.x / 8, mcu = i / each, k = i % each;
      const bool is_luma = k < lumas, is_there = i < blocks && !is_filler(row, begin + i);
      int32_t v[8];
      if (is_there && is_luma) {
        whole_samples(planes[0][k / row.across * 8 + own] + (mcu * row.across + k % row.across) * 8, v);
      } else if (is_there && row.across == 1) {
        whole_samples(planes[k - lumas + 1][own] + mcu * 8, v);
      } else if (is_there) {
        const uint32_t last = row.down == 2 ? (row.height - 1) / 2 - line * 8 : 7;
        const uint32_t upper = min(own, last) * row.down, lower = upper + row.down - 1;
        const uint8_t(*plane)[TILE] = planes[k - lumas + 1];
        mean_samples(plane[upper] + mcu * 16, plane[lower] + mcu * 16, v);
      }
      if (is_there) {
        transform<true>(v);
        for (uint32_t x = 0; x < 8; ++x) square[own * PITCH + x] = v[x];
      }
      __syncwarp();
      if (is_there) {
        for (uint32_t y = 0; y < 8; ++y) v[y] = square[y * PITCH + own];
        transform<false>(v);
        const Step *steps = row.steps + (is_luma ? 0 : 64);
        for (uint32_t y = 0; y < 8; ++y) {
          const uint32_t place = ZIGZAG[8 * y + own];
          const Step step = steps[place];
          const int32_t size = (uint64_t)((v[y] < 0 ? -v[y] : v[y]) + step.half) * step.inverse >> 32;
          order[place] = v[y] < 0 ? -size : size;
        }
      }
      __syncwarp();
      if (is_there) {
        const uint64_t place = (uint64_t)(begin + i) * 8 + own;
        uint32_t present = 0;
        for (uint32_t x = 0; x < 8; ++x) present |= (uint32_t)(order[8 * own + x] != 0) << x;
        ((uint4 *)row.coefficients)[place] = ((const uint4 *)order)[own];
        row.present[place] = present;
      }
      __syncwarp();
    }
    __syncthreads();
  }
}
