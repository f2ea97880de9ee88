// One pass of resizing with another library's arithmetic: sums along one axis, with the weights that the host made (src/cpu/exact/device.rs).
// A row of the table is a pass over an image.
//
//   SRC  type of what is read       DST  type of what is made
//   FLOATS  weights are float32     else integers in fixed point, and SRC and DST are bytes
#include "common.cuh"

struct Row {
  DST *dst;               // dense: lines, outputs of a line, elements
  const SRC *src;
  const uint32_t *table;  // see Pass in src/cpu/exact/device.rs
  uint64_t pitch;         // elements of the source from a line to the next
  uint64_t step;          // and from a tap to the next
  uint32_t lines, outputs, elements;
  uint32_t channels;
  uint32_t bits;          // behind the point of integers
  uint32_t multiplies;    // colours are multiplied by their alpha before
  uint32_t divides;       // and divided by it afterwards
  uint32_t unused;
};
CHECK_LAYOUT(Row, NoParams);

#ifdef FLOATS
// Of the products of floats behind the first one so many at a time are rounded before they are added; the others are not. As in
// src/cpu/exact/floats.rs.
constexpr uint32_t ROUNDED = 4;

__device__ inline uint8_t rounded(float sum, uint8_t *) { return (uint8_t)rintf(fminf(fmaxf(sum, 0.0f), 255.0f)); }
__device__ inline float rounded(float sum, float *) { return sum; }

// The sum for output `i` of elements from `src` on. Products are rounded (--fmad=false).
__device__ inline DST sum_of(const Row &row, const SRC *src, uint32_t, const uint32_t *weights, uint32_t taps) {
  const uint32_t plain = taps ? (taps - 1) / ROUNDED * ROUNDED : 0;
  float sum = 0.0f;
  for (uint32_t k = 0; k < taps; k++, src += row.step) {
    const float value = (float)*src, weight = __uint_as_float(weights[k]);
    sum = k == 0 ? value * weight : k <= plain ? sum + value * weight : fmaf(value, weight, sum);
  }
  return rounded(sum, (DST *)nullptr);
}
#else
// Colour `value` times its alpha, by 255, rounded.
__device__ inline uint32_t times(uint32_t value, uint32_t alpha) {
  const uint32_t product = value * alpha + 128;
  return (product + (product >> 8)) >> 8;
}

// The sum for channel `channel` of elements from `src` on. Unsigned, so that it wraps around as on the CPU.
__device__ inline uint32_t sum_of(const Row &row, const SRC *src, uint32_t channel, const uint32_t *weights, uint32_t taps) {
  const uint32_t alpha = row.channels - 1;
  const bool multiplies = row.multiplies && channel != alpha;
  uint32_t sum = 1u << (row.bits - 1);
  for (uint32_t k = 0; k < taps; k++, src += row.step) sum += weights[k] * (multiplies ? times(*src, src[alpha - channel]) : *src);
  return min(max((int32_t)sum >> row.bits, 0), 255);
}
#endif

extern "C" __global__ void __launch_bounds__(256) exact(const Row *rows, uint32_t count, NoParams) {
  begin_early();
  const Row row = rows[blockIdx.y];
  // At most 2^31, between the passes, too: Task::check in src/cpu/exact/task.rs.
  const uint32_t all = row.lines * row.outputs * row.elements, threads = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += threads) {
    const uint32_t element = i % row.elements, output = i / row.elements % row.outputs, line = i / row.elements / row.outputs;
    const uint32_t *const place = row.table + 3ull * output, begin = place[1], taps = place[2] - begin, channel = element % row.channels;
    const uint32_t *const weights = row.table + begin;
    const SRC *const src = row.src + line * row.pitch + place[0] * row.step + element;
#ifdef FLOATS
    row.dst[i] = sum_of(row, src, channel, weights, taps);
#else
    uint32_t made = sum_of(row, src, channel, weights, taps);
    const uint32_t last = row.channels - 1;
    if (row.divides && channel != last) {
      const uint32_t alpha = sum_of(row, src + (last - channel), last, weights, taps);
      if (alpha != 0 && alpha != 255) made = min(255 * made / alpha, 255u);
    }
    row.dst[i] = made;
#endif
  }
}
