// Decodes each piece from its true beginning and writes coefficients, in zig-zag order, DC values summed up. A thread collects
// its block in shared memory; the threads of a warp write finished blocks together.
#include "jpeg.cuh"

typedef Task Row;
CHECK_LAYOUT(Row, Params);

constexpr uint32_t THREADS = 128;
// Bytes from one thread's block to the next: apart from each other in the banks.
constexpr uint32_t STRIDE = 33;

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_decode(const Row *rows, uint32_t count, Params p) {
  __shared__ Tables tables;
  __shared__ Window window;
  __shared__ uint32_t blocks[THREADS][STRIDE];
  const Row task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  for (uint32_t i = threadIdx.x; i < THREADS * STRIDE; i += THREADS) (&blocks[0][0])[i] = 0;
  const uint32_t origin = load(window, tables, p, image, task.first, task.first + task.count);
  const uint32_t piece = task.first + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x - lane;
  const uint32_t mcu_blocks = image.mcu_blocks, pairs = image.pairs, components = image.components;
  int16_t *mine = (int16_t *)blocks[threadIdx.x];
  uint32_t *const out = (uint32_t *)(p.coefficients + (uint64_t)image.first_block * 64);

  bool active = threadIdx.x < task.count && piece < image.pieces;
  Start start = {};
  uint32_t end = 0, last = 0;
  if (active) {
    start = p.starts[image.first_piece + piece];
    const Segment segment = segment_of(p, image, piece);
    end = min(end_of(image, segment, piece) - origin, WINDOW * 32);
    last = segment.first_bit + segment.bits - origin;
    active = start.place >> 4 >= origin && (start.place >> 4) - origin < end && start.block < start.end;
  }
  uint32_t phase = start.place & 15, block = start.block, bad = 0;
  uint32_t at = active ? (start.place >> 4) - origin : 0;
  int32_t dc0 = start.dc[0], dc1 = start.dc[1], dc2 = start.dc[2];
  uint32_t table = pairs >> phase << 1 & 2;
  while (__any_sync(~0u, active)) {
    bool done = false;
    if (active) {
      const uint32_t bits = window.peek(at & AT_BIT);
      const uint32_t e = tables.find(table, bits);
      int32_t v = value_of(bits, e);
      if (e == NO_CODE) bad |= BAD_CODE;
      if (at < COEFFICIENT) {
        const uint32_t c = components >> 2 * phase & 3;
        v = c == 0 ? dc0 += v : c == 1 ? dc1 += v : dc2 += v;
        mine[0] = (int16_t)v;
        at += move_of(e);
      } else {
        at += move_of(e);
        const uint32_t k = at / COEFFICIENT - 1;
        if (e & 0x80E0) {
          if (k < 64) mine[k] = (int16_t)v;
          else bad |= BAD_CODE;
        }
      }
      table |= 1;
      done = at >= BLOCK_END;
    }
    uint32_t full = __ballot_sync(~0u, done);
    while (full) {
      const uint32_t from = __ffs(full) - 1;
      full &= full - 1;
      const uint64_t to = __shfl_sync(~0u, block, from);
      out[to * 32 + lane] = blocks[warp + from][lane];
      blocks[warp + from][lane] = 0;
    }
    __syncwarp();
    if (done) {
      at &= AT_BIT;
      phase = phase + 1 == mcu_blocks ? 0 : phase + 1;
      table = pairs >> phase << 1 & 2;
      block++;
      if (at > last) bad |= TOO_SHORT;
      // A byte that is not begun holds no padding.
      else if (block == start.end && last - at >= 8) bad |= TOO_LONG;
      active = at < end && block < start.end;
    }
  }
  if (bad) atomicOr(p.status + task.image, bad);
}
