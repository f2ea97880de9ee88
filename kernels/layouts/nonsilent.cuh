// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Windows of which a thread sums the squares, each from those of the last: exactly, or in double precision, so
// that nothing is computed anew.
constexpr uint64_t RUN = 256;
// Threads that look for the region of a signal.
constexpr uint32_t THREADS = 1024;

struct Row {
  const FROM *from;
  float *means;  // of the squares of every window
  int32_t *begin;
  int32_t *length;
  uint64_t positions;  // of windows
  uint64_t window;  // elements
};
static_assert(sizeof(Row) == 48, "Row has another size in Rust");

struct Params {
  float ratio;  // of the threshold to the reference
  float reference;  // negative: the loudest window
};
static_assert(sizeof(Params) == 8, "Params has another size in Rust");
