// Decodes each section of a piece from its true beginning and writes coefficients, in zig-zag order, and apart from
// them the differences of DC values. A thread collects half of a block at a time in shared memory, so that many fit.
#include "jpeg_codes.cuh"

constexpr uint32_t THREADS = DECODE_THREADS;
constexpr uint32_t HALF = 32;
// Bytes from one thread's half to the next: it is written in fours of words, and others lie in other banks.
constexpr uint32_t STRIDE = HALF * 2 + 16;
// Positions behind the values of the first half, and of all, are below these.
constexpr uint32_t FIRST = (HALF + 1) * COEFFICIENT, ALL = 65 * COEFFICIENT;

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_decode(const Task *rows, uint32_t count, Params p) {
  __shared__ Codes tables;
  __shared__ Window<DECODE_WINDOW> window;
  __shared__ uint4 memory[THREADS * STRIDE / 16];
  const Task task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  for (uint32_t i = threadIdx.x; i < THREADS * STRIDE / 16; i += THREADS) memory[i] = {0, 0, 0, 0};
  const uint32_t origin = load(window, p, image, task.first, task.first + task.count);
  tables.load(p, image);
  begin_early();
  __syncthreads();
  // All threads make these together.
  Finder<Codes> finder(window, tables, image);
  const Shared halves(memory);
  const uint32_t sections = task.count << p.halvings, mine = spread(sections, THREADS), piece = task.first + (mine >> p.halvings);
  if (mine >= sections || piece >= image.pieces) return;
  const uint32_t section = mine & ((1 << p.halvings) - 1);
  const Start start = p.starts[(image.first_piece + piece << p.halvings) + section];
  const Segment segment = segment_of(p, image, piece);
  const uint32_t end = min(end_of_section(image, segment, piece, section, p.halvings) - origin, DECODE_WINDOW * 32), last = segment.first_bit + segment.bits - origin;
  uint32_t at = (start.place >> 4) - origin, block = start.block, bad = 0;
  if (start.place >> 4 < origin || at >= end || block >= start.end) return;
  finder.reader.start(at);
  finder.turn(true, start.place & 15);
  const Shared half(halves, threadIdx.x * STRIDE);
  uint4 *to = (uint4 *)(p.coefficients + ((uint64_t)image.first_block + block) * 64);
  int16_t *dc = p.dcs + image.first_block + block;
  // Positions behind values of the half that the thread is in are below this; and the bytes of the coefficients up to
  // before the half.
  uint32_t limit = FIRST, before = 2;
  static_assert((DECODE_WINDOW + REACH) * 32 < 1 << 23, "bits of a position are below twice its coefficient");
  const auto put = [&](uint32_t at, int32_t v) { half.put_half((at >> 23) - before, v); };
  for (bool over = false; !over;) {
    const uint32_t bits = finder.reader.peek(at), from = at;
    uint32_t e = finder.entries.word(finder.table + (bits >> finder.shift) * 4);
    if (e == 0) {
      e = finder.one(bits);
      if (e == NO_CODE) bad |= BAD_CODE;
    }
    const bool is_dc = at < COEFFICIENT;
    const uint32_t size = value_bits(e), next = at + move_of(e);
    // A value that is not of the half is read again when that is written.
    bool beyond = size && next >= limit && !is_dc;
    const int32_t v = value_of(__funnelshift_l(0, bits, e), size);
    if (is_dc) *dc = size ? v : 0;
    if (size && !beyond && !is_dc) put(next, v);
    // The code behind it.
    const uint32_t second = e >> 16, second_size = value_bits(second), behind = next + move_of(second);
    const bool there = second && !beyond && next < BLOCK_END;
    const int32_t w = value_of(__funnelshift_l(0, bits, code_bits(e) + size + second), second_size);
    const bool second_beyond = there && second_size && behind >= limit;
    if (there && second_size && !second_beyond) put(behind, w);
    at = beyond ? at : there && !second_beyond ? behind : next;
    beyond |= second_beyond;
    finder.reader.move(from, at);
    finder.turn(false, 0);
    if (beyond || at >= BLOCK_END) {
      const bool first = limit == FIRST, done = !beyond || !first;
      uint4 *const place = first ? to : to + HALF / 8;
#pragma unroll
      for (uint32_t i = 0; i < HALF / 8; i++) {
        place[i] = half.four(i * 16);
        half.put_four(i * 16, {0, 0, 0, 0});
        // A block that ends in its first half has zeros behind it.
        if (done && first) place[HALF / 8 + i] = {0, 0, 0, 0};
      }
      limit = ALL, before = 2 + 2 * HALF;
      if (done) {
        // No value is behind the last.
        if (beyond) bad |= BAD_CODE, at += code_bits(e) + 1, finder.reader.start(at);
        at &= AT_BIT, to += 8, dc++, block++, limit = FIRST, before = 2;
        finder.turn(true, finder.next_block());
        if (at > last) bad |= TOO_SHORT;
        // A byte that is not begun holds no padding.
        else if (block == start.end && last - at >= 8) bad |= TOO_LONG;
        over = at >= end || block == start.end;
      }
    }
  }
  if (bad) atomicOr(p.status + task.image, bad);
}
