// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  float *to;
  const float *from;
  uint64_t elements;
  uint32_t coordinates;  // of a point
  uint32_t flipped;  // a bit for each that is mirrored
  float twice[3];  // the center, twice
  uint32_t unused;
};
static_assert(sizeof(Row) == 48, "Row has another size in Rust");
