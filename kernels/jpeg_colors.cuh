// Samples to pixels in shared memory, and from there to the output.
#pragma once
#include "jpeg_transform.cuh"

// Eight pixels of three bytes from luma and chroma. With PAIRS, two neighbours have the same chroma.
template <bool PAIRS> __device__ inline void convert_colors(uint2 luma, uint2 cb, uint2 cr, bool blue_first, uint32_t *to) {
  convert_four<PAIRS>(luma.x, cb.x, cr.x, blue_first, to);
  convert_four<PAIRS>(luma.y, cb.y, cr.y, blue_first, to + 3);
}

// The same of samples that are the pixels' bytes.
__device__ inline void interleave(uint2 first, uint2 second, uint2 third, uint32_t *to) {
  interleave_four(first.x, second.x, third.x, to);
  interleave_four(first.y, second.y, third.y, to + 3);
}

// A warp copies `bytes` bytes from byte `skip` of `from` on, in words where the output has whole ones. `from` has a
// word more.
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
