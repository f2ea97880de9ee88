// Images with squares set to 0 that repeat in a turned grid. ELEMENT is the type; a row of the table is an image.
#include "common.cuh"

#include "layouts/grid_mask.cuh"

extern "C" __global__ void grid_mask(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const Grid &grid = row.grid;
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.pixels; i += step) {
    const float x = i % row.width, y = i / row.width;
    const float across = -grid.shift[0] + y * -grid.sin + x * grid.cos;
    const float down = -grid.shift[1] + y * grid.cos + x * grid.sin;
    const bool is_kept = across - floorf(across) >= grid.ratio || down - floorf(down) >= grid.ratio;
    const ELEMENT *from = row.from + i * row.channels;
    ELEMENT *to = row.to + i * row.channels;
    for (uint64_t c = 0; c < row.channels; c++) to[c] = is_kept ? from[c] : ELEMENT(0);
  }
}
