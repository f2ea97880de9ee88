// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  TO *to;
  const FROM *from;
  uint64_t elements;  // channels of the sample, or pixels where they are mixed
  float factor[9];  // one, or a row of three for each channel of the output
  float addend;
};
static_assert(sizeof(Row) == 64, "Row has another size in Rust");
