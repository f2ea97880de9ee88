// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Axis {
  uint64_t extent;
  uint64_t parameter;  // distance of the parameters of neighbours; 0: they have the same
};
static_assert(sizeof(Axis) == 16, "Axis has another size in Rust");

struct Row {
  const FROM *from;
  TO *to;
  const float *means;
  const float *scales;
  uint64_t mean_step;  // distance of the means of neighbouring parameters: 1, or 0 when there is one for all
  uint64_t scale_step;  // the same of scales
  uint64_t elements;
  uint64_t axes;
  Axis axis[16];  // innermost first
};
static_assert(sizeof(Row) == 320, "Row has another size in Rust");

struct Params {
  float shift;
};
static_assert(sizeof(Params) == 4, "Params has another size in Rust");
