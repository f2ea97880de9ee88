// RGB images as they come back from a JPEG file with chroma of half the size: what is lost on the way, without the
// file. A row of the table is an image. A block of threads works on squares of 16 by 16 pixels: four blocks of luma,
// one of each chroma. Sums are added up in the order of DALI's GPU operator: a frequency in the middle between two
// steps, which many are, is rounded to the same of them.
#include "common.cuh"

#include "layouts/distort.cuh"

static_assert(SQUARES == THREADS / 64, "a square has 64 threads");
constexpr uint32_t BLOCKS = 6;
// A column more than there is, so that columns lie in different banks.
constexpr uint32_t PITCH = 9, BLOCK = 8 * PITCH;

struct Pixel {
  uint8_t r, g, b;
};

__device__ inline Pixel pixel(const Row &row, uint32_t x, uint32_t y) {
  const uint8_t *from = row.from + 3 * ((uint64_t)min(y, row.height - 1) * row.width + min(x, row.width - 1));
  return {from[0], from[1], from[2]};
}
__device__ inline uint8_t luma(Pixel p) { return convert<uint8_t>(fmaf(0.114f, p.b, fmaf(0.299f, p.r, 0.587f * p.g))); }
__device__ inline uint8_t blue(Pixel p) {
  return convert<uint8_t>(fmaf(0.5f, p.b, fmaf(-0.16873589f, p.r, -0.33126411f * p.g)) + 128.0f);
}
__device__ inline uint8_t red(Pixel p) {
  return convert<uint8_t>(fmaf(-0.08131241f, p.b, fmaf(0.5f, p.r, -0.41868759f * p.g)) + 128.0f);
}
__device__ inline uint8_t mean(uint8_t a, uint8_t b, uint8_t c, uint8_t d) { return convert<uint8_t>((a + b + c + d) * 0.25f); }

__device__ inline void write(const Row &row, uint32_t x, uint32_t y, uint8_t luma, uint8_t blue, uint8_t red) {
  if (x >= row.width || y >= row.height) return;
  uint8_t *to = row.to + 3 * ((uint64_t)y * row.width + x);
  const float cb = blue - 128.0f, cr = red - 128.0f;
  to[0] = convert<uint8_t>(fmaf(1.402f, cr, luma));
  to[1] = convert<uint8_t>(fmaf(-0.71413629f, cr, fmaf(-0.34413629f, cb, luma)));
  to[2] = convert<uint8_t>(fmaf(1.772f, cb, luma));
}

// sqrt(2) times the cosine of k / 16 of a half turn; with NORM the transforms are orthonormal.
constexpr float C1 = 1.387039845f, C2 = 1.306562965f, C3 = 1.175875602f, C5 = 0.785694958f, C6 = 0.541196100f, C7 = 0.275899379f;
constexpr float NORM = 0.353553391f;

// Two and four products, added in one step each.
__device__ inline float sum(float a, float x, float b, float y) { return fmaf(a, x, b * y); }
__device__ inline float sum(float a, float x, float b, float y, float c, float z, float d, float w) {
  return fmaf(d, w, fmaf(c, z, fmaf(a, x, b * y)));
}

// 8 samples to frequencies: sums of opposite samples make the even ones, differences the odd ones.
__device__ inline void to_frequencies(float (&v)[8]) {
  const float s0 = v[0] + v[7], s1 = v[1] + v[6], s2 = v[2] + v[5], s3 = v[3] + v[4];
  const float d0 = v[0] - v[7], d1 = v[6] - v[1], d2 = v[2] - v[5], d3 = v[4] - v[3];
  const float outer = s0 + s3, inner = s1 + s2, outer_change = s0 - s3, inner_change = s1 - s2;
  v[0] = NORM * (outer + inner);
  v[2] = NORM * sum(C2, outer_change, C6, inner_change);
  v[4] = NORM * (outer - inner);
  v[6] = NORM * sum(C6, outer_change, -C2, inner_change);
  v[1] = NORM * sum(C1, d0, -C3, d1, C5, d2, -C7, d3);
  v[3] = NORM * sum(C3, d0, C7, d1, -C1, d2, C5, d3);
  v[5] = NORM * sum(C5, d0, C1, d1, C7, d2, -C3, d3);
  v[7] = NORM * sum(C7, d0, C5, d1, C3, d2, C1, d3);
}

// And back: what the even frequencies make of four samples, and what the odd ones add to them and take from their
// opposites.
__device__ inline void to_samples(float (&v)[8]) {
  const float flat = v[0] + v[4], turned = v[0] - v[4], curve = sum(C2, v[2], C6, v[6]), bend = sum(C6, v[2], -C2, v[6]);
  const float e0 = flat + curve, e3 = flat - curve, e1 = turned + bend, e2 = turned - bend;
  const float o0 = sum(C7, v[7], C1, v[1], C3, v[3], C5, v[5]), o3 = sum(C1, v[7], -C7, v[1], C5, v[3], -C3, v[5]);
  const float o1 = sum(C3, v[1], -C5, v[7], -C7, v[3], -C1, v[5]), o2 = sum(C5, v[1], C3, v[7], -C1, v[3], C7, v[5]);
  v[0] = NORM * (e0 + o0), v[7] = NORM * (e0 - o0);
  v[4] = NORM * (e3 + o3), v[3] = NORM * (e3 - o3);
  v[1] = NORM * (e1 + o1), v[6] = NORM * (e1 - o1);
  v[2] = NORM * (e2 + o2), v[5] = NORM * (e2 - o2);
}
__device__ inline void load_line(float (&values)[8], const float *from, uint32_t step) {
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = from[i * step];
}
__device__ inline void store_line(const float (&values)[8], float *to, uint32_t step) {
#pragma unroll
  for (int i = 0; i < 8; ++i) to[i * step] = values[i];
}

extern "C" __global__ void distort(const Row *rows, uint32_t count, NoParams) {
  __shared__ float blocks[SQUARES * BLOCKS * BLOCK];
  const Row &row = rows[blockIdx.y];
  const uint32_t across = (row.width + SIDE - 1) / SIDE, squares = across * ((row.height + SIDE - 1) / SIDE);
  // This thread's four pixels, which share chroma.
  const uint32_t place = threadIdx.x % 64, cx = place % 8, cy = place / 8, own = threadIdx.x / 64;
  float *const base = blocks + own * BLOCKS * BLOCK;
  float *const lumas = base + (cy / 4 * 2 + cx / 4) * BLOCK + 2 * cy % 8 * PITCH + 2 * cx % 8;
  float *const blues = base + 4 * BLOCK + cy * PITCH + cx, *const reds = blues + BLOCK;

  for (uint32_t first = blockIdx.x * SQUARES; first < squares; first += gridDim.x * SQUARES) {
    const uint32_t square = first + own;
    const uint32_t x = square % across * SIDE + 2 * cx, y = square / across * SIDE + 2 * cy;
    if (square < squares) {
      const Pixel a = pixel(row, x, y), b = pixel(row, x + 1, y), c = pixel(row, x, y + 1), d = pixel(row, x + 1, y + 1);
      const Pixel all = {mean(a.r, b.r, c.r, d.r), mean(a.g, b.g, c.g, d.g), mean(a.b, b.b, c.b, d.b)};
      lumas[0] = luma(a) - 128.0f;
      lumas[1] = luma(b) - 128.0f;
      lumas[PITCH] = luma(c) - 128.0f;
      lumas[PITCH + 1] = luma(d) - 128.0f;
      *blues = blue(all) - 128.0f;
      *reds = red(all) - 128.0f;
    }
    __syncthreads();
    float values[8];
    for (uint32_t line = threadIdx.x; line < SQUARES * BLOCKS * 8; line += THREADS) {
      float *at = blocks + line * PITCH;
      load_line(values, at, 1);
      to_frequencies(values);
      store_line(values, at, 1);
    }
    __syncthreads();
    for (uint32_t line = threadIdx.x; line < SQUARES * BLOCKS * 8; line += THREADS) {
      const uint32_t block = line / 8, column = line % 8;
      float *at = blocks + block * BLOCK + column;
      const float *steps = row.steps + (block % BLOCKS < 4 ? 0 : 64) + column;
      load_line(values, at, PITCH);
      to_frequencies(values);
#pragma unroll
      for (int i = 0; i < 8; ++i) values[i] = steps[8 * i] * roundf(values[i] * (1.0f / steps[8 * i]));
      to_samples(values);
      store_line(values, at, PITCH);
    }
    __syncthreads();
    for (uint32_t line = threadIdx.x; line < SQUARES * BLOCKS * 8; line += THREADS) {
      float *at = blocks + line * PITCH;
      load_line(values, at, 1);
      to_samples(values);
      store_line(values, at, 1);
    }
    __syncthreads();
    if (square < squares) {
      const uint8_t cb = convert<uint8_t>(*blues + 128.0f), cr = convert<uint8_t>(*reds + 128.0f);
      write(row, x, y, convert<uint8_t>(lumas[0] + 128.0f), cb, cr);
      write(row, x + 1, y, convert<uint8_t>(lumas[1] + 128.0f), cb, cr);
      write(row, x, y + 1, convert<uint8_t>(lumas[PITCH] + 128.0f), cb, cr);
      write(row, x + 1, y + 1, convert<uint8_t>(lumas[PITCH + 1] + 128.0f), cb, cr);
    }
    // Before the next squares take the place of these.
    __syncthreads();
  }
}
