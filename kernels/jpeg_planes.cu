// Coefficients to samples: dequantises and transforms the blocks of a component that are needed, as wide as its plane asks for. Eight
// threads share a block.
#include "jpeg_transform.cuh"

typedef Task Row;
CHECK_LAYOUT(Row, Params);

constexpr uint32_t THREADS = 256, BLOCKS = THREADS / 8;

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_planes(const Row *rows, uint32_t count, Params p) {
  __shared__ int32_t work[BLOCKS][8][9];
  const Row task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  const uint32_t c = task.component;
  const Plane plane = p.planes[image.first_plane + c];
  const uint32_t block = threadIdx.x / 8, line = threadIdx.x % 8;
  int32_t(*const mine)[9] = work[block];
  // Blocks of an MCU.
  const uint32_t across = image.across[c], down = image.mcu_height >> image.factor_y[c];
  const uint4 steps = *(const uint4 *)(p.quantisation + image.quantisation[c] * 64 + line * 8);
  const uint16_t *s = (const uint16_t *)&steps;
  for (uint32_t first = 0; first < task.count; first += BLOCKS) {
    // All go on to the last barrier together.
    const uint32_t number = task.first + min(first + block, task.count - 1);
    const uint32_t row = number / plane.across, column = number % plane.across;
    const uint32_t x = (plane.left >> plane.side) + column, y = (plane.top >> plane.side) + row;
    const uint32_t mcu = y / down * image.mcus_across + x / across;
    const uint64_t at = (uint64_t)image.first_block + mcu * image.mcu_blocks + image.first[c] + y % down * across + x % across;
    const uint4 packed = *(const uint4 *)(p.coefficients + at * 64 + line * 8);
    const int16_t *v = (const int16_t *)&packed;
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) (&mine[0][0])[byte_of(NATURAL[line], i)] = v[i] * s[i];
    __syncwarp();
    int32_t t[8];
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) t[i] = mine[i][line];
    if (plane.side == 3) transform<11, 0>(t);
    else if (plane.side == 2) transform_to_four<12, 0>(t);
    else if (plane.side == 1) transform_to_two<13, 0>(t);
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) mine[i][line] = t[i];
    __syncwarp();
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) t[i] = mine[line][i];
    __syncwarp();
    if (first + block >= task.count) break;
    uint8_t *const to = plane.samples + ((uint64_t)(row << plane.side) + line) * plane.stride + (column << plane.side);
    if (plane.side == 3) {
      transform<18, 128>(t);
      *(uint2 *)to = {pack(t), pack(t + 4)};
    } else if (line >> plane.side == 0) {
      if (plane.side == 2) {
        transform_to_four<19, 128>(t);
        *(uint32_t *)to = pack(t);
      } else if (plane.side == 1) {
        transform_to_two<20, 128>(t);
        *(uint16_t *)to = (uint16_t)pack(t[0], t[1], 0);
      } else {
        *to = (uint8_t)pack(((t[0] + 4) >> 3) + 128, 0, 0);
      }
    }
  }
}
