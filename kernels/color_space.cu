// Pixels of one colour space to another. FROM and TO are the spaces, by their numbers below; a row of the table is a
// sample.
#include "common.cuh"

#define RGB 0
#define BGR 1
#define GRAY 2
#define YCBCR 3
#define CHANNELS(SPACE) ((SPACE) == GRAY ? 1 : 3)

#include "layouts/color_space.cuh"

// Red, green and blue of a pixel; of a gray one the gray.
__device__ inline void read_rgb(const uint8_t *from, float rgb[3]) {
  if (FROM == YCBCR) {
    const float y = (from[0] - 16.0f) * (255.0f / 219.0f), cb = from[1] - 128.0f, cr = from[2] - 128.0f;
    rgb[0] = convert<uint8_t>(fmaf(1.5960268f, cr, y));
    rgb[1] = convert<uint8_t>(fmaf(-0.8129676f, cr, fmaf(-0.3917623f, cb, y)));
    rgb[2] = convert<uint8_t>(fmaf(2.0172322f, cb, y));
  } else {
    for (int k = 0; k < 3; k++) rgb[k] = from[FROM == GRAY ? 0 : FROM == BGR ? 2 - k : k];
  }
}

extern "C" __global__ void color_space(const Row *rows, uint32_t count, NoParams) {
  const Row row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.pixels; i += step) {
    const uint8_t *from = row.from + CHANNELS(FROM) * i;
    uint8_t *to = row.to + CHANNELS(TO) * i;
    if (FROM == TO) {
      for (int k = 0; k < CHANNELS(TO); k++) to[k] = from[k];
      continue;
    }
    if (FROM == YCBCR && TO == GRAY) {
      to[0] = convert<uint8_t>((from[0] - 16.0f) * (255.0f / 219.0f));
      continue;
    }
    float rgb[3];
    read_rgb(from, rgb);
    if (TO == GRAY) {
      to[0] = convert<uint8_t>(fmaf(0.114f, rgb[2], fmaf(0.587f, rgb[1], 0.299f * rgb[0])));
    } else if (TO == YCBCR && FROM == GRAY) {
      to[0] = convert<uint8_t>(fmaf(219.0f / 255.0f, rgb[0], 16.0f));
      to[1] = to[2] = 128;
    } else if (TO == YCBCR) {
      const float r = rgb[0], g = rgb[1], b = rgb[2];
      to[0] = convert<uint8_t>(fmaf(0.09790588f, b, fmaf(0.5041294f, g, 0.25678823f * r)) + 16.0f);
      to[1] = convert<uint8_t>(fmaf(0.4392157f, b, fmaf(-0.2909928f, g, -0.1482229f * r)) + 128.0f);
      to[2] = convert<uint8_t>(fmaf(-0.07142737f, b, fmaf(-0.3677883f, g, 0.4392157f * r)) + 128.0f);
    } else {
      for (int k = 0; k < 3; k++) to[k] = (uint8_t)rgb[TO == BGR ? 2 - k : k];
    }
  }
}
