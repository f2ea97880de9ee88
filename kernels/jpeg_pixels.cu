// Coefficients to pixels: dequantises, transforms as libjpeg's accurate integer method does, repeats chroma samples, converts
// to RGB. A block of threads goes through MCUs in their order, as many of one row as it has threads for at
// once; eight threads share a block of coefficients.
#include "jpeg.cuh"

typedef Task Row;
CHECK_LAYOUT(Row, Params);

constexpr uint32_t THREADS = 256, WARPS = THREADS / 32, BLOCKS = THREADS / 8;
// Bytes of the pixels of a block of threads: an MCU of ten blocks covers at most 16 blocks of pixels (factors 4 x 1 and 1 x 4).
constexpr uint32_t PIXEL_BYTES = 3 * 16 * 64 * 3;

// Where the coefficients are that come in zig-zag order, eight a row: row * 9 + column, as they lie in shared memory. A byte each.
__constant__ uint2 NATURAL[8] = {
    {0x12090100, 0x0B03020A}, {0x1C241B13, 0x05040C14}, {0x251D150D, 0x262E362D}, {0x060E161E, 0x1F170F07},
    {0x3F372F27, 0x28303840}, {0x19101820, 0x39312921}, {0x323A4241, 0x332B222A}, {0x3C44433B, 0x46453D34}};

// One dimension of the inverse transform (Loeffler, Ligtenberg, Moschytz 1989) with constants of 13 bits; the result is
// rounded to drop `shift` bits, and `level` is added.
template <uint32_t shift, int32_t level> __device__ inline void transform(int32_t *v) {
  const int32_t z1 = (v[2] + v[6]) * 4433;
  const int32_t even2 = z1 - v[6] * 15137, even3 = z1 + v[2] * 6270;
  // Half of what is dropped rounds; it goes through the first two sums into all results.
  constexpr int32_t bias = (level << shift) + (1 << (shift - 1));
  const int32_t even0 = (v[0] + v[4]) * 8192 + bias, even1 = (v[0] - v[4]) * 8192 + bias;
  const int32_t a0 = even0 + even3, a3 = even0 - even3, a1 = even1 + even2, a2 = even1 - even2;
  const int32_t s5 = (v[7] + v[3] + v[5] + v[1]) * 9633;
  const int32_t s1 = (v[7] + v[1]) * -7373, s2 = (v[5] + v[3]) * -20995;
  const int32_t s3 = (v[7] + v[3]) * -16069 + s5, s4 = (v[5] + v[1]) * -3196 + s5;
  const int32_t b0 = v[7] * 2446 + s1 + s3, b1 = v[5] * 16819 + s2 + s4;
  const int32_t b2 = v[3] * 25172 + s2 + s3, b3 = v[1] * 12299 + s1 + s4;
  v[0] = (a0 + b3) >> shift, v[7] = (a0 - b3) >> shift;
  v[1] = (a1 + b2) >> shift, v[6] = (a1 - b2) >> shift;
  v[2] = (a2 + b1) >> shift, v[5] = (a2 - b1) >> shift;
  v[3] = (a3 + b0) >> shift, v[4] = (a3 - b0) >> shift;
}

// `low` and `next` as bytes, the nearest there are, and `rest` above them.
__device__ inline uint32_t pack(int32_t low, int32_t next, uint32_t rest) {
  uint32_t r;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(next), "r"(low), "r"(rest));
  return r;
}
__device__ inline uint32_t pack(const int32_t *v) { return pack(v[0], v[1], pack(v[2], v[3], 0)); }
__device__ inline uint32_t byte_of(uint2 v, uint32_t i) { return ((i < 4 ? v.x : v.y) >> 8 * (i & 3)) & 255; }

// Samples of a component of an MCU, as blocks of 8 rows of 8 bytes; blocks lie a little apart, for the banks.
struct Plane {
  const uint2 *blocks;
  uint32_t factor_x, factor_y, across;

  // The samples that the 8 pixels from (x, y) on fall into.
  __device__ uint2 row(uint32_t x, uint32_t y) const {
    x >>= factor_x, y >>= factor_y;
    const uint2 v = blocks[(y / 8 * across + x / 8) * 9 + y % 8];
    if (factor_x == 0) return v;
    const uint32_t word = (x & 4 ? v.y : v.x) >> 8 * (x & 3);
    if (factor_x == 1) return {__byte_perm(word, 0, 0x1100), __byte_perm(word, 0, 0x3322)};
    return {__byte_perm(word, 0, 0x0000), __byte_perm(word, 0, 0x1111)};
  }
};

// Eight pixels of three bytes from luma and chroma. With PAIRS, two neighbours have the same chroma.
template <bool PAIRS> __device__ inline void convert_colors(uint2 luma, uint2 cb, uint2 cr, bool blue_first, uint32_t *to) {
#pragma unroll
  for (uint32_t j = 0; j < 8; j += 4) {
    int32_t v[12], red, green, blue;
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
      if (!PAIRS || k % 2 == 0) {
        const int32_t b = byte_of(cb, j + k), r = byte_of(cr, j + k);
        red = (91881 * r + (32768 - 128 * 91881)) >> 16;
        green = (-22554 * b - 46802 * r + (32768 + 128 * (22554 + 46802))) >> 16;
        blue = (116130 * b + (32768 - 128 * 116130)) >> 16;
      }
      const int32_t l = byte_of(luma, j + k);
      v[3 * k] = l + (blue_first ? blue : red), v[3 * k + 1] = l + green, v[3 * k + 2] = l + (blue_first ? red : blue);
    }
#pragma unroll
    for (uint32_t i = 0; i < 3; i++) to[j / 4 * 3 + i] = pack(v + 4 * i);
  }
}

// The same of samples that are the pixels' bytes.
__device__ inline void interleave(uint2 first, uint2 second, uint2 third, uint32_t *to) {
#pragma unroll
  for (uint32_t j = 0; j < 8; j += 4) {
    int32_t v[12];
#pragma unroll
    for (uint32_t k = 0; k < 4; k++)
      v[3 * k] = byte_of(first, j + k), v[3 * k + 1] = byte_of(second, j + k), v[3 * k + 2] = byte_of(third, j + k);
#pragma unroll
    for (uint32_t i = 0; i < 3; i++) to[j / 4 * 3 + i] = pack(v + 4 * i);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_pixels(const Row *rows, uint32_t count, Params p) {
  __shared__ union {
    int32_t work[BLOCKS][8][9];
    // Rows of the pixels, as they will lie in the output.
    uint32_t pixels[PIXEL_BYTES / 4];
  } shared;
  __shared__ uint2 samples[BLOCKS][9];
  const Row task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  const uint32_t mcu_blocks = image.mcu_blocks, group = BLOCKS / mcu_blocks;
  const uint32_t block = threadIdx.x / 8, line = threadIdx.x % 8;
  int32_t *natural[8];
#pragma unroll
  for (uint32_t i = 0; i < 8; i++) natural[i] = &shared.work[block][0][byte_of(NATURAL[line], i)];
  for (uint32_t mcu = task.first, mcus; mcu < task.first + task.count; mcu += mcus) {
    const uint32_t mcu_y = mcu / image.mcus_across, mcu_x = mcu % image.mcus_across;
    mcus = min(min(group, image.mcus_across - mcu_x), task.first + task.count - mcu);
    if (block < mcus * mcu_blocks) {
      const uint32_t mask = __activemask();
      const uint64_t at = (uint64_t)image.first_block + mcu * mcu_blocks + block;
      const uint32_t c = image.components >> 2 * (block % mcu_blocks) & 3;
      const uint4 packed = *(const uint4 *)(p.coefficients + at * 64 + line * 8);
      const uint4 steps = *(const uint4 *)(p.quantisation + image.quantisation[c] * 64 + line * 8);
      const int16_t *v = (const int16_t *)&packed;
      const uint16_t *s = (const uint16_t *)&steps;
#pragma unroll
      for (uint32_t i = 0; i < 8; i++) *natural[i] = v[i] * s[i];
      __syncwarp(mask);
      int32_t t[8];
#pragma unroll
      for (uint32_t i = 0; i < 8; i++) t[i] = shared.work[block][i][line];
      transform<11, 0>(t);
#pragma unroll
      for (uint32_t i = 0; i < 8; i++) shared.work[block][i][line] = t[i];
      __syncwarp(mask);
#pragma unroll
      for (uint32_t i = 0; i < 8; i++) t[i] = shared.work[block][line][i];
      transform<18, 128>(t);
      samples[block][line] = {pack(t), pack(t + 4)};
    }
    __syncthreads();

    const uint32_t mcu_width = image.mcu_width * 8, mcu_height = image.mcu_height * 8, channels = p.channels;
    const uint32_t left = mcu_x * mcu_width, top = mcu_y * mcu_height;
    const uint32_t across = min(mcus * mcu_width, image.width - left), down = min(mcu_height, image.height - top);
    // Runs of 8 pixels, of one row of one MCU each.
    const uint32_t runs = image.mcu_width, row_runs = mcus * runs, row_words = mcus * mcu_width * channels / 4;
    // To divide by what is not known before: exact for numbers as small as these.
    const float rows_of_run = 1.0f / row_runs, mcus_of_run = 1.0f / runs;
    for (uint32_t i = threadIdx.x; i < row_runs * down; i += THREADS) {
      const uint32_t y = (i + 0.5f) * rows_of_run, run = i - y * row_runs;
      const uint32_t m = (run + 0.5f) * mcus_of_run, x = (run - m * runs) * 8;
      auto plane = [&](uint32_t c) {
        return Plane{samples[m * mcu_blocks + image.first[c]], image.factor_x[c], image.factor_y[c], image.across[c]};
      };
      uint32_t *to = shared.pixels + y * row_words + run * 2 * channels;
      const uint2 first = plane(0).row(x, y);
      if (channels == 1) {
        to[0] = first.x, to[1] = first.y;
      } else if (image.color == 0) {
        interleave(first, first, first, to);
      } else {
        const uint2 second = plane(1).row(x, y), third = plane(2).row(x, y);
        if (image.color == 2) interleave(p.blue_first ? third : first, second, p.blue_first ? first : third, to);
        else if (image.factor_x[1] && image.factor_x[2]) convert_colors<true>(first, second, third, p.blue_first, to);
        else convert_colors<false>(first, second, third, p.blue_first, to);
      }
    }
    __syncthreads();

    // A warp copies a row: in words, when rows begin at words.
    const uint32_t bytes = across * channels;
    for (uint32_t y = threadIdx.x / 32; y < down; y += WARPS) {
      uint8_t *to = image.pixels + ((uint64_t)(top + y) * image.width + left) * channels;
      const uint32_t *from = shared.pixels + y * row_words;
      uint32_t i = threadIdx.x % 32;
      uint32_t whole = (uint64_t)to % 4 == 0 ? bytes / 4 : 0;
      for (; i < whole; i += 32) ((uint32_t *)to)[i] = from[i];
      for (i = whole * 4 + threadIdx.x % 32; i < bytes; i += 32) to[i] = ((const uint8_t *)from)[i];
    }
    __syncthreads();
  }
}
