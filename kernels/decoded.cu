// Pixels as a decoder stores them to what was asked for: window and orientation as strides, colours, element type. A
// row of the table is an image. IN is the number of samples of a stored pixel (1 or 3), TO the element type, STUDIO 1
// for YCbCr from RGB, SIDE how many corners a colour table has along each colour. The same roundings as the host's
// decoder: halves away from zero.
#include "common.cuh"

#include "layouts/decoded.cuh"

template <class T> __device__ inline T element(float v) { return convert<T>(roundf(v)); }
template <> __device__ inline float element<float>(float v) { return v; }

template <class T> __device__ inline T scaled(uint8_t v, float level) { return element<T>((float)v * level); }
template <> __device__ inline uint8_t scaled<uint8_t>(uint8_t v, float) { return v; }

#if IN == 3
// A pixel's colours as sRGB: light between the eight corners of the lattice around them, encoded as IEC 61966-2-1 says.
__device__ inline void to_srgb(const ColorHead *table, const uint8_t *from, uint8_t *to) {
  const ushort4 *corners = (const ushort4 *)(table + 1);
  int cell[3];
  float part[3], light[3] = {0, 0, 0};
  for (int c = 0; c < 3; c++) {
    const float at = table->places[from[c]];
    cell[c] = min((int)at, SIDE - 2), part[c] = at - (float)cell[c];
  }
  for (int corner = 0; corner < 8; corner++) {
    const int r = corner >> 2, g = corner >> 1 & 1, b = corner & 1;
    const float weight = (r ? part[0] : 1 - part[0]) * (g ? part[1] : 1 - part[1]) * (b ? part[2] : 1 - part[2]);
    const ushort4 color = corners[((cell[0] + r) * SIDE + cell[1] + g) * SIDE + cell[2] + b];
    light[0] += weight * color.x, light[1] += weight * color.y, light[2] += weight * color.z;
  }
  for (int c = 0; c < 3; c++) {
    const float *row = table->to_srgb[c];
    float v = (row[0] * light[0] + row[1] * light[1] + row[2] * light[2]) / 65535;
    v = min(max((v - table->black) / (1 - table->black), 0.0f), 1.0f);
    v = v <= 0.0031308f ? 12.92f * v : 1.055f * powf(v, 1 / 2.4f) - 0.055f;
    to[c] = (uint8_t)roundf(v * 255);
  }
}
#endif

extern "C" __global__ void decoded(const Row *rows, uint32_t count, Params p) {
  const Row row = rows[blockIdx.y];
  const uint64_t pixels = (uint64_t)row.width * row.height;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += step) {
    const uint64_t y = i / row.width, x = i - y * row.width;
    const uint8_t *from = row.from + IN * (row.start + (int64_t)x * row.step_x + (int64_t)y * row.step_y);
    TO *to = row.to + i * row.channels;
#if IN == 3
    uint8_t converted[3];
    if (row.colors != nullptr) {
      to_srgb(row.colors, from, converted);
      from = converted;
    }
#endif
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
