// JPEG decoding on the device's SMs: what its kernels share. A batch is decoded with one launch per stage:
//
//   jpeg_pairs      Huffman tables that find two codes at once                                     -> pairs
//   jpeg_guess      each piece of each image, once for each guess which block of an MCU is first   -> exits
//   jpeg_link       from each exit through the next piece to an exit there                         -> links, passed
//   jpeg_resolve    follows the links from the beginning of each segment                           -> starts
//   jpeg_decode     each piece once more, now from its true beginning                              -> coefficients, dcs
//   jpeg_dc         adds up the differences of the DC values                                       -> dcs
//   jpeg_pixels     dequantises, transforms, upsamples, converts                                   -> pixels
//
// Images whose chroma is upsampled smoothly, for which a sample's neighbours matter, and images that are reduced take
// two steps:
//
//   jpeg_planes      dequantises, transforms                                                        -> samples
//   jpeg_upsample    upsamples, converts                                                            -> pixels
//
// Only what is under an image's window, and next to it where chroma is smooth, is transformed.
//
// A segment is what lies between restart markers; without them an image has one. A piece is a fixed number of bits of a
// segment. A piece ends at the first block boundary at or after its last bit, and the next begins there: so a place in
// the stream is a bit and which block of the MCU comes next. Entropy-coded data has its stuffing and its markers
// removed.
#pragma once
#include "common.cuh"

// Places that a piece may end at, as far as is known: one for each guess, and further ones that links find.
constexpr uint32_t SLOTS = 15;
// Room for them: four slots a word, and one that stands for none.
constexpr uint32_t SLOT_ROOM = 16;
constexpr uint32_t GUESSES = 6;
constexpr uint32_t NO_SLOT = 15;
// Four of them.
constexpr uint32_t NO_SLOTS = NO_SLOT * 0x01010101;
// No place: what is in a slot that is free.
constexpr uint32_t FREE = ~0u;
// In place of the number of blocks from a slot's place on: nobody went on from there.
constexpr uint32_t NOT_FOLLOWED = 0xFFFF;
constexpr uint32_t MAX_COMPONENTS = 3;
constexpr uint32_t LUT_BITS = 10, TAIL = 512;

// A Huffman table. An entry has in its bits 0-4 the bits of the code, in 5-8 those of the value behind it, and in 9-15
// how far both advance in the block. 0: no code.
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

__device__ inline uint32_t code_bits(uint32_t entry) { return entry & 31; }
__device__ inline uint32_t value_bits(uint32_t entry) { return entry >> 5 & 15; }
// What an entry adds to a position.
__device__ inline uint32_t move_of(uint32_t entry) { return code_bits(entry) + value_bits(entry) + (entry << 15 & 127 * COEFFICIENT); }

// What finds two codes at once, made of an AC table by jpeg_pairs; of a DC table it has one code an entry, as another
// table is next.
struct Pairs {
  // For who only looks where codes end, by the next AC_SKIP_BITS or DC_SKIP_BITS bits: the bits of codes and values
  // together in bits 0-4, in 8-15 how far they advance in the block, SKIP_END for its end. MISSING: the code is longer,
  // or there is none.
  uint16_t skips[1 << 11];
  // For who decodes, by the next AC_CODE_BITS or DC_CODE_BITS bits: an entry of Table, and above it the entry of the
  // next code, or 0. 0: the code is longer, or there is none.
  uint32_t codes[1 << 10];
};
constexpr uint32_t AC_SKIP_BITS = 11, DC_SKIP_BITS = 9, AC_CODE_BITS = 10, DC_CODE_BITS = 8;
// Whoever advances by MISSING, from anywhere in a block, comes to where no block ends: beyond 64, and not by SKIP_END
// from in it.
constexpr uint32_t SKIP_END = 128, MISSING = 192 << 8;

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
  // log2 of the samples that a block has across; of by how much they are coarser than pixels; whether they are
  // upsampled smoothly.
  uint8_t side, factor_x, factor_y, smooth;
  uint32_t unused;
};

// Threads of the kernels that look where codes end, and words of data that they and those who decode have at hand.
constexpr uint32_t SKIP_THREADS = 192, SKIP_WINDOW = 7168, DECODE_WINDOW = 4224;

// What a block of threads works on.
struct Task {
  // Its first piece, MCU, block of a component or strip of pixels, and how many.
  uint32_t image, first, count, component;
};

// Where a piece really begins: its place, and its first block; and the first block behind its segment.
struct Start {
  uint32_t place, block, end;
};

struct Params {
  const Image *images;
  const Table *tables;
  // Of each table.
  Pairs *pairs;
  const Segment *segments;
  const uint16_t *quantisation;
  // For each piece SLOT_ROOM of them.
  uint32_t *exits;
  uint8_t *links;
  // Blocks from there to the end of the piece.
  uint16_t *passed;
  Start *starts;
  int16_t *coefficients;
  // Of each block.
  int16_t *dcs;
  // For each image: 0 when all went well.
  uint32_t *status;
  const Plane *planes;
  uint32_t channels, blue_first;
};

constexpr uint32_t UNRESOLVED = 1, BAD_CODE = 2, TOO_SHORT = 4, TOO_LONG = 8, TOO_WIDE = 16;

__device__ inline uint32_t place_of(uint32_t bit, uint32_t phase) { return bit << 4 | phase; }
