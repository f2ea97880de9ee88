// Samples to pixels: upsamples chroma as libjpeg does, smoothly or not, and converts to RGB. A warp makes a strip of a
// row of the window: eight pixels a thread, which begin at a multiple of eight of the image.
#include "jpeg_colors.cuh"

constexpr uint32_t THREADS = PIXELS_THREADS, WARPS = THREADS / 32;

__device__ inline uint32_t clamp(int32_t at, uint32_t size) { return min((uint32_t)max(at, 0), size - 1); }

// Six samples of a row of a plane, from `x - 1` on; those beyond its ends are the last. `x` is a multiple of 4.
__device__ inline void load_six(const Plane &plane, const uint8_t *row, uint32_t x, int32_t *v) {
  if (x > 0 && x + 4 < plane.width) {
    const uint32_t word = *(const uint32_t *)(row + x - plane.left);
    v[0] = row[x - 1 - plane.left], v[5] = row[x + 4 - plane.left];
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) v[1 + i] = word >> 8 * i & 255;
  } else {
#pragma unroll
    for (uint32_t i = 0; i < 6; i++) v[i] = row[clamp((int32_t)(x + i) - 1, plane.width) - plane.left];
  }
}

// What libjpeg makes of neighbours: three parts of the nearer sample, one of the other, along the axes that are coarser
// than pixels. Halves are rounded down and up by turns.
__device__ inline uint2 smooth(const Plane &plane, uint32_t x, uint32_t y) {
  const uint32_t row = y >> plane.factor_y, odd = y & 1;
  const uint8_t *const near = plane.samples + (uint64_t)(row - plane.top) * plane.stride;
  const uint8_t *far = near;
  if (plane.factor_y) far = plane.samples + (uint64_t)(clamp((int32_t)(odd ? row + 1 : row - 1), plane.height) - plane.top) * plane.stride;
  int32_t made[8];
  if (plane.factor_x) {
    int32_t v[6], w[6];
    load_six(plane, near, x / 2, v);
    load_six(plane, far, x / 2, w);
    const int32_t both = plane.factor_y, shift = both ? 4 : 2, even_bias = both ? 8 : 1, odd_bias = both ? 7 : 2;
#pragma unroll
    for (uint32_t i = 0; i < 6; i++) v[i] = both ? 3 * v[i] + w[i] : v[i];
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
      made[2 * i] = (3 * v[i + 1] + v[i] + even_bias) >> shift;
      made[2 * i + 1] = (3 * v[i + 1] + v[i + 2] + odd_bias) >> shift;
    }
  } else {
    const uint2 v = *(const uint2 *)(near + x - plane.left), w = *(const uint2 *)(far + x - plane.left);
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) made[i] = (int32_t)(3 * byte_of(v, i) + byte_of(w, i) + 1 + odd) >> 2;
  }
  return {pack(made), pack(made + 4)};
}

// The samples of the 8 pixels from (x, y) on.
__device__ inline uint2 samples_of(const Plane &plane, uint32_t x, uint32_t y) {
  if (plane.smooth) return smooth(plane, x, y);
  const uint8_t *const from =
      plane.samples + (uint64_t)((y >> plane.factor_y) - plane.top) * plane.stride + (x >> plane.factor_x) - plane.left;
  if (plane.factor_x == 0) return *(const uint2 *)from;
  if (plane.factor_x == 1) {
    const uint32_t word = *(const uint32_t *)from;
    return {__byte_perm(word, 0, 0x1100), __byte_perm(word, 0, 0x3322)};
  }
  return {from[0] * 0x01010101u, from[1] * 0x01010101u};
}

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_upsample(const Task *rows, uint32_t count, Params p) {
  begin_early();
  // A word more, which is read with the last.
  __shared__ uint32_t pixels[WARPS][STRIP * 3 / 4 + 1];
  const Task task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  const Plane *const planes = p.planes + image.first_plane;
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, channels = p.channels;
  const uint32_t origin = image.left / 8 * 8, right = image.left + image.width;
  const uint32_t strips = (right - origin + STRIP - 1) / STRIP;
  for (uint32_t i = task.first + warp; i < task.first + task.count; i += WARPS) {
    const uint32_t row = i / strips, begin = origin + i % strips * STRIP;
    const uint32_t x = begin + lane * 8, y = image.top + row;
    uint32_t *const to = pixels[warp] + lane * 2 * channels;
    if (x < right) {
      const uint2 first = samples_of(planes[0], x, y);
      if (channels == 1) {
        to[0] = first.x, to[1] = first.y;
      } else if (image.color == 0) {
        interleave(first, first, first, to);
      } else {
        const uint2 second = samples_of(planes[1], x, y), third = samples_of(planes[2], x, y);
        if (image.color == 2) interleave(p.blue_first ? third : first, second, p.blue_first ? first : third, to);
        else convert_colors<false>(first, second, third, p.blue_first, to);
      }
    }
    __syncwarp();
    const uint32_t from = max(begin, image.left), bytes = (min(begin + STRIP, right) - from) * channels;
    copy_row(pixels[warp], (from - begin) * channels, image.pixels + ((uint64_t)row * image.width + from - image.left) * channels, bytes);
    __syncwarp();
  }
}
