// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  Box *told;
  int32_t *labels_told;  // holds the numbers of boxes meanwhile
  const Box *boxes;
  const int32_t *labels;
  uint32_t *closest;  // for each box the anchor that it has most in common with
  uint64_t count;
};
static_assert(sizeof(Row) == 48, "Row has another size in Rust");

struct Params {
  const Box *anchors;
  uint64_t count;
  float criteria;
  uint32_t tells_offsets;
  float scale;
  float means[4];
  float stds[4];
  uint32_t unused;
};
static_assert(sizeof(Params) == 64, "Params has another size in Rust");
