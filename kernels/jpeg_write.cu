// Coefficients of JPEGs to files. A row of the table is an image; a block of threads takes a piece of PIECE blocks,
// each thread one of them. The bits of every block are counted first, so that its place is known; then a piece is made
// in shared memory, twice: once to count the bytes that a 0 follows, and once, when the host has memory for the file,
// to write it. A byte belongs to the piece that has its first bit: the blocks of two threads more, behind the piece,
// have the rest of its last.
#include "jpeg_encode.cuh"

constexpr uint32_t WORDS = (PIECE * MAX_BITS + 7 + 31) / 32, WARPS = PIECE_THREADS / 32;
constexpr uint32_t EVERY_LANE = ~0u, BLOCK_END = MEANS, LONG_RUN = MEANS + 0xF0;

// The sum of what the threads before have, and that of all.
__device__ inline uint32_t sum_before(uint32_t value, uint32_t &all) {
  __shared__ uint32_t sums[WARPS];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t sum = value;
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(EVERY_LANE, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  uint32_t before = sum - value;
  all = 0;
  for (uint32_t i = 0; i < WARPS; ++i) {
    if (i < warp) before += sums[i];
    all += sums[i];
  }
  __syncthreads();
  return before;
}

__device__ inline int32_t mean_of(const Row &row, uint32_t block) {
  while (is_filler(row, block)) --block;
  return row.coefficients[(uint64_t)block * 64];
}

// How far the mean of a block is from that of the one before of its colour.
__device__ inline int32_t mean_difference(const Row &row, uint32_t block) {
  if (is_filler(row, block)) return 0;
  const uint32_t lumas = row.across * row.down, each = blocks_of_mcu(row), k = block % each;
  const int32_t mean = mean_of(row, block);
  if (k > 0 && k < lumas) return mean - mean_of(row, block - 1);
  if (block < each) return mean;
  return mean - mean_of(row, k == 0 ? block - each + lumas - 1 : block - each);
}

// Gives `put` the codes of a block: bits, and how many.
template <class Put> __device__ inline void code(const Row &row, const uint32_t *codes, uint32_t block, Put put) {
  const bool is_luma = block % blocks_of_mcu(row) < row.across * row.down;
  const uint32_t *own = codes + (is_luma ? 0 : CODES);
  // A code, and behind it a number in as few bits as it has: of a negative one those of one less.
  const auto with_number = [&](uint32_t symbol, int32_t value) {
    const uint32_t size = 32 - __clz(value < 0 ? -value : value);
    const uint32_t entry = own[symbol + size], bits = (uint32_t)(value < 0 ? value - 1 : value) & ((1u << size) - 1);
    put((entry >> 8) << size | bits, (entry & 255) + size);
  };
  const auto alone = [&](uint32_t symbol) { put(own[symbol] >> 8, own[symbol] & 255); };
  with_number(0, mean_difference(row, block));
  const int16_t *coefficients = row.coefficients + (uint64_t)block * 64;
  const uint2 present = is_filler(row, block) ? uint2{0, 0} : ((const uint2 *)row.present)[block];
  uint32_t last = 0;
  for (uint32_t half = 0; half < 2; ++half) {
    for (uint32_t rest = half ? present.y : present.x & ~1u; rest != 0; rest &= rest - 1) {
      const uint32_t at = 32 * half + __ffs(rest) - 1;
      uint32_t run = at - last - 1;
      for (; run > 15; run -= 16) alone(LONG_RUN);
      with_number(MEANS + 16 * run, coefficients[at]);
      last = at;
    }
  }
  if (last < 63) alone(BLOCK_END);
}

__device__ inline void load_codes(uint32_t *codes, const Params &params) {
  for (uint32_t i = threadIdx.x; i < 2 * CODES; i += PIECE_THREADS) codes[i] = params.codes[i];
  __syncthreads();
}

extern "C" __global__ void jpeg_lengths(const Row *rows, uint32_t count, Params params) {
  __shared__ uint32_t codes[2 * CODES];
  const Row row = rows[blockIdx.y];
  load_codes(codes, params);
  for (uint32_t piece = blockIdx.x; piece < row.pieces; piece += gridDim.x) {
    const uint32_t block = piece * PIECE + threadIdx.x;
    uint32_t bits = 0, all;
    if (threadIdx.x < PIECE && block < row.blocks) {
      code(row, codes, block, [&](uint32_t, uint32_t more) { bits += more; });
      row.bits[block] = bits;
    }
    sum_before(bits, all);
    if (threadIdx.x == 0) row.starts[piece] = all;
  }
}

// Sums of the numbers before, in their place; the sum of all comes behind them, and is returned.
__device__ inline uint32_t sum_up(uint32_t *numbers, uint32_t count) {
  const uint32_t each = (count + PIECE_THREADS - 1) / PIECE_THREADS;
  const uint32_t first = min(threadIdx.x * each, count), end = min(first + each, count);
  uint32_t sum = 0, all;
  for (uint32_t i = first; i < end; ++i) sum += numbers[i];
  uint32_t before = sum_before(sum, all);
  for (uint32_t i = first; i < end; ++i) {
    const uint32_t number = numbers[i];
    numbers[i] = before;
    before += number;
  }
  if (threadIdx.x == 0) numbers[count] = all;
  return all;
}

extern "C" __global__ void jpeg_starts(const Row *rows, uint32_t count, Params) {
  sum_up(rows[blockIdx.y].starts, rows[blockIdx.y].pieces);
}

// How long the file becomes: two bytes end it.
__device__ inline uint32_t file_bytes(const Row &row, uint32_t stuffed) {
  return row.head_bytes + (row.starts[row.pieces] + 7) / 8 + stuffed + 2;
}

extern "C" __global__ void jpeg_sizes(const Row *rows, uint32_t count, Params) {
  const Row &row = rows[blockIdx.y];
  const uint32_t stuffed = sum_up(row.stuffed, row.pieces);
  if (threadIdx.x == 0) *row.size = file_bytes(row, stuffed);
}

// The bytes of a piece: from where to where they lie in `words`, of which the highest byte comes first.
struct Bytes {
  uint32_t begin, end;
};

__device__ inline Bytes made_piece(const Row &row, const uint32_t *codes, uint32_t *words, uint32_t piece) {
  const uint32_t start = row.starts[piece], end = row.starts[piece + 1], all = row.starts[row.pieces];
  const uint32_t origin = start / 8, limit = (end + 7) / 8 - origin, used = (limit + 3) / 4;
  for (uint32_t i = threadIdx.x; i < used; i += PIECE_THREADS) words[i] = 0;
  const uint32_t block = piece * PIECE + threadIdx.x;
  uint32_t unused;
  const uint32_t place = start % 8 + sum_before(block < row.blocks ? row.bits[block] : 0, unused);
  if (block < row.blocks && place / 32 < used) {
    uint32_t word = place / 32, held = place % 32;
    uint64_t bits = 0;
    const auto give = [&](uint32_t value) {
      if (word < used) atomicOr(words + word, value);
      ++word;
    };
    code(row, codes, block, [&](uint32_t value, uint32_t more) {
      bits = bits << more | value;
      held += more;
      if (held < 32) return;
      held -= 32;
      give((uint32_t)(bits >> held));
    });
    if (held > 0) give((uint32_t)(bits << (32 - held)));
  }
  __syncthreads();
  // The last byte of the file ends in ones.
  const uint32_t last = origin + limit - 1;
  if (threadIdx.x == 0 && last == all / 8) words[(limit - 1) / 4] |= 0xFFu >> all % 8 << (24 - 8 * ((limit - 1) % 4));
  __syncthreads();
  return {(start % 8 + 7) / 8, limit};
}

__device__ inline uint32_t byte_of(const uint32_t *words, uint32_t i) { return words[i / 4] >> (24 - 8 * (i % 4)) & 255; }

// Of the bytes of a word those that a 0 follows.
__device__ inline uint32_t stuffed_in(const uint32_t *words, uint32_t word, Bytes bytes) {
  uint32_t found = 0;
  for (uint32_t i = max(4 * word, bytes.begin); i < min(4 * word + 4, bytes.end); ++i) found += byte_of(words, i) == 255;
  return found;
}

extern "C" __global__ void jpeg_stuffed(const Row *rows, uint32_t count, Params params) {
  __shared__ uint32_t codes[2 * CODES], words[WORDS];
  const Row row = rows[blockIdx.y];
  load_codes(codes, params);
  for (uint32_t piece = blockIdx.x; piece < row.pieces; piece += gridDim.x) {
    const Bytes bytes = made_piece(row, codes, words, piece);
    uint32_t found = 0, all;
    for (uint32_t word = threadIdx.x; 4 * word < bytes.end; word += PIECE_THREADS) found += stuffed_in(words, word, bytes);
    sum_before(found, all);
    if (threadIdx.x == 0) row.stuffed[piece] = all;
  }
}

// The head of a file, with the image's height and width in it.
__device__ inline void write_head(const Row &row) {
  for (uint32_t i = threadIdx.x; i < row.head_bytes; i += PIECE_THREADS) {
    const uint32_t sides = row.height << 16 | row.width, at = i - row.sides_at;
    row.to[i] = at < 4 ? sides >> (24 - 8 * at) : row.head[i];
  }
}

extern "C" __global__ void jpeg_write(const Row *rows, uint32_t count, Params params) {
  __shared__ uint32_t codes[2 * CODES], words[WORDS];
  const Row row = rows[blockIdx.y];
  load_codes(codes, params);
  for (uint32_t piece = blockIdx.x; piece < row.pieces; piece += gridDim.x) {
    if (piece == 0) write_head(row);
    const Bytes bytes = made_piece(row, codes, words, piece);
    uint64_t place = (uint64_t)row.head_bytes + row.starts[piece] / 8 + row.stuffed[piece];
    for (uint32_t first = 0; 4 * first < bytes.end; first += PIECE_THREADS) {
      const uint32_t word = first + threadIdx.x;
      uint32_t all;
      uint8_t *to = row.to + place + sum_before(4 * word < bytes.end ? stuffed_in(words, word, bytes) : 0, all);
      for (uint32_t i = max(4 * word, bytes.begin); i < min(4 * word + 4, bytes.end); ++i) {
        const uint32_t byte = byte_of(words, i);
        to[i] = byte;
        if (byte == 255) *(++to + i) = 0;
      }
      place += all;
    }
    if (piece + 1 == row.pieces && threadIdx.x < 2) {
      const uint32_t end = file_bytes(row, row.stuffed[row.pieces]);
      row.to[end - 2 + threadIdx.x] = threadIdx.x == 0 ? 0xFF : 0xD9;
    }
    // What is made next lies in the same memory.
    __syncthreads();
  }
}
