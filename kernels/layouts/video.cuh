// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

struct Factors {
  int32_t black;  // Luma of black.
  int32_t luma;  // What luma adds to each colour.
  int32_t red_of_red;  // What red chroma adds to red.
  int32_t green_of_red;  // What red chroma adds to green.
  int32_t green_of_blue;  // What blue chroma adds to green.
  int32_t blue_of_blue;  // What blue chroma adds to blue.
};
static_assert(sizeof(Factors) == 24, "Factors has another size in Rust");

struct Params {
  uint8_t *to;
  const uint8_t *luma;  // of the window that is shown; of samples of blue and red that take turns, `red` is not used
  const uint8_t *blue;
  const uint8_t *red;
  uint32_t pitch;  // bytes from a row to the next one
  uint32_t width;
  uint32_t height;
  uint32_t depth;  // bits of a sample
  Factors factors;
};
static_assert(sizeof(Params) == 72, "Params has another size in Rust");
