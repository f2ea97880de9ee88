// Regions of images on black canvases, later ones above earlier ones. FROM and TO are the types; a row of the table is
// a canvas.
#include "common.cuh"

#include "layouts/multi_paste.cuh"

extern "C" __global__ void multi_paste(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < row.pixels; i += step) {
    const uint64_t x = i % row.width, y = i / row.width;
    const FROM *from = nullptr;
    for (uint64_t k = row.count; k > 0 && !from; k--) {
      const Region &region = row.regions[k - 1];
      // What lies in front of a region is a large number.
      const uint64_t down = y - region.to[0], across = x - region.to[1];
      if (down < region.size[0] && across < region.size[1]) from = region.from + down * region.pitch + across * row.channels;
    }
    TO *to = row.to + i * row.channels;
    for (uint64_t c = 0; c < row.channels; c++) to[c] = from ? convert<TO>(from[c]) : TO(0);
  }
}
