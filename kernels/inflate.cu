// Blocks of LZ4, a row each, by one warp: its threads read the same codes and share the bytes that these stand for.
// Format: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
#include "common.cuh"

#include "layouts/inflate.cuh"

// A length of this many goes on in further bytes.
constexpr uint32_t LONGER = 15;
constexpr uint32_t LEAST_MATCH = 4;

// Adds the bytes that continue a length; false: the block ends before them.
__device__ inline bool read_rest(const Row &row, uint64_t &at, uint64_t &length) {
  for (uint32_t more = 255; more == 255; length += more) {
    if (at == row.from_bytes) return false;
    more = row.from[at++];
  }
  return true;
}

// Whatever a block says, only its own bytes are read, and only its own room is written.
// What became of it is the outcome.
__device__ inline uint32_t inflate_block(const Row &row, uint32_t lane, uint64_t &made) {
  for (uint64_t at = 0;;) {
    if (at == row.from_bytes) return ENDS_EARLY;
    const uint32_t token = row.from[at++];
    uint64_t literals = token >> 4, length = token & LONGER;
    if (literals == LONGER && !read_rest(row, at, literals)) return ENDS_EARLY;
    if (literals > row.from_bytes - at) return ENDS_EARLY;
    if (literals > row.to_bytes - made) return TOO_LONG;
    for (uint64_t i = lane; i < literals; i += WARP) row.to[made + i] = row.from[at + i];
    at += literals, made += literals;
    if (at == row.from_bytes) return INFLATED;
    if (row.from_bytes - at < 2) return ENDS_EARLY;
    const uint32_t offset = row.from[at] | row.from[at + 1] << 8;
    at += 2;
    if (offset == 0) return ZERO_OFFSET;
    if (length == LONGER && !read_rest(row, at, length)) return ENDS_EARLY;
    length += LEAST_MATCH;
    if (length > row.to_bytes - made) return TOO_LONG;
    if (offset > made) return OFFSET_OUTSIDE;
    // What the other threads have written so far is read now.
    __syncwarp();
    const uint8_t *match = row.to + made - offset;
    for (uint64_t i = lane; i < length; i += WARP) row.to[made + i] = match[i < offset ? i : i % offset];
    made += length;
  }
}

extern "C" __global__ void inflate(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint32_t lane = threadIdx.x;
  uint64_t made = 0;
  const uint32_t outcome = inflate_block(row, lane, made);
  for (uint64_t i = made + lane; i < row.to_bytes; i += WARP) row.to[i] = 0;
  if (lane == 0) *row.outcome = outcome;
}
