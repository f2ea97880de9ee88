// Images (NDIM 2) and volumes (NDIM 3) seen through an affine map, to the nearest pixel or LINEAR. FROM and TO are the
// types; a row of the table is an image.
#include "common.cuh"

#include "layouts/warp.cuh"

// The pixel at these coordinates; nothing when it is outside and outside has a value.
__device__ inline const FROM *pixel(const Row &row, int x, int y, int z) {
  const int at[3] = {x, y, z};
  int64_t start = 0;
#pragma unroll
  for (int d = NDIM - 1; d >= 0; d--) {
    const int inside = min(max(at[d], 0), row.source[d] - 1);
    if (inside != at[d] && row.has_fill) return nullptr;
    start = start * row.source[d] + inside;
  }
  return row.from + start * row.channels;
}

// The largest float below 2^31, so that a neighbour's coordinate does not overflow.
__device__ inline int cell(float place) { return (int)floorf(fminf(fmaxf(place, -2147483520.0f), 2147483520.0f)); }

extern "C" __global__ void warp(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const TO fill = convert<TO>(row.fill);
  const float outside = convert<float>(convert<FROM>(fill));
  const uint64_t pixels = (uint64_t)row.target[0] * row.target[1] * row.target[2];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += step) {
    const float x = (i % row.target[0]) + 0.5f, y = (i / row.target[0] % row.target[1]) + 0.5f;
    const float z = (i / row.target[0] / row.target[1]) + 0.5f;
    float place[3] = {0, 0, 0};
#pragma unroll
    for (int d = 0; d < NDIM; d++) {
      const float *m = row.map[d];
      place[d] = fmaf(m[1], y, fmaf(m[0], x, m[3]));
      if (NDIM == 3) place[d] = fmaf(m[2], z, place[d]);
    }
    TO *to = row.to + i * row.channels;
#if LINEAR
    int at[3];
    float q[3];
#pragma unroll
    for (int d = 0; d < NDIM; d++) {
      at[d] = cell(place[d] - 0.5f);
      q[d] = place[d] - 0.5f - at[d];
    }
    if (NDIM == 2) at[2] = 0;
    const FROM *corners[2][4];
#pragma unroll
    for (int k = 0; k < NDIM - 1; k++)
      for (int j = 0; j < 4; j++) corners[k][j] = pixel(row, at[0] + (j & 1), at[1] + (j >> 1), at[2] + k);
    for (uint32_t c = 0; c < row.channels; c++) {
      float planes[2];
#pragma unroll
      for (int k = 0; k < NDIM - 1; k++) {
        float s[4];
        for (int j = 0; j < 4; j++) s[j] = corners[k][j] ? convert<float>(corners[k][j][c]) : outside;
        const float s0 = fmaf(s[1], q[0], s[0] * (1 - q[0])), s1 = fmaf(s[3], q[0], s[2] * (1 - q[0]));
        planes[k] = NDIM == 2 ? fmaf(s1 - s0, q[1], s0) : fmaf(s1, q[1], s0 * (1 - q[1]));
      }
      to[c] = convert<TO>(NDIM == 2 ? planes[0] : fmaf(planes[1] - planes[0], q[2], planes[0]));
    }
#else
    const FROM *from = pixel(row, cell(place[0]), cell(place[1]), cell(place[2]));
    for (uint32_t c = 0; c < row.channels; c++) to[c] = from ? convert<TO>(from[c]) : fill;
#endif
  }
}
