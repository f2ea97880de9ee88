// Resize of images, antialiased and separable; with NORMALIZE also crop, mirror and normalise what was resized.
//
//   SRC   type of the source          MID   type of the resized image
//   DST   type of what is written     CH    channels that a thread computes at once
//
// A block makes a tile of the output, a thread one of its columns. It walks down the source rows that the tile needs: each row is
// weighed along x once, and added to the rows of the tile that it is a tap of. Weights are made here, in float32 and in the order
// of the CPU's code (src/cpu/resample/filter.rs), once for a tile.
//
//       source rows        x pass          tile (TILE_H accumulators a thread)
//       ...........   ->   h = w.row   ->  acc[j] += wy[j][r] * h      -> epilogue
#include "common.cuh"

constexpr int TILE_W = 64;
constexpr int TILE_H = 8;
// Weights of axes with more taps are computed when they are needed.
constexpr int MAX_TAPS = 48;
// Pixels of three bytes that are read together, as three words.
constexpr int GROUP = 4;
// Source rows of a tile whose weights have a place in a table: most tiles have fewer.
constexpr int MAX_ROWS = 96;

// One axis: output pixel i has its centre at source coordinate start + i * scale + (taps' middle).
struct Axis {
  float start, scale;       // coordinate of the first tap before rounding up; source pixels an output pixel
  float table_scale;        // table entries a source pixel
  int32_t filter;           // Filter
  int32_t taps;
  int32_t length, size;     // source pixels, output pixels
};

enum Filter { NEAREST, TRIANGULAR, GAUSSIAN, CUBIC, LANCZOS3 };

struct Row {
  const SRC *src;
  DST *dst;
  Axis y, x;
  uint32_t pitch;           // elements between source rows
  uint32_t step;            // elements between pixels of a row, in source and (resized only) output
#ifdef NORMALIZE
  int32_t window_h, window_w;   // of the output
  int32_t anchor_y, anchor_x;   // of the window in the resized image
  int32_t mirror, planar, channels, unused;  // channels of the output: at least CH
  float factor[4], bias[4], fill[4];
#endif
};
CHECK_LAYOUT(Row, NoParams);

__device__ __noinline__ float entry(int filter, int i) {
  switch (filter) {
    case GAUSSIAN: {
      if (i < 0 || i > 64) return 0.0f;
      const float x = 4.0f * ((float)i - 32.0f) / 64.0f;
      return expf(-x * x);
    }
    case CUBIC: {
      const float x = fabsf(4.0f * ((float)i - 64.0f) / 128.0f);
      if (x >= 2.0f) return 0.0f;
      if (x > 1.0f) return -0.5f * x * x * x + 2.5f * x * x - 4.0f * x + 2.0f;
      return 1.5f * x * x * x - 2.5f * x * x + 1.0f;
    }
    default: {
      const float x = 6.0f * ((float)i - 96.0f) / 192.0f;
      if (fabsf(x) >= 3.0f) return 0.0f;
      const float pi = 3.14159265358979f;
      const float a = x * pi, b = x / 3.0f * pi;
      const float sa = fabsf(a) < 1e-3f ? 1.0f - a * a * (1.0f / 6.0f) : sinf(a) / a;
      const float sb = fabsf(b) < 1e-3f ? 1.0f - b * b * (1.0f / 6.0f) : sinf(b) / b;
      return sa * sb;
    }
  }
}

// The window at table coordinate t: between two entries.
__device__ inline float window_at(int filter, float t) {
  if (!(t > -1.0f) || t > 256.0f) return 0.0f;
  const float below = floorf(t);
  const int i = (int)below;
  const bool triangular = filter == TRIANGULAR;
  const float low = triangular ? (i == 1 ? 1.0f : 0.0f) : entry(filter, i);
  const float high = triangular ? (i == 0 ? 1.0f : 0.0f) : entry(filter, i + 1);
  return low + (t - below) * (high - low);
}

__device__ inline int first_tap(const Axis &axis, int i) {
  if (axis.filter == NEAREST) {
    const float at = floorf(axis.start + ((float)i + 0.5f) * axis.scale);
    return (int)fminf(fmaxf(at, 0.0f), (float)(axis.length - 1));
  }
  return (int)ceilf((float)i * axis.scale + axis.start);
}

// Weight k of output pixel i before it is divided by the sum of all.
__device__ inline float raw_weight(const Axis &axis, int i, int k) {
  if (axis.filter == NEAREST) return 1.0f;
  const float source = (float)i * axis.scale + axis.start;
  return window_at(axis.filter, (ceilf(source) - source + (float)k) * axis.table_scale);
}

__device__ __noinline__ float weight_sum(const Axis &axis, int i) {
  float sum = 0.0f;
  for (int k = 0; k < axis.taps; k++) sum += raw_weight(axis, i, k);
  return sum == 0.0f ? 1.0f : sum;
}

__device__ int clamp_to(int64_t i, int length) { return i < 0 ? 0 : i >= length ? length - 1 : (int)i; }

template <class T> constexpr bool IS_BYTE = false;
template <> constexpr bool IS_BYTE<uint8_t> = true;

// Blocks that a multiprocessor shall hold, so that the compiler keeps registers few enough: measured for the pixels of images.
// Other types would spill.
constexpr int MIN_BLOCKS = IS_BYTE<SRC> && CH <= 3 ? 12 : 1;

// Whether a source may hold infinities.
template <class T> constexpr bool FLOATING = false;
template <> constexpr bool FLOATING<half_t> = true;
template <> constexpr bool FLOATING<float> = true;
template <> constexpr bool FLOATING<double> = true;

// The first tap of a row of the tile that does not exist.
constexpr int NO_ROW = 2147483647;

// Adds `taps` neighbouring pixels of three bytes, weighed, to h. A word holds bytes of two pixels: memory is read in words, of
// which each has a byte that is needed.
__device__ inline void weigh_packed(const uint8_t *pixels, int taps, const float *weights, float *h) {
  const uint32_t misaligned = (uint32_t)((uint64_t)pixels & 3);
  const uint32_t *from = (const uint32_t *)(pixels - misaligned), *last = from + (misaligned + 3 * taps - 1) / 4;
  const auto word = [&](int i) { return __ldg(from + i < last ? from + i : last); };
  uint32_t next = word(0);
  for (int k = 0; k < taps; k += GROUP, from += 3) {
    const uint32_t a = next, b = word(1), c = word(2);
    next = word(3);
    const uint32_t w[3] = {__funnelshift_r(a, b, 8 * misaligned), __funnelshift_r(b, c, 8 * misaligned),
                           __funnelshift_r(c, next, 8 * misaligned)};
#pragma unroll
    for (int i = 0; i < GROUP; i++) {
      if (k + i >= taps) break;
      const float weight = weights[(k + i) * TILE_W];
#pragma unroll
      for (int j = 0; j < 3; j++) {
        const int byte = 3 * i + j;
        h[j] = fmaf(weight, (float)(w[byte / 4] >> 8 * (byte % 4) & 255), h[j]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(TILE_W, MIN_BLOCKS) resample(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
#ifdef NORMALIZE
  const int out_h = row.window_h, out_w = row.window_w;
#else
  const int out_h = row.y.size, out_w = row.x.size;
#endif
  const int tiles_x = (out_w + TILE_W - 1) / TILE_W;
  const int tile_y = blockIdx.x / tiles_x * TILE_H;
  if (tile_y >= out_h) return;
  const int x = blockIdx.x % tiles_x * TILE_W + threadIdx.x;

  // Where the tile is in the resized image.
#ifdef NORMALIZE
  const int rx = row.anchor_x + (row.mirror ? out_w - 1 - x : x);
  const int ry = tile_y + row.anchor_y;
#else
  const int rx = x, ry = tile_y;
#endif
  const bool inside_x = x < out_w && rx >= 0 && rx < row.x.size;

  __shared__ float weights_x[MAX_TAPS * TILE_W];
  __shared__ float weights_y[TILE_H * MAX_TAPS];
  // Of each source row of the tile, for each row of the tile.
  __shared__ __align__(16) float dense_y[MAX_ROWS * TILE_H];
  __shared__ float sums_y[TILE_H];
  __shared__ int firsts_y[TILE_H];
  const Axis ax = row.x, ay = row.y;
  const bool few_x = ax.taps <= MAX_TAPS, few_y = ay.taps <= MAX_TAPS;

  const int first_x = inside_x ? first_tap(ax, rx) : 0;
  const float sum_x = inside_x ? weight_sum(ax, rx) : 1.0f;
  if (few_x && inside_x)
    for (int k = 0; k < ax.taps; k++) weights_x[k * TILE_W + threadIdx.x] = raw_weight(ax, rx, k) / sum_x;
  if (threadIdx.x < TILE_H) {
    const int j = threadIdx.x;
    const bool inside = ry + j >= 0 && ry + j < ay.size && tile_y + j < out_h;
    firsts_y[j] = inside ? first_tap(ay, ry + j) : NO_ROW;
    if (inside) {
      sums_y[j] = weight_sum(ay, ry + j);
      if (few_y)
        for (int k = 0; k < ay.taps; k++) weights_y[j * MAX_TAPS + k] = raw_weight(ay, ry + j, k) / sums_y[j];
    }
  }
  __syncthreads();

  float acc[TILE_H][CH];
#pragma unroll
  for (int j = 0; j < TILE_H; j++)
    for (int c = 0; c < CH; c++) acc[j][c] = 0.0f;

  // Whether a thread's taps are neighbouring pixels of three bytes, none of which repeats an edge.
  const bool packed = IS_BYTE<SRC> && CH == 3 && row.step == 3 && few_x &&
                      first_x >= 0 && first_x + ax.taps <= ax.length;

  // Source row r, weighed along x. Coordinates outside of the image repeat its edge.
  const auto weigh_row = [&](int64_t r, float *h) {
    const SRC *line = row.src + (uint64_t)clamp_to(r, ay.length) * row.pitch;
#pragma unroll
    for (int c = 0; c < CH; c++) h[c] = 0.0f;
    if (packed) {
      weigh_packed((const uint8_t *)(line + first_x * 3), ax.taps, weights_x + threadIdx.x, h);
      return;
    }
    for (int k = 0; k < ax.taps; k++) {
      const SRC *pixel = line + (uint64_t)clamp_to((int64_t)first_x + k, ax.length) * row.step;
      const float w = few_x ? weights_x[k * TILE_W + threadIdx.x] : raw_weight(ax, rx, k) / sum_x;
#pragma unroll
      for (int c = 0; c < CH; c++) h[c] = fmaf(w, convert<float>(pixel[c]), h[c]);
    }
  };
  const auto weight_y = [&](int j, int k) {
    return few_y ? weights_y[j * MAX_TAPS + k] : raw_weight(ay, ry + j, k) / sums_y[j];
  };

  int64_t low = NO_ROW, high = -NO_ROW;
  for (int j = 0; j < TILE_H; j++) {
    if (firsts_y[j] == NO_ROW) continue;
    low = low < firsts_y[j] ? low : firsts_y[j];
    high = high > (int64_t)firsts_y[j] + ay.taps ? high : (int64_t)firsts_y[j] + ay.taps;
  }
  // Every row is weighed for every output row, with 0 where it is no tap: that is exact as long as no pixel is infinite.
  const bool dense = few_y && high - low <= MAX_ROWS && !FLOATING<SRC>;
  if (dense) {
    for (int i = threadIdx.x; i < (int)(high - low) * TILE_H; i += TILE_W) {
      const int j = i % TILE_H;
      const int64_t k = low + i / TILE_H - firsts_y[j];
      dense_y[i] = firsts_y[j] != NO_ROW && k >= 0 && k < ay.taps ? weights_y[j * MAX_TAPS + k] : 0.0f;
    }
    __syncthreads();
  }
  if (inside_x && dense) {
    const float *w = dense_y;
    for (int64_t r = low; r < high; r++, w += TILE_H) {
      float h[CH];
      weigh_row(r, h);
#pragma unroll
      for (int j = 0; j < TILE_H; j++)
#pragma unroll
        for (int c = 0; c < CH; c++) acc[j][c] = fmaf(w[j], h[c], acc[j][c]);
    }
  } else if (inside_x && high - low <= (int64_t)TILE_H * ay.taps) {
    for (int64_t r = low; r < high; r++) {
      float h[CH];
      weigh_row(r, h);
#pragma unroll
      for (int j = 0; j < TILE_H; j++) {
        const int64_t k = r - firsts_y[j];
        if (firsts_y[j] == NO_ROW || k < 0 || k >= ay.taps) continue;
        const float w = weight_y(j, (int)k);
#pragma unroll
        for (int c = 0; c < CH; c++) acc[j][c] = fmaf(w, h[c], acc[j][c]);
      }
    }
  } else if (inside_x) {
    // Rows of the tile are far apart: only those that are taps are read.
#pragma unroll
    for (int j = 0; j < TILE_H; j++) {
      if (firsts_y[j] == NO_ROW) continue;
      for (int k = 0; k < ay.taps; k++) {
        float h[CH];
        weigh_row((int64_t)firsts_y[j] + k, h);
        const float w = weight_y(j, k);
#pragma unroll
        for (int c = 0; c < CH; c++) acc[j][c] = fmaf(w, h[c], acc[j][c]);
      }
    }
  }

  if (x >= out_w) return;
#pragma unroll
  for (int j = 0; j < TILE_H; j++) {
    const int y = tile_y + j;
    if (y >= out_h) break;
#ifdef NORMALIZE
    const bool inside = inside_x && firsts_y[j] != NO_ROW;
    const uint64_t plane = (uint64_t)out_h * out_w, pixel = (uint64_t)y * out_w + x;
    DST *to = row.dst + (row.planar ? pixel : pixel * row.channels);
    const uint64_t next = row.planar ? plane : 1;
#pragma unroll
    for (int c = 0; c < CH; c++) {
      const float resized = convert<float>(convert<MID>(acc[j][c]));
      const float normalized = fmaf(resized, row.factor[c], row.bias[c]);
      to[c * next] = inside ? convert<DST>(normalized) : fill_value<DST>(row.fill[c]);
    }
    for (int c = CH; c < row.channels; c++) to[c * next] = fill_value<DST>(row.fill[c]);
#else
    DST *to = row.dst + ((uint64_t)y * out_w + x) * row.step;
#pragma unroll
    for (int c = 0; c < CH; c++) to[c] = convert<DST>(convert<MID>(acc[j][c]));
#endif
  }
}
