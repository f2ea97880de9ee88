// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  int32_t size[2];  // columns, rows
  int32_t mask[2];
  int32_t before[2];
  int32_t channels;
  int32_t unused;
};
static_assert(sizeof(Row) == 48, "Row has another size in Rust");

enum Border : uint32_t { FILL = 0, CLAMP = 1, REFLECT_1001 = 2, REFLECT_101 = 3, WRAP = 4 };

struct Params {
  Border border;
  uint32_t smallest;
};
static_assert(sizeof(Params) == 8, "Params has another size in Rust");
