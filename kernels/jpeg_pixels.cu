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

__device__ inline uint32_t clamp(int32_t v) {
  uint32_t r;
  asm("cvt.sat.u8.s32 %0, %1;" : "=r"(r) : "r"(v));
  return r;
}
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
      const uint2 natural = NATURAL[line];
#pragma unroll
      for (uint32_t i = 0; i < 8; i++) {
        shared.work[block][0][byte_of(natural, i)] = v[i] * s[i];
      }
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
      uint32_t low = 0, high = 0;
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) low |= clamp(t[i]) << 8 * i, high |= clamp(t[i + 4]) << 8 * i;
      samples[block][line] = {low, high};
    }
    __syncthreads();

    const uint32_t mcu_width = image.mcu_width * 8, mcu_height = image.mcu_height * 8, channels = p.channels;
    const uint32_t left = mcu_x * mcu_width, top = mcu_y * mcu_height;
    const uint32_t across = min(mcus * mcu_width, image.width - left), down = min(mcu_height, image.height - top);
    // Runs of 8 pixels, of one row of one MCU each.
    const uint32_t runs = image.mcu_width, row_words = mcus * mcu_width * channels / 4;
    for (uint32_t i = threadIdx.x; i < mcus * runs * down; i += THREADS) {
      const uint32_t y = i / (mcus * runs), run = i - y * (mcus * runs), m = run / runs, x = (run - m * runs) * 8;
      auto plane = [&](uint32_t c) {
        return Plane{samples[m * mcu_blocks + image.first[c]], image.factor_x[c], image.factor_y[c], image.across[c]};
      };
      uint32_t *to = shared.pixels + y * row_words + run * 2 * channels;
      const uint2 first = plane(0).row(x, y);
      if (channels == 1) {
        to[0] = first.x, to[1] = first.y;
        continue;
      }
      uint2 second = first, third = first;
      if (image.color) second = plane(1).row(x, y), third = plane(2).row(x, y);
#pragma unroll
      for (uint32_t j = 0; j < 8; j += 4) {
        uint32_t rgb[4];
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
          const uint32_t a = byte_of(first, j + k), b = byte_of(second, j + k), c = byte_of(third, j + k);
          uint32_t red = a, green = b, blue = c;
          if (image.color == 1) {
            const int32_t l = a, cb = b, cr = c;
            red = clamp(l + ((91881 * cr + (32768 - 128 * 91881)) >> 16));
            green = clamp(l + ((-22554 * cb - 46802 * cr + (32768 + 128 * (22554 + 46802))) >> 16));
            blue = clamp(l + ((116130 * cb + (32768 - 128 * 116130)) >> 16));
          }
          rgb[k] = (p.blue_first ? blue : red) | green << 8 | (p.blue_first ? red : blue) << 16;
        }
        to[j / 4 * 3] = rgb[0] | rgb[1] << 24;
        to[j / 4 * 3 + 1] = rgb[1] >> 8 | rgb[2] << 16;
        to[j / 4 * 3 + 2] = rgb[2] >> 16 | rgb[3] << 8;
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
