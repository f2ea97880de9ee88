// Images whose pixels come from the places in two maps; 0 where those lie outside. ELEMENT is the type; a row of the table is an image.
#include "sampled.cuh"

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  const float *maps[2];  // x, y
  int32_t source[2];     // columns, rows
  uint64_t pixels;
  uint64_t channels;
};

struct Params {
  float shift;  // what is added to places, so that the first pixel goes from 0 to 1
  uint32_t linear;
};
CHECK_LAYOUT(Row, Params);

// What is no number lies far outside: the difference of anything else to itself is 0.
__device__ inline float shifted(float at, float shift) { return at - at == 0 ? at + shift : -1e9f; }

extern "C" __global__ void remap(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const Image<ELEMENT> image = {row.from, {row.source[0], row.source[1]}, row.channels, ELEMENT(0)};
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.pixels; i += step)
    image.show(shifted(row.maps[0][i], params.shift), shifted(row.maps[1][i], params.shift), params.linear, row.to + i * row.channels);
}
