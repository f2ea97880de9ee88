// The pass along y of a resize of bytes, as products of matrices: weights times rows of the source, of which each byte
// is unpacked once.
//
//   columns[e][j] = sum_r weights[j][r] * source[r][e]
//
//   j: 16 rows of a tile   r: rows of the source, 16 a product   e: 32 elements of a row a warp
//
// A byte is a half of its bits, b * 2^-24; a weight is two (resample_split.cuh). Sums of each part are whole numbers
// below 2^24 of one unit with up to 48 taps, so they are exact, and a pixel is the same in whatever tile, part or
// window it is made.
#pragma once
#include "matrix.cuh"
#include "resample_axis.cuh"

// From an element's rows to the next one's: a multiple of 4, so that a thread stores and reads four rows at once, and
// so that threads that do are in different banks of memory.
constexpr int COLUMN = TILE_H + 4;
// Elements that four warps make at once, 32 each but for some at the end: as many bytes as words, of 1 to 4 channels.
constexpr int SLICE = 120, SLICE_WORDS = SLICE / 4;
// Elements of a row that there is room for.
constexpr int ROOM = 2 * SLICE;

// What sums are multiplied by in the pass along x.
constexpr float BYTE_UNIT = 4.0f;

// Which thread of its block this is, for one pass along y: what follows from it is computed anew in the next one, as
// there are too few registers to keep it.
__device__ inline int thread_anew() {
  int thread = threadIdx.x;
  asm volatile("" : "+r"(thread));
  return thread;
}

// The four bytes at `from`, of which `count` are needed: memory is read in words, of which each has a byte that is
// needed.
__device__ inline uint32_t four_bytes(const uint8_t *from, uint32_t count) {
  const uint32_t misaligned = (uint32_t)(uint64_t)from & 3;
  const uint32_t *words = (const uint32_t *)(from - misaligned);
  const uint32_t low = __ldg(words), high = misaligned + count > 4 ? __ldg(words + 1) : 0;
  return __funnelshift_r(low, high, 8 * misaligned);
}

// Weights of ROWS_AT_ONCE rows of the source.
struct RowWeights {
  // From a row of the tile to the next, in fours: 4 modulo 8, so that threads read from different banks.
  static constexpr int STRIDE = ROWS_AT_ONCE / 4 + 4;
  // Of four rows the first parts of their weights, then the second ones.
  uint4 of[TILE_H * STRIDE];
};

// Row thread % TILE_H of the tile: its weights, its first row of the source, and how many it has.
struct OwnRow {
  const uint32_t *weights;
  int first, taps;

  // Pixel i of the axis, if there is one, with its first tap: else its weights end far before the image.
  __device__ OwnRow(const Axis &axis, int i, int tap) : taps(axis.taps) {
    const int there = clamp_to(i, axis.size);
    weights = split_weights(axis, there), first = i == there ? tap : -(1 << 30);
  }
};

// Row k, of eight, of a thread among ROWS_AT_ONCE.
__device__ inline int own_row(int thread, int k) { return thread % 4 * 4 + k / 4 * 16 + k % 4; }

// What products take of a thread: of each of two steps two elements, and the next two, of two rows and of the next two.
// Rows are halves of words.
struct RowElements {
  uint4 of[2][2];

  // Of words of four elements of eight rows.
  __device__ void take(const uint32_t words[8]) {
#pragma unroll
    for (int step = 0; step < 2; step++) {
      const uint32_t *const w = words + 4 * step;
      uint32_t even[4], odd[4];
#pragma unroll
      for (int k = 0; k < 4; k++) even[k] = w[k] & 0xFF00FF, odd[k] = __byte_perm(w[k], 0, 0x4341);
      of[step][0] = {__byte_perm(even[0], even[1], 0x5410), __byte_perm(odd[0], odd[1], 0x5410), __byte_perm(even[2], even[3], 0x5410),
                     __byte_perm(odd[2], odd[3], 0x5410)};
      of[step][1] = {__byte_perm(even[0], even[1], 0x7632), __byte_perm(odd[0], odd[1], 0x7632), __byte_perm(even[2], even[3], 0x7632),
                     __byte_perm(odd[2], odd[3], 0x7632)};
    }
  }
};

// Puts the weights of ROWS_AT_ONCE rows of the source from `from` on where products read them, each of the threads
// those of four rows; of what is behind the last, zeros.
__device__ inline void place_weights(int thread, const OwnRow &own, int from, RowWeights &weights) {
  static_assert(THREADS == TILE_H * ROWS_AT_ONCE / 4, "a thread has four rows");
  const int tap = from + thread / TILE_H * 4 - own.first;
  const uint32_t *const at = own.weights + max(min(tap, own.taps), -SPLIT_PADDING);
  const uint32_t w[4] = {__ldg(at), __ldg(at + 1), __ldg(at + 2), __ldg(at + 3)};
  weights.of[thread % TILE_H * RowWeights::STRIDE + thread / TILE_H] = {__byte_perm(w[0], w[1], 0x5410), __byte_perm(w[2], w[3], 0x5410),
                                                                        __byte_perm(w[0], w[1], 0x7632), __byte_perm(w[2], w[3], 0x7632)};
}

// Weights of a thread, of ROWS_AT_ONCE rows: of each of two steps in the upper four rows of the tile of each eight, and
// in the lower ones.
struct OwnWeights {
  uint4 of[2][2];

  __device__ OwnWeights(int thread, const RowWeights &weights) {
    constexpr int STRIDE = RowWeights::STRIDE;
    const int lane = thread % 32, g = lane / 4, t = lane % 4;
    const uint4 *const own = weights.of + (g / 2 * 4 + g % 2) * STRIDE + t;
#pragma unroll
    for (int step = 0; step < 2; step++) of[step][0] = own[4 * step], of[step][1] = own[4 * step + 2 * STRIDE];
  }
};

// What a warp makes of 16 elements: a thread has two of them in four rows of the tile.
struct RowSums {
  float high[2][4] = {}, low[2][4] = {};

  // Adds the rows of a step.
  __device__ void add(const uint4 &elements, const uint4 weights[2]) {
#pragma unroll
    for (int rows = 0; rows < 2; rows++) {
      multiply(elements, weights[rows].x, weights[rows].y, high[rows]);
      multiply(elements, weights[rows].z, weights[rows].w, low[rows]);
    }
  }

  // Stores the rows of both elements.
  __device__ void store(int thread, float *to) const {
#pragma unroll
    for (int e = 0; e < 2; e++) {
      float v[4];
#pragma unroll
      for (int j = 0; j < 4; j++) v[j] = fmaf(high[j / 2][2 * e + j % 2], 2048.0f, low[j / 2][2 * e + j % 2]);
      *(float4 *)(to + e * COLUMN + thread % 4 * 4) = make_float4(v[0], v[1], v[2], v[3]);
    }
  }
};
