// Pixels as a decoder stores them to what was asked for: window and orientation as strides, colours, element type. A
// row of the table is an image. IN is the number of samples of a stored pixel (1 or 3), TO the element type, STUDIO 1
// for YCbCr from RGB. The same roundings as the host's decoder: halves away from zero.
#include "common.cuh"

#include "layouts/decoded.cuh"

template <class T> __device__ inline T element(float v) { return convert<T>(roundf(v)); }
template <> __device__ inline float element<float>(float v) { return v; }

template <class T> __device__ inline T scaled(uint8_t v, float level) { return element<T>((float)v * level); }
template <> __device__ inline uint8_t scaled<uint8_t>(uint8_t v, float) { return v; }

extern "C" __global__ void decoded(const Row *rows, uint32_t count, Params p) {
  const Row row = rows[blockIdx.y];
  const uint64_t pixels = (uint64_t)row.width * row.height;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += step) {
    const uint64_t y = i / row.width, x = i - y * row.width;
    const uint8_t *from = row.from + IN * (row.start + (int64_t)x * row.step_x + (int64_t)y * row.step_y);
    TO *to = row.to + i * row.channels;
#if STUDIO
    const float r = from[0], g = from[1], b = from[2];
    for (int c = 0; c < 3; c++) {
      const float *w = p.studio[c];
      to[c] = element<TO>(w[0] * r + w[1] * g + w[2] * b + w[3]);
    }
#else
    for (uint32_t c = 0; c < row.channels; c++) to[c] = scaled<TO>(from[c], p.level);
#endif
  }
}
