// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  TO *to;
  uint64_t elements;
  uint64_t key;
  uint64_t sequence;
  const float *values;  // of `one_of`, `count` of them
  uint64_t count;  // for `coin_flip` the largest word that means one
  double low;  // for `normal` the mean and the deviation
  double factor;
  double last;  // largest number of `uniform`
};
static_assert(sizeof(Row) == 72, "Row has another size in Rust");
