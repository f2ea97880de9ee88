// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  TO *to;
  const FROM *from;
  float map[3][4];  // coefficients of x, y, z and an offset, for x, y and z
  int32_t source[3];
  int32_t target[3];
  uint32_t channels;
  uint32_t has_fill;
  float fill;
  uint32_t unused;
};
static_assert(sizeof(Row) == 104, "Row has another size in Rust");
