// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Axis {
  uint64_t extent;
  int64_t stride;  // distance of neighbours in the input, in elements
  int64_t anchor;  // position in the input of the first one
  int64_t source;  // positions that the input has
};
static_assert(sizeof(Axis) == 32, "Axis has another size in Rust");

struct Row {
  TO *to;
  const FROM *from;  // the element at position 0 of every axis
  const TO *fill;  // what stands for elements outside of the input
  uint64_t fill_values;  // how many, one for each position of a dimension
  uint64_t fill_repeat;  // elements of the output that have the same one
  uint64_t elements;  // of the output
  uint64_t axes;  // at least one
  Axis axis[6];  // innermost first
};
static_assert(sizeof(Row) == 248, "Row has another size in Rust");

enum Border : uint32_t { FILL = 0, CLAMP = 1, REFLECT_1001 = 2, REFLECT_101 = 3, WRAP = 4 };

struct Params {
  Border border;
};
static_assert(sizeof(Params) == 4, "Params has another size in Rust");
