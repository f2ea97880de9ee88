// Every pixel as a linear function of its channels. FROM and TO are the types; a row of the table is a sample.
#include "common.cuh"

#include "layouts/color.cuh"

extern "C" __global__ void scale_add(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const float factor = row.factor[0], addend = row.addend;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step)
    row.to[i] = convert<TO>(fmaf(convert<float>(row.from[i]), factor, addend));
}

extern "C" __global__ void mix_channels(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    const FROM *from = row.from + 3 * i;
    const float a = convert<float>(from[0]), b = convert<float>(from[1]), c = convert<float>(from[2]);
#pragma unroll
    for (int k = 0; k < 3; k++) {
      const float *factor = row.factor + 3 * k;
      row.to[3 * i + k] = convert<TO>(fmaf(factor[2], c, fmaf(factor[1], b, factor[0] * a)) + row.addend);
    }
  }
}
