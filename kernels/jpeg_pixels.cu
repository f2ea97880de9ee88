// Coefficients to pixels: dequantises, transforms as libjpeg's accurate integer method does, repeats chroma samples,
// converts to RGB. A block of threads goes through the MCUs under the window in their order, as many of one row as it
// has threads for at once; eight threads share a block of coefficients. Images with smooth chroma and reduced ones are
// for jpeg_planes and jpeg_upsample.
#include "jpeg_colors.cuh"

constexpr uint32_t THREADS = PIXELS_THREADS, WARPS = THREADS / 32, BLOCKS = THREADS / 8;
// Threads that copy a row which is whole words: those of five MCUs with 4:2:0 are 60.
constexpr uint32_t COPIERS = 64;
// Bytes of the pixels of a block of threads: an MCU of ten blocks covers at most 16 blocks of pixels (factors 4 x 1 and
// 1 x 4).
constexpr uint32_t PIXEL_BYTES = 3 * 16 * 64 * 3;

// Samples of a component of an MCU, as blocks of 8 rows of 8 bytes; blocks lie a little apart, for the banks.
struct Tile {
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

extern "C" __global__ void __launch_bounds__(THREADS, 6) jpeg_pixels(const Task *rows, uint32_t count, Params p) {
  begin_early();
  __shared__ union {
    int32_t work[BLOCKS][8][9];
    // Rows of the pixels, as they will lie in the output, and what is read with the last of them.
    uint32_t pixels[PIXEL_BYTES / 4 + 1];
  } shared;
  __shared__ uint2 samples[BLOCKS][9];
  const Task task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  const uint32_t mcu_blocks = image.mcu_blocks, group = BLOCKS / mcu_blocks;
  const uint32_t block = threadIdx.x / 8, line = threadIdx.x % 8;
  int32_t *natural[8];
#pragma unroll
  for (uint32_t i = 0; i < 8; i++) natural[i] = &shared.work[block][0][byte_of(NATURAL[line], i)];
  const uint32_t window_across = image.window_across, channels = p.channels;
  uint32_t mcu_y = task.first / window_across, mcu_x = task.first % window_across;
  Wide wide;
  for (uint32_t left_over = task.count, mcus; left_over > 0; left_over -= mcus) {
    mcus = min(min(group, window_across - mcu_x), left_over);
    if (block < mcus * mcu_blocks) {
      const uint32_t mask = __activemask();
      const uint32_t stored = image.first_mcu + mcu_y * image.mcus_across + mcu_x;
      const uint64_t at = (uint64_t)image.first_block + stored * mcu_blocks + block;
      const uint32_t c = image.components >> 2 * (block % mcu_blocks) & 3;
      uint4 packed = *(const uint4 *)(p.coefficients + at * 64 + line * 8);
      const uint4 steps = *(const uint4 *)(p.quantisation + image.quantisation[c] * 64 + line * 8);
      int16_t *v = (int16_t *)&packed;
      if (line == 0) v[0] = p.dcs[at];
      const uint16_t *s = (const uint16_t *)&steps;
#pragma unroll
      for (uint32_t i = 0; i < 8; i++) {
        const int32_t product = v[i] * s[i];
        wide.note_first(product);
        *natural[i] = product;
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
      for (uint32_t i = 0; i < 8; i++) {
        t[i] = shared.work[block][line][i];
        wide.note_second(t[i]);
      }
      transform<18, 128>(t);
      samples[block][line] = {pack(t), pack(t + 4)};
    }
    __syncthreads();

    const uint32_t mcu_width = image.mcu_width * 8, mcu_height = image.mcu_height * 8;
    // What lies before the window: in the first column and row of MCUs, there is some.
    const uint32_t before_x = mcu_x ? 0 : image.left_in_mcu, before_y = mcu_y ? 0 : image.top_in_mcu;
    const uint32_t left = mcu_x * mcu_width + before_x - image.left_in_mcu, top = mcu_y * mcu_height + before_y - image.top_in_mcu;
    const uint32_t across = min(mcus * mcu_width - before_x, image.width - left), down = min(mcu_height - before_y, image.height - top);
    // Runs of 8 pixels, of one row of one MCU each.
    const uint32_t runs = image.mcu_width, row_runs = mcus * runs, row_words = mcus * mcu_width * channels / 4;
    // To divide by what is not known before: exact for numbers as small as these.
    const float rows_of_run = 1.0f / row_runs, mcus_of_run = 1.0f / runs;
    for (uint32_t i = threadIdx.x; i < row_runs * down; i += THREADS) {
      const uint32_t row = (i + 0.5f) * rows_of_run, run = i - row * row_runs, y = before_y + row;
      const uint32_t m = (run + 0.5f) * mcus_of_run, x = (run - m * runs) * 8;
      auto plane = [&](uint32_t c) {
        return Tile{samples[m * mcu_blocks + image.first[c]], image.factor_x[c], image.factor_y[c], image.across[c]};
      };
      uint32_t *to = shared.pixels + row * row_words + run * 2 * channels;
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

    const uint32_t pitch = image.width * channels, skip = before_x * channels, bytes = across * channels;
    uint8_t *const out = image.pixels + (uint64_t)top * pitch + left * channels;
    if ((((uint64_t)out | pitch | skip | bytes) & 3) == 0) {
      const uint32_t first = threadIdx.x / COPIERS;
      const uint32_t *from = shared.pixels + first * row_words + skip / 4;
      uint8_t *to = out + (uint64_t)first * pitch;
#pragma unroll 1
      for (uint32_t row = first; row < down; row += THREADS / COPIERS) {
#pragma unroll 1
        for (uint32_t i = threadIdx.x % COPIERS; i < bytes / 4; i += COPIERS) ((uint32_t *)to)[i] = from[i];
        from += THREADS / COPIERS * row_words, to += THREADS / COPIERS * pitch;
      }
    } else {
      for (uint32_t row = threadIdx.x / 32; row < down; row += WARPS)
        copy_row(shared.pixels + row * row_words, skip, out + (uint64_t)row * pitch, bytes);
    }
    mcu_x += mcus;
    if (mcu_x == window_across) mcu_x = 0, mcu_y++;
    __syncthreads();
  }
  wide.tell(p.status + task.image);
}
