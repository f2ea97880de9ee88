// A window of a tensor, mirrored, normalised per channel, its dimensions in another order. SRC and DST are the types,
// NDIM is the number of dimensions; a row of the table is a sample, dimensions are in the order of the output.
//
//   TABLES  bytes become the values that the host made of each byte: another library's arithmetic, to the bit
#include "common.cuh"

#include "layouts/crop_mirror_normalize.cuh"

__device__ inline float normalized(const Row &row, SRC value, uint32_t channel) {
#ifdef TABLES
  return row.factor[256 * channel + value];
#else
  return fmaf(convert<float>(value), row.factor[channel], row.bias[channel]);
#endif
}

extern "C" __global__ void crop_mirror_normalize(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    uint64_t rest = i;
    int64_t source = 0;
    uint32_t channel = 0;
    bool inside = true;
#pragma unroll
    for (int d = NDIM - 1; d >= 0; d--) {
      const Dimension &dimension = row.dimensions[d];
      // Most tensors are small enough for the division that is cheap.
      const uint32_t at = rest >> 32 ? (uint32_t)(rest % dimension.window) : (uint32_t)rest % dimension.window;
      rest = rest >> 32 ? rest / dimension.window : (uint32_t)rest / dimension.window;
      if (d == row.channel) channel = at;
      const int64_t place = (dimension.mirror ? dimension.window - 1 - at : at) + dimension.anchor;
      inside = inside && place >= 0 && place < dimension.source;
      source += place * dimension.stride;
    }
    row.to[i] = inside && channel < row.channels
                    ? convert<DST>(normalized(row, row.from[source], channel))
                    : fill_value<DST>(row.fill[channel]);
  }
}
