// Histograms of channels spread over all values. A row of the table is a channel of an image; a block works on one.
#include "common.cuh"

#include "layouts/equalize.cuh"

extern "C" __global__ void equalize(const Row *rows, uint32_t count, NoParams) {
  __shared__ uint32_t histogram[256];
  __shared__ uint8_t table[256];
  const Row row = rows[blockIdx.y];
  for (uint32_t i = threadIdx.x; i < 256; i += blockDim.x) histogram[i] = 0;
  __syncthreads();
  for (uint64_t i = threadIdx.x; i < row.pixels; i += blockDim.x) atomicAdd(&histogram[row.from[i * row.step]], 1u);
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t lowest = 0, above = 0;
    while (lowest < 255 && histogram[lowest] == 0) lowest++;
    const uint32_t rest = (uint32_t)row.pixels - histogram[lowest];
    const float scale = 255.0f / (float)rest;
    for (uint32_t i = 0; i < 256; i++) {
      if (i > lowest) above += histogram[i];
      // An image of one value stays what it is.
      table[i] = rest == 0 ? i : convert<uint8_t>(above * scale);
    }
  }
  __syncthreads();
  for (uint64_t i = threadIdx.x; i < row.pixels; i += blockDim.x) row.to[i * row.step] = table[row.from[i * row.step]];
}
