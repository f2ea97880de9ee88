// Signals at another rate, by a windowed sinc from a table. FROM and TO are the types of their elements; a row of the
// table is a signal.
#include "common.cuh"

#include "layouts/audio_resample.cuh"

// Frames of the output between positions that are computed in double precision.
constexpr uint64_t BLOCK = 256;

// An element as a float: signed ones between -1 and 1, unsigned ones between 0 and 1.
template <class T> struct Level {
  static constexpr bool is_unsigned = Range<T>::low == 0;
  __device__ static float of(T value) { return convert<float>(value) * (1.0f / (float)Range<T>::high); }
  __device__ static T from(float level) { return convert<T>(level * (float)Range<T>::high); }
};
template <> struct Level<float> {
  static constexpr bool is_unsigned = false;
  __device__ static float of(float value) { return value; }
  __device__ static float from(float level) { return level; }
};

// An element as the level that elements of the output have there.
__device__ inline float level(FROM value) {
  const float level = Level<FROM>::of(value);
  if (Level<FROM>::is_unsigned && !Level<TO>::is_unsigned) return level * 2.0f - 1.0f;
  if (!Level<FROM>::is_unsigned && Level<TO>::is_unsigned) return (level + 1.0f) * 0.5f;
  return level;
}

// The window at `x` from its middle.
__device__ inline float weight(const Params &params, float x) {
  const float place = fmaf(x, params.scale, params.center), whole = floorf(place);
  const int i = (int)whole;
  if (i < 0 || i + 1 >= params.entries) return 0;
  return fmaf(place - whole, params.table[i + 1] - params.table[i], params.table[i]);
}

extern "C" __global__ void audio_resample(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += threads) {
    const uint64_t frame = i / row.channels, channel = i - frame * row.channels;
    // Distances are from the whole frame before the block: small, so that floats hold them.
    const double start = (double)(frame / BLOCK * BLOCK) * row.step, whole = floor(start);
    const int64_t base = (int64_t)whole;
    const float place = fmaf((float)row.step, (float)(frame % BLOCK), (float)(start - whole));
    const int64_t middle = (int64_t)ceilf(place);
    const int64_t first = middle - params.lobes > -base ? middle - params.lobes : -base;
    const int64_t last = middle + params.lobes < row.frames - base ? middle + params.lobes : row.frames - base;
    float sum = 0;
    for (int64_t k = first; k < last; ++k)
      sum = fmaf(level(row.from[(k + base) * row.channels + channel]), weight(params, (float)k - place), sum);
    row.to[i] = Level<TO>::from(sum);
  }
}
