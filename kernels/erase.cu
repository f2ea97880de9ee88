// Fills regions of samples. A row of the table is a region. TO is an unsigned integer as large as the elements.
#include "common.cuh"

// A dimension of the region.
struct Axis {
  uint64_t extent;
  uint64_t stride;  // distance of neighbours, in elements of the sample
};

constexpr uint32_t MAX_AXES = 6;

struct Row {
  TO *to;                // the sample
  const TO *fill;
  uint64_t fill_values;  // how many, one for each position of a dimension
  uint64_t fill_repeat;  // elements of the sample that have the same one
  uint64_t first;        // of the region, in elements of the sample
  uint64_t elements;     // of the region
  uint64_t axes;
  Axis axis[MAX_AXES];   // innermost first
};
CHECK_LAYOUT(Row, NoParams);

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
