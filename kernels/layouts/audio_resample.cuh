// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  TO *to;
  const FROM *from;
  uint64_t elements;  // of the output
  int64_t frames;  // of the input
  double step;  // frames of the input for one of the output
  uint64_t channels;
};
static_assert(sizeof(Row) == 48, "Row has another size in Rust");

struct Params {
  const float *table;  // starts and ends with zeros, so that interpolation needs no bounds
  float scale;
  float center;
  int32_t lobes;
  int32_t entries;
};
static_assert(sizeof(Params) == 24, "Params has another size in Rust");
