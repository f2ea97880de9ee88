// Medians of windows around every pixel, whose edges are repeated outside. ELEMENT is the type; a row of the table is
// an image.
#include "common.cuh"

#include "layouts/median.cuh"

constexpr int BITS = 8 * sizeof(ELEMENT);

// The position nearest to `at` in a dimension of `extent`.
__device__ inline int nearest(int at, int extent) { return at < 0 ? 0 : at < extent ? at : extent - 1; }

// Numbers without a sign in the order of the elements, and back.
__device__ inline uint32_t key_of(uint8_t v) { return v; }
__device__ inline uint32_t key_of(uint16_t v) { return v; }
__device__ inline uint32_t key_of(int16_t v) { return (uint16_t)v ^ 0x8000u; }
__device__ inline uint32_t key_of(int32_t v) { return (uint32_t)v ^ 0x80000000u; }
__device__ inline uint32_t key_of(float v) {
  union {
    float value;
    uint32_t bits;
  } both = {v};
  return both.bits & 0x80000000u ? ~both.bits : both.bits | 0x80000000u;
}
template <class T> struct Value;
template <> struct Value<uint8_t> {
  __device__ static uint8_t of(uint32_t key) { return key; }
};
template <> struct Value<uint16_t> {
  __device__ static uint16_t of(uint32_t key) { return key; }
};
template <> struct Value<int16_t> {
  __device__ static int16_t of(uint32_t key) { return (int16_t)(key ^ 0x8000u); }
};
template <> struct Value<int32_t> {
  __device__ static int32_t of(uint32_t key) { return (int32_t)(key ^ 0x80000000u); }
};
template <> struct Value<float> {
  __device__ static float of(uint32_t key) {
    union {
      uint32_t bits;
      float value;
    } both = {key & 0x80000000u ? key & 0x7fffffffu : ~key};
    return both.value;
  }
};

extern "C" __global__ void median(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint64_t elements = (uint64_t)row.size[0] * row.size[1] * row.channels;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  const int half = row.window[0] * row.window[1] / 2;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += step) {
    const int c = i % row.channels, x = i / row.channels % row.size[0], y = i / row.channels / row.size[0];
    // Bit by bit the largest key below which there is at most half of the window: nothing is stored or sorted.
    uint32_t key = 0;
    for (int bit = BITS - 1; bit >= 0; bit--) {
      const uint32_t tried = key | 1u << bit;
      int below = 0;
      for (int j = 0; j < row.window[1]; j++) {
        const int from_y = nearest(y + j - row.window[1] / 2, row.size[1]);
        for (int k = 0; k < row.window[0]; k++) {
          const int from_x = nearest(x + k - row.window[0] / 2, row.size[0]);
          below += key_of(row.from[((uint64_t)from_y * row.size[0] + from_x) * row.channels + c]) < tried;
        }
      }
      if (below <= half) key = tried;
    }
    row.to[i] = Value<ELEMENT>::of(key);
  }
}
