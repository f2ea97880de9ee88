// Every element of a signal less a part of the one before it. FROM and TO are the types, REAL the one that is computed
// in; a row of the table is a signal.
#include "common.cuh"

#include "layouts/preemphasis.cuh"

extern "C" __global__ void preemphasis(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const REAL coefficient = (REAL)row.coefficient;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    if (row.coefficient == 0) {
      row.to[i] = convert<TO>(row.from[i]);
      continue;
    }
    const uint64_t before = i > 0 ? i - 1 : params.border == REFLECT && row.elements > 1 ? 1 : 0;
    const REAL past = i == 0 && params.border == ZERO ? (REAL)0 : convert<REAL>(row.from[before]);
    row.to[i] = convert<TO>(convert<REAL>(row.from[i]) - coefficient * past);
  }
}
