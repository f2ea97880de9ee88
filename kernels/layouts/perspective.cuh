// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

enum Border : uint32_t { FILL = 0, CLAMP = 1, REFLECT_1001 = 2, REFLECT_101 = 3, WRAP = 4 };

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  double matrix[3][3];
  uint64_t pixels;
  int32_t source[2];  // columns, rows
  uint32_t width;  // of the output
  uint32_t channels;
  uint32_t is_coarse;  // places lie on a grid
  Border border;
  float fill[4];  // for each channel, as an element holds it
};
static_assert(sizeof(Row) == 136, "Row has another size in Rust");
