// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  uint64_t key;
  uint64_t sequence;
  uint64_t pixels;  // of which each has a random number
  uint64_t channels;
  uint64_t pixel_step;  // elements from one to the next
  uint64_t channel_step;
  uint64_t salt;  // the bytes of bright and of dark elements
  uint64_t pepper;
  float first;  // mean and deviation; what the numbers of errors and of bright errors are below; what an event adds
  float second;
};
static_assert(sizeof(Row) == 88, "Row has another size in Rust");
