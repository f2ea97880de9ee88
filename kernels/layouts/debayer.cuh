// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  uint32_t height;
  uint32_t width;
  uint32_t blue[2];  // row and column of the first blue pixel
};
static_assert(sizeof(Row) == 32, "Row has another size in Rust");
