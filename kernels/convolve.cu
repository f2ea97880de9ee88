// Weighted sums of neighbours along one dimension, mirrored at its ends, scaled and added to what is there. FROM and TO
// are the types; a row of the table is a sample.
#include "common.cuh"

#include "layouts/convolve.cuh"

// Where position `at` is in a dimension of `extent`.
__device__ inline int mirrored(int at, int extent) {
  const int period = extent > 1 ? 2 * extent - 2 : 1;
  at = at % period;
  at = at < 0 ? at + period : at;
  return min(at, period - at);
}

extern "C" __global__ void convolve(const Row *rows, uint32_t count, NoParams) {
  const Row row = rows[blockIdx.y];
  const uint32_t inner = (uint32_t)row.inner;
  const int extent = (int)row.extent, taps = (int)row.taps, radius = taps / 2;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    // Samples have fewer elements than 2^32.
    const int at = (int)((uint32_t)i / inner % extent);
    const FROM *from = row.from + i - (uint64_t)at * inner;
    float sum = 0;
    if (at >= radius && at + radius < extent) {
      from += (uint64_t)(at - radius) * inner;
      for (int k = 0; k < taps; k++) sum = fmaf(row.window[k], convert<float>(from[(uint64_t)k * inner]), sum);
    } else {
      for (int k = 0; k < taps; k++)
        sum = fmaf(row.window[k], convert<float>(from[(uint64_t)mirrored(at + k - radius, extent) * inner]), sum);
    }
    row.to[i] = convert<TO>(row.more ? fmaf(sum, row.scale, row.more[i]) : sum * row.scale);
  }
}
