// Scans over all threads of a block.
#pragma once
#include "jpeg.cuh"

constexpr uint32_t THREADS = SCAN_THREADS, WARPS = THREADS / 32;

// Inclusive: what `join` makes of the values of the threads up to this one. The last is left in `all` for everyone, of
// which there are WARPS. A value of the thread some lanes below is what `from_below` gives.
template <class T, class Join> __device__ inline T scan(T v, T *all, Join join) {
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (uint32_t d = 1; d < 32; d *= 2) {
    const T below = from_below(v, d);
    if (lane >= d) v = join(below, v);
  }
  if (lane == 31) all[warp] = v;
  __syncthreads();
  if (warp == 0) {
    T w = all[lane];
    for (uint32_t d = 1; d < WARPS; d *= 2) {
      const T below = from_below(w, d);
      if (lane >= d) w = join(below, w);
    }
    all[lane] = w;
  }
  __syncthreads();
  return warp == 0 ? v : join(all[warp - 1], v);
}

