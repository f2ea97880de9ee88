// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Blocks of a signal, of which each finds its loudest value, and threads of a block.
constexpr uint32_t PARTS = 256;
constexpr uint32_t THREADS = 256;
// What the kernel says of a signal.
constexpr uint32_t MADE = 0;
constexpr uint32_t NO_NUMBERS = 1;

struct Row {
  float *to;
  const float *from;
  int64_t given;  // samples that are there
  int64_t samples;  // and those with the silence behind them
  uint64_t windows;
  float *loudest;  // of each of PARTS blocks
  uint32_t *outcome;  // MADE or NO_NUMBERS
};
static_assert(sizeof(Row) == 56, "Row has another size in Rust");

struct Band {
  uint32_t first;  // of its bins
  uint32_t count;
  uint32_t start;  // of its weights among those of all
};
static_assert(sizeof(Band) == 12, "Band has another size in Rust");

struct Params {
  const double *window;  // LENGTH factors
  const Complex *turns;
  const Band *filters;
  const double *weights;
  Complex *memory;  // of each block, where threads do not share it
  double floor;  // powers below are this
  float range;  // how far below the loudest values are kept
  uint32_t step;  // samples from a window to the next
  uint32_t bands;
  uint32_t parts;  // blocks of a signal
};
static_assert(sizeof(Params) == 64, "Params has another size in Rust");
