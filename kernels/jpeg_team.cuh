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
// The place of no coefficient.
constexpr uint32_t NOWHERE = 64;

// What a team has in shared memory.
template <uint32_t TEAM> struct Own {
  // Tables of its scan, by the next bits.
  union {
    uint16_t ac[1 << BAND_BITS];
    uint16_t dc[MAX_COMPONENTS][1 << DC_BITS];
  };
  // Words of the data.
  uint32_t ring[RING_ROOM];
  // Coefficients of the block at hand. NOWHERE is read in place of one that is not there.
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

// The coefficients of a block that a thread has, and which of the block are known.
template <uint32_t TEAM> struct Part;

// Eight of them.
template <> struct Part<8> {
  using Values = uint4;
  __device__ static bool any(Values v) { return v.x | v.y | v.z | v.w; }
  // A bit for each that is not 0.
  __device__ static uint32_t not_zero(Values v) {
    const uint32_t bits = halves(v.x) >> 15 | halves(v.y) >> 13 | halves(v.z) >> 11 | halves(v.w) >> 9;
    return (bits | bits >> 15) & 255;
  }

  // Of the block, those before the 32nd, and from there on.
  uint32_t low, high;
  // All threads of a warp: `part` is this one's place, `bits` those that it knows. Between the two all meet.
  __device__ static void tell(uint8_t *known, uint32_t part, uint32_t bits) { known[part] = bits; }
  __device__ void hear(const uint8_t *known, uint32_t) {
    const uint2 all = *(const uint2 *)known;
    low = all.x, high = all.y;
  }
  __device__ uint32_t count() const { return __popc(low) + __popc(high); }
  // How many there are before this thread's.
  __device__ uint32_t before(uint32_t part) const {
    const uint32_t below = (1u << part % 4 * 8) - 1;
    return part < 4 ? __popc(low & below) : __popc(low) + __popc(high & below);
  }
  // This thread's.
  __device__ uint32_t own(uint32_t part) const { return (part < 4 ? low : high) >> part % 4 * 8 & 255; }
  // Whether that at a place is.
  __device__ uint32_t has(uint32_t k) const { return (k < 32 ? low : high) >> k % 32 & 1; }
};

// Two of them.
template <> struct Part<32> {
  using Values = uint32_t;
  __device__ static bool any(Values v) { return v; }
  __device__ static uint32_t not_zero(Values v) { return halves(v) >> 15 & 1 | halves(v) >> 30; }

  // Of the block, those at even places, and at odd ones.
  uint32_t even, odd;
  __device__ static void tell(uint8_t *, uint32_t, uint32_t) {}
  __device__ void hear(const uint8_t *, uint32_t bits) { even = __ballot_sync(~0u, bits & 1), odd = __ballot_sync(~0u, bits >> 1); }
  __device__ uint32_t count() const { return __popc(even) + __popc(odd); }
  __device__ uint32_t before(uint32_t part) const {
    const uint32_t below = (1u << part) - 1;
    return __popc(even & below) + __popc(odd & below);
  }
  __device__ uint32_t own(uint32_t part) const { return (even >> part & 1) | (odd >> part & 1) << 1; }
  __device__ uint32_t has(uint32_t k) const { return (k % 2 ? odd : even) >> k / 2 & 1; }
};
