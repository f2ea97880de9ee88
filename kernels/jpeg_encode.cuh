// What the kernels that encode JPEGs share: the order of blocks in a file.
#pragma once
#include "common.cuh"

#include "layouts/jpeg_encode.cuh"

__device__ inline uint32_t blocks_of_mcu(const Row &row) { return row.across * row.down + (row.channels == 3 ? 2 : 0); }

// Whether a block of luma has nothing of the image and but fills its MCU: it repeats the mean of the block before.
__device__ inline bool is_filler(const Row &row, uint32_t block) {
  const uint32_t mcu = block / blocks_of_mcu(row), k = block % blocks_of_mcu(row);
  if (k >= row.across * row.down) return false;
  const uint32_t x = mcu % row.columns * row.across + k % row.across, y = mcu / row.columns * row.down + k / row.across;
  return 8 * x >= row.width || 8 * y >= row.height;
}
