// Resize of images, antialiased and separable; with NORMALIZE also crop, mirror and normalise what was resized.
//
//   SRC   type of the source          MID   type of the resized image
//   DST   type of what is written     CH    channels that a thread computes at once
//   PLANES  sources may be components of JPEGs (planes.cuh), which become pixels in shared memory
//   MANY_ROWS  tiles may be made of more rows of bytes than are multiplied at once
//
// A block makes tiles of the output, one after the other: first along y, then along x from shared memory. Tiles that
// are made of more columns than there is room for take them one part after the other. Bytes go through the tensor cores
// (resample_bytes.cuh). Weights are made before (resample_weights), in float32 as the CPU makes them
// (src/cpu/resample/filter.rs).
//
//      source          y: a warp 32 elements of bytes, else a row     x: a lane a column, a warp ROWS rows
//      ........   ->   columns[i][j] = sum_k wy[j][k] * source[y(j) + k][i]   ->   acc[j] += wx[k] * columns[x + k][j]
#include "resample_bytes.cuh"
#include "resample_planes.cuh"

constexpr int WARPS = THREADS / TILE_W;
// Rows of the tile that a thread has in the pass along x.
constexpr int ROWS = TILE_H / WARPS;
// Pixels of a row of the tile that there is room for between the passes.
constexpr int PART = ROOM / CH;
static_assert(SLICE % CH == 0 && PART % 4 == 0, "slices are whole pixels, parts begin with whole words");
// Columns are counted from a multiple of four, so that words of an aligned image stay whole.
constexpr int ALIGNED = 4;
// Blocks on a multiprocessor: as many as its memory and its registers let be there.
#ifdef MANY_ROWS
constexpr int BLOCKS = 4;
#elif defined(PLANES)
constexpr int BLOCKS = 5;
#else
constexpr int BLOCKS = 6;
#endif
// Taps along x whose weights are kept in shared memory.
constexpr int MAX_TAPS = 24;

#ifdef NORMALIZE
typedef Normalized Row;
#else
typedef Resample Row;
#endif

template <class T> constexpr bool IS_BYTE = false;
template <> constexpr bool IS_BYTE<uint8_t> = true;

// The first tap of a column of the tile that does not exist.
constexpr int NONE = 2147483647;

// Memory of a block.
struct Memory {
  // Of each column of the tiles.
  float weights_x[MAX_TAPS][TILE_W];
  int firsts_x[TILE_W];
  // Of each row of the tiles that is in the image, or is the one at its edge.
  int firsts_y[MAX_TILES * TILE_H];
  RowWeights weights_y;
  // Elements of a tile's rows, made along y.
  alignas(16) float columns[ROOM * COLUMN];
#ifdef PLANES
  // What they are made of.
  alignas(16) uint32_t staged[ROWS_AT_ONCE / 4 * STAGED];
  Planes planes;
#endif
};

// The pass along y of any type, anywhere, for row i of the resized image, which is row j of the tile: `elements` of a
// row of `source`. A row outside of the image is the one at its edge.
__device__ inline void any_columns(const Row &row, const SRC *source, int i, int j, int elements, float *columns) {
  constexpr int AT_ONCE = 4;
  const Axis &axis = row.y;
  const uint32_t pitch = row.pitch, step = row.step;
  const int first = made_first(axis, i), lane = threadIdx.x % TILE_W;
#pragma unroll 1
  for (int from = lane; from < elements; from += AT_ONCE * TILE_W) {
    const SRC *at = source + (uint64_t)clamp_to(first, axis.length) * pitch;
    uint64_t place[AT_ONCE];
    float sum[AT_ONCE];
#pragma unroll
    for (int e = 0; e < AT_ONCE; e++) {
      // What is beyond the last is the last once more.
      const uint32_t element = min(from + e * TILE_W, elements - 1);
      place[e] = (uint64_t)(element / CH) * step + element % CH, sum[e] = 0.0f;
    }
#pragma unroll 1
    for (int k = 0; k < axis.taps; k++) {
      const float weight = made_weight(axis, i, k);
#pragma unroll
      for (int e = 0; e < AT_ONCE; e++) sum[e] = fmaf(weight, convert<float>(at[place[e]]), sum[e]);
      if (first + k >= 0 && first + k < axis.length - 1) at += pitch;
    }
#pragma unroll
    for (int e = 0; e < AT_ONCE; e++)
      if (from + e * TILE_W < elements) columns[(from + e * TILE_W) * COLUMN + j] = sum[e];
  }
}

// Source pixels along an axis that a tile is made of: from the first to behind the last; none when these are no such.
struct Span {
  int begin, end;

  // Of the output pixels from `a` to `b`, or from `b` to `a`, of which those count that exist.
  __device__ Span(const Axis &axis, int a, int b) {
    const int low = max(min(a, b), 0), high = min(max(a, b), axis.size - 1);
    begin = end = 0;
    if (low > high) return;
    const int at_low = made_first(axis, low), at_high = made_first(axis, high);
    const int first = min(at_low, at_high), last = max(at_low, at_high);
    begin = clamp_to(first, axis.length), end = clamp_to((int64_t)last + axis.taps - 1, axis.length) + 1;
  }
};

// The word of a slice that a thread takes from rows of the source, four of its elements; the last two threads take that
// of the one before.
__device__ inline int own_word(int thread) { return min(thread / 32 * 8 + thread % 32 / 4, SLICE_WORDS - 1); }

// Two of these elements of a slice, of all rows of the tile.
__device__ inline void store_half(int thread, int slice, int half, const RowSums &sums, Memory &memory) {
  if (thread / 32 * 8 + thread % 32 / 4 < SLICE_WORDS) sums.store(thread, memory.columns + (slice * SLICE + 4 * own_word(thread) + 2 * half) * COLUMN);
}

// Words of both slices of this thread in ROWS_AT_ONCE rows from `first` on, the last of which is before `bottom`.
__device__ inline void take_words(int thread, const Row &row, int first, int bottom, int from, int part, uint32_t words[2][8]) {
  const uint32_t pitch = row.pitch;
  const uint8_t *const source = (const uint8_t *)row.src + (uint64_t)from * CH;
  // Where all words that threads read are in rows of the source.
  if ((((uint64_t)source | pitch) & 3) == 0 && (uint64_t)from * CH + ROOM <= pitch) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
      const uint8_t *const at = source + 4 * own_word(thread) + (uint64_t)(uint32_t)min(first + own_row(thread, k), bottom - 1) * pitch;
      words[0][k] = __ldg((const uint32_t *)at), words[1][k] = __ldg((const uint32_t *)(at + SLICE));
    }
    return;
  }
#pragma unroll
  for (int slice = 0; slice < 2; slice++) {
    // Behind the last that is needed are that one.
    const int elements = part * CH, byte = max(0, min(slice * SLICE + 4 * own_word(thread), (elements - 1) & ~3)), needed = min(4, elements - byte);
#pragma unroll
    for (int k = 0; k < 8; k++)
      words[slice][k] = four_bytes(source + byte + (uint64_t)(uint32_t)min(first + own_row(thread, k), bottom - 1) * pitch, needed);
  }
}

// The pass along y of bytes, of rows [top, bottom) and columns [from, from + part). MANY_ROWS: of any number of rows,
// else of at most ROWS_AT_ONCE.
template <bool IN_PLANES>
__device__ inline void byte_columns(const Row &row, int ry, const int *firsts, int top, int bottom, int from, int part, Memory &memory) {
#ifdef MANY_ROWS
  RowSums sums[4];
#pragma unroll 1
  for (int first = top; first < bottom; first += ROWS_AT_ONCE) {
    if (first > top) __syncthreads();
#else
  const int first = top;
  {
#endif
    const int thread = thread_anew();
    uint32_t words[2][8];
#ifdef PLANES
    if constexpr (IN_PLANES) stage(thread, memory.planes, from, part, first, min(ROWS_AT_ONCE, bottom - first), memory.staged);
    else
#endif
      take_words(thread, row, first, bottom, from, part, words);
    place_weights(thread, OwnRow(row.y, ry + thread % TILE_H, firsts[thread % TILE_H]), first, memory.weights_y);
    __syncthreads();
    const OwnWeights weights(thread, memory.weights_y);
#pragma unroll
    for (int slice = 0; slice < 2; slice++) {
      RowElements elements;
      if constexpr (!IN_PLANES) elements.take(words[slice]);
#pragma unroll
      for (int half = 0; half < 2; half++) {
#ifdef MANY_ROWS
        RowSums &own = sums[2 * slice + half];
#else
        RowSums own;
#endif
#pragma unroll
        for (int step = 0; step < 2; step++) {
#ifdef PLANES
          if constexpr (IN_PLANES) elements.of[step][half] = staged_rows(thread, memory.staged, step, slice * SLICE + 4 * own_word(thread) + 2 * half);
#endif
          own.add(elements.of[step][half], weights.of[step]);
        }
#ifndef MANY_ROWS
        store_half(thread, slice, half, own, memory);
#endif
      }
    }
  }
#ifdef MANY_ROWS
  const int thread = thread_anew();
#pragma unroll
  for (int half = 0; half < 4; half++) store_half(thread, half / 2, half % 2, sums[half], memory);
#endif
}

// A resized value as it is when the image is of MID: bytes without a conversion there and back, which takes as long as
// eight sums.
template <class T> struct Rounded {
  __device__ static float of(float v) { return convert<float>(convert<T>(v)); }
};
template <> struct Rounded<uint8_t> {
  // To a float so large that it has no digits behind the point; halves to even.
  __device__ static float of(float v) { return (fminf(fmaxf(v, 0.0f), 255.0f) + 0x1.8p23f) - 0x1.8p23f; }
};

// What a thread makes: a column of ROWS rows of the tile.
struct Resized {
  float of[ROWS][CH] = {};

  __device__ void add(float weight, const float *column) {
#pragma unroll
    for (int c = 0; c < CH; c++) {
      const float4 v = *(const float4 *)(column + c * COLUMN);
      of[0][c] = fmaf(weight, v.x, of[0][c]), of[1][c] = fmaf(weight, v.y, of[1][c]);
      of[2][c] = fmaf(weight, v.z, of[2][c]), of[3][c] = fmaf(weight, v.w, of[3][c]);
    }
  }

  // Adds the taps that are in columns [from, from + part), of which those from `begin` on are the tile's.
  __device__ void add_part(const Axis &axis, int column, float unit, int begin, int from, int part, const Memory &memory) {
    const int lane = threadIdx.x % TILE_W, first = memory.firsts_x[lane];
    if (first == NONE) return;
    const float *const mine = memory.columns + threadIdx.x / TILE_W * ROWS;
    int k = from == begin ? 0 : max(0, from - first);
    if (axis.taps <= MAX_TAPS && (axis.is_merged || is_inside(axis, first))) {
      const float *at = mine + (first + k - from) * (CH * COLUMN), *weight = &memory.weights_x[k][lane];
#pragma unroll 1
      for (const int last = min(axis.taps, from + part - first); k < last; k++, at += CH * COLUMN, weight += TILE_W) add(*weight, at);
      return;
    }
    // Coordinates outside of the image repeat its edge.
#pragma unroll 1
    for (; k < axis.taps; k++) {
      const int tap = clamp_to((int64_t)first + k, axis.length) - from;
      if (tap >= part) return;
      add(axis.taps <= MAX_TAPS ? memory.weights_x[k][lane] : made_weight(axis, column, k) * unit, mine + tap * (CH * COLUMN));
    }
  }

  // Stores it in column x of the output, from row y on, as far as that is there.
  __device__ void store(const Row &row, int x, int y, const Memory &memory) const {
#ifdef NORMALIZE
    const int out_h = row.window[0], out_w = row.window[1], channels = row.channels, resized_y = y + row.anchor[0];
    const bool planar = row.planar, exists = memory.firsts_x[threadIdx.x % TILE_W] != NONE;
    const uint64_t next = planar ? (uint64_t)out_h * out_w : 1, line = planar ? out_w : (uint64_t)out_w * channels;
    DST *const to = (DST *)row.dst + y * line + (planar ? x : (uint64_t)x * channels);
    if (exists && channels == CH && resized_y >= 0 && resized_y + ROWS <= row.y.size && y + ROWS <= out_h) {
#pragma unroll
      for (int c = 0; c < CH; c++) {
        DST *own = to + c * next;
        const float factor = row.factor[c], bias = row.bias[c];
#pragma unroll
        for (int j = 0; j < ROWS; j++, own += line) *own = convert<DST>(fmaf(Rounded<MID>::of(of[j][c]), factor, bias));
      }
      return;
    }
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
      if (y + j >= out_h) return;
      DST *const own = to + j * line;
      const bool inside = exists && resized_y + j >= 0 && resized_y + j < row.y.size;
#pragma unroll
      for (int c = 0; c < CH; c++)
        if (inside) own[c * next] = convert<DST>(fmaf(Rounded<MID>::of(of[j][c]), row.factor[c], row.bias[c]));
#pragma unroll 1
      for (int c = inside ? CH : 0; c < channels; c++) own[c * next] = fill_value<DST>(row.fill[c]);
    }
#else
    const uint64_t line = (uint64_t)row.x.size * row.step;
    DST *own = (DST *)row.dst + y * line + (uint64_t)x * row.step;
#pragma unroll
    for (int j = 0; j < ROWS; j++, own += line) {
      if (y + j >= row.y.size) return;
#pragma unroll
      for (int c = 0; c < CH; c++) own[c] = convert<DST>(convert<MID>(of[j][c]));
    }
#endif
  }
};

// Makes tiles one below the other.
__device__ inline void make_tiles(const Row &row, int tiles, Memory &memory) {
#ifdef NORMALIZE
  const int out_h = row.window[0], out_w = row.window[1], anchor_y = row.anchor[0];
#else
  const int out_h = row.y.size, out_w = row.x.size, anchor_y = 0;
#endif
  const int tiles_x = (out_w + TILE_W - 1) / TILE_W;
  const int first_row = blockIdx.x / tiles_x * tiles * TILE_H, last_row = min(out_h, first_row + tiles * TILE_H);
  if (first_row >= out_h) return;
  const int warp = threadIdx.x / TILE_W, lane = threadIdx.x % TILE_W, left_x = blockIdx.x % tiles_x * TILE_W, x = left_x + lane;
  const Axis &ax = row.x, &ay = row.y;
  const bool are_bytes = IS_BYTE<SRC> && ay.is_split;

  // Where the tiles are in the resized image: their first column and this thread's, of those that exist.
#ifdef NORMALIZE
  const int direction = row.mirror ? -1 : 1, left = row.anchor[1] + (row.mirror ? out_w - 1 - left_x : left_x);
#else
  const int direction = 1, left = left_x;
#endif
  const int across = min(TILE_W, out_w - left_x), rx = left + direction * lane, column = clamp_to(rx, ax.size);
  if (warp == 0) memory.firsts_x[lane] = column == rx && lane < across ? made_first(ax, column) : NONE;
  else if (warp < 3) memory.firsts_y[threadIdx.x - TILE_W] = made_first(ay, clamp_to(first_row + anchor_y + (int)threadIdx.x - TILE_W, ay.size));
  const float unit = are_bytes ? BYTE_UNIT : 1.0f;
#pragma unroll 2
  for (int k = warp; k < min(ax.taps, MAX_TAPS); k += WARPS) memory.weights_x[k][lane] = made_weight(ax, column, k) * unit;
  const Span span_x(ax, left, left + direction * (across - 1));
  const int end = span_x.end, last_part = max(0, ax.length - PART) / ALIGNED * ALIGNED;
  // A part at the end of rows begins sooner, if it is the only one: then all of it is in them.
  const int begin = end - last_part <= PART ? min(span_x.begin / ALIGNED * ALIGNED, last_part) : span_x.begin / ALIGNED * ALIGNED;
#ifdef PLANES
  const bool in_planes = row.planes != nullptr;
  if (in_planes && threadIdx.x < sizeof(Planes) / 4) ((uint32_t *)&memory.planes)[threadIdx.x] = ((const uint32_t *)row.planes)[threadIdx.x];
#else
  const bool in_planes = false;
#endif
  __syncthreads();

#pragma unroll 1
  for (int tile_y = first_row; tile_y < last_row; tile_y += TILE_H) {
    const int down = min(TILE_H, out_h - tile_y), ry = tile_y + anchor_y;
    const int *const firsts = memory.firsts_y + (tile_y - first_row);
    const int at_top = firsts[0], at_bottom = firsts[down - 1];
    // Planes are taken two rows at once.
    const int top = clamp_to(min(at_top, at_bottom), ay.length) & (in_planes ? ~1 : ~0), bottom = clamp_to((int64_t)max(at_top, at_bottom) + ay.taps - 1, ay.length) + 1;
    // Between parts.
    volatile float kept[ROWS * CH];
#pragma unroll 1
    for (int from = begin;; from += PART) {
      const int part = min(PART, end - from);
      if (are_bytes && part <= 0) {
        // No column of the tile exists.
      } else if (are_bytes) {
#ifdef PLANES
        if (in_planes) byte_columns<true>(row, ry, firsts, top, bottom, from, part, memory);
        else
#endif
          byte_columns<false>(row, ry, firsts, top, bottom, from, part, memory);
      } else {
        __syncthreads();
        for (int j = warp; j < down; j += WARPS)
          if (ry + j >= 0 && ry + j < ay.size) any_columns(row, (const SRC *)row.src + (uint64_t)from * row.step, ry + j, j, part * CH, memory.columns);
      }
      __syncthreads();
      Resized made;
      if (from > begin) {
#pragma unroll
        for (int i = 0; i < ROWS * CH; i++) made.of[i / CH][i % CH] = kept[i];
      }
      made.add_part(ax, column, unit, begin, from, part, memory);
      if (from + PART >= end) {
        if (x < out_w) made.store(row, x, tile_y + warp * ROWS, memory);
        break;
      }
#pragma unroll
      for (int i = 0; i < ROWS * CH; i++) kept[i] = made.of[i / CH][i % CH];
      __syncthreads();
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) resample(const Row *rows, uint32_t count, Params p) {
  begin_early();
  __shared__ Memory memory;
  // Here, as there are too few registers for all of it.
  __shared__ Row row;
  static_assert(sizeof(Row) / 4 <= THREADS, "a thread copies a word");
  if (threadIdx.x < sizeof(Row) / 4) ((uint32_t *)&row)[threadIdx.x] = ((const uint32_t *)(rows + blockIdx.y))[threadIdx.x];
  __syncthreads();
  make_tiles(row, p.tiles, memory);
}
