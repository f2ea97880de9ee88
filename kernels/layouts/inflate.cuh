// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Threads that inflate a chunk.
constexpr uint32_t WARP = 32;
// What the kernel says of a chunk: it was inflated, ends early, becomes more, repeats what is 0 bytes before or
// what lies before its beginning.
constexpr uint32_t INFLATED = 0;
constexpr uint32_t ENDS_EARLY = 1;
constexpr uint32_t TOO_LONG = 2;
constexpr uint32_t ZERO_OFFSET = 3;
constexpr uint32_t OFFSET_OUTSIDE = 4;

struct Row {
  uint8_t *to;
  const uint8_t *from;
  uint64_t to_bytes;
  uint64_t from_bytes;
  uint32_t *outcome;  // INFLATED or what is wrong
};
static_assert(sizeof(Row) == 40, "Row has another size in Rust");
