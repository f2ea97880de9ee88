// The pass along columns of a resize by another library's arithmetic: rows of bytes, each of weighted sums of rows. A
// thread makes some elements of a row.
//
//   METHOD  how they are summed up (exact.cuh)
#include "exact.cuh"

// Elements that a thread makes: short threads would wait most of the time.
constexpr int AT_ONCE = METHOD == BYTES ? BYTES_AT_ONCE : NUMBERS_AT_ONCE;
constexpr int WORDS = AT_ONCE / 4;

// What is between the passes.
template <int M> struct Between {
  typedef int32_t Element;
};
template <> struct Between<BYTES> {
  typedef uint8_t Element;
};
template <> struct Between<FLOATS> {
  typedef float Element;
};
template <> struct Between<MEANS> : Between<FLOATS> {};

// One in the weights of OpenCV's kernels.
constexpr float ONE = 2048.0f;

// Bytes of a row that are read or written at once where they lie so.
struct alignas(AT_ONCE) Words {
  uint32_t word[WORDS];
};

// Elements of a row, of which `left` are there: behind the last is that once more.
template <class V> __device__ inline void take(const uint8_t *from, uint32_t left, V values[AT_ONCE]) {
  const uint64_t place = (uint64_t)from;
  if ((place & 3) == 0 && left >= AT_ONCE) {
    Words words;
    if (place % AT_ONCE == 0) {
      words = *(const Words *)from;
    } else {
#pragma unroll
      for (int w = 0; w < WORDS; w++) words.word[w] = ((const uint32_t *)from)[w];
    }
#pragma unroll
    for (int e = 0; e < AT_ONCE; e++) values[e] = words.word[e / 4] >> 8 * (e % 4) & 255;
    return;
  }
#pragma unroll
  for (int e = 0; e < AT_ONCE; e++) values[e] = from[min((uint32_t)e, left - 1)];
}
template <class T, class V> __device__ inline void take(const T *from, uint32_t left, V values[AT_ONCE]) {
#pragma unroll
  for (int e = 0; e < AT_ONCE; e++) values[e] = from[min((uint32_t)e, left - 1)];
}

// Changes the colours of the whole pixels that these elements are, by their alpha.
template <class V, class Change> __device__ inline void by_alpha(uint32_t step, V values[AT_ONCE], Change change) {
#pragma unroll
  for (int e = 0; e < AT_ONCE; e++) {
    if (step == 2 && e % 2 != 1) values[e] = change(values[e], values[e + 1]);
    if (step == 4 && e % 4 != 3) values[e] = change(values[e], values[e / 4 * 4 + 3]);
  }
}

// Elements of output i of the axis, from element `at` of a row on, of which `left` are there.
template <int M> struct Summed {
  __device__ static void of(const Row &row, int i, uint32_t at, uint32_t left, uint32_t made[AT_ONCE]) {
    typedef typename Between<M>::Element Element;
    typedef typename Types<M>::Weight Weight;
    typedef typename Types<M>::Sum Sum;
    const Weight *const weights = (const Weight *)(row.axis + 2 * row.outputs) + i;
    const int first = row.axis[i], taps = row.axis[row.outputs + i];
    Sum sums[AT_ONCE];
#pragma unroll
    for (int e = 0; e < AT_ONCE; e++) sums[e] = M == BYTES ? (Sum)(1u << (row.bits - 1)) : (Sum)0;
    for (int k = 0; k < taps; k++) {
      const Weight weight = weights[(uint64_t)k * row.outputs];
      Sum values[AT_ONCE];
      take((const Element *)row.src + (uint64_t)source_index<M>(row, first + k) * row.src_pitch + at, left, values);
      if (M == BYTES && row.alpha & MULTIPLY) by_alpha(row.step, values, [](uint32_t value, uint32_t alpha) { return multiplied(value, alpha); });
#pragma unroll
      for (int e = 0; e < AT_ONCE; e++) {
        if constexpr (M == LINEAR) sums[e] += (weight * ((int32_t)values[e] >> 4)) >> 16;
        else sums[e] = add<M>(sums[e], weight, values[e], k, taps);
      }
    }
#pragma unroll
    for (int e = 0; e < AT_ONCE; e++) {
      if constexpr (M == BYTES) made[e] = to_byte((int32_t)sums[e] >> row.bits);
      else if constexpr (M == LINEAR) made[e] = to_byte(((int32_t)sums[e] + 2) >> 2);
      else if constexpr (M == WHOLE) made[e] = row.share == 0 ? (uint8_t)((sums[e] + 2) >> 2) : from_real<uint8_t>((float)(int32_t)sums[e] * row.share);
      else made[e] = from_real<uint8_t>(sums[e]);
    }
  }
};
template <> struct Summed<CUBIC> {
  __device__ static void of(const Row &row, int i, uint32_t at, uint32_t left, uint32_t made[AT_ONCE]) {
    const int32_t *const weights = row.axis + 2 * row.outputs + i;
    const int first = row.axis[i];
    uint32_t values[4][AT_ONCE];
    int32_t weight[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      weight[k] = weights[(uint64_t)k * row.outputs];
      take((const int32_t *)row.src + (uint64_t)source_index<CUBIC>(row, first + k) * row.src_pitch + at, left, values[k]);
    }
#pragma unroll
    for (int e = 0; e < AT_ONCE; e++) {
      const uint32_t element = at + e, x = row.start + row.direction * (int32_t)(element / row.step);
      if (x * row.step + element % row.step < row.whole) {
        float product[4];
#pragma unroll
        for (int k = 0; k < 4; k++) product[k] = (float)(int32_t)values[k][e] * ((float)weight[k] * (1.0f / (ONE * ONE)));
        made[e] = from_real<uint8_t>(product[0] + (product[1] + (product[2] + product[3])));
      } else {
        uint32_t sum = 1u << 21;
#pragma unroll
        for (int k = 0; k < 4; k++) sum += values[k][e] * (uint32_t)weight[k];
        made[e] = to_byte((int32_t)sum >> 22);
      }
    }
  }
};

extern "C" __global__ void __launch_bounds__(256) exact_down(const Row *rows, uint32_t count, NoParams) {
  begin_early();
  const Row row = rows[blockIdx.y];
  const uint32_t parts = (row.lines + AT_ONCE - 1) / AT_ONCE, items = parts * row.outputs;
  for (uint32_t item = blockIdx.x * blockDim.x + threadIdx.x; item < items; item += gridDim.x * blockDim.x) {
    const uint32_t i = item / parts, at = item % parts * AT_ONCE, left = row.lines - at;
    uint32_t made[AT_ONCE];
    Summed<METHOD>::of(row, i, at, left, made);
    if (row.alpha & DIVIDE) by_alpha(row.step, made, [](uint32_t value, uint32_t alpha) { return divided(value, alpha); });
    uint8_t *const to = (uint8_t *)row.dst + (uint64_t)i * row.dst_pitch + at;
    const uint64_t place = (uint64_t)to;
    if ((place & 3) == 0 && left >= AT_ONCE) {
      Words words;
#pragma unroll
      for (int w = 0; w < WORDS; w++) words.word[w] = made[4 * w] | made[4 * w + 1] << 8 | made[4 * w + 2] << 16 | made[4 * w + 3] << 24;
      if (place % AT_ONCE == 0) {
        *(Words *)to = words;
      } else {
#pragma unroll
        for (int w = 0; w < WORDS; w++) ((uint32_t *)to)[w] = words.word[w];
      }
      continue;
    }
#pragma unroll
    for (int e = 0; e < AT_ONCE; e++)
      if (e < left) to[e] = made[e];
  }
}
