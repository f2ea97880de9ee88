// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Rows and columns of the output that a block makes, and its threads.
constexpr int TILE_H = 16;
constexpr int TILE_W = 32;
constexpr int THREADS = 128;
// Rows of bytes that are multiplied at once, in two steps.
constexpr int ROWS_AT_ONCE = 32;
// Zeros on each side of the weights of a pixel, where they are split.
constexpr int SPLIT_PADDING = 4;
// The most tiles that a block makes: it has room for so many.
constexpr int MAX_TILES = 4;
// How source pixels are weighed: Axis::filter.
constexpr int NEAREST = 0;
constexpr int TRIANGULAR = 1;
constexpr int GAUSSIAN = 2;
constexpr int CUBIC = 3;
constexpr int LANCZOS3 = 4;

struct Planes {
  uint32_t color;  // 0 gray, 1 YCbCr, 2 RGB.
  uint32_t blue_first;
  const uint8_t *samples[3];  // Of gray, three times the same.
  uint32_t stride[3];  // From a row to the next: a multiple of 8 bytes. No component has 2^32 samples.
  uint8_t factor_x[4];  // log2 of by how much a component is coarser than the picture.
  uint8_t factor_y[4];
  uint32_t unused_too;
};
static_assert(sizeof(Planes) == 56, "Planes has another size in Rust");

struct Axis {
  float start;  // Coordinate of the first tap before rounding up.
  float scale;  // Source pixels an output pixel.
  float table_scale;  // Table entries a source pixel.
  int32_t filter;
  int32_t taps;
  int32_t length;  // Source pixels, output pixels.
  int32_t size;
  int32_t origin;  // The source pixel that coordinates count from.
  int32_t is_merged;  // Whether its taps are in the image: pixels at its edges have the weights of what is beyond, too.
  int32_t is_split;  // Whether weights are halves, for bytes; then taps are in the image.
  float *made;  // For each output pixel its first tap, then its weights: made before.
};
static_assert(sizeof(Axis) == 48, "Axis has another size in Rust");

struct Resample {
  const void *src;  // Of elements SRC.
  void *dst;  // Of elements DST.
  const Planes *planes;  // In place of the source, or 0.
  Axis y;
  Axis x;
  uint32_t pitch;  // Elements between source rows.
  uint32_t step;  // Elements between pixels of a row, in source and (resized only) output.
};
static_assert(sizeof(Resample) == 128, "Resample has another size in Rust");

struct Normalized : Resample {
  int32_t window[2];  // Height and width of the output.
  int32_t anchor[2];  // Where it begins in the resized image.
  int32_t mirror;
  int32_t planar;
  int32_t channels;  // Of the output: at least as many as the source has.
  int32_t unused;
  float factor[4];
  float bias[4];
  float fill[4];
};
static_assert(sizeof(Normalized) == 208, "Normalized has another size in Rust");

struct Params {
  uint32_t tiles;  // Tiles that a block makes, one below the other.
};
static_assert(sizeof(Params) == 4, "Params has another size in Rust");
