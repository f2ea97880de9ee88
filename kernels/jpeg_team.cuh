// What a team of threads has that decodes a scan of a progressive image: a part of each block's coefficients for each
// thread, and tables for all.
#pragma once
#include "jpeg_bits.cuh"
#include "jpeg_codes.cuh"

// Bits by which a team finds codes of bands, and of DC differences.
constexpr uint32_t BAND_BITS = 9, DC_BITS = 7;

// The bits at the beginning of `next`, as a number.
__device__ inline uint32_t top(uint32_t next, uint32_t count) { return __funnelshift_l(next, 0, count); }

// An entry of a table as a scan has it that brings coefficients for the first time: as in Table, with a bit set where
// there is no value. NO_VALUE alone: the code is longer, or there is none, or values have too many bits.
constexpr uint32_t NO_VALUE = 1u << 15;
__device__ inline uint32_t bringing(uint32_t e, uint32_t low) {
  const uint32_t size = value_bits(e);
  return size == 0 ? e | NO_VALUE : size + low > 15 ? NO_VALUE : e;
}

// An entry as a scan has it that refines: how many zeros further (bits 0 to 4), whether there is a value (5), bits of
// the code and the value (8 to 12). SPECIAL alone: the code is longer, or there is none, or values have several bits.
// SPECIAL with others: blocks end. Of their number as many bits follow as bits 13 to 15, and 6, say; these are counted
// in bits 8 to 12.
constexpr uint32_t HAS_VALUE = 1 << 5, SPECIAL = 1 << 7;
__device__ inline uint32_t refining(uint32_t e) {
  const uint32_t size = value_bits(e), length = code_bits(e), run = e >> 9;
  if (e == 0 || size > 1) return SPECIAL;
  if (size == 0 && run < 15) return SPECIAL | (run & 8) << 3 | (length + run) << 8 | (run & 7) << 13;
  return (run + 1) | size << 5 | (length + size) << 8;
}

// Blocks from the one at hand on that have nothing (more) in the band, by the bits of their number.
__device__ inline uint32_t run_of(uint32_t bits, uint32_t count) { return (1u << count) + (bits & ((1u << count) - 1)); }

// Where places of known coefficients begin, behind those of zeros.
constexpr uint32_t KNOWN = 64 + 16;

// What a team has in shared memory.
template <uint32_t TEAM> struct Own {
  // Tables of its scan, by the next bits.
  union {
    uint16_t ac[1 << BAND_BITS];
    uint16_t dc[MAX_COMPONENTS][1 << DC_BITS];
  };
  // Words of the data.
  uint32_t ring[RING_ROOM];
  // Coefficients of the block at hand.
  alignas(16) int16_t block[64 + 8];
  // Of the next block, which are known: a bit each.
  alignas(8) uint8_t known[8];
  // Of each component, the sum of its differences.
  int32_t sums[MAX_COMPONENTS];
  // Places of those that are 0, from that with the number `begin` on, and of those that are known; a code may ask for
  // 16 more of the first.
  uint8_t places[KNOWN + 64 + TEAM];
  // For each that is known: how many bits of codes come before its own bit. A code writes some at once.
  uint16_t codes_before[64 + TEAM];
};

// A bit for each half of a word that is not 0: bits 15 and 31.
__device__ inline uint32_t halves(uint32_t word) { return ((word & 0x7FFF7FFF) + 0x7FFF7FFF | word) & 0x80008000; }

// The coefficients of a block that a thread has: eight or two.
template <uint32_t TEAM> struct Part;
template <> struct Part<8> {
  using Values = uint4;
};
template <> struct Part<32> {
  using Values = uint32_t;
};
__device__ inline bool any(uint4 v) { return v.x | v.y | v.z | v.w; }
__device__ inline bool any(uint32_t v) { return v; }

// A bit for each of eight that is not 0.
__device__ inline uint32_t not_zero(uint4 v) {
  const uint32_t bits = halves(v.x) >> 15 | halves(v.y) >> 13 | halves(v.z) >> 11 | halves(v.w) >> 9;
  return (bits | bits >> 15) & 255;
}

// Which coefficients of a block are known: a bit for each.
struct Known {
  uint32_t low, high;
  __device__ explicit Known(const uint8_t *eights) {
    const uint2 all = *(const uint2 *)eights;
    low = all.x, high = all.y;
  }
  __device__ uint32_t count() const { return __popc(low) + __popc(high); }
  // Of an eight of them: how many there are before it, and which those are.
  __device__ uint32_t before(uint32_t eight) const {
    const uint32_t below = (1u << eight % 4 * 8) - 1;
    return eight < 4 ? __popc(low & below) : __popc(low) + __popc(high & below);
  }
  __device__ uint32_t own(uint32_t eight) const { return (eight < 4 ? low : high) >> eight % 4 * 8 & 255; }
  // Whether that at a place is.
  __device__ uint32_t has(uint32_t k) const { return (k < 32 ? low : high) >> k % 32 & 1; }
};
