// Which source pixels the pixels of resized images are made of, and how these are weighed: of each axis, for all tiles of all images that have it.
#include "resample_axis.cuh"

typedef Axis Row;
CHECK_LAYOUT(Row, NoParams);

extern "C" __global__ void __launch_bounds__(256) resample_weights(const Row *rows, uint32_t count, NoParams) {
  const Axis axis = rows[blockIdx.y];
  const bool few = axis.taps <= MAX_TAPS;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < axis.size; i += gridDim.x * blockDim.x) {
    float *const weights = axis.made + 2 * (uint64_t)axis.size + i;
    float sum = 0.0f;
    for (int k = 0; k < axis.taps; k++) {
      const float weight = raw_weight(axis, i, k);
      if (few) weights[(uint64_t)k * axis.size] = weight;
      sum += weight;
    }
    if (sum == 0.0f) sum = 1.0f;
    ((int32_t *)axis.made)[i] = first_tap(axis, i), axis.made[axis.size + i] = sum;
    if (few)
      for (int k = 0; k < axis.taps; k++) weights[(uint64_t)k * axis.size] /= sum;
  }
}
