// Points mirrored at a center. A row of the table is a sample.
#include "common.cuh"

#include "layouts/coord_flip.cuh"

extern "C" __global__ void coord_flip(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    const uint32_t c = (uint32_t)(i % row.coordinates);
    const float x = row.from[i];
    row.to[i] = row.flipped >> c & 1 ? row.twice[c] - x : x;
  }
}
