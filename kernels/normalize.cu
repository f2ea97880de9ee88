// Subtracts a mean and multiplies by a scale, of which there is one for every position in some of the dimensions. A row
// of the table is a sample.
#include "common.cuh"

#include "layouts/normalize.cuh"

// A sample has at most 2^31 bytes: 32 bits hold a position and are quick to divide.
extern "C" __global__ void normalize(const Row *__restrict__ rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    uint32_t rest = (uint32_t)i;
    uint64_t parameter = 0;
    for (uint64_t a = 0; a < row.axes; ++a) {
      const uint32_t extent = (uint32_t)row.axis[a].extent;
      parameter += rest % extent * row.axis[a].parameter;
      rest /= extent;
    }
    const float distance = convert<float>(load(row.from + i)) - row.means[parameter * row.mean_step];
    row.to[i] = convert<TO>(fmaf(distance, row.scales[parameter * row.scale_step], params.shift));
  }
}
