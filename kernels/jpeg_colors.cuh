// Samples to pixels in shared memory, and from there to the output.
#pragma once
#include "jpeg_transform.cuh"

// Eight pixels of three bytes from luma and chroma. With PAIRS, two neighbours have the same chroma.
template <bool PAIRS> __device__ inline void convert_colors(uint2 luma, uint2 cb, uint2 cr, bool blue_first, uint32_t *to) {
#pragma unroll
  for (uint32_t j = 0; j < 8; j += 4) {
    int32_t v[12], red, green, blue;
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
      if (!PAIRS || k % 2 == 0) {
        const int32_t b = byte_of(cb, j + k), r = byte_of(cr, j + k);
        red = (91881 * r + (32768 - 128 * 91881)) >> 16;
        green = (-22554 * b - 46802 * r + (32768 + 128 * (22554 + 46802))) >> 16;
        blue = (116130 * b + (32768 - 128 * 116130)) >> 16;
      }
      const int32_t l = byte_of(luma, j + k);
      v[3 * k] = l + (blue_first ? blue : red), v[3 * k + 1] = l + green, v[3 * k + 2] = l + (blue_first ? red : blue);
    }
#pragma unroll
    for (uint32_t i = 0; i < 3; i++) to[j / 4 * 3 + i] = pack(v + 4 * i);
  }
}

// The same of samples that are the pixels' bytes.
__device__ inline void interleave(uint2 first, uint2 second, uint2 third, uint32_t *to) {
#pragma unroll
  for (uint32_t j = 0; j < 8; j += 4) {
    int32_t v[12];
#pragma unroll
    for (uint32_t k = 0; k < 4; k++)
      v[3 * k] = byte_of(first, j + k), v[3 * k + 1] = byte_of(second, j + k), v[3 * k + 2] = byte_of(third, j + k);
#pragma unroll
    for (uint32_t i = 0; i < 3; i++) to[j / 4 * 3 + i] = pack(v + 4 * i);
  }
}

// A warp copies `bytes` bytes from byte `skip` of `from` on, in words where the output has whole ones. `from` has a word more.
__device__ inline void copy_row(const uint32_t *from, uint32_t skip, uint8_t *to, uint32_t bytes) {
  const uint32_t lane = threadIdx.x % 32, head = min(bytes, (uint32_t)(-(uint64_t)to & 3));
  const uint32_t words = (bytes - head) / 4, tail = head + words * 4, shift = (skip + head) % 4 * 8;
  const uint32_t *aligned = from + (skip + head) / 4;
  uint32_t *const out = (uint32_t *)(to + head);
  // Not unrolled: rows are short, and registers few.
  if (shift == 0) {
#pragma unroll 1
    for (uint32_t i = lane; i < words; i += 32) out[i] = aligned[i];
  } else {
#pragma unroll 1
    for (uint32_t i = lane; i < words; i += 32) out[i] = __funnelshift_r(aligned[i], aligned[i + 1], shift);
  }
  const uint8_t *const plain = (const uint8_t *)from + skip;
  if (lane < head) to[lane] = plain[lane];
  if (lane < bytes - tail) to[tail + lane] = plain[tail + lane];
}
