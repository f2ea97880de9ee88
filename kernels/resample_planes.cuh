// Elements of pictures of which planes are there in place of pixels (planes.cuh), for the products of resample_bytes.cuh: two rows in a word.
#pragma once
#include "pairs.cuh"
#include "planes.cuh"
#include "resample_bytes.cuh"

// From four rows to the next four. In them lie two elements of two rows, the same of the next two rows, the next two elements, and so on: as a product takes
// them.
constexpr int STAGED = 2 * ROOM + 4;

__device__ inline void put_staged(const uint32_t elements[12], int pair, int first, uint32_t *staged) {
  uint2 *const to = (uint2 *)(staged + pair / 2 * STAGED + pair % 2 * 2 + 2 * first);
#pragma unroll
  for (int i = 0; i < 6; i++) to[2 * i] = {elements[2 * i], elements[2 * i + 1]};
}

// Threads that make pixels of planes.
constexpr int STAGING_THREADS = 128;

// Which four columns of which two rows a thread makes, as one of its tasks of GROUPS fours in each pair of rows: sixteen threads four by four, which write to
// different banks. Who is behind the last column or the last row of the picture takes those once more: what has no weight must still be a number.
template <int GROUPS> struct Fourth {
  static_assert(GROUPS % 4 == 0, "four by four");
  static constexpr int ALL = GROUPS * ROWS_AT_ONCE / 2, EACH = (ALL + STAGING_THREADS - 1) / STAGING_THREADS;
  int pair, group;
  uint32_t x, y;

  __device__ Fourth(int task, int from, int part, int first, int rows) {
    const int square = task / 16, across = GROUPS / 4;
    pair = square / across * 4 + task / 4 % 4, group = square % across * 4 + task % 4;
    x = from + 4 * min(group, (part - 1) / 4), y = first + 2 * min(pair, (rows - 1) / 2);
  }
};

// Makes elements of ROWS_AT_ONCE rows from `first` on, which is even, and of GROUPS fours of columns from `from` on, of which `rows` rows and `part` columns
// are there: of any picture.
template <int GROUPS> __device__ __noinline__ void stage_any(int thread, const Planes &planes, int from, int part, int first, int rows, uint32_t *staged) {
#pragma unroll 1
  for (int task = thread; task < Fourth<GROUPS>::ALL; task += STAGING_THREADS) {
    const Fourth<GROUPS> own(task, from, part, first, rows);
    uint32_t above[3], below[3], elements[12];
    planes.convert(planes.read(own.x, own.y), above), planes.convert(planes.read(own.x, own.y + 1), below);
#pragma unroll
    for (uint32_t e = 0; e < 12; e++) elements[e] = two_bytes(above[e / 4], below[e / 4], e % 4);
    put_staged(elements, own.pair, 12 * own.group, staged);
  }
}

// The same, sooner of a picture whose chroma four pixels of two rows share: all samples are asked for before the first is looked at.
template <int GROUPS, int AT_ONCE> __device__ inline void stage(int thread, const Planes &planes, int from, int part, int first, int rows, uint32_t *staged) {
  if (!planes.shares_chroma()) return stage_any<GROUPS>(thread, planes, from, part, first, rows, staged);
  constexpr int EACH = Fourth<GROUPS>::EACH;
  const bool blue_first = planes.blue_first;
  const uint32_t luma_stride = planes.stride[0], cb_stride = planes.stride[1], cr_stride = planes.stride[2];
  const uint8_t *const luma = planes.samples[0], *const cb = planes.samples[1], *const cr = planes.samples[2];
#pragma unroll 1
  for (int done = 0; done < EACH; done += AT_ONCE) {
    uint32_t above[AT_ONCE], below[AT_ONCE], b[AT_ONCE], r[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const int task = thread + (done + i) * STAGING_THREADS;
      if (task >= Fourth<GROUPS>::ALL) break;
      const Fourth<GROUPS> own(task, from, part, first, rows);
      const uint8_t *const at = luma + (own.y * luma_stride + own.x);
      above[i] = __ldg((const uint32_t *)at), below[i] = __ldg((const uint32_t *)(at + luma_stride));
      const uint32_t x = own.x / 2, y = own.y / 2;
      b[i] = __ldg((const uint16_t *)(cb + (y * cb_stride + x))), r[i] = __ldg((const uint16_t *)(cr + (y * cr_stride + x)));
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const int task = thread + (done + i) * STAGING_THREADS;
      if (task >= Fourth<GROUPS>::ALL) break;
      uint32_t elements[12];
#pragma unroll
      for (uint32_t k = 0; k < 4; k++) {
        const Tint tint(byte_of(b[i], k / 2), byte_of(r[i], k / 2), blue_first);
        const uint32_t samples = two_bytes(above[i], below[i], k);
        elements[3 * k] = add_to_bytes(samples, twice(tint.first)), elements[3 * k + 1] = add_to_bytes(samples, twice(tint.green));
        elements[3 * k + 2] = add_to_bytes(samples, twice(tint.last));
      }
      const Fourth<GROUPS> own(task, from, part, first, rows);
      put_staged(elements, own.pair, 12 * own.group, staged);
    }
  }
}

// Two elements from `first` on, an even one, of the rows of a thread in a step.
__device__ inline uint4 staged_rows(int thread, const uint32_t *staged, int step, int first) {
  return *(const uint4 *)(staged + (thread % 4 + 4 * step) * STAGED + 2 * first);
}
