// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  uint64_t key;  // of the image's random numbers
  uint64_t sequence;
  uint64_t pixels;
  uint64_t channels;
  int32_t size[2];  // columns, rows
  uint32_t is_changed;
  float fill;  // outside of the image, as an element holds it
};
static_assert(sizeof(Row) == 64, "Row has another size in Rust");

struct Wave {
  float amplitude;
  float frequency;
  float phase;
};
static_assert(sizeof(Wave) == 12, "Wave has another size in Rust");

struct Params {
  Wave waves[2];  // along x, along y
  uint32_t most;  // pixels along each axis
  uint32_t is_linear;
};
static_assert(sizeof(Params) == 32, "Params has another size in Rust");
