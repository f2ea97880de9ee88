// Coefficients to samples: dequantises and transforms the blocks of a component that are needed, as wide as its plane
// asks for. Eight threads share a block.
#include "jpeg_transform.cuh"

constexpr uint32_t THREADS = PIXELS_THREADS, BLOCKS = THREADS / 8;

// Divides: by powers of two without a division.
struct Divisor {
  uint32_t n, log;

  __device__ explicit Divisor(uint32_t n) : n(n), log(n & (n - 1) ? 32 : __ffs(n) - 1) {}
  __device__ uint32_t quotient(uint32_t v) const { return log < 32 ? v >> log : v / n; }
};

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_planes(const Task *rows, uint32_t count, Params p) {
  begin_early();
  __shared__ int32_t work[BLOCKS][8][9];
  const Task task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  const uint32_t c = task.component;
  const Plane plane = p.planes[image.first_plane + c];
  const uint32_t block = threadIdx.x / 8, line = threadIdx.x % 8;
  int32_t(*const mine)[9] = work[block];
  // Blocks of an MCU: mostly one or two.
  const Divisor across(image.across[c]), down(image.mcu_height >> image.factor_y[c]);
  const uint4 steps = *(const uint4 *)(p.quantisation + image.quantisation[c] * 64 + line * 8);
  const uint16_t *s = (const uint16_t *)&steps;
  const uint64_t first_block = (uint64_t)image.first_block + image.first[c];
  const uint32_t left = plane.left >> plane.side, top = plane.top >> plane.side, number = task.first + min(block, task.count - 1);
  uint32_t row = number / plane.across, column = number % plane.across;
  Wide wide;
  for (uint32_t first = 0; first < task.count; first += BLOCKS) {
    const uint32_t x = left + column, y = top + row, mcu_x = across.quotient(x), mcu_y = down.quotient(y);
    const uint32_t mcu = mcu_y * image.mcus_across + mcu_x, own = (y - mcu_y * down.n) * across.n + x - mcu_x * across.n;
    const uint64_t at = first_block + mcu * image.mcu_blocks + own;
    uint4 packed = *(const uint4 *)(p.coefficients + at * 64 + line * 8);
    int16_t *v = (int16_t *)&packed;
    if (line == 0) v[0] = p.dcs[at];
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
      const int32_t product = v[i] * s[i];
      wide.note_first(product);
      (&mine[0][0])[byte_of(NATURAL[line], i)] = product;
    }
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
    for (uint32_t i = 0; i < 8; i++) {
      t[i] = mine[line][i];
      wide.note_second(t[i]);
    }
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
      // Who reads eight samples at once reads those behind the row's end, too.
      const uint32_t end = (column + 1) << plane.side;
      for (uint32_t i = end; column + 1 == plane.across && i < plane.stride; i++) to[i - (column << plane.side)] = 0;
    }
    // All go on to the last barrier together: who has no block then has his last once more.
    if (first + BLOCKS + block < task.count) {
      column += BLOCKS;
      if (column >= plane.across) row += column / plane.across, column %= plane.across;
    }
  }
  wide.tell(p.status + task.image);
}
