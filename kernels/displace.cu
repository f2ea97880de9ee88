// Images whose every pixel is taken from another place, as src/ops/geometry/displacement.rs says where: on a sphere,
// under water, or near by. ELEMENT is the type; a row of the table is an image. Products are added in one step, as
// DALI's GPU operators do: it decides which pixels are outside.
#include "random.cuh"
#include "sampled.cuh"

#include "layouts/displace.cuh"

// How far pixels move along one axis, by their place on the other.

struct Place {
  float x, y;
};

__device__ inline Place on_sphere(const Row &row, float x, float y) {
  const float middle_x = row.size[0] * 0.5f, middle_y = row.size[1] * 0.5f;
  const float radius = max(row.size[0] / 2, row.size[1] / 2);
  x = x + 0.5f - middle_x, y = y + 0.5f - middle_y;
  const float scale = sqrtf(x * x + y * y) / radius;
  return {fmaf(scale, x, middle_x), fmaf(scale, y, middle_y)};
}

__device__ inline Place under_water(const Wave waves[2], float x, float y) {
  return {fmaf(waves[0].amplitude, sinf(fmaf(waves[0].frequency, y, waves[0].phase)), x),
          fmaf(waves[1].amplitude, cosf(fmaf(waves[1].frequency, x, waves[1].phase)), y)};
}

// From 0 to `last`, each as likely.
__device__ inline uint32_t whole_number(Philox &random, uint32_t last) {
  const uint32_t range = last + 1;
  uint64_t product = (uint64_t)random.word() * range;
  if ((uint32_t)product < range) {
    const uint32_t least = (0u - range) % range;
    while ((uint32_t)product < least) product = (uint64_t)random.word() * range;
  }
  return product >> 32;
}

// From the middle of a pixel to that of another.
__device__ inline Place near_by(Philox random, uint32_t most, float x, float y) {
  const float across = (float)whole_number(random, 2 * most) - (float)most + 0.5f;
  const float down = (float)whole_number(random, 2 * most) - (float)most + 0.5f;
  return {x + across, y + down};
}

// Every pixel of an image from where `place` says.
template <class Field> __device__ inline void move_all(const Row &row, const Params &params, Field place) {
  const Image<ELEMENT> image = {row.from, {row.size[0], row.size[1]}, row.channels, (ELEMENT)row.fill};
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.pixels; i += step) {
    ELEMENT *to = row.to + i * row.channels;
    if (!row.is_changed) {
      for (uint64_t c = 0; c < row.channels; c++) to[c] = row.from[i * row.channels + c];
      continue;
    }
    const Place from = place(i, (float)(i % row.size[0]), (float)(i / row.size[0]));
    image.show(from.x, from.y, params.is_linear, to);
  }
}

extern "C" __global__ void sphere(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  move_all(row, params, [&](uint64_t, float x, float y) { return on_sphere(row, x, y); });
}

extern "C" __global__ void water(const Row *rows, uint32_t count, Params params) {
  move_all(rows[blockIdx.y], params, [&](uint64_t, float x, float y) { return under_water(params.waves, x, y); });
}

extern "C" __global__ void jitter(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  move_all(row, params, [&](uint64_t i, float x, float y) { return near_by(Philox(row.key, row.sequence, i), params.most, x, y); });
}
