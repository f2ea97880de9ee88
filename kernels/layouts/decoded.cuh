// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct ColorHead {
  float places[256];  // Of levels, in the lattice.
  float to_srgb[3][3];  // From light of corners to that of sRGB.
  float black;  // The light that is black.
  uint32_t unused[6];
};
static_assert(sizeof(ColorHead) == 1088, "ColorHead has another size in Rust");

struct Row {
  TO *to;
  const uint8_t *from;
  int64_t start;  // Output pixel (x, y) is stored at start + x * step_x + y * step_y, in pixels.
  int64_t step_x;
  int64_t step_y;
  uint32_t width;
  uint32_t height;
  uint32_t channels;  // Samples of an output pixel: IN, or 1 for the first of them.
  uint32_t unused;
  const ColorHead *colors;  // Null: colours stay.
};
static_assert(sizeof(Row) == 64, "Row has another size in Rust");

struct Params {
  float level;
  float studio[3][4];  // Weights of red, green and blue, and what is added.
};
static_assert(sizeof(Params) == 52, "Params has another size in Rust");
