// Images with squares set to 0 that repeat in a turned grid. ELEMENT is the type; a row of the table is an image.
#include "common.cuh"

struct Row {
  ELEMENT *to;
  const ELEMENT *from;
  uint64_t pixels;
  uint64_t width;
  uint64_t channels;
  float ratio;  // side of a square in tiles
  float cosine, sine, shift[2];  // of the grid, in tiles
  uint32_t unused;
};
CHECK_LAYOUT(Row, NoParams);

extern "C" __global__ void grid_mask(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.pixels; i += step) {
    const float x = i % row.width, y = i / row.width;
    const float across = -row.shift[0] + y * -row.sine + x * row.cosine;
    const float down = -row.shift[1] + y * row.cosine + x * row.sine;
    const bool is_kept = across - floorf(across) >= row.ratio || down - floorf(down) >= row.ratio;
    const ELEMENT *from = row.from + i * row.channels;
    ELEMENT *to = row.to + i * row.channels;
    for (uint64_t c = 0; c < row.channels; c++) to[c] = is_kept ? from[c] : ELEMENT(0);
  }
}
