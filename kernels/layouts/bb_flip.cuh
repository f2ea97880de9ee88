// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  float *to;
  const float *from;
  uint64_t boxes;
  uint32_t flipped[2];  // whether left and right change places, and top and bottom
};
static_assert(sizeof(Row) == 32, "Row has another size in Rust");

struct Params {
  uint32_t has_ends;  // a box is left, top, right, bottom; else left, top, width, height
};
static_assert(sizeof(Params) == 4, "Params has another size in Rust");
