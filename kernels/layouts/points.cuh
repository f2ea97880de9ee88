// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  TO *to;
  const FROM *from;
  uint64_t points;
  uint32_t from_coordinates;
  uint32_t to_coordinates;
  float matrix[6][6];
  float translation[6];
};
static_assert(sizeof(Row) == 200, "Row has another size in Rust");
