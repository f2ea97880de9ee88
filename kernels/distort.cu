// RGB images as they come back from a JPEG file with chroma of half the size: what is lost on the way, without the file. A row of the
// table is an image. A block of threads works on squares of 16 by 16 pixels: four blocks of luma, one of each chroma.
#include "common.cuh"

struct Row {
  uint8_t *to;
  const uint8_t *from;
  const float *steps;  // of quantisation: 64 of luma, 64 of chroma, frequencies along x next to each other
  uint32_t width, height;
};
CHECK_LAYOUT(Row, NoParams);

constexpr uint32_t THREADS = 256, SQUARES = THREADS / 64, SIDE = 16, BLOCKS = 6;
// A column more than there is, so that columns lie in different banks.
constexpr uint32_t PITCH = 9, BLOCK = 8 * PITCH;

struct Pixel {
  uint8_t r, g, b;
};

__device__ inline Pixel pixel(const Row &row, uint32_t x, uint32_t y) {
  const uint8_t *from = row.from + 3 * ((uint64_t)min(y, row.height - 1) * row.width + min(x, row.width - 1));
  return {from[0], from[1], from[2]};
}
__device__ inline uint8_t luma(Pixel p) { return convert<uint8_t>(0.299f * p.r + 0.587f * p.g + 0.114f * p.b); }
__device__ inline uint8_t blue(Pixel p) {
  return convert<uint8_t>(-0.16873589f * p.r - 0.33126411f * p.g + 0.5f * p.b + 128.0f);
}
__device__ inline uint8_t red(Pixel p) {
  return convert<uint8_t>(0.5f * p.r - 0.41868759f * p.g - 0.08131241f * p.b + 128.0f);
}
__device__ inline uint8_t mean(uint8_t a, uint8_t b, uint8_t c, uint8_t d) { return convert<uint8_t>((a + b + c + d) * 0.25f); }

__device__ inline void write(const Row &row, uint32_t x, uint32_t y, uint8_t luma, uint8_t blue, uint8_t red) {
  if (x >= row.width || y >= row.height) return;
  uint8_t *to = row.to + 3 * ((uint64_t)y * row.width + x);
  const float cb = blue - 128.0f, cr = red - 128.0f;
  to[0] = convert<uint8_t>(luma + 1.402f * cr);
  to[1] = convert<uint8_t>(luma - 0.34413629f * cb - 0.71413629f * cr);
  to[2] = convert<uint8_t>(luma + 1.772f * cb);
}

// Part of sample `n` in frequency `k` of an orthonormal cosine transform.
__device__ constexpr float factor(int k, int n) {
  constexpr float COSINES[9] = {0.5f,        0.490392640f, 0.461939766f, 0.415734806f, 0.353553391f,
                                0.277785117f, 0.191341716f, 0.0975451610f, 0.0f};
  const int turn = (2 * n + 1) * k % 32, half = turn > 16 ? 32 - turn : turn;
  return k == 0 ? COSINES[4] : half > 8 ? -COSINES[16 - half] : COSINES[half];
}

// 8 values at a distance; to frequencies or, INVERSE, back.
template <bool INVERSE> __device__ inline void transform(float (&values)[8]) {
  float sums[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    sums[i] = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) sums[i] = fmaf(INVERSE ? factor(j, i) : factor(i, j), values[j], sums[i]);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = sums[i];
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
      transform<false>(values);
      store_line(values, at, 1);
    }
    __syncthreads();
    for (uint32_t line = threadIdx.x; line < SQUARES * BLOCKS * 8; line += THREADS) {
      const uint32_t block = line / 8, column = line % 8;
      float *at = blocks + block * BLOCK + column;
      const float *steps = row.steps + (block % BLOCKS < 4 ? 0 : 64) + column;
      load_line(values, at, PITCH);
      transform<false>(values);
#pragma unroll
      for (int i = 0; i < 8; ++i) values[i] = steps[8 * i] * roundf(values[i] * (1.0f / steps[8 * i]));
      transform<true>(values);
      store_line(values, at, PITCH);
    }
    __syncthreads();
    for (uint32_t line = threadIdx.x; line < SQUARES * BLOCKS * 8; line += THREADS) {
      float *at = blocks + line * PITCH;
      load_line(values, at, 1);
      transform<true>(values);
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
