// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  TO *to;
  const FROM *from;
  uint64_t elements;
  float coefficient;
  uint32_t unused;
};
static_assert(sizeof(Row) == 32, "Row has another size in Rust");

enum Border : uint32_t { CLAMP = 0, REFLECT = 1, ZERO = 2 };

struct Params {
  Border border;  // what comes before the first element: itself, the second, or silence
};
static_assert(sizeof(Params) == 4, "Params has another size in Rust");
