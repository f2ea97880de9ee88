// Resize of images, antialiased and separable; with NORMALIZE also crop, mirror and normalise what was resized.
//
//   SRC   type of the source          MID   type of the resized image
//   DST   type of what is written     CH    channels that a thread computes at once
//   PLANES  sources may be components of JPEGs (planes.cuh), which become pixels in shared memory
//
// A block makes tiles of the output, one after the other: first along y, so that memory is read in whole words and every byte by neighbours, then
// along x from shared memory. Tiles that are made of more columns than there is room for take them one part after the other.
// Weights are made before (resample_weights), in float32 as the CPU makes them (src/cpu/resample/filter.rs).
//
//      source          y: a warp a row of the tile, a lane four elements        x: a lane a column, a warp ROWS rows
//      ........   ->   columns[j][i] = sum_k wy[j][k] * source[y(j) + k][i] ->  acc[j] += wx[k] * columns[j][x + k]
#include "planes.cuh"
#include "resample_axis.cuh"
#include "weighed_bytes.cuh"

constexpr int TILE_W = 32;
constexpr int TILE_H = 16;
constexpr int WARPS = 4;
constexpr int THREADS = WARPS * TILE_W;
// Rows of the tile that a thread has.
constexpr int ROWS = TILE_H / WARPS;
// Elements of a row of the tile that there is room for between the passes. Columns are taken in fours: as many bytes as words,
// so that words of an aligned image stay whole.
constexpr int ROOM = 256;
constexpr int ALIGNED = 4;
constexpr int PART = ROOM / CH / ALIGNED * ALIGNED;
// Registers are as few as lets so many blocks be on a multiprocessor that its memory is full.
#ifdef PLANES
constexpr int BLOCKS = 6;
// Room for rows of pixels that are made of planes.
constexpr int STAGED_ROWS = 36, STAGED_WORDS = PART * CH / 4;
static_assert(STAGED_WORDS <= 2 * TILE_W, "a lane weighs two words of a row");
#else
constexpr int BLOCKS = 8;
#endif

struct Row {
  const SRC *src;
  DST *dst;
  const Planes *planes;     // in place of src, when there are some
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
struct Params {
  // Tiles that a block makes, one below the other.
  uint32_t tiles;
};
CHECK_LAYOUT(Row, Params);

template <class T> constexpr bool IS_BYTE = false;
template <> constexpr bool IS_BYTE<uint8_t> = true;

// The first tap of a row or a column of the tile that does not exist.
constexpr int NONE = 2147483647;

// Elements of a row between those that a lane makes: a warp makes as many at once.
constexpr int AT_ONCE = 4 * TILE_W;
static_assert(ROOM <= 2 * AT_ONCE, "a lane makes two groups of a row");

// GROUPS times four elements of a row of the tile, AT_ONCE apart, of bytes whose taps along y are all in the image: the first is at `from`.
// Of the last group, where a row may end, `needed` are; none: it is made of what is there, and not used. Several groups keep more of memory on its way.
template <int GROUPS, bool ALIGNED_WORDS>
__device__ inline void weigh_taps(const uint8_t *from, uint32_t pitch, int needed, const float *weights, int taps, float (*sum)[4]) {
  const uint32_t last = needed > 0 ? (GROUPS - 1) * AT_ONCE : 0;
#pragma unroll 4
  for (int k = 0; k < taps; k++, from += pitch) {
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
      const uint8_t *const at = from + (g == GROUPS - 1 ? last : g * AT_ONCE);
      const int count = g == GROUPS - 1 && needed > 0 ? min(needed, 4) : 4;
      weigh(ALIGNED_WORDS ? __ldg((const uint32_t *)at) : four_bytes(at, count), weights[k], sum[g]);
    }
  }
}

template <int GROUPS>
__device__ inline void make_columns(const uint8_t *from, uint32_t pitch, int elements, const float *weights, int taps, bool aligned, float *to) {
  float sum[GROUPS][4] = {};
  const int needed = elements - (GROUPS - 1) * AT_ONCE;
  if (aligned) weigh_taps<GROUPS, true>(from, pitch, needed, weights, taps, sum);
  else weigh_taps<GROUPS, false>(from, pitch, needed, weights, taps, sum);
#pragma unroll
  for (int g = 0; g < GROUPS; g++)
    if (g < GROUPS - 1 || needed > 0)
      *(float4 *)(to + g * AT_ONCE) = make_float4(sum[g][0] * BYTE_SUM, sum[g][1] * BYTE_SUM, sum[g][2] * BYTE_SUM, sum[g][3] * BYTE_SUM);
}

// Four elements of row i of the resized image from element `first` of a row of `source` on, of any type and anywhere; a row outside of the
// image is the one at its edge.
template <bool KEPT>
__device__ inline float4 any_taps(const Row &row, const SRC *source, int i, uint32_t first, uint32_t needed, const float *weights, float weights_sum) {
  const Axis &axis = row.y;
  const uint32_t pitch = row.pitch, step = row.step;
  const int length = axis.length, taps = axis.taps, first_y = first_tap(axis, i);
  const bool few = KEPT || taps <= MAX_TAPS, words = IS_BYTE<SRC> && step == CH && few;
  const SRC *at = source + (uint64_t)clamp_to(first_y, length) * pitch;
  float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
  for (int k = 0; k < taps; k++) {
    if (words) {
      weigh(four_bytes((const uint8_t *)at + first, needed), weights[k], sum);
    } else {
      const float weight = few ? weights[k] : far_weight(axis, i, k, weights_sum);
#pragma unroll
      for (uint32_t e = 0; e < 4; e++) {
        if (e >= needed) break;
        const SRC value = at[(uint64_t)((first + e) / CH) * step + (first + e) % CH];
        sum[e] = fmaf(weight, convert<float>(value), sum[e]);
      }
    }
    if (first_y + k >= 0 && first_y + k < length - 1) at += pitch;
  }
  const float factor = words ? BYTE_SUM : 1.0f;
  return make_float4(sum[0] * factor, sum[1] * factor, sum[2] * factor, sum[3] * factor);
}

// Memory of a block.
struct Memory {
  float weights_x[MAX_TAPS * TILE_W], weights_y[TILE_H * MAX_TAPS];
  float sums_y[TILE_H];
  int firsts_y[TILE_H];
  // Rows of the tile, made along y.
  alignas(16) float columns[TILE_H][ROOM];
#ifdef PLANES
  // Rows of the source.
  uint32_t staged[STAGED_ROWS][STAGED_WORDS];
#endif
};

// Source pixels along an axis that a tile is made of: from the first to behind the last; none when these are no such. Whether all taps are in the image.
struct Span {
  int begin, end;
  bool inside;

  // Of the output pixels from `a` to `b`, or from `b` to `a`, of which those count that exist.
  __device__ Span(const Axis &axis, int a, int b) {
    const int low = max(min(a, b), 0), high = min(max(a, b), axis.size - 1);
    begin = end = 0, inside = false;
    if (low > high) return;
    const int at_low = made_first(axis, low), at_high = made_first(axis, high);
    const int first = min(at_low, at_high), last = max(at_low, at_high);
    begin = clamp_to(first, axis.length), end = clamp_to((int64_t)last + axis.taps - 1, axis.length) + 1;
    inside = is_inside(axis, first) && is_inside(axis, last);
  }
};

#ifdef PLANES
// Makes pixels of `rows` rows from `first` on, of columns [from, from + part). A thread has the same four columns of several rows.
__device__ inline void stage(const Planes &planes, int from, int part, int first, int rows, Memory &memory) {
  const int groups = (part + 3) / 4, at_once = THREADS / groups, own = (threadIdx.x + 0.5f) * (1.0f / groups), group = threadIdx.x - own * groups;
  if (own >= at_once) return;
  const uint32_t x = from + 4 * group;
  uint32_t *const to = memory.staged[0] + 3 * group;
  if (!planes.shares_chroma()) {
#pragma unroll 2
    for (int row = own; row < rows; row += at_once) planes.convert(planes.read(x, first + row), to + row * STAGED_WORDS);
    return;
  }
  const bool blue_first = planes.blue_first;
  const uint32_t stride = planes.stride[0], cb_stride = planes.stride[1], cr_stride = planes.stride[2];
  const uint8_t *const luma = planes.samples[0] + x, *const cb = planes.samples[1] + x / 2, *const cr = planes.samples[2] + x / 2;
  const int half = first / 2, halves = (first + rows + 1) / 2 - half, skipped = first % 2;
#pragma unroll 2
  for (int i = own; i < halves; i += at_once) {
    const uint32_t y = half + i;
    const uint32_t above = __ldg((const uint32_t *)(luma + 2 * y * stride)), below = __ldg((const uint32_t *)(luma + (2 * y + 1) * stride));
    const uint32_t b = __ldg((const uint16_t *)(cb + y * cb_stride)), r = __ldg((const uint16_t *)(cr + y * cr_stride));
    const Tint tints[2] = {Tint(b & 255, r & 255, blue_first), Tint(b >> 8, r >> 8, blue_first)};
    const int row = 2 * i - skipped;
    if (row >= 0) tint_four<true>(above, tints, to + row * STAGED_WORDS);
    if (row + 1 < rows) tint_four<true>(below, tints, to + (row + 1) * STAGED_WORDS);
  }
}

// Weighs the words of `GROUPS` of a row, TILE_W apart, for a row of the tile.
template <int GROUPS> __device__ inline void weigh_staged(const uint32_t *at, const float *weights, int taps, float *to) {
  float sum[GROUPS][4] = {};
#pragma unroll 4
  for (int k = 0; k < taps; k++, at += STAGED_WORDS) {
    const float weight = weights[k];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) weigh(at[g * TILE_W], weight, sum[g]);
  }
#pragma unroll
  for (int g = 0; g < GROUPS; g++)
    *(float4 *)(to + g * AT_ONCE) = make_float4(sum[g][0] * BYTE_SUM, sum[g][1] * BYTE_SUM, sum[g][2] * BYTE_SUM, sum[g][3] * BYTE_SUM);
}

// The pass along y of columns [from, from + part) of a picture's planes, as many of its rows at once as there is room for.
template <bool KEPT> __device__ inline void make_columns_of(const Planes &planes, const Axis &axis, int y, const Span &span, int from, int part, Memory &memory) {
  const int warp = threadIdx.x / TILE_W, lane = threadIdx.x % TILE_W;
  const int length = axis.length, taps = axis.taps, top = span.begin, bottom = span.end;
  if (KEPT && span.inside && bottom - top <= STAGED_ROWS) {
    stage(planes, from, part, top, bottom - top, memory);
    __syncthreads();
    for (int j = warp; j < TILE_H; j += WARPS) {
      const int first_y = memory.firsts_y[j];
      if (first_y == NONE) continue;
      const uint32_t *const at = memory.staged[first_y - top] + lane;
      const float *const weights = memory.weights_y + j * MAX_TAPS;
      float *const to = memory.columns[j] + 4 * lane;
      // A word that is not of the part is weighed and not used.
      if (part * CH > AT_ONCE) weigh_staged<2>(at, weights, taps, to);
      else weigh_staged<1>(at, weights, taps, to);
    }
    return;
  }
  for (int first = top; first < bottom; first += STAGED_ROWS) {
    const int rows = min(STAGED_ROWS, bottom - first);
    if (first > top) __syncthreads();
    stage(planes, from, part, first, rows, memory);
    __syncthreads();
    for (int j = warp; j < TILE_H; j += WARPS) {
      const int first_y = memory.firsts_y[j];
      if (first_y == NONE) continue;
      // Taps in these rows; those outside of the image are in the rows at its edges.
      const int k0 = first == top ? 0 : max(0, first - first_y), k1 = first + rows == bottom ? taps : min(taps, first + rows - first_y);
      if (k0 >= k1) continue;
      const bool inside = is_inside(axis, first_y);
      const uint32_t *const line = memory.staged[clamp_to((int64_t)first_y + k0, length) - first];
      const float *const weights = memory.weights_y + j * MAX_TAPS;
      for (int i = 4 * lane; i < part * CH; i += AT_ONCE) {
        float *const to = memory.columns[j] + i;
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (k0 > 0) sum[0] = to[0], sum[1] = to[1], sum[2] = to[2], sum[3] = to[3];
        const uint32_t *at = line + i / 4;
        if (KEPT && inside) {
#pragma unroll 4
          for (int k = k0; k < k1; k++, at += STAGED_WORDS) weigh(*at, weights[k], sum);
        } else {
#pragma unroll 1
          for (int k = k0; k < k1; k++) {
            const float weight = KEPT || taps <= MAX_TAPS ? weights[k] : far_weight(axis, y + j, k, memory.sums_y[j]) * BYTE_WEIGHT;
            weigh(*at, weight, sum);
            if (first_y + k >= 0 && first_y + k < length - 1) at += STAGED_WORDS;
          }
        }
        const float factor = k1 == taps ? BYTE_SUM : 1.0f;
        *(float4 *)to = make_float4(sum[0] * factor, sum[1] * factor, sum[2] * factor, sum[3] * factor);
      }
    }
  }
}
#endif

// A resized value as it is when the image is of MID: bytes without a conversion there and back, which takes as long as eight sums.
template <class T> struct Rounded {
  __device__ static float of(float v) { return convert<float>(convert<T>(v)); }
};
template <> struct Rounded<uint8_t> {
  // To a float so large that it has no digits behind the point; halves to even.
  __device__ static float of(float v) { return (fminf(fmaxf(v, 0.0f), 255.0f) + 0x1.8p23f) - 0x1.8p23f; }
};

// Makes tiles one below the other. KEPT: neither axis has more than MAX_TAPS.
template <bool KEPT> __device__ inline void make_tiles(const Row &row, int tiles, Memory &memory) {
#ifdef NORMALIZE
  const int out_h = row.window_h, out_w = row.window_w;
#else
  const int out_h = row.y.size, out_w = row.x.size;
#endif
  const int tiles_x = (out_w + TILE_W - 1) / TILE_W;
  const int first_row = blockIdx.x / tiles_x * tiles * TILE_H, last_row = min(out_h, first_row + tiles * TILE_H);
  if (first_row >= out_h) return;
  const int warp = threadIdx.x / TILE_W, lane = threadIdx.x % TILE_W;
  const int x = blockIdx.x % tiles_x * TILE_W + lane;

  // Where the tiles are in the resized image: their first column and this thread's, of those that exist.
#ifdef NORMALIZE
  const int direction = row.mirror ? -1 : 1, left = row.anchor_x + (row.mirror ? out_w - 1 - (x - lane) : x - lane);
#else
  const int direction = 1, left = x - lane;
#endif
  const int across = min(TILE_W, out_w - (x - lane)), rx = left + direction * lane;

  const Axis &ax = row.x, &ay = row.y;
  const uint32_t pitch = row.pitch, step = row.step;
  const bool few_x = KEPT || ax.taps <= MAX_TAPS, few_y = KEPT || ay.taps <= MAX_TAPS;
  // Whether the pass along y takes its source in words.
  const bool words = IS_BYTE<SRC> && step == CH && few_y;

  // A thread has a column of the tiles, and keeps some weights of it and of a row for all. What it needs for that is asked for at once, as it takes long.
  float *const weights_x = memory.weights_x + lane, *const weights_y = memory.weights_y + threadIdx.x % TILE_H * MAX_TAPS;
  const int row_tap = threadIdx.x / TILE_H;
  const int column_taps = few_x ? ax.taps : 0, row_taps = few_y ? ay.taps : 0;
  const bool exists_x = rx >= 0 && rx < ax.size && lane < across;
  const int column = clamp_to(rx, ax.size), made_x = made_first(ax, column), first_x = exists_x ? made_x : NONE;
  const float weight_x = warp < column_taps ? made_weight(ax, column, warp) : 0.0f;
  const float more_x = warp + WARPS < column_taps ? made_weight(ax, column, warp + WARPS) : 0.0f;
  const Span span_x(ax, left, left + direction * (across - 1));
  const int begin = span_x.begin / ALIGNED * ALIGNED, end = span_x.end;
  const SRC *const src = row.src;
#ifdef PLANES
  const bool in_planes = row.planes != nullptr && row.planes->live;
#endif
#ifdef NORMALIZE
  const int channels = row.channels;
  const bool planar = row.planar;
  const uint64_t next = planar ? (uint64_t)out_h * out_w : 1, line = planar ? out_w : (uint64_t)out_w * channels;
  DST *to = row.dst + (first_row + warp * ROWS) * line + (planar ? x : x * channels);
#else
  const uint64_t line = (uint64_t)out_w * row.step;
  DST *to = row.dst + (first_row + warp * ROWS) * line + (uint64_t)x * row.step;
#endif

#pragma unroll 1
  for (int tile_y = first_row; tile_y < last_row; tile_y += TILE_H, to += TILE_H * line) {
    const int down = min(TILE_H, out_h - tile_y);
#ifdef NORMALIZE
    const int ry = tile_y + row.anchor_y;
#else
    const int ry = tile_y;
#endif
    const int own_y = ry + threadIdx.x % TILE_H, line_y = clamp_to(own_y, ay.size), made_y = made_first(ay, line_y);
    const bool exists_y = own_y >= 0 && own_y < min(ay.size, ry + down);
    const float weight_y = row_tap < row_taps ? made_weight(ay, line_y, row_tap) : 0.0f, unit = words ? BYTE_WEIGHT : 1.0f;
#ifdef PLANES
    const Span span_y(ay, ry, ry + down - 1);
#endif
    if (tile_y == first_row) {
      weights_x[warp * TILE_W] = weight_x, weights_x[(warp + WARPS) * TILE_W] = more_x;
#pragma unroll 1
      for (int k = warp + 2 * WARPS; k < column_taps; k += WARPS) weights_x[k * TILE_W] = made_weight(ax, column, k);
    } else {
      __syncthreads();
    }
    weights_y[row_tap] = weight_y * unit;
#pragma unroll 1
    for (int k = row_tap + THREADS / TILE_H; k < row_taps; k += THREADS / TILE_H) weights_y[k] = made_weight(ay, line_y, k) * unit;
    if (row_tap == 0) memory.firsts_y[threadIdx.x] = exists_y ? made_y : NONE;
    if (!KEPT && row_tap == 0) memory.sums_y[threadIdx.x] = made_sum(ay, line_y);
#ifdef PLANES
    // Pixels are made first, and a barrier stands behind them.
    if (!in_planes)
#endif
      __syncthreads();

    float acc[ROWS][CH];
#pragma unroll
    for (int j = 0; j < ROWS; j++)
      for (int c = 0; c < CH; c++) acc[j][c] = 0.0f;

    const auto add = [&](float weight, const float *column) {
#pragma unroll
      for (int j = 0; j < ROWS; j++)
#pragma unroll
        for (int c = 0; c < CH; c++) acc[j][c] = fmaf(weight, column[j * ROOM + c], acc[j][c]);
    };

    int k = 0;
    for (int from = begin; from < end; from += PART) {
      const int part = min(PART, end - from), elements = part * CH;
      const SRC *const source = src + (uint64_t)from * step;
      const bool aligned = (((uint64_t)source | pitch) & 3) == 0;
#ifdef PLANES
      if (in_planes) make_columns_of<KEPT>(*row.planes, ay, ry, span_y, from, part, memory);
      else
#endif
      for (int j = warp; j < TILE_H; j += WARPS) {
        const int first_y = memory.firsts_y[j];
        if (first_y == NONE) continue;
        const bool inside = is_inside(ay, first_y);
        const float *const weights = memory.weights_y + j * MAX_TAPS;
        float *const to = memory.columns[j];
        if (words && inside) {
          const uint8_t *const line = (const uint8_t *)source + (uint64_t)first_y * pitch;
          // A part has at most two groups.
          const int i = 4 * lane;
          if (elements > AT_ONCE) make_columns<2>(line + i, pitch, elements - i, weights, ay.taps, aligned, to + i);
          else if (i < elements) make_columns<1>(line + i, pitch, elements - i, weights, ay.taps, aligned, to + i);
        } else {
          for (int i = 4 * lane; i < elements; i += AT_ONCE)
            *(float4 *)(to + i) = any_taps<KEPT>(row, source, ry + j, i, min(4, elements - i), weights, memory.sums_y[j]);
        }
      }
      __syncthreads();
      const float *const mine = memory.columns[warp * ROWS];
      if (first_x == NONE) {
        // No such column.
      } else if (few_x && is_inside(ax, first_x)) {
        const float *column = mine + (first_x + k - from) * CH;
#pragma unroll 1
        for (const int last = min(ax.taps, from + part - first_x); k < last; k++, column += CH) add(weights_x[k * TILE_W], column);
      } else {
        // The taps of this part: coordinates outside of the image repeat its edge.
        const float sum_x = KEPT ? 1.0f : made_sum(ax, column);
#pragma unroll 1
        for (; k < ax.taps; k++) {
          const int tap = clamp_to((int64_t)first_x + k, ax.length) - from;
          if (tap >= part) break;
          add(few_x ? weights_x[k * TILE_W] : far_weight(row.x, rx, k, sum_x), mine + tap * CH);
        }
      }
      if (from + PART < end) __syncthreads();
    }

    DST *own = to;
#pragma unroll
    for (int j = 0; j < ROWS; j++, own += line) {
      if (x >= out_w || tile_y + warp * ROWS + j >= out_h) break;
#ifdef NORMALIZE
      const bool inside = first_x != NONE && memory.firsts_y[warp * ROWS + j] != NONE;
      if (inside) {
#pragma unroll
        for (int c = 0; c < CH; c++) own[c * next] = convert<DST>(fmaf(Rounded<MID>::of(acc[j][c]), row.factor[c], row.bias[c]));
      }
#pragma unroll 1
      for (int c = inside ? CH : 0; c < channels; c++) own[c * next] = fill_value<DST>(row.fill[c]);
#else
#pragma unroll
      for (int c = 0; c < CH; c++) own[c] = convert<DST>(convert<MID>(acc[j][c]));
#endif
    }
  }
}

// Apart, so that its calls and registers are not in the way of the other.
__device__ __noinline__ void make_far_tiles(const Row &row, int tiles, Memory &memory) { make_tiles<false>(row, tiles, memory); }

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) resample(const Row *rows, uint32_t count, Params p) {
  __shared__ Memory memory;
  // Here, as there are too few registers for all of it.
  __shared__ Row row;
  static_assert(sizeof(Row) / 4 <= THREADS, "a thread copies a word");
  if (threadIdx.x < sizeof(Row) / 4) ((uint32_t *)&row)[threadIdx.x] = ((const uint32_t *)(rows + blockIdx.y))[threadIdx.x];
  __syncthreads();
  if (row.x.taps <= MAX_TAPS && row.y.taps <= MAX_TAPS) make_tiles<true>(row, p.tiles, memory);
  else make_far_tiles(row, p.tiles, memory);
}
