// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Band {
  uint32_t first;  // Of the elements that are summed.
  uint32_t count;
  uint32_t start;  // Of their weights.
  float scale;  // Multiplies the sum.
};
static_assert(sizeof(Band) == 16, "Band has another size in Rust");

struct Row {
  float *to;
  const float *from;
  const Band *bands;
  const float *weights;
  uint64_t elements;  // of the output
  uint32_t extent;  // of the dimension, and how many bands it becomes
  uint32_t count;
  uint32_t inner;  // elements of the dimensions behind it
  uint32_t unused;
};
static_assert(sizeof(Row) == 56, "Row has another size in Rust");
