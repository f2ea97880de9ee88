// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  const uint8_t *src;  // The first pixel of the crop.
  uint8_t *dst;
  const int32_t *rows;  // Of each row of the output its row, -1: none, which is 0.
  const int32_t *columns;  // Of each column of the output its column.
  uint32_t height;
  uint32_t width;
  uint32_t pitch;  // Bytes from row to row of the source.
  uint32_t step;  // Elements of a pixel.
};
static_assert(sizeof(Row) == 48, "Row has another size in Rust");
