// Decodes each piece from its true beginning and writes the coefficients that are not 0, DC values summed up.
#include "jpeg.cuh"

typedef Task Row;
CHECK_LAYOUT(Row, Params);

constexpr uint32_t THREADS = 128;

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_decode(const Row *rows, uint32_t count, Params p) {
  __shared__ Tables tables;
  __shared__ Window window;
  const Row task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  const uint32_t origin = load(window, tables, p, image, task.first, task.first + task.count);
  const uint32_t piece = task.first + threadIdx.x;
  if (threadIdx.x >= task.count || piece >= image.pieces) return;
  const uint32_t mcu_blocks = image.mcu_blocks, pairs = image.pairs, components = image.components;
  const Start start = p.starts[image.first_piece + piece];
  const Segment segment = segment_of(p, image, piece);
  const uint32_t end = min(end_of(image, segment, piece) - origin, WINDOW * 32), last = segment.first_bit + segment.bits - origin;
  bool active = start.place >> 4 >= origin && (start.place >> 4) - origin < end && start.block < start.end;
  uint32_t phase = start.place & 15, block = start.block, at = (start.place >> 4) - origin, bad = 0;
  int32_t dc0 = start.dc[0], dc1 = start.dc[1], dc2 = start.dc[2], dc = 0;
  uint32_t table = pairs >> phase << 1 & 2;
  // Entries of the piece so far, and where those of the block begin.
  const uint32_t room = entry_room(image), base = image.first_entry + piece * room;
  uint32_t *const entries = p.entries + base;
  uint32_t size = 0, first = 0;
  while (active) {
    const uint32_t bits = window.peek(at & AT_BIT);
    const uint32_t e = tables.find(table, bits);
    const int32_t v = value_of(bits, e);
    if (e == NO_CODE) bad |= BAD_CODE;
    if (at < COEFFICIENT) {
      const uint32_t c = components >> 2 * phase & 3;
      dc = c == 0 ? dc0 += v : c == 1 ? dc1 += v : dc2 += v;
      at += move_of(e);
      first = size++;
    } else {
      at += move_of(e);
      const uint32_t k = at / COEFFICIENT - 1;
      if (e & 0x80E0) {
        if (k < 64 && size < room) entries[size++] = k << 16 | (uint16_t)v;
        else bad |= BAD_CODE;
      }
    }
    table |= 1;
    if (at < BLOCK_END) continue;
    at &= AT_BIT;
    phase = phase + 1 == mcu_blocks ? 0 : phase + 1;
    table = pairs >> phase << 1 & 2;
    // Codes that do not exist take fewer bits than there is room for.
    if (size > room) {
      bad |= BAD_CODE;
      break;
    }
    entries[first] = (size - first) << 16 | (uint16_t)dc;
    p.blocks[image.first_block + block] = base + first;
    block++;
    if (at > last) bad |= TOO_SHORT;
    // A byte that is not begun holds no padding.
    else if (block == start.end && last - at >= 8) bad |= TOO_LONG;
    active = at < end && block < start.end;
  }
  if (bad) atomicOr(p.status + task.image, bad);
}
