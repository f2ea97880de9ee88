// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  RESULT *to;
  const Operand *operands;  // While rows are made: the number of the first.
  uint64_t elements;
  uint64_t axes;
  uint64_t extent[6];  // innermost first
};
static_assert(sizeof(Row) == 80, "Row has another size in Rust");
