// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  TO *to;
  const FROM *from;
  const float *weights;
  const FROM *fill;  // nothing: 0
  int32_t source[2];  // rows, columns
  int32_t target[2];
  int32_t size[2];
  int32_t before[2];
  int32_t channels;
  int32_t unused;
};
static_assert(sizeof(Row) == 72, "Row has another size in Rust");

enum Border : uint32_t { FILL = 0, CLAMP = 1, REFLECT_1001 = 2, REFLECT_101 = 3, WRAP = 4 };

struct Params {
  Border border;
};
static_assert(sizeof(Params) == 4, "Params has another size in Rust");
