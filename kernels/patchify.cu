// Images and clips cut into patches. A row of the table is a sample. ELEMENT is an unsigned integer as large as an
// element, whose type does not matter here.
#include "common.cuh"

#include "layouts/patchify.cuh"

// Takes the last digit of `rest`, a number whose digit has the base `base`.
__device__ inline uint32_t digit(uint32_t &rest, uint32_t base) {
  const uint32_t found = rest % base;
  rest /= base;
  return found;
}

// A sample has at most 2^31 bytes: 32 bits hold a position and are quick to divide.
extern "C" __global__ void patchify(const Row *rows, uint32_t count, Params params) {
  const Row row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    uint32_t rest = (uint32_t)i;
    uint32_t x = digit(rest, params.side), y = digit(rest, params.side);
    const uint32_t of_patch = digit(rest, params.depth), channel = digit(rest, row.channels);
    x += digit(rest, params.merge) * params.side;
    y += digit(rest, params.merge) * params.side;
    x += digit(rest, row.wide / params.merge) * params.merge * params.side;
    y += digit(rest, row.high / params.merge) * params.merge * params.side;
    const uint32_t wanted = rest * params.depth + of_patch;
    const uint32_t frame = wanted < row.last_frame ? wanted : row.last_frame;
    row.to[i] = row.from[frame * row.frame_stride + (uint64_t)channel * row.channel_stride +
                         (uint64_t)y * row.row_stride + (uint64_t)x * row.column_stride];
  }
}
