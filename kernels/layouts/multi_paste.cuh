// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  TO *to;
  const Region *regions;
  uint64_t count;
  uint64_t pixels;
  uint64_t width;
  uint64_t channels;
};
static_assert(sizeof(Row) == 48, "Row has another size in Rust");
