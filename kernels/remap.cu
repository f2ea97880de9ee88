// Images whose pixels come from the places in two maps; 0 where those lie outside. ELEMENT is the type; a row of the table is an image.
#include "common.cuh"

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

// The largest float below 2^31, so that a neighbour's coordinate does not overflow.
__device__ inline int cell(float place) { return (int)floorf(fminf(fmaxf(place, -2147483520.0f), 2147483520.0f)); }

__device__ inline const ELEMENT *pixel(const Row &row, int x, int y) {
  const bool inside = x >= 0 && y >= 0 && x < row.source[0] && y < row.source[1];
  return inside ? row.from + ((uint64_t)y * row.source[0] + x) * row.channels : nullptr;
}

extern "C" __global__ void remap(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.pixels; i += step) {
    const float x = row.maps[0][i] + params.shift, y = row.maps[1][i] + params.shift;
    ELEMENT *to = row.to + i * row.channels;
    if (!params.linear) {
      const ELEMENT *from = pixel(row, cell(x), cell(y));
      for (uint64_t c = 0; c < row.channels; c++) to[c] = from ? from[c] : ELEMENT(0);
      continue;
    }
    const int left = cell(x - 0.5f), top = cell(y - 0.5f);
    const float qx = x - 0.5f - left, qy = y - 0.5f - top;
    const ELEMENT *corners[4];
    for (int j = 0; j < 4; j++) corners[j] = pixel(row, left + (j & 1), top + (j >> 1));
    for (uint64_t c = 0; c < row.channels; c++) {
      float s[4];
      for (int j = 0; j < 4; j++) s[j] = corners[j] ? convert<float>(corners[j][c]) : 0.0f;
      const float above = fmaf(s[1], qx, s[0] * (1 - qx)), below = fmaf(s[3], qx, s[2] * (1 - qx));
      // Where a place is no number, or far away, everything is outside.
      to[c] = corners[0] || corners[1] || corners[2] || corners[3] ? convert<ELEMENT>(fmaf(below - above, qy, above)) : ELEMENT(0);
    }
  }
}
