// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  uint8_t *to;
  const uint8_t *from;
  const float *steps;  // of quantisation: 64 of luma, 64 of chroma, frequencies along x next to each other
  uint32_t width;
  uint32_t height;
};
static_assert(sizeof(Row) == 32, "Row has another size in Rust");
