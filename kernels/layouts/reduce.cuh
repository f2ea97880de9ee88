// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Axis {
  uint64_t extent;
  uint64_t stride;  // distance of neighbours, in elements
  uint64_t result;  // Distance of the results of neighbours; 0 when they have the same.
};
static_assert(sizeof(Axis) == 24, "Axis has another size in Rust");

struct Row {
  const FROM *from;
  TO *to;
  ACC *parts;  // folds of chunks, those of the first chunk of all results first; null: each result has one chunk
  const float *means;
  uint64_t mean_step;  // Distance of the means of neighbouring results: 1, or 0 when there is one for all.
  uint64_t results;
  uint64_t each;  // elements of a result
  uint64_t chunks;  // into which these are cut
  uint64_t lanes;  // threads that fold a chunk; a power of two, at most THREADS
  uint64_t step;  // distance of neighbouring elements of a result; 0: there is no one distance
  uint64_t axes;
  Axis axis[16];  // innermost first
};
static_assert(sizeof(Row) == 472, "Row has another size in Rust");

struct Params {
  float scale;  // for SCALE: the deviation
  float epsilon;  // and what is added to the variance
  int64_t ddof;  // subtracted from the number of elements
};
static_assert(sizeof(Params) == 16, "Params has another size in Rust");
