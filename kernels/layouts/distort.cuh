// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Pixels along the side of what shares blocks of chroma.
constexpr uint32_t SIDE = 16;
// Threads of a block.
constexpr uint32_t THREADS = 256;
// Such squares that they work on at once.
constexpr uint32_t SQUARES = 4;

struct Row {
  uint8_t *to;
  const uint8_t *from;
  const float *steps;  // of quantisation: 64 of luma, 64 of chroma, frequencies along x next to each other
  uint32_t width;
  uint32_t height;
};
static_assert(sizeof(Row) == 32, "Row has another size in Rust");
