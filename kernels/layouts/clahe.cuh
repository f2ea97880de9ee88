// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Row {
  uint8_t *to;
  const uint8_t *from;
  uint8_t *tables;  // 256 levels for each tile, tiles row by row
  const Lab *lab;
  uint64_t step;  // elements from one pixel to the next
  uint32_t size[2];  // along x and y: pixels of the image, tiles, pixels of a tile
  uint32_t tiles[2];
  uint32_t tile[2];
  uint32_t limit;  // largest count of a level; 0: any
  float scale;  // levels for each pixel of a tile
};
static_assert(sizeof(Row) == 72, "Row has another size in Rust");
