// Which source pixels the pixels of resized images are made of, and how these are weighed: of each axis, for all tiles
// of all images that have it.
#include "resample_axis.cuh"
#include "resample_split.cuh"

// Makes weights of output pixel i of pixels in the image, of which one may have several: `put` gets which it is,
// counted from the first, and its weight.
template <class Put> __device__ inline void merge(const Axis &axis, int i, float sum, Put put) {
  const int first = first_tap(axis, i), begin = clamp_to(first, axis.length);
  int place = 0;
  float weight = 0.0f;
  for (int k = 0; k < axis.taps; k++) {
    const int next = clamp_to((int64_t)first + k, axis.length) - begin;
    if (next != place) put(place, weight), weight = 0.0f, place = next;
    weight += raw_weight(axis, i, k) / sum;
  }
  put(place, weight);
  for (int k = place + 1; k < axis.taps; k++) put(k, 0.0f);
  ((int32_t *)axis.made)[i] = begin;
}

extern "C" __global__ void __launch_bounds__(256) resample_weights(const Axis *rows, uint32_t count, NoParams) {
  const Axis axis = rows[blockIdx.y];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < axis.size; i += gridDim.x * blockDim.x) {
    float sum = 0.0f;
    for (int k = 0; k < axis.taps; k++) sum += raw_weight(axis, i, k);
    if (sum == 0.0f) sum = 1.0f;
    float *const weights = axis.made + axis.size + i;
    if (axis.is_split) {
      uint32_t *const halves = split_weights(axis, i);
      for (int k = 0; k < SPLIT_PADDING; k++) halves[-1 - k] = halves[axis.taps + k] = 0;
      merge(axis, i, sum, [&](int k, float weight) { halves[k] = split(weight); });
    } else if (axis.is_merged) {
      merge(axis, i, sum, [&](int k, float weight) { weights[(uint64_t)k * axis.size] = weight; });
    } else {
      ((int32_t *)axis.made)[i] = first_tap(axis, i);
      for (int k = 0; k < axis.taps; k++) weights[(uint64_t)k * axis.size] = raw_weight(axis, i, k) / sum;
    }
  }
  // Weights need nothing of the kernels ahead, and lie where none of the batch has anything (`Recorder::scratch`). So
  // they are made before the wait.
  begin_early();
}
