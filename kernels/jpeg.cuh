// JPEG decoding on the device's own cores: what its kernels share. A batch is decoded with one launch per stage:
//
//   jpeg_guess      each piece of each image, once for each guess which block of an MCU comes first  -> exits
//   jpeg_link       from each exit through the next piece to an exit there                          -> links, steps
//   jpeg_resolve    follows the links from the beginning of each segment                            -> starts
//   jpeg_decode     each piece once more, now from its true beginning                               -> coefficients
//   jpeg_pixels     dequantises, transforms, upsamples, converts                                    -> pixels
//
// Images whose chroma is upsampled smoothly, for which a sample's neighbours matter, and images that are reduced take two steps:
//
//   jpeg_planes      dequantises, transforms                                                        -> samples
//   jpeg_upsample    upsamples, converts                                                            -> pixels
//
// Only what is under an image's window, and next to it where chroma is smooth, is transformed.
//
// A segment is what lies between restart markers; without them an image has one. A piece is a fixed number of bits of a
// segment. A piece ends at the first block boundary at or after its last bit, and the next begins there: so a place in the
// stream is a bit and which block of the MCU comes next. Entropy-coded data has its stuffing and its markers removed.
#pragma once
#include "shared.cuh"

// Places that a piece may end at, as far as is known: one for each guess, and further ones that links find.
constexpr uint32_t SLOTS = 15;
// Room for them: four slots a word, and one that stands for none.
constexpr uint32_t SLOT_ROOM = 16;
constexpr uint32_t GUESSES = 6;
constexpr uint32_t NO_SLOT = 15;
// No place: what is in a slot that is free.
constexpr uint32_t FREE = ~0u;
constexpr uint32_t MAX_COMPONENTS = 3;
constexpr uint32_t LUT_BITS = 10, TAIL = 512;

// A Huffman table. An entry has in its bits 0-4 the bits of code and value together, in 8-14 how far it advances in the block,
// and in 5-7 and 15 the bits of the value. 0: no code.
struct Table {
  // By the next 10 bits; 0 also when the code is longer.
  uint16_t lut[1 << LUT_BITS];
  // By the next 16 bits, of their last TAIL values: there, long codes are.
  uint16_t tail[TAIL];
  // All entries, shortest code first: for tables with long codes before the tail.
  uint16_t sorted[256];
  // For codes of 11 to 16 bits: the next 16 bits are below this, and where the entry is.
  uint32_t limit[6];
  int32_t base[6];
};

// A position: the bit in the low 24 bits, the index of the coefficient above.
constexpr uint32_t AT_BIT = 0x00FFFFFF, COEFFICIENT = 1u << 24, BLOCK_END = 64 * COEFFICIENT;

// What an entry adds to a position.
__device__ inline uint32_t move_of(uint32_t entry) { return __byte_perm(entry, 0, 0x1440) & 0x7F00001F; }

struct Segment {
  uint32_t first_bit, bits;
  // Within the image.
  uint32_t first_piece, first_block;
};

struct Image {
  // Entropy-coded data, and the number of whole words of it that can be read.
  const uint32_t *data;
  uint8_t *pixels;
  uint32_t words;
  // In the tables of the batch.
  uint32_t first_segment, segments;
  uint32_t first_piece, pieces, piece_bits, guesses;
  uint32_t first_block, blocks;
  // DC and AC of the first pair, then of the second.
  uint32_t tables[4];
  // Blocks of an MCU; for each of them a bit: which pair; and two bits: which component.
  uint32_t mcu_blocks, pairs, components;
  // Of the window; without one, of the image.
  uint32_t width, height;
  uint32_t mcus_across;
  // Of each component: log2 of by how much it is sampled more coarsely than the picture, and blocks across in an MCU.
  uint8_t factor_x[4], factor_y[4], first[4], across[4];
  uint32_t quantisation[MAX_COMPONENTS];
  // 0 gray, 1 YCbCr, 2 RGB.
  uint32_t color;
  // Of the MCU, in blocks.
  uint32_t mcu_width, mcu_height;
  // Where the window begins; the first MCU that it lies in, where it begins there, and how many MCUs it lies in across.
  uint32_t left, top, first_mcu, left_in_mcu, top_in_mcu, window_across;
  // Of its components' planes, when it has any.
  uint32_t first_plane;
};

// Samples of a component: of the blocks that are needed.
struct Plane {
  uint8_t *samples;
  // From a row to the next, a multiple of 8 bytes.
  uint32_t stride;
  // Which sample of the component is the first here; how many the component has.
  uint32_t left, top, width, height;
  // Blocks in a row of them.
  uint32_t across;
  // log2 of the samples that a block has across; of by how much they are coarser than pixels; whether they are upsampled smoothly.
  uint8_t side, factor_x, factor_y, smooth;
  uint32_t unused;
};

// What a block of threads works on.
struct Task {
  // Its first piece, MCU, block of a component or strip of pixels, and how many.
  uint32_t image, first, count, component;
};

// What decoding from one place to the end of a piece passes.
struct Step {
  uint32_t blocks;
  int32_t dc[MAX_COMPONENTS];
};

// Where a piece really begins.
struct Start {
  uint32_t place, block;
  int32_t dc[MAX_COMPONENTS];
  uint32_t end;
};

struct Params {
  const Image *images;
  const Table *tables;
  const Segment *segments;
  const uint16_t *quantisation;
  // For each piece SLOT_ROOM of them.
  uint32_t *exits;
  uint8_t *links;
  Step *steps;
  Start *starts;
  int16_t *coefficients;
  // For each image: 0 when all went well.
  uint32_t *status;
  const Plane *planes;
  uint32_t channels, blue_first;
};

constexpr uint32_t UNRESOLVED = 1, BAD_CODE = 2, TOO_SHORT = 4, TOO_LONG = 8;

__device__ inline uint32_t place_of(uint32_t bit, uint32_t phase) { return bit << 4 | phase; }

// What a block of threads reads of an image's data, in shared memory and as numbers. Bits count from its beginning.
constexpr uint32_t WINDOW = 4096;
// Words that a block which begins before the end of a piece may reach behind it: 64 entries of at most 31 bits, and a look ahead.
constexpr uint32_t REACH = 64;

struct Window {
  uint32_t words[WINDOW + REACH];

  // From the word of bit `begin` to behind bit `end`. Words that are not there read as ones.
  __device__ void load(const Image &image, uint32_t begin, uint32_t end) {
    const uint32_t first = begin / 32, size = min(end / 32 - first + REACH, WINDOW + REACH);
    for (uint32_t i = threadIdx.x; i < size; i += blockDim.x)
      words[i] = first + i < image.words ? __byte_perm(image.data[first + i], 0, 0x0123) : ~0u;
  }
};

// What takes the place of a code that does not exist: one bit, and the block is at its end. So every loop ends. No table has
// such an entry: its one bit is a value's, and the code has none.
constexpr uint32_t NO_CODE = 1 | 1 << 5 | 64 << 8;

// The tables of an image, in shared memory.
struct Tables {
  // The look-up table and the tail of each.
  alignas(16) uint16_t entries[4][(1 << LUT_BITS) + TAIL];
  const Table *whole[4];

  __device__ void load(const Params &p, const Image &image) {
    constexpr uint32_t WORDS = ((1 << LUT_BITS) + TAIL) * 2 / 16;
    if (threadIdx.x < 4) whole[threadIdx.x] = p.tables + image.tables[threadIdx.x];
#pragma unroll
    for (uint32_t t = 0; t < 4; t++) {
      const uint4 *from = (const uint4 *)(p.tables + image.tables[t]);
      for (uint32_t i = threadIdx.x; i < WORDS; i += blockDim.x) ((uint4 *)entries[t])[i] = from[i];
    }
  }
};

// What a thread reads of both.
struct Reader {
  Shared words, entries;
  const Table *const *whole;

  __device__ Reader(const Window &window, const Tables &tables) : words(window.words), entries(tables.entries), whole(tables.whole) {}

  // The 32 bits from that of a position on.
  __device__ uint32_t peek(uint32_t at) const {
    const uint32_t offset = at >> 3 & (AT_BIT >> 3 & ~3u);
    return __funnelshift_l(words.word(offset + 4), words.word(offset), at);
  }
  // The entry for the code at the beginning of `bits`, or NO_CODE.
  __device__ uint32_t find(uint32_t table, uint32_t bits) const {
    constexpr uint32_t LUT = 1 << LUT_BITS, TAIL_BEGIN = 65536 - TAIL;
    uint32_t i = bits >> (32 - LUT_BITS);
    if (bits >= TAIL_BEGIN << 16) i = (bits >> 16) - TAIL_BEGIN + LUT;
    const uint32_t e = entries.half((table * (LUT + TAIL) + i) * 2);
    return e ? e : find_sorted(table, bits >> 16);
  }
  __device__ __noinline__ uint32_t find_sorted(uint32_t table, uint32_t bits) const {
    const Table &t = *whole[table];
    if (bits >= t.limit[5]) return NO_CODE;
    uint32_t i = 0;
    while (bits >= t.limit[i]) i++;
    return t.sorted[((bits >> (5 - i)) + t.base[i]) & 255];
  }
};

// The value behind the code at the beginning of `bits`, as JPEG extends its sign.
__device__ inline int32_t value_of(uint32_t bits, uint32_t entry) {
  const uint32_t size = (entry >> 5 & 7) | (entry >> 12 & 8), v = bits << ((entry & 31) - size);
  return (int32_t)(v >> 1 >> (31 - size)) + ((int32_t)v < 0 ? 0 : 1 - (1 << size));
}

// The segment of an image that a piece belongs to.
__device__ inline Segment segment_of(const Params &p, const Image &image, uint32_t piece) {
  const Segment *s = p.segments + image.first_segment;
  uint32_t low = 0, high = image.segments;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (s[middle].first_piece <= piece) low = middle;
    else high = middle;
  }
  return s[low];
}

// Where the bits of a piece begin.
__device__ inline uint32_t begin_of(const Image &image, const Segment &s, uint32_t piece) {
  return s.first_bit + (piece - s.first_piece) * image.piece_bits;
}

// Where the bits of a piece end.
__device__ inline uint32_t end_of(const Image &image, const Segment &s, uint32_t piece) {
  return s.first_bit + min((piece - s.first_piece + 1) * image.piece_bits, s.bits);
}

// Loads what the pieces from `first` on read, up to before `beyond`; returns the bit at which the window begins.
__device__ inline uint32_t load(Window &window, Tables &tables, const Params &p, const Image &image, uint32_t first, uint32_t beyond) {
  const uint32_t last = min(beyond, image.pieces) - 1;
  const Segment s = segment_of(p, image, first), t = segment_of(p, image, last);
  const uint32_t begin = begin_of(image, s, first);
  window.load(image, begin, end_of(image, t, last));
  tables.load(p, image);
  __syncthreads();
  return begin / 32 * 32;
}
