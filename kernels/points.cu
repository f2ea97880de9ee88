// Points multiplied by a matrix and moved. FROM and TO are the types, MAX is the most coordinates of a point; a row of
// the table is a sample.
#include "common.cuh"

#include "layouts/points.cuh"

extern "C" __global__ void points(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint32_t n = row.from_coordinates, m = row.to_coordinates;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.points; i += step) {
    for (uint32_t k = 0; k < m; k++) {
      float sum = row.matrix[k][0] * convert<float>(row.from[i * n]);
      for (uint32_t j = 1; j < n; j++) sum = fmaf(row.matrix[k][j], convert<float>(row.from[i * n + j]), sum);
      row.to[i * m + k] = convert<TO>(sum + row.translation[k]);
    }
  }
}
