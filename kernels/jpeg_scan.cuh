// Scans over all threads of a block, and over the blocks that work on an image.
#pragma once
#include "jpeg.cuh"

constexpr uint32_t THREADS = SCAN_THREADS, WARPS = THREADS / 32;
static_assert(WARPS <= 32, "one warp goes over what all have made");

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
    T w = lane < WARPS ? all[lane] : T{};
    for (uint32_t d = 1; d < WARPS; d *= 2) {
      const T below = from_below(w, d);
      if (lane >= d) w = join(below, w);
    }
    if (lane < WARPS) all[lane] = w;
  }
  __syncthreads();
  return warp == 0 ? v : join(all[warp - 1], v);
}

// What a block of threads tells those behind it of its own items: a word that is never 0, or 0 until it is there. Each
// tells before it listens, and the device begins blocks in their order. So nobody waits for one that cannot begin.
constexpr uint64_t TOLD = 1ull << 63;
__device__ inline void tell(uint64_t *to, uint64_t word) { *(volatile uint64_t *)to = word | TOLD; }

// What becomes of `v` by what the `number` blocks before this one have told, in their order. `join` makes the next of
// it and a word. All threads of a warp come here.
template <class T, class Join> __device__ inline T listen(const uint64_t *own, uint32_t number, T v, Join join) {
  const uint32_t lane = threadIdx.x % 32;
  for (uint32_t begin = 0; begin < number; begin += 32) {
    uint64_t word = 0;
    if (begin + lane < number) {
      const volatile uint64_t *const from = own - number + begin + lane;
      while ((word = *from) == 0) {}
    }
    for (uint32_t i = 0; i < min(number - begin, 32u); i++) v = join(v, __shfl_sync(~0u, word, i));
  }
  return v;
}
