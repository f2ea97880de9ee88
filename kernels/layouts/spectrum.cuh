// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  float *to;
  const float *from;
  int64_t samples;
  uint64_t windows;
};
static_assert(sizeof(Row) == 32, "Row has another size in Rust");

struct Params {
  const float *window;  // `taps` factors
  const Turn *turns;  // by i / LENGTH of a circle, clockwise; for a convolution by i / SPAN
  const Turn *chirp;  // for a convolution, by i * i / (2 * LENGTH)
  const Turn *filter;  // and the spectrum that it multiplies by, in the order of reversed bits
  float *memory;  // large transforms: of each block
  uint32_t taps;
  uint32_t step;  // samples from a window to the next
  int32_t before;  // samples of the first window before the signal
  uint32_t mirrors;
  uint32_t squares;
  uint32_t bins_last;
};
static_assert(sizeof(Params) == 64, "Params has another size in Rust");
