// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  uint8_t *to;
  const uint8_t *from;
  uint64_t pixels;
  uint64_t step;  // elements from one pixel to the next
};
static_assert(sizeof(Row) == 32, "Row has another size in Rust");
