// Decodes each piece from its true beginning and writes coefficients, in zig-zag order, DC values summed up. A thread collects half of
// a block at a time in shared memory, so that many fit; the threads of a warp write halves that are complete together.
#include "jpeg.cuh"

typedef Task Row;
CHECK_LAYOUT(Row, Params);

constexpr uint32_t THREADS = 128;
constexpr uint32_t HALF = 32;
// Bytes from one thread's half to the next: apart from each other in the banks.
constexpr uint32_t STRIDE = HALF * 2 + 4;
constexpr uint32_t NEXT_BLOCK = 1, SECOND = 2, NEXT_HALF = 4;

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_decode(const Row *rows, uint32_t count, Params p) {
  __shared__ Tables tables;
  __shared__ Window window;
  __shared__ uint32_t memory[THREADS * STRIDE / 4];
  const Row task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  for (uint32_t i = threadIdx.x; i < THREADS * STRIDE / 4; i += THREADS) memory[i] = 0;
  const uint32_t origin = load(window, tables, p, image, task.first, task.first + task.count);
  const Reader reader(window, tables);
  const Shared halves(memory);
  const uint32_t piece = task.first + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x - lane;
  const uint32_t mcu_blocks = image.mcu_blocks, pairs = image.pairs, components = image.components;
  const uint32_t mine = threadIdx.x * STRIDE;
  // Where a lane's words of blocks are written, and are until then.
  uint32_t *const out = (uint32_t *)(p.coefficients + (uint64_t)image.first_block * 64) + lane;
  const uint32_t place = warp * STRIDE + lane % 16 * 4;

  uint32_t active = threadIdx.x < task.count && piece < image.pieces;
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
  // The half of the block that the thread is in: 0, or SECOND.
  uint32_t half = 0;
  while (__any_sync(~0u, active)) {
    // Whether the half is complete: the first, because a value of the second is next; either, because the block is.
    uint32_t event = 0;
    if (active) {
      const uint32_t bits = reader.peek(at), e = reader.find(table, bits), next = at + move_of(e), k = next / COEFFICIENT - 1;
      const bool has_value = e & 0x80E0;
      if (has_value && k >= HALF && half == 0) {
        // The value is read again when the first half is written.
        event = NEXT_HALF;
      } else {
        int32_t v = value_of(bits, e);
        const bool is_dc = at < COEFFICIENT;
        if (is_dc) {
          const uint32_t c = components >> 2 * phase & 3;
          v = c == 0 ? dc0 += v : c == 1 ? dc1 += v : dc2 += v;
        }
        if (e == NO_CODE || (has_value && k >= 64)) bad |= BAD_CODE;
        else if (is_dc || has_value) halves.put_half(mine + k % HALF * 2, v);
        at = next;
        table |= 1;
        if (at >= BLOCK_END) event = NEXT_BLOCK;
      }
    }
    uint32_t full = __ballot_sync(~0u, event);
    // To vote orders nothing in memory.
    __syncwarp();
    const uint32_t told = block << 2 | half | event & NEXT_BLOCK;
    while (full) {
      const uint32_t from = __ffs(full) - 1;
      full &= full - 1;
      const uint32_t what = __shfl_sync(~0u, told, from);
      // A block that ends in its first half has zeros behind it.
      const bool here = lane / 16 * SECOND == (what & SECOND);
      uint32_t v = 0;
      if (here) {
        v = halves.word(place + from * STRIDE);
        halves.put_word(place + from * STRIDE, 0);
      }
      if (here || (what & (SECOND | NEXT_BLOCK)) == NEXT_BLOCK) out[(uint64_t)(what >> 2) * 32] = v;
    }
    __syncwarp();
    if (event) half = SECOND;
    if (event == NEXT_BLOCK) {
      at &= AT_BIT;
      half = 0;
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
