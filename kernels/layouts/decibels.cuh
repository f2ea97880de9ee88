// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Blocks that look for the largest value of a sample, and their threads.
constexpr uint32_t PARTS = 64;
constexpr uint32_t THREADS = 256;

struct Row {
  float *to;
  const float *from;
  float *largest;  // of each of PARTS parts; nothing: 0
  uint64_t elements;
};
static_assert(sizeof(Row) == 32, "Row has another size in Rust");

struct Params {
  float factor;  // of the binary logarithm
  float floor;  // the lowest ratio
  float inverse;  // of a given reference
};
static_assert(sizeof(Params) == 12, "Params has another size in Rust");
