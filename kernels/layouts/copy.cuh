// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  uint8_t *to;  // Address of the first in the output.
  const uint8_t *from;  // Address of all in the input.
  uint64_t bytes;  // Bytes of each.
  uint64_t count;  // How many.
  uint64_t pitch;  // Bytes from one to the next in the output.
};
static_assert(sizeof(Row) == 40, "Row has another size in Rust");
