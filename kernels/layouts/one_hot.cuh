// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  TO *to;
  const FROM *from;
  uint64_t elements;  // of the output
  uint64_t classes;
  uint64_t inner;  // elements of the output from one class to the next
};
static_assert(sizeof(Row) == 40, "Row has another size in Rust");

struct Params {
  uint64_t on;  // the bits of an element
  uint64_t off;
};
static_assert(sizeof(Params) == 16, "Params has another size in Rust");
