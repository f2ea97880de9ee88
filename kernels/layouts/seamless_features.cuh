// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Samples of a window, from one window to the next, and of a transform.
constexpr uint32_t WINDOW = 400;
constexpr uint32_t STEP = 160;
constexpr uint32_t LENGTH = 512;
// How often a window is halved until all parts have at most PART samples.
constexpr uint32_t DEPTH = 2;
// Values up to which a sum is one loop, and sums side by side in it.
constexpr uint32_t PART = 128;
constexpr uint32_t LANES = 8;
constexpr uint32_t THREADS = 256;
// What the kernel says of a band.
constexpr uint32_t MADE = 0;
constexpr uint32_t NO_NUMBERS = 1;

struct Row {
  float *to;
  int32_t *mask;
  const float *from;
  float *columns;  // logarithms, all of a band one after the other
  float *sums;  // of each block, with room for 2 << depth
  uint32_t *outcome;  // of each band: MADE or NO_NUMBERS
  uint64_t windows;
  uint64_t groups;  // of windows: rows of the output
  uint32_t depth;  // how often windows are halved until all parts have at most PART
  uint32_t unused;
};
static_assert(sizeof(Row) == 72, "Row has another size in Rust");

struct Band {
  uint32_t first;  // of its bins
  uint32_t count;
  uint32_t start;  // of its weights among those of all
};
static_assert(sizeof(Band) == 12, "Band has another size in Rust");

struct Params {
  const double *window;  // WINDOW factors
  const Complex *turns;
  const Band *filters;
  const double *weights;
  double emphasis;  // what of a sample is subtracted from the next one
  double floor;  // powers below are this
  float levels;  // what samples are multiplied by
  float epsilon;  // added to a variance
  uint32_t bands;
  uint32_t stride;  // windows of a group
};
static_assert(sizeof(Params) == 64, "Params has another size in Rust");
