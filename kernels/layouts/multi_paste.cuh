// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Region {
  const FROM *from;  // its first element
  uint64_t pitch;  // elements from one line of its image to the next
  uint64_t to[2];  // row and column on the canvas
  uint64_t size[2];  // height and width
};
static_assert(sizeof(Region) == 48, "Region has another size in Rust");

struct Row {
  TO *to;
  const Region *regions;
  uint64_t count;
  uint64_t pixels;
  uint64_t width;
  uint64_t channels;
};
static_assert(sizeof(Row) == 48, "Row has another size in Rust");
