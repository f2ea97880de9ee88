// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Columns of the pixels that a block of threads transforms at a time, and threads of such a block.
constexpr uint32_t TILE = 128;
constexpr uint32_t TRANSFORM_THREADS = 128;
// Blocks of samples of a piece, each of a thread, and more behind it: as many as have the rest of a byte.
constexpr uint32_t PIECE = 126;
constexpr uint32_t PIECE_THREADS = 128;
// Bits of a block, at most: a mean of 11 bits behind a code of 11, and 63 times 10 behind 16.
constexpr uint32_t MAX_BITS = 1660;
// Codes of sizes of means, and with those of coefficients behind them all of a component: each is its bits and, in
// the lowest byte, how many these are.
constexpr uint32_t MEANS = 16;
constexpr uint32_t CODES = 272;

struct Step {
  uint32_t inverse;
  uint32_t half;
};
static_assert(sizeof(Step) == 8, "Step has another size in Rust");

struct Row {
  uint8_t *to;  // the file; of the last kernel
  const uint8_t *pixels;
  const uint8_t *head;
  const Step *steps;  // of luma and chroma, in their order in the file
  int16_t *coefficients;  // of all blocks in their order in the file
  uint8_t *present;  // a bit for each coefficient that is not 0
  uint16_t *bits;  // of each block, how many
  uint32_t *starts;  // of each piece its first bit, and behind them the end
  uint32_t *stuffed;  // zeros behind bytes of 255 before each piece, and all
  uint32_t *size;  // bytes of the file
  uint32_t width;
  uint32_t height;
  uint32_t channels;  // 1 or 3
  uint32_t across;  // blocks of luma of an MCU
  uint32_t down;
  uint32_t columns;  // MCUs of a row, and rows
  uint32_t lines;
  uint32_t blocks;
  uint32_t pieces;
  uint32_t head_bytes;
  uint32_t sides_at;  // where the head has height and width
  uint32_t unused;
};
static_assert(sizeof(Row) == 128, "Row has another size in Rust");

struct Params {
  const uint32_t *codes;  // CODES of luma, CODES of chroma
};
static_assert(sizeof(Params) == 8, "Params has another size in Rust");
