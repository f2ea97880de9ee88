// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  int32_t size[2];  // columns, rows
  int32_t window[2];
  int32_t channels;
  int32_t unused;
};
static_assert(sizeof(Row) == 40, "Row has another size in Rust");
