// Frames to where an optical flow engine reads them, and its fields of vectors to float32. A row of the table is a
// frame or a field; memory of the engine has gaps between its rows. With CHANNELS 1 frames are gray, else red, green,
// blue and 255 for each pixel.
#include "common.cuh"

#include "layouts/optical_flow.cuh"

// Where the engine has element `i`, from `base` on.
template <class T> __device__ inline T *element(uint64_t base, const Row &row, uint64_t i) {
  return (T *)(base + i / row.width * row.pitch) + i % row.width;
}

extern "C" __global__ void flow_frame(const Row *rows, uint32_t count, Params params) {
  const Row row = rows[blockIdx.y];
  const uint8_t *from = (const uint8_t *)row.from;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
#if CHANNELS == 1
    *element<uint8_t>(row.to, row, i) = from[i];
#else
    const uint8_t *pixel = from + 3 * i;
    const uint32_t red = pixel[params.red], green = pixel[1], blue = pixel[2 - params.red];
    *element<uint32_t>(row.to, row, i) = red | green << 8 | blue << 16 | 255u << 24;
#endif
  }
}

// A vector of the engine: pixels / 32 along x and along y.
struct Vector {
  int16_t x, y;
};

extern "C" __global__ void flow_field(const Row *rows, uint32_t count, Params) {
  const Row row = rows[blockIdx.y];
  float *to = (float *)row.to;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    const Vector vector = *element<const Vector>(row.from, row, i);
    to[2 * i] = vector.x * (1 / 32.0f);
    to[2 * i + 1] = vector.y * (1 / 32.0f);
  }
}

extern "C" __global__ void flow_hints(const Row *rows, uint32_t count, Params) {
  const Row row = rows[blockIdx.y];
  const float *from = (const float *)row.from;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    const Vector vector = {convert<int16_t>(from[2 * i] * 32), convert<int16_t>(from[2 * i + 1] * 32)};
    *element<Vector>(row.to, row, i) = vector;
  }
}
