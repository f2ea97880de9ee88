// DC values of the blocks of each image, of their differences: each is added to the one before of its component, from
// nothing at the beginning of a segment. A block of threads has neighbouring MCUs of an image, a thread each, and tells
// the blocks behind it their sums. An image that cannot be decoded becomes gray here, so that nobody sees what was in
// memory before, until the host has decoded it.
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

// Values are taken modulo 2^16, as they are stored.
__device__ inline uint64_t packed(const Sums &s) {
  return (uint64_t)s.reset << 48 | (uint64_t)(s.of[2] & 0xFFFF) << 32 | (uint32_t)(s.of[1] & 0xFFFF) << 16 | (s.of[0] & 0xFFFF);
}
__device__ inline Sums unpacked(uint64_t word) {
  return {(uint32_t)(word >> 48) & 1, {(int32_t)(word & 0xFFFF), (int32_t)(word >> 16 & 0xFFFF), (int32_t)(word >> 32 & 0xFFFF)}};
}

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_dc(const Task *rows, uint32_t count, Params p) {
  __shared__ Sums all[WARPS];
  __shared__ Sums entry;
  const Task task = rows[blockIdx.x];
  const uint32_t number = task.component;
  const Image image = p.images[task.image];
  const uint32_t mcu_blocks = image.mcu_blocks, mcu = task.first + threadIdx.x;
  // All segments but the last have as many blocks.
  const uint32_t interval = (image.segments > 1 && image.pieces > 0 ? p.segments[image.first_segment + 1].first_block : image.blocks) / mcu_blocks;
  begin_early();
  if (p.status[task.image]) {
    const uint64_t first = image.first_block + (uint64_t)task.first * mcu_blocks;
    uint4 *const coefficients = (uint4 *)(p.coefficients + first * 64);
    for (uint32_t i = threadIdx.x; i < task.count * mcu_blocks * 8; i += THREADS) coefficients[i] = {0, 0, 0, 0};
    for (uint32_t i = threadIdx.x; i < task.count * mcu_blocks; i += THREADS) p.dcs[first + i] = 0;
    return;
  }
  // The values of a progressive image are there.
  if (image.pieces == 0) return;
  int16_t *const dcs = p.dcs + image.first_block + (uint64_t)mcu * mcu_blocks;
  const bool there = threadIdx.x < task.count;
  // All loads are under way at once.
  int32_t values[MAX_MCU_BLOCKS];
#pragma unroll
  for (uint32_t i = 0; i < MAX_MCU_BLOCKS; i++) values[i] = there && i < mcu_blocks ? dcs[i] : 0;
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
  const Sums upto = scan(own, all, add);
  uint64_t *const told = p.told_dcs + blockIdx.x;
  if (threadIdx.x == 0) tell(told, packed(all[WARPS - 1]));
  if (threadIdx.x < 32) {
    const auto next = [](const Sums &passed, uint64_t word) { return add(passed, unpacked(word)); };
    const Sums passed = listen(told, number, Sums{}, next);
    if (threadIdx.x == 0) entry = passed;
  }
  __syncthreads();
  if (there) {
    const Sums whole = add(entry, upto);
    Sums before = {0, {whole.of[0] - own.of[0], whole.of[1] - own.of[1], whole.of[2] - own.of[2]}};
    each(before, true);
  }
}
