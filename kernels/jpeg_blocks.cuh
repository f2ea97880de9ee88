// The blocks of a component in the order of a scan that has it alone.
#pragma once
#include "jpeg.cuh"

// Where blocks of a component are that come row by row, as in its own scans.
struct Blocks {
  uint32_t first, mcu_blocks, mcus_across, h, v, across;
  // The block at hand: its column in its row, its column in its MCU, and where it is.
  uint32_t x, y, in_mcu, at;

  __device__ Blocks(const Image &image, const Pass &pass, uint32_t c)
      : first(image.first_block + image.first[c]), mcu_blocks(image.mcu_blocks), mcus_across(image.mcus_across), h(image.across[c]),
        v(image.mcu_height >> image.factor_y[c]), across(pass.across) {}
  __device__ void set(uint32_t number) {
    x = number % across, y = number / across;
    place();
  }
  __device__ void place() {
    const uint32_t mcu_x = x / h, mcu_y = y / v;
    in_mcu = x - mcu_x * h;
    at = first + (mcu_y * mcus_across + mcu_x) * mcu_blocks + (y - mcu_y * v) * h + in_mcu;
  }
  __device__ bool ends_row() const { return x + 1 == across; }
  __device__ void next_in_row() {
    x++, in_mcu++, at++;
    if (in_mcu == h) in_mcu = 0, at += mcu_blocks - h;
  }
  __device__ void advance(uint32_t count) {
    if (count == 1 && !ends_row()) {
      next_in_row();
    } else {
      x += count, y += x / across, x %= across;
      place();
    }
  }
};
