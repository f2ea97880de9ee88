// Lists with one element on for each class number. A row of the table is a sample. TO is an unsigned integer as large
// as the elements of the output, whose types do not matter here.
#include "common.cuh"

#include "layouts/one_hot.cuh"

// Fractions are dropped.
__device__ inline int64_t number(half_t v) { return convert<int64_t>(truncf(to_float(v))); }
__device__ inline int64_t number(float v) { return convert<int64_t>(truncf(v)); }
__device__ inline int64_t number(double v) { return convert<int64_t>(trunc(v)); }
template <class T> __device__ inline int64_t number(T v) { return convert<int64_t>(v); }

// A sample has at most 2^31 bytes: 32 bits hold a position and are quick to divide.
extern "C" __global__ void one_hot(const Row *rows, uint32_t count, Params params) {
  const Row row = rows[blockIdx.y];
  const uint32_t classes = (uint32_t)row.classes, inner = (uint32_t)row.inner;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    const uint32_t list = (uint32_t)i / inner, place = (uint32_t)i % inner;
    const uint64_t from = (uint64_t)(list / classes) * inner + place;
    row.to[i] = (TO)(number(load(row.from + from)) == (int64_t)(list % classes) ? params.on : params.off);
  }
}
