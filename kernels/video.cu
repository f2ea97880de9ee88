// Pictures as video engines store them to RGB, in the integers of FFmpeg's scaler, as src/cpu/yuv.rs does on the host.
// SAMPLE is the type of samples, whose bits are the highest of it. With PLANAR, each channel has a plane and chroma is
// whole; else chroma is halved both ways, and the samples of blue and red take turns. There is no table: the parameters
// are the picture.
#include "common.cuh"

#include "layouts/video.cuh"

typedef NoParams Row;

// Between which two of `from` samples sample `at` of `to` lies, and how near to the second, in parts of 2^bits.
struct Place {
  int32_t first, second, part;
};
__device__ inline Place between(int32_t at, int32_t from, int32_t to, int32_t bits) {
  // In units of half a sample of `to`.
  const int32_t place = (2 * at + 1) * from - to, unit = 2 * to;
  const int32_t first = place < 0 ? -1 : place / unit;
  const int32_t part = (((place - first * unit) << (bits + 1)) + unit) / (2 * unit);
  return {max(first, 0), min(first + 1, from - 1), part};
}

__device__ inline int32_t sample(const Params &p, const uint8_t *plane, int32_t x, int32_t y) {
  return ((const SAMPLE *)(plane + (uint64_t)y * p.pitch))[x] >> (8 * sizeof(SAMPLE) - p.depth);
}

// Chroma of row `y` in 15 bits.
__device__ inline int32_t along(const Params &p, const uint8_t *plane, Place x, int32_t y) {
  if (PLANAR) return sample(p, plane, x.first, y) << (15 - p.depth);
  const int32_t first = sample(p, plane, 2 * x.first, y), second = sample(p, plane, 2 * x.second, y);
  return (first * ((1 << 14) - x.part) + second * x.part) >> (p.depth - 1);
}

// Chroma as its distance from gray in 2^-9 of a level.
__device__ inline int32_t chroma(const Params &p, const uint8_t *plane, Place x, Place y) {
  return (along(p, plane, x, y.first) * (4096 - y.part) + along(p, plane, x, y.second) * y.part + 512 - (128 << 19)) >> 10;
}

__device__ inline uint8_t level(int64_t value) { return (uint8_t)min(max(value >> 22, (int64_t)0), (int64_t)255); }

extern "C" __global__ void video(const Row *, uint32_t, Params p) {
  const int32_t columns = PLANAR ? p.width : (p.width + 1) / 2, rows = PLANAR ? p.height : (p.height + 1) / 2;
  const uint32_t step = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < p.width * p.height; i += step) {
    const int32_t x = i % p.width, y = i / p.width;
    const Place across = between(x, columns, p.width, 14), down = between(y, rows, p.height, 12);
    const int64_t blue = chroma(p, p.blue, across, down);
    const int64_t red = chroma(p, PLANAR ? p.red : p.blue + sizeof(SAMPLE), across, down);
    const int32_t luma = sample(p, p.luma, x, y) << (15 - p.depth);
    const int64_t light = (int64_t)(luma * 4 - p.factors.black) * p.factors.luma + (1 << 21);
    uint8_t *to = p.to + 3 * (uint64_t)i;
    to[0] = level(light + red * p.factors.red_of_red);
    to[1] = level(light + red * p.factors.green_of_red + blue * p.factors.green_of_blue);
    to[2] = level(light + blue * p.factors.blue_of_blue);
  }
}
