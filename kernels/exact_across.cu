// The pass along rows of a resize by another library's arithmetic: of each row of bytes a row of weighted sums of its
// pixels.
//
//   METHOD  how they are summed up (exact.cuh)      CH  elements of a pixel that a thread makes at once
//
// A thread makes a pixel of ROWS_AT_ONCE rows, so that a weight is read once for all of them.
#include "exact.cuh"

template <int M> struct Made {
  typedef typename Types<M>::Sum Element;
  __device__ static Element of(Element sum, uint32_t) { return sum; }
};
template <> struct Made<BYTES> {
  typedef uint8_t Element;
  __device__ static Element of(uint32_t sum, uint32_t bits) { return to_byte((int32_t)sum >> bits); }
};
template <> struct Made<INTEGERS> {
  typedef int32_t Element;
  __device__ static Element of(uint32_t sum, uint32_t) { return (int32_t)sum; }
};

extern "C" __global__ void __launch_bounds__(256) exact_across(const Row *rows, uint32_t count, NoParams) {
  begin_early();
  typedef typename Types<METHOD>::Weight Weight;
  typedef typename Types<METHOD>::Sum Sum;
  typedef typename Made<METHOD>::Element Element;
  constexpr bool MAY_HAVE_ALPHA = METHOD == BYTES && (CH == 2 || CH == 4);
  const Row row = rows[blockIdx.y];
  const uint32_t groups = row.step / CH, across = row.outputs * groups;
  const uint32_t items = across * ((row.lines + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE);
  const Weight *const weights = (const Weight *)(row.axis + 2 * row.outputs);
  for (uint32_t item = blockIdx.x * blockDim.x + threadIdx.x; item < items; item += gridDim.x * blockDim.x) {
    const uint32_t y = item / across * ROWS_AT_ONCE, place = item % across, x = place / groups, c = place % groups * CH;
    const uint8_t *from[ROWS_AT_ONCE];
    Sum sums[ROWS_AT_ONCE][CH];
#pragma unroll
    for (int r = 0; r < ROWS_AT_ONCE; r++) {
      // What is below the last row is that once more.
      from[r] = (const uint8_t *)row.src + (uint64_t)min(y + r, row.lines - 1) * row.src_pitch + c;
#pragma unroll
      for (int e = 0; e < CH; e++) sums[r][e] = METHOD == BYTES ? (Sum)(1u << (row.bits - 1)) : (Sum)0;
    }
    const int first = row.axis[x], taps = row.axis[row.outputs + x];
    for (int k = 0; k < taps; k++) {
      const Weight weight = weights[(uint64_t)k * row.outputs + x];
      const uint64_t offset = (uint64_t)source_index<METHOD>(row, first + k) * row.step;
#pragma unroll
      for (int r = 0; r < ROWS_AT_ONCE; r++) {
        uint32_t pixel[CH];
#pragma unroll
        for (int e = 0; e < CH; e++) pixel[e] = __ldg(from[r] + offset + e);
        if (MAY_HAVE_ALPHA && row.alpha & MULTIPLY) {
#pragma unroll
          for (int e = 0; e < CH - 1; e++) pixel[e] = multiplied(pixel[e], pixel[CH - 1]);
        }
#pragma unroll
        for (int e = 0; e < CH; e++) sums[r][e] = add<METHOD>(sums[r][e], weight, (Sum)pixel[e], k, taps);
      }
    }
#pragma unroll
    for (int r = 0; r < ROWS_AT_ONCE; r++) {
      if (y + r >= row.lines) break;
      Element made[CH];
#pragma unroll
      for (int e = 0; e < CH; e++) made[e] = Made<METHOD>::of(sums[r][e], row.bits);
      if (MAY_HAVE_ALPHA && row.alpha & DIVIDE) {
#pragma unroll
        for (int e = 0; e < CH - 1; e++) made[e] = divided(made[e], made[CH - 1]);
      }
      Element *const to = (Element *)row.dst + (uint64_t)(y + r) * row.dst_pitch + (uint64_t)x * row.step + c;
#pragma unroll
      for (int e = 0; e < CH; e++) to[e] = made[e];
    }
  }
}
