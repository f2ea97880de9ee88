// Another element type, with saturation. FROM and TO are the types; a row of the table is a sample.
#include "common.cuh"

#include "layouts/cast.cuh"

extern "C" __global__ void cast(const Row *rows, uint32_t count, NoParams) {
  const Row row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step)
    row.to[i] = convert<TO>(load(row.from + i));
}
