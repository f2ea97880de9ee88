// Resize of images, antialiased and separable; with NORMALIZE also crop, mirror and normalise what was resized.
//
//   SRC   type of the source          MID   type of the resized image
//   DST   type of what is written     CH    channels that a thread computes at once
//   PLANES  sources may be components of JPEGs (planes.cuh), which become pixels in shared memory
//
// A block makes a tile of the output: first along y, so that memory is read in whole words and every byte by neighbours, then
// along x from shared memory. Tiles that are made of more columns than there is room for take them one part after the other.
// Weights are made here, in float32 as the CPU makes them (src/cpu/resample/filter.rs), once for a tile.
//
//      source          y: a warp a row of the tile, a lane four elements        x: a lane a column, a warp ROWS rows
//      ........   ->   columns[j][i] = sum_k wy[j][k] * source[y(j) + k][i] ->  acc[j] += wx[k] * columns[j][x + k]
#include "planes.cuh"
#include "resample_axis.cuh"

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
// Words of each component that a thread asks for before it looks at the first.
constexpr int READ_AHEAD = 2;
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
CHECK_LAYOUT(Row, NoParams);

template <class T> constexpr bool IS_BYTE = false;
template <> constexpr bool IS_BYTE<uint8_t> = true;

// The first tap of a row or a column of the tile that does not exist.
constexpr int NONE = 2147483647;

// The four bytes at `from`, of which `count` are needed: memory is read in words, of which each has a byte that is needed.
__device__ inline uint32_t four_bytes(const uint8_t *from, uint32_t count) {
  const uint32_t misaligned = (uint32_t)(uint64_t)from & 3;
  const uint32_t *words = (const uint32_t *)(from - misaligned);
  const uint32_t low = __ldg(words), high = misaligned + count > 4 ? __ldg(words + 1) : 0;
  return __funnelshift_r(low, high, 8 * misaligned);
}

// Byte i of a word times 2^-133, by its place among the bits of a float: so nothing converts it. Weights of bytes are as much larger
// as floats allow and sums are made larger by the rest, which changes no digit of them.
__device__ inline float tiny_byte(uint32_t word, int i) { return __uint_as_float(__byte_perm(word, 0, 0x4044u + 0x100u * i)); }
constexpr float BYTE_WEIGHT = 0x1p100f, BYTE_SUM = 0x1p33f;

// Adds four bytes, weighed.
__device__ inline void weigh(uint32_t word, float weight, float *sum) {
#pragma unroll
  for (int i = 0; i < 4; i++) sum[i] = fmaf(weight, tiny_byte(word, i), sum[i]);
}

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
  float sums_x[TILE_W], sums_y[TILE_H];
  int firsts_x[TILE_W], firsts_y[TILE_H];
  // Columns and rows of the source that the tile is made of.
  int begin, end, top, bottom;
  // Rows of the tile, made along y.
  alignas(16) float columns[TILE_H][ROOM];
#ifdef PLANES
  // Rows of the source.
  uint32_t staged[STAGED_ROWS][STAGED_WORDS];
#endif
};

#ifdef PLANES
// The pass along y of columns [from, from + part) of a picture's planes, as many of its rows at once as there is room for.
template <bool KEPT> __device__ inline void make_columns_of(const Planes planes, const Axis &axis, int y, int from, int part, Memory &memory) {
  const int warp = threadIdx.x / TILE_W, lane = threadIdx.x % TILE_W, groups = (part + 3) / 4;
  const int length = axis.length, taps = axis.taps, top = memory.top, bottom = memory.bottom;
  const float inverse = 1.0f / groups;
  for (int first = top; first < bottom; first += STAGED_ROWS) {
    const int rows = min(STAGED_ROWS, bottom - first);
    if (first > top) __syncthreads();
    for (int i = threadIdx.x, fours = rows * groups; i < fours; i += READ_AHEAD * THREADS) {
      Fours read[READ_AHEAD];
      int places[READ_AHEAD];
#pragma unroll
      for (int n = 0; n < READ_AHEAD; n++) {
        const int at = min(i + n * THREADS, fours - 1), row = (at + 0.5f) * inverse, group = at - row * groups;
        places[n] = row * STAGED_WORDS + 3 * group;
        read[n] = planes.read(from + 4 * group, first + row);
      }
#pragma unroll
      for (int n = 0; n < READ_AHEAD; n++)
        if (i + n * THREADS < fours) planes.convert(read[n], &memory.staged[0][places[n]]);
    }
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

// Makes a tile. KEPT: neither axis has more than MAX_TAPS.
template <bool KEPT> __device__ inline void make_tile(const Row &row, Memory &memory) {
  DST *const dst = row.dst;
#ifdef NORMALIZE
  const int out_h = row.window_h, out_w = row.window_w;
#else
  const int out_h = row.y.size, out_w = row.x.size;
#endif
  const int tiles_x = (out_w + TILE_W - 1) / TILE_W;
  const int tile_y = blockIdx.x / tiles_x * TILE_H;
  if (tile_y >= out_h) return;
  const int warp = threadIdx.x / TILE_W, lane = threadIdx.x % TILE_W;
  const int x = blockIdx.x % tiles_x * TILE_W + lane;

  // Where the tile is in the resized image.
#ifdef NORMALIZE
  const int rx = row.anchor_x + (row.mirror ? out_w - 1 - x : x);
  const int ry = tile_y + row.anchor_y;
#else
  const int rx = x, ry = tile_y;
#endif

  float *const weights_x = memory.weights_x, *const weights_y = memory.weights_y;
  float *const sums_x = memory.sums_x, *const sums_y = memory.sums_y;
  int *const firsts_x = memory.firsts_x, *const firsts_y = memory.firsts_y;
  const Axis ax = row.x, ay = row.y;
  const uint32_t pitch = row.pitch, step = row.step;
  const bool few_x = KEPT || ax.taps <= MAX_TAPS, few_y = KEPT || ay.taps <= MAX_TAPS;
  // Whether the pass along y takes its source in words.
  const bool words = IS_BYTE<SRC> && step == CH && few_y;

  if (warp < 2) {
    const bool along_x = warp == 0;
    const Axis &axis = along_x ? row.x : row.y;
    const int i = along_x ? rx : ry + lane;
    const bool exists = i >= 0 && i < axis.size && (along_x ? x < out_w : lane < TILE_H && tile_y + lane < out_h);
    const int first = exists ? first_tap(axis, i) : NONE;
    if (along_x || lane < TILE_H) (along_x ? firsts_x : firsts_y)[lane] = first;
    int low = NONE, high = 0;
    if (exists) {
      float *weights = along_x ? weights_x + lane : weights_y + lane * MAX_TAPS;
      (along_x ? sums_x : sums_y)[lane] = make_weights(axis, i, weights, along_x ? TILE_W : 1, words && !along_x ? BYTE_WEIGHT : 1.0f);
      low = clamp_to(first, axis.length);
      high = clamp_to((int64_t)first + axis.taps - 1, axis.length) + 1;
    }
    for (int distance = TILE_W / 2; distance > 0; distance /= 2) {
      low = min(low, __shfl_xor_sync(~0u, low, distance));
      high = max(high, __shfl_xor_sync(~0u, high, distance));
    }
    if (lane == 0) {
      if (along_x) memory.begin = low / ALIGNED * ALIGNED, memory.end = high;
      else memory.top = low, memory.bottom = high;
    }
  }
  __syncthreads();

  const int first_x = firsts_x[lane];
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

  const SRC *const src = row.src;
  int k = 0;
#ifdef PLANES
  const bool in_planes = row.planes != nullptr && row.planes->live;
#endif
  const int begin = memory.begin, end = memory.end;
  for (int from = begin; from < end; from += PART) {
    const int part = min(PART, end - from), elements = part * CH;
    const SRC *const source = src + (uint64_t)from * step;
    const bool aligned = (((uint64_t)source | pitch) & 3) == 0;
#ifdef PLANES
    if (in_planes) make_columns_of<KEPT>(*row.planes, ay, ry, from, part, memory);
    else
#endif
    for (int j = warp; j < TILE_H; j += WARPS) {
      const int first_y = firsts_y[j];
      if (first_y == NONE) continue;
      const bool inside = is_inside(ay, first_y);
      const float *const weights = weights_y + j * MAX_TAPS;
      float *const to = memory.columns[j];
      if (words && inside) {
        const uint8_t *const line = (const uint8_t *)source + (uint64_t)first_y * pitch;
        // A part has at most two groups.
        const int i = 4 * lane;
        if (elements > AT_ONCE) make_columns<2>(line + i, pitch, elements - i, weights, ay.taps, aligned, to + i);
        else if (i < elements) make_columns<1>(line + i, pitch, elements - i, weights, ay.taps, aligned, to + i);
      } else {
        for (int i = 4 * lane; i < elements; i += AT_ONCE)
          *(float4 *)(to + i) = any_taps<KEPT>(row, source, ry + j, i, min(4, elements - i), weights, sums_y[j]);
      }
    }
    __syncthreads();
    const float *const mine = memory.columns[warp * ROWS];
    if (first_x == NONE) {
      // No such column.
    } else if (few_x && is_inside(ax, first_x)) {
      const float *column = mine + (first_x + k - from) * CH;
#pragma unroll 1
      for (const int last = min(ax.taps, from + part - first_x); k < last; k++, column += CH) add(weights_x[k * TILE_W + lane], column);
    } else {
      // The taps of this part: coordinates outside of the image repeat its edge.
#pragma unroll 1
      for (; k < ax.taps; k++) {
        const int column = clamp_to((int64_t)first_x + k, ax.length) - from;
        if (column >= part) break;
        add(few_x ? weights_x[k * TILE_W + lane] : far_weight(row.x, rx, k, sums_x[lane]), mine + column * CH);
      }
    }
    if (from + PART < end) __syncthreads();
  }

  if (x >= out_w) return;
#ifdef NORMALIZE
  const uint64_t plane = (uint64_t)out_h * out_w;
  const bool planar = row.planar;
  const int channels = row.channels;
  float factor[CH], bias[CH];
#pragma unroll
  for (int c = 0; c < CH; c++) factor[c] = row.factor[c], bias[c] = row.bias[c];
#endif
#pragma unroll
  for (int j = 0; j < ROWS; j++) {
    const int y = tile_y + warp * ROWS + j;
    if (y >= out_h) break;
#ifdef NORMALIZE
    const bool inside = first_x != NONE && firsts_y[warp * ROWS + j] != NONE;
    const uint64_t pixel = (uint64_t)y * out_w + x, next = planar ? plane : 1;
    DST *to = dst + (planar ? pixel : pixel * channels);
#pragma unroll
    for (int c = 0; c < CH; c++) {
      const float resized = convert<float>(convert<MID>(acc[j][c]));
      const float normalized = fmaf(resized, factor[c], bias[c]);
      to[c * next] = inside ? convert<DST>(normalized) : fill_value<DST>(row.fill[c]);
    }
#pragma unroll 1
    for (int c = CH; c < channels; c++) to[c * next] = fill_value<DST>(row.fill[c]);
#else
    DST *to = dst + ((uint64_t)y * out_w + x) * row.step;
#pragma unroll
    for (int c = 0; c < CH; c++) to[c] = convert<DST>(convert<MID>(acc[j][c]));
#endif
  }
}

// Apart, so that its calls and registers are not in the way of the other.
__device__ __noinline__ void make_far_tile(const Row &row, Memory &memory) { make_tile<false>(row, memory); }

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) resample(const Row *rows, uint32_t count, NoParams) {
  __shared__ Memory memory;
  const Row &row = rows[blockIdx.y];
  if (row.x.taps <= MAX_TAPS && row.y.taps <= MAX_TAPS) make_tile<true>(row, memory);
  else make_far_tile(row, memory);
}
