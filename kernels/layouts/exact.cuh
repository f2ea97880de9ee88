// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Rows of a pixel that a thread makes in the pass along rows.
constexpr int ROWS_AT_ONCE = 4;
// Elements of a row that a thread makes in the other pass, of bytes or of numbers.
constexpr int BYTES_AT_ONCE = 16;
constexpr int NUMBERS_AT_ONCE = 4;
// Bits of Row::alpha, of images with alpha: colours are multiplied by it before the sums, and divided behind them.
constexpr uint32_t MULTIPLY = 1;
constexpr uint32_t DIVIDE = 2;
// How sums are made, METHOD: of integers, rounded to bytes in both passes.
constexpr int BYTES = 0;
// Of integers, kept as they are between the passes: across only.
constexpr int INTEGERS = 1;
// Of float32 as torch adds them.
constexpr int FLOATS = 2;
// Of float32, every product rounded.
constexpr int MEANS = 3;
// Down only, of integers: as OpenCV does it.
constexpr int LINEAR = 4;
constexpr int CUBIC = 5;
// Down only: means of whole pixels.
constexpr int WHOLE = 6;

struct Row {
  const void *src;  // The first line that is needed.
  void *dst;
  const int32_t *axis;  // Of each output its first pixel, of each its number of weights, then each weight of all outputs.
  uint32_t outputs;  // Pixels that are made along the axis.
  int32_t length;  // Pixels that there are: those beyond the ends are the ones at the ends.
  int32_t origin;  // The pixel with which the source begins.
  uint32_t lines;  // Across: rows; down: elements of a row.
  uint32_t src_pitch;  // Elements from row to row.
  uint32_t dst_pitch;
  uint32_t step;  // Elements of a pixel.
  uint32_t bits;  // BYTES: behind the point of the weights.
  uint32_t alpha;
  int32_t start;  // CUBIC: where the first pixel of a row lies in a row of the whole output, and how far the next one is.
  int32_t direction;
  uint32_t whole;  // CUBIC: elements of a row of the whole output that are made of floats.
  float share;  // WHOLE: what a sum is multiplied by, or 0: halves of four pixels are rounded up.
  uint32_t unused;
};
static_assert(sizeof(Row) == 80, "Row has another size in Rust");
