// Makes tables that find two codes at once of tables that find one. PAIRS_PARTS blocks of threads share a table, and
// each thread makes an entry or two.
#include "jpeg.cuh"

// How far the end of a block advances, and nothing else.
constexpr uint32_t TO_THE_END = 64;
__device__ inline uint32_t advance_of(uint32_t entry) { return entry >> 9 & 127; }
__device__ inline uint32_t bits_of(uint32_t entry) { return code_bits(entry) + value_bits(entry); }

// The entry for the code at the beginning of `count` bits; 0: there is none, or not all of it is in them.
__device__ inline uint32_t find(const Table &t, uint32_t bits, uint32_t count) {
  const uint32_t next = bits << (16 - count);
  uint32_t e = t.lut[next >> (16 - LUT_BITS)];
  if (e == 0 && count > LUT_BITS && next < t.limit[0]) e = t.sorted[((next >> (15 - LUT_BITS)) + t.base[0]) & 255];
  return code_bits(e) <= count ? e : 0;
}

// The entry for the code behind `first`, at the beginning of `count` bits; 0 also when another table is next.
__device__ inline uint32_t find_second(const Table &t, uint32_t first, uint32_t bits, uint32_t count) {
  const uint32_t passed = bits_of(first);
  if (first == 0 || advance_of(first) == TO_THE_END || passed >= count) return 0;
  return find(t, bits & ((1 << (count - passed)) - 1), count - passed);
}

// What advances an entry of Pairs::skips.
__device__ inline uint32_t skip_of(uint32_t entry) { return advance_of(entry) == TO_THE_END ? SKIP_END : advance_of(entry); }

extern "C" __global__ void __launch_bounds__(PAIRS_THREADS) jpeg_pairs(const Task *rows, uint32_t count, Params p) {
  begin_early();
  static_assert(AC_SKIP_BITS <= LUT_BITS + 1, "of longer codes only those that are one bit longer are found");
  // No block of a later kernel has told anything.
  for (uint32_t i = blockIdx.x * PAIRS_THREADS + threadIdx.x; i < p.told_words; i += gridDim.x * PAIRS_THREADS) p.told[i] = 0;
  // A table as its image, and as its first 1 if it is for AC.
  const Task row = rows[blockIdx.x / PAIRS_PARTS];
  const Table &t = p.tables[row.image];
  Pairs &to = p.pairs[row.image];
  const bool is_ac = row.first;
  const uint32_t first = blockIdx.x % PAIRS_PARTS * PAIRS_THREADS + threadIdx.x;
  const uint32_t skip_bits = is_ac ? AC_SKIP_BITS : DC_SKIP_BITS, code_bits = is_ac ? AC_CODE_BITS : DC_CODE_BITS;
  for (uint32_t i = first; i < 1 << skip_bits; i += PAIRS_PARTS * PAIRS_THREADS) {
    const uint32_t e = find(t, i, skip_bits), second = is_ac ? find_second(t, e, i, skip_bits) : 0;
    to.skips[i] = e ? (skip_of(e) + skip_of(second)) << 8 | (bits_of(e) + bits_of(second)) : MISSING;
  }
  for (uint32_t i = first; i < 1 << code_bits; i += PAIRS_PARTS * PAIRS_THREADS) {
    const uint32_t e = find(t, i, code_bits);
    to.codes[i] = e | (is_ac ? find_second(t, e, i, code_bits) << 16 : 0);
  }
}
