// Relative bounding boxes mirrored with their image. A row of the table is a sample.
#include "common.cuh"

#include "layouts/bb_flip.cuh"

extern "C" __global__ void bb_flip(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.boxes; i += step) {
    const float *from = row.from + 4 * i;
    float *to = row.to + 4 * i;
    for (uint32_t side = 0; side < 2; side++) {
      float start = from[side], end = params.has_ends ? from[side + 2] : start + from[side + 2];
      if (row.flipped[side]) {
        const float mirrored = 1.0f - end;
        end = 1.0f - start;
        start = mirrored;
      }
      to[side] = start;
      to[side + 2] = params.has_ends ? end : end - start;
    }
  }
}
