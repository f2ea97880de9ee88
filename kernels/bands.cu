// Weighted sums of bands of one dimension: mel filters, cosine transforms. A row of the table is a sample.
#include "common.cuh"

#include "layouts/bands.cuh"

extern "C" __global__ void bands(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    // A sample has fewer elements than 2^32.
    const uint32_t at = (uint32_t)i % row.inner, line = (uint32_t)i / row.inner, outer = line / row.count;
    const Band band = row.bands[line % row.count];
    const float *from = row.from + ((uint64_t)outer * row.extent + band.first) * row.inner + at;
    const float *weights = row.weights + band.start;
    float sum = 0;
    for (uint32_t k = 0; k < band.count; ++k) sum = fmaf(from[(uint64_t)k * row.inner], weights[k], sum);
    row.to[i] = sum * band.scale;
  }
}
