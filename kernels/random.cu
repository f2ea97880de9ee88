// Tensors of random numbers, a function for each distribution. TO is the type of the elements, REAL the one that
// numbers are drawn in; a row of the table is a sample.
#include "random.cuh"

#include "layouts/random.cuh"

template <class Draw> __device__ inline void draw_all(const Row &row, Draw draw) {
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    Philox random(row.key, row.sequence, i);
    row.to[i] = convert<TO>(draw(random));
  }
}

extern "C" __global__ void uniform(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const REAL low = (REAL)row.low, factor = (REAL)row.factor, last = (REAL)row.last;
  draw_all(row, [=](Philox &random) {
    return Reals<REAL>::at_most(Reals<REAL>::multiply_add(Reals<REAL>::bits(random), factor, low), last);
  });
}

extern "C" __global__ void one_of(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const float *values = row.values;
  const uint64_t choices = row.count;
  draw_all(row, [=](Philox &random) { return (REAL)values[random.word() * choices >> 32]; });
}

extern "C" __global__ void coin_flip(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint32_t most = (uint32_t)row.count;
  draw_all(row, [=](Philox &random) { return (REAL)(random.word() <= most); });
}

extern "C" __global__ void normal(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const REAL mean = (REAL)row.low, stddev = (REAL)row.factor;
  draw_all(row, [=](Philox &random) { return normal_number<REAL>(random, mean, stddev); });
}
