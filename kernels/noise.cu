// Images with random errors. ELEMENT is the type of their elements, REAL the one that numbers are drawn in; a row of
// the table is an image.
#include "poisson.cuh"

#include "layouts/noise.cuh"

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

// How many events an element counts on average.
__device__ inline double events_of(const Row &row, uint64_t at) { return convert<float>(row.from[at]) / row.first; }

// Bytes have few means: a block makes what is to be known of each once.
template <class T> constexpr int MEANS = 1;
template <> constexpr int MEANS<uint8_t> = 256;

template <class Draw> struct Means {
  typename Draw::Mean known[MEANS<ELEMENT>];

  __device__ void make(const Row &row) {
    if (MEANS<ELEMENT> == 1) return;
    for (int value = threadIdx.x; value < MEANS<ELEMENT>; value += blockDim.x) {
      const double mean = (float)value / row.first;
      if (is_drawn(mean) && Draw::takes(mean)) known[value] = typename Draw::Mean(mean);
    }
  }
};

// Every element that `Draw` takes. A thread that has drawn its number goes on with its next element, while others draw
// on.
template <class Draw> __device__ inline void count_events(const Row &row, const Means<Draw> &means, const Factorials &factorials) {
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  Philox random(row.key, row.sequence, i);
  typename Draw::Mean mean;
  Draw draw;
  for (bool is_drawing = false;;) {
    if (!is_drawing) {
      double events = 0;
      for (; i < row.pixels; i += step) {
        events = events_of(row, i * row.pixel_step);
        if (is_drawn(events) && Draw::takes(events)) break;
      }
      if (i >= row.pixels) break;
      random.move_to(i);
      mean = MEANS<ELEMENT> > 1 ? means.known[(int)row.from[i * row.pixel_step]] : typename Draw::Mean(events);
      draw = Draw(), is_drawing = true;
    }
    int32_t found;
    if (draw.step(random, mean, factorials, found)) {
      row.to[i * row.pixel_step] = convert<ELEMENT>((float)found * row.first);
      i += step, is_drawing = false;
    }
  }
}

extern "C" __global__ void shot(const Row *rows, uint32_t count, NoParams) {
  __shared__ Means<Counting> few;
  __shared__ Means<Rejection> many;
  __shared__ Factorials factorials;
  const Row &row = rows[blockIdx.y];
  few.make(row), many.make(row), factorials.make();
  __syncthreads();
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.pixels; i += step) {
    const double events = events_of(row, i * row.pixel_step);
    if (!is_drawn(events)) row.to[i * row.pixel_step] = convert<ELEMENT>((events > 0 ? 2147483648.0f : 0.0f) * row.first);
  }
  count_events(row, few, factorials);
  count_events(row, many, factorials);
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
