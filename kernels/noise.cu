// Images with random errors. ELEMENT is the type of their elements, REAL the one that numbers are drawn in; a row of the table is an image.
#include "poisson.cuh"

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  uint64_t key;
  uint64_t sequence;
  uint64_t pixels;        // of which each has a random number
  uint64_t channels;
  uint64_t pixel_step;    // elements from one to the next
  uint64_t channel_step;
  uint64_t salt, pepper;  // the bytes of bright and of dark elements
  float first, second;    // mean and deviation; or what the numbers of errors and of bright errors are below; or what an event adds
};
CHECK_LAYOUT(Row, NoParams);

// Every element of a pixel gets what `change` makes of it and of the pixel's random numbers.
template <class Change> __device__ inline void change_all(const Row &row, Change change) {
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.pixels; i += step) {
    Philox random(row.key, row.sequence, i);
    change(random, i * row.pixel_step);
  }
}

extern "C" __global__ void gaussian(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const REAL mean = (REAL)row.first, stddev = (REAL)row.second;
  change_all(row, [&](Philox &random, uint64_t at) {
    row.to[at] = convert<ELEMENT>(convert<REAL>(row.from[at]) + normal_number<REAL>(random, mean, stddev));
  });
}

extern "C" __global__ void shot(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  change_all(row, [&](Philox &random, uint64_t at) {
    const int32_t events = poisson(random, (double)(convert<float>(row.from[at]) / row.first));
    row.to[at] = convert<ELEMENT>((float)events * row.first);
  });
}

extern "C" __global__ void salt_and_pepper(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const ELEMENT salt = *(const ELEMENT *)&row.salt, pepper = *(const ELEMENT *)&row.pepper;
  change_all(row, [&](Philox &random, uint64_t at) {
    const float drawn = Reals<float>::unit(random);
    for (uint64_t c = 0; c < row.channels; ++c, at += row.channel_step)
      row.to[at] = drawn < row.first ? drawn < row.second ? salt : pepper : row.from[at];
  });
}
