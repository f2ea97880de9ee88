// Signals with a mean of 0 and a variance of 1, equal to the host's to the bit. A row of the table is a signal, of
// which a block makes all.
#include "common.cuh"

#include "layouts/unit_variance.cuh"

#include "pairwise.cuh"

extern "C" __global__ void unit_variance(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const float *from = row.from;
  const double elements = (double)row.elements;
  const float sum = pairwise_sum<float>(row.elements, row.depth, row.sums, [=](uint64_t i) { return from[i]; });
  const float mean = (float)((double)sum / elements);
  const float squares = pairwise_sum<float>(row.elements, row.depth, row.sums, [=](uint64_t i) {
    const float distance = from[i] - mean;
    return distance * distance;
  });
  const float deviation = sqrtf((float)((double)squares / elements) + params.epsilon);
  for (uint64_t i = threadIdx.x; i < row.elements; i += blockDim.x) row.to[i] = (from[i] - mean) / deviation;
}
