// Fills regions of samples. A row of the table is a region. TO is an unsigned integer as large as the elements.
#include "common.cuh"

#include "layouts/erase.cuh"

// A sample has at most 2^31 bytes: 32 bits hold a position and are quick to divide.
extern "C" __global__ void erase(const Row *__restrict__ rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    uint32_t rest = (uint32_t)i;
    uint64_t at = row.first;
    for (uint64_t a = 0; a < row.axes; ++a) {
      const uint32_t extent = (uint32_t)row.axis[a].extent;
      at += rest % extent * row.axis[a].stride;
      rest /= extent;
    }
    row.to[at] = row.fill[row.fill_values == 1 ? 0 : at / row.fill_repeat % row.fill_values];
  }
}
