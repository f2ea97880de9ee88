// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  uint64_t elements;  // of the output
  uint32_t channels;
  uint32_t last_frame;  // that is repeated
  uint32_t high;  // patches along rows
  uint32_t wide;  // patches along columns
  uint64_t frame_stride;  // distances of neighbours in the input, in elements
  uint32_t channel_stride;
  uint32_t row_stride;
  uint32_t column_stride;
  uint32_t unused;
};
static_assert(sizeof(Row) == 64, "Row has another size in Rust");

struct Params {
  uint32_t side;  // rows and columns of a patch
  uint32_t depth;  // frames of a patch
  uint32_t merge;  // patches along each side of a square that is merged
};
static_assert(sizeof(Params) == 12, "Params has another size in Rust");
