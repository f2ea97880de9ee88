// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Grid {
  float ratio;  // part of a tile's side that is zeroed
  float cos;  // cosine and sine of the angle, and the shift, in tiles
  float sin;
  float shift[2];
};
static_assert(sizeof(Grid) == 20, "Grid has another size in Rust");

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  uint64_t pixels;
  uint64_t width;
  uint64_t channels;
  Grid grid;
  uint32_t unused;
};
static_assert(sizeof(Row) == 64, "Row has another size in Rust");
