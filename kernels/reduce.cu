// Folds of samples along some of their dimensions: sums, means, extremes. A row of the table is a sample. There is a
// result for every position in the dimensions that are kept. The elements of a result are cut into chunks; `fold` folds
// each of them, and `finish` makes results of chunks where there is more than one.
#include "common.cuh"

// FOLD: what is folded. DISTANCES are squares of distances from given means.
enum { SUM, SQUARES, DISTANCES, LEAST, MOST };
// FINISH: what becomes of it. ROOT is that of the mean, SCALE what elements are multiplied by to have a given
// deviation.
enum { PLAIN, MEAN, ROOT, SCALE };

#include "layouts/reduce.cuh"

RANGE(float, -3.402823466e38f, 3.402823466e38f);

// Of nothing.
template <class T> __device__ inline T neutral() {
  if constexpr (FOLD == LEAST) return Range<T>::high;
  else if constexpr (FOLD == MOST) return Range<T>::low;
  else return 0;
}

// What is no number is neither the least nor the most.
template <class T> __device__ inline void merge(T &all, T more) {
  if constexpr (FOLD == LEAST) all = more < all ? more : all;
  else if constexpr (FOLD == MOST) all = more > all ? more : all;
  else all += more;
}

// As C++ multiplies in DALI: numbers of less than 32 bits as signed ones of 32.
template <class T> __device__ inline ACC square(T x) {
  if constexpr (sizeof(T) < 4) return (ACC)(int32_t)((uint32_t)x * (uint32_t)x);
  else if constexpr ((T)-1 > 0) return (ACC)((uint64_t)x * (uint64_t)x);
  else return (ACC)(int64_t)((uint64_t)(int64_t)x * (uint64_t)(int64_t)x);
}
template <> __device__ inline ACC square<float>(float x) { return (ACC)x * (ACC)x; }

template <class T> __device__ inline ACC term(T x, double mean) {
  if constexpr (FOLD == DISTANCES) {
    const double distance = convert<double>(x) - mean;
    return distance * distance;
  } else if constexpr (FOLD == SQUARES) {
    return square(x);
  } else {
    return convert<ACC>(x);
  }
}

__device__ inline TO finished(ACC all, const Row &row, const Params &params) {
  if (FINISH == PLAIN) return convert<TO>(all);
  const double degrees = (double)row.each - (double)params.ddof;
  double mean = 0;
  if (params.ddof == 0 || degrees > 0) {
    // Integers as DALI rounds them: it multiplies in single precision.
    const bool whole = (TO)0.5f == (TO)0;
    mean = whole ? (double)((float)all * (float)(1.0 / degrees)) : (double)all / degrees;
  }
  if (FINISH == MEAN) return convert<TO>(mean);
  if (FINISH == ROOT) return convert<TO>(sqrt(mean));
  const double variance = mean + (double)params.epsilon;
  return convert<TO>(variance == 0 ? 0.0 : (double)params.scale / sqrt(variance));
}

// Where in the sample the element number `at` among those is whose position in the other dimensions is 0. A sample has
// at most 2^31 bytes: 32 bits hold a position and are quick to divide.
__device__ inline uint64_t offset(const Row &row, uint64_t at, bool folded) {
  uint32_t rest = (uint32_t)at;
  uint64_t offset = 0;
  for (uint64_t a = 0; a < row.axes; ++a) {
    const Axis &axis = row.axis[a];
    if ((axis.result == 0) != folded) continue;
    const uint32_t extent = (uint32_t)axis.extent;
    offset += rest % extent * axis.stride;
    rest /= extent;
  }
  return offset;
}

// What `lanes` neighbouring threads have folded, to the first of them. Every thread of the block comes here.
__device__ inline ACC joined(ACC all, uint32_t lane, uint32_t lanes) {
  __shared__ ACC part[THREADS];
  part[threadIdx.x] = all;
  __syncthreads();
  for (uint32_t half = lanes / 2; half > 0; half /= 2) {
    if (lane < half) merge(part[threadIdx.x], part[threadIdx.x + half]);
    __syncthreads();
  }
  all = part[threadIdx.x];
  __syncthreads();
  return all;
}

// Neighbouring groups of threads fold neighbouring results, in an order that depends on nothing but the shape.
extern "C" __global__ void fold(const Row *__restrict__ rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const uint32_t lanes = (uint32_t)row.lanes, lane = threadIdx.x % lanes, groups = THREADS / lanes;
  const uint64_t units = row.results * row.chunks;
  for (uint64_t first = (uint64_t)blockIdx.x * groups; first < units; first += (uint64_t)gridDim.x * groups) {
    const uint64_t unit = first + threadIdx.x / lanes;
    ACC all = neutral<ACC>();
    if (unit < units) {
      const uint64_t result = unit % row.results, chunk = unit / row.results;
      const uint64_t end = row.each * (chunk + 1) / row.chunks;
      const FROM *from = row.from + offset(row, result, false);
      const double mean = FOLD == DISTANCES ? (double)row.means[result * row.mean_step] : 0.0;
      uint64_t i = row.each * chunk / row.chunks + lane;
      if (const uint64_t step = row.step) {
#pragma unroll 4
        for (; i < end; i += lanes) merge(all, term(load(from + i * step), mean));
      } else {
        for (; i < end; i += lanes) merge(all, term(load(from + offset(row, i, true)), mean));
      }
    }
    all = joined(all, lane, lanes);
    if (lane == 0 && unit < units) {
      if (row.parts) row.parts[unit] = all;
      else row.to[unit] = finished(all, row, params);
    }
  }
}

extern "C" __global__ void finish(const Row *__restrict__ rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const uint32_t lanes = 32, lane = threadIdx.x % lanes, groups = THREADS / lanes;
  for (uint64_t first = (uint64_t)blockIdx.x * groups; first < row.results; first += (uint64_t)gridDim.x * groups) {
    const uint64_t result = first + threadIdx.x / lanes;
    ACC all = neutral<ACC>();
    for (uint64_t chunk = lane; result < row.results && chunk < row.chunks; chunk += lanes)
      merge(all, row.parts[chunk * row.results + result]);
    all = joined(all, lane, lanes);
    if (lane == 0 && result < row.results) row.to[result] = finished(all, row, params);
  }
}
