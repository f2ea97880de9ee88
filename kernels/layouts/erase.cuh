// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Axis {
  uint64_t extent;
  uint64_t stride;  // distance of neighbours, in elements of the sample
};
static_assert(sizeof(Axis) == 16, "Axis has another size in Rust");

struct Row {
  TO *to;  // the sample
  const TO *fill;
  uint64_t fill_values;  // how many, one for each position of a dimension
  uint64_t fill_repeat;  // elements of the sample that have the same one
  uint64_t first;  // of the region, in elements of the sample
  uint64_t elements;  // of the region
  uint64_t axes;
  Axis axis[6];  // innermost first
};
static_assert(sizeof(Row) == 152, "Row has another size in Rust");
