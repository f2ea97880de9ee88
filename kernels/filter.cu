// Images correlated with a rectangle of weights. FROM and TO are the types; a row of the table is an image.
#include "common.cuh"

#include "layouts/filter.cuh"

#include "border.cuh"

extern "C" __global__ void filter(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const float outside = row.fill ? convert<float>(*row.fill) : 0.0f;
  const uint64_t elements = (uint64_t)row.target[0] * row.target[1] * row.channels;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += step) {
    const int c = i % row.channels, x = i / row.channels % row.target[1], y = i / row.channels / row.target[1];
    float sum = 0;
    for (int j = 0; j < row.size[0]; j++) {
      const int from_y = source_of(y + j - row.before[0], row.source[0], params.border);
      for (int k = 0; k < row.size[1]; k++) {
        const int from_x = source_of(x + k - row.before[1], row.source[1], params.border);
        const bool inside = from_y >= 0 && from_x >= 0;
        const uint64_t place = ((uint64_t)from_y * row.source[1] + from_x) * row.channels + c;
        sum = fmaf(row.weights[j * row.size[1] + k], inside ? convert<float>(row.from[place]) : outside, sum);
      }
    }
    row.to[i] = convert<TO>(sum);
  }
}
