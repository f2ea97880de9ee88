// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Dimensions of a result after those are joined that lie together in all operands.
constexpr uint32_t MAX_AXES = 6;

struct Operand {
  uint64_t address;
  int64_t stride[6];  // in elements, innermost first
};
static_assert(sizeof(Operand) == 56, "Operand has another size in Rust");

struct Row {
  RESULT *to;
  const Operand *operands;  // While rows are made: the number of the first.
  uint64_t elements;
  uint64_t axes;
  uint64_t extent[6];  // innermost first
};
static_assert(sizeof(Row) == 80, "Row has another size in Rust");
