// The data of a scan that a team of threads reads from its beginning to its end.
#pragma once
#include "common.cuh"

// Words of the data that a team has at hand, and how many it has at least in front of a block: 63 codes of 16 bits and
// their values are 61 words, and a look ahead.
constexpr uint32_t RING_WORDS = 128, LOADED_AHEAD = 66;
// The first four words of the ring are also behind the last.
constexpr uint32_t RING_ROOM = RING_WORDS + 4;
// Words that a team loads at once.
constexpr uint32_t LOADED_AT_ONCE = 32;

// The data, bit by bit: a team's part of it is in shared memory.
template <uint32_t TEAM> struct Bits {
  const uint32_t *data;
  uint32_t *ring;
  uint32_t words, at;
  // Words before this one are in the ring; a multiple of four.
  uint32_t loaded;
  // The word that `at` lies in, and the two behind it: loaded long before they are needed.
  uint32_t high, low, further;

  __device__ static uint32_t swapped(uint32_t word) { return __byte_perm(word, 0, 0x0123); }
  __device__ uint32_t word(uint32_t i) const { return i < words ? swapped(__ldg(data + i)) : ~0u; }
  __device__ void start(uint32_t bit) { at = bit, loaded = bit / 32 & ~3u; }
  // Whether a block may reach words that are not in the ring.
  __device__ bool is_short() const { return loaded < at / 32 + LOADED_AHEAD; }
  // In front of each block: all words that it may reach. All threads of a warp come here, and those that are `on` load.
  __device__ void fill(bool on) {
    constexpr uint32_t EACH = LOADED_AT_ONCE / TEAM;
    while (__any_sync(~0u, on && is_short())) {
      __syncwarp();
      if (on && loaded + LOADED_AT_ONCE <= at / 32 + RING_WORDS) {
        const uint32_t first = loaded + threadIdx.x % TEAM * EACH;
#pragma unroll
        for (uint32_t i = first; i < first + EACH; i++) {
          const uint32_t v = word(i);
          ring[i % RING_WORDS] = v;
          if (i % RING_WORDS < RING_ROOM - RING_WORDS) ring[RING_WORDS + i % RING_WORDS] = v;
        }
        loaded += LOADED_AT_ONCE;
      }
      __syncwarp();
    }
  }
  __device__ void take() {
    const uint32_t *const from = ring + at / 32 % RING_WORDS;
    high = from[0], low = from[1], further = from[2];
  }
  // The next 32.
  __device__ uint32_t peek() const { return __funnelshift_l(low, high, at); }
  // Goes on to a bit that is at most a word further.
  __device__ void move(uint32_t to) {
    if ((at ^ to) >= 32) high = low, low = further;
    at = to, further = (ring + at / 32 % RING_WORDS)[2];
  }
  // The one at a place in the block at hand.
  __device__ uint32_t bit(uint32_t place) const { return ring[place / 32 % RING_WORDS] >> (31 - place % 32) & 1; }
  // The one at any place.
  __device__ uint32_t far_bit(uint32_t place) const { return word(place / 32) >> (31 - place % 32) & 1; }
};
