// Copies ranges of bytes, one row of the table each: samples from where they were made to where they belong.
#include "common.cuh"

struct Row {
  uint8_t *to;
  const uint8_t *from;
  uint64_t bytes;
};
CHECK_LAYOUT(Row, NoParams);

// 16 bytes a thread where both addresses allow it.
extern "C" __global__ void copy(const Row *rows, uint32_t count, NoParams) {
  const Row row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  const uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  uint64_t done = 0;
  if ((((uint64_t)row.to | (uint64_t)row.from) & 15) == 0) {
    const uint64_t words = row.bytes / 16;
    for (uint64_t i = first; i < words; i += step) ((uint4 *)row.to)[i] = ((const uint4 *)row.from)[i];
    done = words * 16;
  }
  for (uint64_t i = done + first; i < row.bytes; i += step) row.to[i] = row.from[i];
}
