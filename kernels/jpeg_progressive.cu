// Decodes the scans of progressive images: coefficients, and apart from them DC values. A team of threads has a scan at
// a time. All scans of an image are decoded at once: a scan that brings further bits of coefficients follows those that
// brought the earlier ones, some blocks behind them.
//
// Where a code begins is known only when the one before it is read, so all threads of a team read the same codes. What
// they share is the work on the coefficients of a block. Where there are few images, a team is a warp. Where there are
// many, it is eight threads. Then the four teams of a warp have the same scan of four images, and each goes on to its
// next block when all are done with theirs, so that an instruction is for four scans.
#include "jpeg_refine.cuh"

// Decodes the images of a block of threads: as many as it takes to have all of them, at most one for each team of a
// warp.
template <uint32_t TEAM> __device__ void decode(const Task *rows, uint32_t count, const Params &p, Own<TEAM> *memory) {
  constexpr uint32_t TEAMS = 32 / TEAM;
  __shared__ uint32_t progress[TEAMS][MAX_PASSES], taken;
  const uint32_t each = (count + gridDim.x - 1) / gridDim.x, first = blockIdx.x * each, own = min(count - min(first, count), each);
  if (own == 0) return;
  for (uint32_t i = threadIdx.x; i < TEAMS * MAX_PASSES; i += blockDim.x) progress[i / MAX_PASSES][i % MAX_PASSES] = 0;
  if (threadIdx.x == 0) taken = 0;
  uint32_t scans = 0;
  for (uint32_t n = 0; n < own; n++) {
    const Task task = rows[first + n];
    const Image &image = p.images[task.image];
    scans = max(scans, task.count);
    uint4 *const coefficients = (uint4 *)(p.coefficients + (uint64_t)image.first_block * 64);
    for (uint64_t i = threadIdx.x; i < (uint64_t)image.blocks * 8; i += blockDim.x) coefficients[i] = {0, 0, 0, 0};
    for (uint32_t i = threadIdx.x; i < image.blocks; i += blockDim.x) p.dcs[image.first_block + i] = 0;
  }
  __syncthreads();
  const uint32_t team = threadIdx.x % 32 / TEAM, mine = min(team, own - 1);
  const Task task = rows[first + mine];
  // Warps take scans in turn. A scan waits for earlier ones only, and those are done or with other warps.
  while (true) {
    uint32_t i = 0;
    if (threadIdx.x % 32 == 0) i = atomicAdd(&taken, 1);
    i = __shfl_sync(~0u, i, 0);
    if (i >= scans) break;
    const bool on = team < own && i < task.count;
    const Pass &pass = p.passes[task.first + min(i, task.count - 1)];
    Scan<TEAM> scan(p, p.images[task.image], pass, memory[threadIdx.x / 32 * each + mine], progress[mine], i, task.image, on);
    scan.decode();
  }
}

// A warp for each scan of an image.
extern "C" __global__ void __launch_bounds__(PROGRESSIVE_THREADS, 3) jpeg_progressive(const Task *rows, uint32_t count, Params p) {
  wait_for_earlier();
  __shared__ Own<32> memory[PROGRESSIVE_THREADS / 32];
  decode(rows, count, p, memory);
}

// A warp for the same scan of up to four images.
extern "C" __global__ void __launch_bounds__(TOGETHER_THREADS, 4) jpeg_progressive_together(const Task *rows, uint32_t count, Params p) {
  wait_for_earlier();
  constexpr uint32_t TEAM = 32 / TOGETHER_IMAGES;
  __shared__ Own<TEAM> memory[TOGETHER_THREADS / TEAM];
  decode(rows, count, p, memory);
}
