// Frames of one colour: a row of the table is a frame.
#include "common.cuh"

#include "layouts/video_fill.cuh"

extern "C" __global__ void video_fill(const Row *rows, uint32_t count, NoParams) {
  const Row row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < 3 * row.pixels; i += step) row.to[i] = row.color[i % 3];
}
