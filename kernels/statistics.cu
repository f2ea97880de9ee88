// Means and scales from the sums that `normalize.cu` makes. A row of the table is a sample, or all samples of a batch that
// share their parameters.
#include "common.cuh"

struct Row {
  const double *sums;  // one for each part and parameter, those of a part together
  float *to;
  uint64_t parameters;
  uint64_t parts;
  uint64_t each;  // elements that have the same parameter
};

struct Params {
  float scale;    // what scales are multiplied by
  float epsilon;  // added to the variance
  int64_t ddof;   // subtracted from the number of elements
};
CHECK_LAYOUT(Row, Params);

// Whether MEANS are made or scales.
__device__ inline float finished(double sum, const Row &row, const Params &params) {
  const double each = (double)row.each;
  if (MEANS) return (float)(sum / each);
  const double degrees = each - (double)params.ddof;
  const double variance = (degrees > 0 ? sum / degrees : 0.0) + (double)params.epsilon;
  return variance == 0 ? 0.0f : (float)((double)params.scale / sqrt(variance));
}

extern "C" __global__ void statistics(const Row *__restrict__ rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t p = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; p < row.parameters; p += step) {
    double sum = 0;
    for (uint64_t part = 0; part < row.parts; ++part) sum += row.sums[part * row.parameters + p];
    row.to[p] = finished(sum, row, params);
  }
}
