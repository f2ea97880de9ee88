// Elements of pictures of which planes are there in place of pixels (planes.cuh), for the products of
// resample_bytes.cuh: two rows in a word.
#pragma once
#include "pairs.cuh"
#include "planes.cuh"
#include "resample_bytes.cuh"

// From four rows to the next four. In them lie two elements of two rows, the same of the next two rows, the next two
// elements, and so on: as a product takes them.
constexpr int STAGED = 2 * ROOM + 4;

__device__ inline void put_staged(const uint32_t elements[12], int pair, int first, uint32_t *staged) {
  uint2 *const to = (uint2 *)(staged + pair / 2 * STAGED + pair % 2 * 2 + 2 * first);
#pragma unroll
  for (int i = 0; i < 6; i++) to[2 * i] = {elements[2 * i], elements[2 * i + 1]};
}

// Four columns of two rows: as many are there of pixels of three channels, and so many a thread makes.
constexpr int FOURTHS_ACROSS = ROOM / 12, FOURTHS = FOURTHS_ACROSS * ROWS_AT_ONCE / 2, FOURTHS_EACH = (FOURTHS + THREADS - 1) / THREADS;
static_assert(FOURTHS_ACROSS % 4 == 0, "sixteen threads four by four");

// Which of them is number `task` of those from row `first`, an even one, and column `from` on, of which `rows` rows and
// `part` columns are there: sixteen threads four by four, which write to different banks. Who is behind the last column
// or the last row takes those once more: what has no weight must still be a number.
struct Fourth {
  int pair, group;
  uint32_t x, y;

  __device__ Fourth(int task, int from, int part, int first, int rows) {
    const int square = task / 16, across = FOURTHS_ACROSS / 4;
    pair = square / across * 4 + task / 4 % 4, group = square % across * 4 + task % 4;
    x = from + 4 * min(group, (part - 1) / 4), y = first + 2 * min(pair, (rows - 1) / 2);
  }
};

// Makes elements of ROWS_AT_ONCE rows from `first` on, and of the columns from `from` on: of any picture.
__device__ __noinline__ void stage_any(int thread, const Planes &planes, int from, int part, int first, int rows, uint32_t *staged) {
#pragma unroll 1
  for (int task = thread; task < FOURTHS; task += THREADS) {
    const Fourth own(task, from, part, first, rows);
    uint32_t above[3], below[3], elements[12];
    convert_fours(planes, fours_of(planes, own.x, own.y), above);
    convert_fours(planes, fours_of(planes, own.x, own.y + 1), below);
#pragma unroll
    for (uint32_t e = 0; e < 12; e++) elements[e] = two_bytes(above[e / 4], below[e / 4], e % 4);
    put_staged(elements, own.pair, 12 * own.group, staged);
  }
}

// The same, sooner of a picture whose chroma four pixels of two rows share: all samples are asked for before the first
// is looked at.
__device__ inline void stage(int thread, const Planes &planes, int from, int part, int first, int rows, uint32_t *staged) {
  if (!shares_chroma(planes)) return stage_any(thread, planes, from, part, first, rows, staged);
  const bool blue_first = planes.blue_first;
  const uint32_t luma_stride = planes.stride[0], cb_stride = planes.stride[1], cr_stride = planes.stride[2];
  const uint8_t *const luma = planes.samples[0], *const cb = planes.samples[1], *const cr = planes.samples[2];
  uint32_t above[FOURTHS_EACH], below[FOURTHS_EACH], b[FOURTHS_EACH], r[FOURTHS_EACH];
#pragma unroll
  for (int i = 0; i < FOURTHS_EACH; i++) {
    const int task = thread + i * THREADS;
    if (task >= FOURTHS) break;
    const Fourth own(task, from, part, first, rows);
    const uint8_t *const at = luma + (own.y * luma_stride + own.x);
    above[i] = __ldg((const uint32_t *)at), below[i] = __ldg((const uint32_t *)(at + luma_stride));
    const uint32_t x = own.x / 2, y = own.y / 2;
    b[i] = __ldg((const uint16_t *)(cb + (y * cb_stride + x))), r[i] = __ldg((const uint16_t *)(cr + (y * cr_stride + x)));
  }
#pragma unroll
  for (int i = 0; i < FOURTHS_EACH; i++) {
    const int task = thread + i * THREADS;
    if (task >= FOURTHS) break;
    uint32_t elements[12];
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
      const Tint tint(byte_of(b[i], k / 2), byte_of(r[i], k / 2), blue_first);
      const uint32_t samples = two_bytes(above[i], below[i], k);
      elements[3 * k] = add_to_bytes(samples, twice(tint.first)), elements[3 * k + 1] = add_to_bytes(samples, twice(tint.green));
      elements[3 * k + 2] = add_to_bytes(samples, twice(tint.last));
    }
    const Fourth own(task, from, part, first, rows);
    put_staged(elements, own.pair, 12 * own.group, staged);
  }
}

// Two elements from `first` on, an even one, of the rows of a thread in a step.
__device__ inline uint4 staged_rows(int thread, const uint32_t *staged, int step, int first) {
  return *(const uint4 *)(staged + (thread % 4 + 4 * step) * STAGED + 2 * first);
}
