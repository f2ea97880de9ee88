// The data of a scan that a warp reads from its beginning to its end.
#pragma once
#include "common.cuh"

// Words of the data that a warp has at hand, and how many it has at least in front of a block: 63 codes of 16 bits and
// their values are 61 words, and a look ahead.
constexpr uint32_t RING_WORDS = 128, LOADED_AHEAD = 66;

// The data, bit by bit: a warp's part of it is in shared memory.
struct Bits {
  const uint32_t *data;
  uint32_t *ring;
  uint32_t words, at;
  // Words before this one are in the ring.
  uint32_t loaded;
  // The word that `at` lies in, and the one behind it.
  uint32_t high, low;

  __device__ uint32_t word(uint32_t i) const { return i < words ? __byte_perm(__ldg(data + i), 0, 0x0123) : ~0u; }
  __device__ void start(uint32_t bit) {
    at = bit, loaded = bit / 32;
    fill();
    take();
  }
  // Whether a block may reach words that are not in the ring.
  __device__ bool is_short() const { return loaded < at / 32 + LOADED_AHEAD; }
  // In front of each block: all words that it may reach.
  __device__ void fill() {
    while (is_short()) {
      __syncwarp();
      const uint32_t i = loaded + threadIdx.x % 32;
      ring[i % RING_WORDS] = word(i);
      loaded += 32;
      __syncwarp();
    }
  }
  __device__ void take() { high = ring[at / 32 % RING_WORDS], low = ring[(at / 32 + 1) % RING_WORDS]; }
  // The next 32.
  __device__ uint32_t peek() const { return __funnelshift_l(low, high, at); }
  __device__ void skip(uint32_t count) {
    const uint32_t before = at / 32;
    at += count;
    if (at / 32 != before) take();
  }
  // The one at a place in the block at hand.
  __device__ uint32_t bit(uint32_t place) const { return ring[place / 32 % RING_WORDS] >> (31 - place % 32) & 1; }
  // The one at any place.
  __device__ uint32_t far_bit(uint32_t place) const { return word(place / 32) >> (31 - place % 32) & 1; }
};
