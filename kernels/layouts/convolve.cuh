// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  TO *to;
  const FROM *from;
  const float *window;  // `taps` of them, an odd number
  const float *more;  // what is added; nothing: 0
  uint64_t elements;
  uint64_t extent;  // of the dimension
  uint64_t inner;  // elements of the dimensions behind it
  uint32_t taps;
  float scale;
};
static_assert(sizeof(Row) == 64, "Row has another size in Rust");
