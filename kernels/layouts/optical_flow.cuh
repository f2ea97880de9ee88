// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  uint64_t to;
  uint64_t from;
  uint64_t elements;  // pixels of a frame, vectors of a field
  uint32_t width;  // elements of a row
  uint32_t pitch;  // bytes from a row to the next one, where the engine has them
};
static_assert(sizeof(Row) == 32, "Row has another size in Rust");

struct Params {
  uint32_t red;  // which channel of a frame is red
};
static_assert(sizeof(Params) == 4, "Params has another size in Rust");
