// JPEG decoding on the device's SMs: what its kernels share. A batch is decoded with one launch per stage:
//
//   jpeg_pairs      Huffman tables that find two codes at once                                     -> pairs
//   jpeg_guess      each piece of each image, once for each guess which block of an MCU is first   -> exits
//   jpeg_link       from each exit through the next piece to an exit there                  -> links, passed, notes
//   jpeg_resolve    follows the links from the beginning of each segment                           -> starts
//   jpeg_decode     each piece once more, now from its true beginning                              -> coefficients, dcs
//   jpeg_progressive  the same of progressive images, in place of what is above; of many of them by
//     jpeg_progressive_together                                                             -> coefficients, dcs
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
// removed. In a batch of few images a piece has several sections, of as many bits each: whoever links the piece notes
// where they begin, so that each is decoded by a thread of its own. Otherwise a piece is one section.
#pragma once
#include "common.cuh"
#include "layouts/jpeg.cuh"

// Places that a piece may end at, as far as is known: one for each guess, and further ones that links find. The last
// slot stands for none.
constexpr uint32_t SLOTS = SLOT_ROOM - 1, NO_SLOT = SLOTS;
// Four of them.
constexpr uint32_t NO_SLOTS = NO_SLOT * 0x01010101;
// No place: what is in a slot that is free.
constexpr uint32_t FREE = ~0u;
// In place of the number of blocks from a slot's place on: nobody went on from there.
constexpr uint32_t NOT_FOLLOWED = 0xFFFF;

// A position: the bit in the low 24 bits, the index of the coefficient above.
constexpr uint32_t AT_BIT = 0x00FFFFFF, COEFFICIENT = 1u << 24, BLOCK_END = 64 * COEFFICIENT;

// Of an entry of a `Table`.
__device__ inline uint32_t code_bits(uint32_t entry) { return entry & 31; }
__device__ inline uint32_t value_bits(uint32_t entry) { return entry >> 5 & 15; }
// What an entry adds to a position.
__device__ inline uint32_t move_of(uint32_t entry) { return code_bits(entry) + value_bits(entry) + (entry << 15 & 127 * COEFFICIENT); }

// How far the end of a block advances in `Pairs::skips`, and what an entry there is when the code is longer, or there
// is none. Whoever advances by MISSING, from anywhere in a block, comes to where no block ends: beyond 64, and not by
// SKIP_END from in it.
constexpr uint32_t SKIP_END = 128, MISSING = 192 << 8;

// Bits of an image's status; 0 when all went well.
constexpr uint32_t UNRESOLVED = 1, BAD_CODE = 2, TOO_SHORT = 4, TOO_LONG = 8, TOO_WIDE = 16;

// The first note of a slot: of its second section.
__device__ inline uint32_t note_of(uint32_t piece, uint32_t slot, uint32_t halvings) { return (piece * SLOT_ROOM + slot) * ((1 << halvings) - 1); }

__device__ inline uint32_t place_of(uint32_t bit, uint32_t phase) { return bit << 4 | phase; }
