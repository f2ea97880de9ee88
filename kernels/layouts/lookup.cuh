// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  TO *to;
  const FROM *from;
  uint64_t elements;
};
static_assert(sizeof(Row) == 24, "Row has another size in Rust");

struct Params {
  const TO *values;  // of the keys from 0 on, and behind them that of all others
  uint64_t keys;
};
static_assert(sizeof(Params) == 16, "Params has another size in Rust");
