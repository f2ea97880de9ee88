// Values of keys. A row of the table is a sample.
#include "common.cuh"

#include "layouts/lookup.cuh"

extern "C" __global__ void lookup(const Row *rows, uint32_t count, Params params) {
  const Row row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    const FROM key = row.from[i];
    const bool is_known = key >= 0 && (uint64_t)key < params.keys;
    row.to[i] = params.values[is_known ? (uint64_t)key : params.keys];
  }
}
