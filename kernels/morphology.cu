// The largest or smallest value under a rectangle. ELEMENT is the type; a row of the table is an image.
#include "common.cuh"

#include "layouts/morphology.cuh"

#include "border.cuh"

extern "C" __global__ void morphology(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const uint64_t elements = (uint64_t)row.size[0] * row.size[1] * row.channels;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += step) {
    const int c = i % row.channels, x = i / row.channels % row.size[0], y = i / row.channels / row.size[0];
    // The pixel itself lies under the rectangle.
    ELEMENT best = row.from[i];
    for (int j = 0; j < row.mask[1]; j++) {
      const int from_y = source_of(y + j - row.before[1], row.size[1], params.border);
      if (from_y < 0) continue;
      for (int k = 0; k < row.mask[0]; k++) {
        const int from_x = source_of(x + k - row.before[0], row.size[0], params.border);
        if (from_x < 0) continue;
        const ELEMENT value = row.from[((uint64_t)from_y * row.size[0] + from_x) * row.channels + c];
        if (params.smallest ? value < best : value > best) best = value;
      }
    }
    row.to[i] = best;
  }
}
