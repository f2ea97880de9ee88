// DC values of the blocks of each image, of their differences: each is added to the one before of its component, from
// nothing at the beginning of a segment. One block of threads an image, a thread an MCU. An image that cannot be
// decoded becomes gray here, so that nobody sees what was in memory before, until the host has decoded it.
#include "jpeg_scan.cuh"

// Sums of differences over MCUs.
struct Sums {
  // Whether a segment begins in them: then what was before does not count.
  uint32_t reset;
  int32_t of[MAX_COMPONENTS];
};

__device__ inline Sums add(const Sums &a, const Sums &b) {
  if (b.reset) return b;
  return {a.reset, {a.of[0] + b.of[0], a.of[1] + b.of[1], a.of[2] + b.of[2]}};
}

__device__ inline Sums from_below(const Sums &s, uint32_t distance) {
  Sums o = {__shfl_up_sync(~0u, s.reset, distance)};
  for (uint32_t c = 0; c < MAX_COMPONENTS; c++) o.of[c] = __shfl_up_sync(~0u, s.of[c], distance);
  return o;
}

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_dc(const Image *rows, uint32_t count, Params p) {
  begin_early();
  __shared__ Sums all[WARPS];
  const Image image = rows[blockIdx.x];
  if (p.status[blockIdx.x]) {
    uint4 *const coefficients = (uint4 *)(p.coefficients + (uint64_t)image.first_block * 64);
    for (uint64_t i = threadIdx.x; i < (uint64_t)image.blocks * 8; i += THREADS) coefficients[i] = {0, 0, 0, 0};
    for (uint32_t i = threadIdx.x; i < image.blocks; i += THREADS) p.dcs[image.first_block + i] = 0;
    return;
  }
  // The values of a progressive image are there.
  if (image.pieces == 0) return;
  const uint32_t mcu_blocks = image.mcu_blocks, mcus = image.blocks / mcu_blocks;
  // All segments but the last have as many blocks.
  const uint32_t interval = image.segments > 1 ? p.segments[image.first_segment + 1].first_block / mcu_blocks : mcus;
  Sums passed = {};
  for (uint32_t round = 0; round < mcus; round += THREADS) {
    const uint32_t mcu = round + threadIdx.x;
    int16_t *const dcs = p.dcs + image.first_block + (uint64_t)mcu * mcu_blocks;
    // All loads are under way at once.
    int32_t values[MAX_MCU_BLOCKS];
#pragma unroll
    for (uint32_t i = 0; i < MAX_MCU_BLOCKS; i++) values[i] = mcu < mcus && i < mcu_blocks ? dcs[i] : 0;
    const auto each = [&](Sums &sums, bool write) {
#pragma unroll
      for (uint32_t i = 0; i < MAX_MCU_BLOCKS; i++) {
        const uint32_t c = image.components >> 2 * i & 3;
        const int32_t v = values[i];
        sums.of[0] += c == 0 ? v : 0, sums.of[1] += c == 1 ? v : 0, sums.of[2] += c == 2 ? v : 0;
        if (write && i < mcu_blocks) dcs[i] = c == 0 ? sums.of[0] : c == 1 ? sums.of[1] : sums.of[2];
      }
    };
    Sums own = {mcu % interval == 0};
    each(own, false);
    const Sums upto = scan(threadIdx.x == 0 ? add(passed, own) : own, all, add);
    if (mcu < mcus) {
      Sums before = {0, {upto.of[0] - own.of[0], upto.of[1] - own.of[1], upto.of[2] - own.of[2]}};
      each(before, true);
    }
    passed = all[WARPS - 1];
    __syncthreads();
  }
}
