// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Values up to which a sum is one loop, and sums side by side in it.
constexpr uint32_t PART = 128;
constexpr uint32_t LANES = 8;

struct Row {
  float *to;
  const float *from;
  float *sums;  // room for 2 << depth
  uint64_t elements;
  uint32_t depth;  // how often elements are halved until all parts have at most PART
  uint32_t unused;
};
static_assert(sizeof(Row) == 40, "Row has another size in Rust");

struct Params {
  float epsilon;  // added to the variance
};
static_assert(sizeof(Params) == 4, "Params has another size in Rust");
