// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  uint8_t *to;
  const uint8_t *from;
  uint64_t to_bytes;
  uint64_t from_bytes;
  uint32_t *outcome;  // an Outcome
};
static_assert(sizeof(Row) == 40, "Row has another size in Rust");
