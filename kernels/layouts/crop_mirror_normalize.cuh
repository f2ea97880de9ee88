// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Dimension {
  int64_t stride;  // elements between neighbours in the source
  int64_t anchor;  // of the window
  uint32_t source;  // elements of the source along it
  uint32_t window;  // elements of the output along it
  uint32_t mirror;
  uint32_t unused;
};
static_assert(sizeof(Dimension) == 32, "Dimension has another size in Rust");

struct Row {
  DST *to;
  const SRC *from;
  const float *factor;  // a value for each channel of the output; with TABLES 256 values for each channel of the source
  const float *bias;
  const float *fill;
  uint64_t elements;  // of the output
  uint32_t channel;  // which dimension
  uint32_t channels;  // of the source
  Dimension dimensions[5];  // NDIM of them are used
};
static_assert(sizeof(Row) == 216, "Row has another size in Rust");
