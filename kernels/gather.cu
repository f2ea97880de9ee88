// Fills dense outputs with elements that lie at strides in their inputs: windows, which may leave the input, and their
// borders; mirrored and transposed copies; one element for many. A row of the table is a sample. TO and FROM are the
// types of the elements. With CONVERTS 0 they are the same, and unsigned integers of their size stand for them.
//
// Outputs are dense, so that neighbouring threads write neighbouring words of 8 bytes.
#include "common.cuh"

#include "layouts/gather.cuh"

constexpr uint32_t CHUNK = 8 / sizeof(TO);

// Words of the output. A sample has at most 2^31 bytes, so that positions in it fit into 32 bits, which are quick to
// divide.
union Chunk {
  TO element[CHUNK];
  uint64_t word;
  __device__ Chunk() {}
};

#if CONVERTS
// As DALI does it for windows: fractions are dropped, what does not fit becomes the nearest value that does.
__device__ inline float toward_zero(half_t v) { return truncf(to_float(v)); }
__device__ inline float toward_zero(float v) { return truncf(v); }
__device__ inline double toward_zero(double v) { return trunc(v); }
template <class T> __device__ inline T toward_zero(T v) { return v; }

template <class T> __device__ inline void assign(uint8_t &to, T v) { to = convert<uint8_t>(toward_zero(v)); }
template <class T> __device__ inline void assign(float &to, T v) { to = convert<float>(v); }
template <class T> __device__ inline void assign(half_t &to, T v) {
  const float f = convert<float>(v);
  to = to_half(f > 65504.0f ? 65504.0f : f < -65504.0f ? -65504.0f : f);
}
#else
__device__ inline void assign(TO &to, FROM v) { to = v; }
#endif

// Where in the input position `at` of the output is; negative: nowhere.
__device__ inline int64_t source(const Axis &axis, Border border, uint32_t at) {
  const int64_t position = axis.anchor + at, last = axis.source - 1;
  if (position >= 0 && position <= last) return position;
  // Anchors of the modular borders are made positive by the host.
  switch (border) {
    case CLAMP: return position < 0 ? 0 : last;
    case WRAP: return position % axis.source;
    case REFLECT_1001: {
      const int64_t folded = position % (2 * axis.source);
      return folded <= last ? folded : 2 * axis.source - 1 - folded;
    }
    case REFLECT_101: {
      const int64_t period = last > 0 ? 2 * last : 1, folded = position % period;
      return folded <= last ? folded : period - folded;
    }
    default: return -1;
  }
}

// Goes through the output in order.
struct Cursor {
  const Row &row;
  const Border border;
  uint32_t at;     // in the innermost axis
  bool outside;    // whether the position in the others is
  int64_t offset;  // of it in the input

  __device__ Cursor(const Row &row, Border border) : row(row), border(border) {}

  __device__ void seek(uint64_t element) {
    uint32_t rest = (uint32_t)element;
    const uint32_t inner = (uint32_t)row.axis[0].extent;
    at = rest % inner;
    rest /= inner;
    outside = false;
    offset = 0;
    for (uint64_t a = 1; a < row.axes; ++a) {
      const Axis &axis = row.axis[a];
      const uint32_t extent = (uint32_t)axis.extent;
      const int64_t position = source(axis, border, rest % extent);
      rest /= extent;
      outside |= position < 0;
      offset += position * axis.stride;
    }
  }

  __device__ TO fill(uint64_t element) const {
    if (row.fill_values == 1) return *row.fill;
    return row.fill[element / row.fill_repeat % row.fill_values];
  }

  __device__ TO element(uint64_t element) const {
    const int64_t position = outside ? -1 : source(row.axis[0], border, at);
    if (position < 0) return fill(element);
    TO to;
    assign(to, load(row.from + (offset + position * row.axis[0].stride)));
    return to;
  }

  // Whether the next CHUNK elements of the output are neighbours in the input.
  __device__ bool is_run() const {
    const Axis &inner = row.axis[0];
    const int64_t position = inner.anchor + at;
    return !CONVERTS && !outside && inner.stride == 1 && at + CHUNK <= inner.extent && position >= 0 &&
           position + (int64_t)CHUNK <= inner.source;
  }
};

extern "C" __global__ void gather(const Row *__restrict__ rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x * CHUNK;
  const bool words = ((uint64_t)row.to & 7) == 0;
  Cursor cursor(row, params.border);
  for (uint64_t first = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) * CHUNK; first < row.elements; first += step) {
    const uint32_t len = row.elements - first < CHUNK ? (uint32_t)(row.elements - first) : CHUNK;
    Chunk chunk;
    cursor.seek(first);
#if !CONVERTS
    if (cursor.is_run()) {
      const TO *from = row.from + (cursor.offset + row.axis[0].anchor + cursor.at);
      if (((uint64_t)from & 7) == 0) {
        chunk.word = *(const uint64_t *)from;
      } else {
#pragma unroll
        for (uint32_t i = 0; i < CHUNK; ++i) chunk.element[i] = from[i];
      }
    } else
#endif
    {
#pragma unroll
      for (uint32_t i = 0; i < CHUNK; ++i) {
        if (i >= len) continue;
        if (i > 0 && ++cursor.at == row.axis[0].extent) cursor.seek(first + i);
        chunk.element[i] = cursor.element(first + i);
      }
    }
    if (words && len == CHUNK) {
      *(uint64_t *)(row.to + first) = chunk.word;
    } else {
#pragma unroll
      for (uint32_t i = 0; i < CHUNK; ++i)
        if (i < len) row.to[first + i] = chunk.element[i];
    }
  }
}
