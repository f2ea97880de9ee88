// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Where a place lies that is no number, before the image: far outside of every one.
constexpr float FAR = 1000000000;

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  const float *maps[2];  // x, y
  int32_t source[2];  // columns, rows
  uint64_t pixels;
  uint64_t channels;
};
static_assert(sizeof(Row) == 56, "Row has another size in Rust");

struct Params {
  float shift;  // what is added to places, so that the first pixel goes from 0 to 1
};
static_assert(sizeof(Params) == 4, "Params has another size in Rust");
