// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  uint8_t *to;
  uint64_t pixels;
  uint8_t color[8];
};
static_assert(sizeof(Row) == 24, "Row has another size in Rust");
