// Copies runs of bytes that are adjacent in the input and lie at equal distances in the output: samples from where they
// were made to where they belong, and parts of tensors that are joined. A row of the table has any number of runs of
// one length.
#include "common.cuh"

#include "layouts/copy.cuh"

// A sample has at most 2^31 bytes, so that positions in it fit into 32 bits, which are quick to divide.
template <class Word> __device__ inline void copy_words(const Row &row, uint64_t first, uint64_t step) {
  const uint32_t words = (uint32_t)(row.bytes / sizeof(Word));
  const Word *from = (const Word *)row.from;
  for (uint64_t i = first; i < words * row.count; i += step) {
    const uint32_t run = row.count == 1 ? 0 : (uint32_t)i / words;
    ((Word *)(row.to + run * row.pitch))[i - (uint64_t)run * words] = from[i];
  }
}

// Words as large as all runs are aligned to; of one run the bytes behind the last word are copied one by one.
extern "C" __global__ void copy(const Row *rows, uint32_t count, NoParams) {
  const Row row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  const uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const uint64_t distances = row.count == 1 ? 0 : row.bytes | row.pitch;
  const uint64_t places = (uint64_t)row.to | (uint64_t)row.from | distances;
  if ((places & 15) == 0) {
    copy_words<uint4>(row, first, step);
    if (row.count == 1)
      for (uint64_t i = row.bytes / 16 * 16 + first; i < row.bytes; i += step) row.to[i] = row.from[i];
  } else if (((places | row.bytes) & 3) == 0) {
    copy_words<uint32_t>(row, first, step);
  } else {
    copy_words<uint8_t>(row, first, step);
  }
}
