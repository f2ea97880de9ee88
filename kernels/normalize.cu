// Normalize along some dimensions: sums of elements, or of squares of their distances from the mean, and the result. A row of
// the table is a sample. A parameter is a mean or a scale; there is one for every position in the dimensions that are kept.
// `statistics.cu` makes parameters of sums.
#include "common.cuh"

// A dimension of the sample.
struct Axis {
  uint64_t extent;
  uint64_t stride;     // distance of neighbours, in elements
  uint64_t parameter;  // distance of their parameters; 0: the dimension is reduced
};

constexpr uint32_t MAX_AXES = 8;

struct Row {
  const FROM *from;
  TO *to;
  double *sums;  // one for each chunk and parameter, those of a chunk together
  const float *means;
  const float *scales;
  uint64_t mean_step;   // distance of the means of neighbouring parameters: 1, or 0 when there is one for all
  uint64_t scale_step;  // the same of scales
  uint64_t elements;
  uint64_t parameters;
  uint64_t each;    // elements that have the same parameter
  uint64_t chunks;  // parts into which these are cut
  uint64_t lanes;   // threads that add up a part; a power of two, at most THREADS
  uint64_t axes;
  Axis axis[MAX_AXES];  // innermost first
};

struct Params {
  float shift;
  uint32_t squares;
};
CHECK_LAYOUT(Row, Params);

// Where in the sample the element number `at` among those is whose position in the other dimensions is 0. A sample has at most
// 2^31 bytes: 32 bits hold a position and are quick to divide.
__device__ inline uint64_t offset(const Row &row, uint64_t at, bool reduced) {
  uint32_t rest = (uint32_t)at;
  uint64_t offset = 0;
  for (uint64_t a = 0; a < row.axes; ++a) {
    const Axis &axis = row.axis[a];
    if ((axis.parameter == 0) != reduced) continue;
    const uint32_t extent = (uint32_t)axis.extent;
    offset += rest % extent * axis.stride;
    rest /= extent;
  }
  return offset;
}

// Neighbouring groups of threads add up neighbouring parameters. Sums are kept in double precision, in an order that depends
// on nothing but the shape.
extern "C" __global__ void sums(const Row *__restrict__ rows, uint32_t count, Params params) {
  __shared__ double part[THREADS];
  const Row &row = rows[blockIdx.y];
  const uint32_t lanes = (uint32_t)row.lanes, lane = threadIdx.x % lanes, groups = THREADS / lanes;
  const uint64_t units = row.parameters * row.chunks;
  for (uint64_t first = (uint64_t)blockIdx.x * groups; first < units; first += (uint64_t)gridDim.x * groups) {
    const uint64_t unit = first + threadIdx.x / lanes;
    double sum = 0;
    if (unit < units) {
      const uint64_t parameter = unit % row.parameters, chunk = unit / row.parameters;
      const uint64_t end = row.each * (chunk + 1) / row.chunks;
      const FROM *from = row.from + offset(row, parameter, false);
      const double mean = params.squares ? (double)row.means[parameter * row.mean_step] : 0.0;
      for (uint64_t i = row.each * chunk / row.chunks + lane; i < end; i += lanes) {
        const double distance = (double)convert<float>(load(from + offset(row, i, true))) - mean;
        sum += params.squares ? distance * distance : distance;
      }
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (uint32_t half = lanes / 2; half > 0; half /= 2) {
      if (lane < half) part[threadIdx.x] += part[threadIdx.x + half];
      __syncthreads();
    }
    if (lane == 0 && unit < units) row.sums[unit] = part[threadIdx.x];
    __syncthreads();
  }
}

extern "C" __global__ void normalize(const Row *__restrict__ rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.elements; i += step) {
    uint32_t rest = (uint32_t)i;
    uint64_t parameter = 0;
    for (uint64_t a = 0; a < row.axes; ++a) {
      const uint32_t extent = (uint32_t)row.axis[a].extent;
      parameter += rest % extent * row.axis[a].parameter;
      rest /= extent;
    }
    const float distance = convert<float>(load(row.from + i)) - row.means[parameter * row.mean_step];
    row.to[i] = convert<TO>(fmaf(distance, row.scales[parameter * row.scale_step], params.shift));
  }
}
