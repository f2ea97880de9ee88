// Decodes each piece of each image from its first bit, once for every guess which block of the MCU that is. A decoder that
// starts wrong soon reads right codes again, mostly in the right block of the MCU for at least one of the guesses.
#include "jpeg.cuh"

typedef Task Row;
CHECK_LAYOUT(Row, Params);

extern "C" __global__ void __launch_bounds__(256) jpeg_guess(const Row *rows, uint32_t count, Params p) {
  __shared__ Tables tables;
  __shared__ Window window;
  const Row task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  const uint32_t guesses = image.guesses;
  const uint32_t origin = load(window, tables, p, image, task.first, task.first + task.count);
  const Reader reader(window, tables);
  const uint32_t piece = task.first + threadIdx.x / guesses, guess = threadIdx.x % guesses;
  if (threadIdx.x >= task.count * guesses || piece >= image.pieces) return;
  const Segment segment = segment_of(p, image, piece);
  const uint32_t end = min(end_of(image, segment, piece) - origin, WINDOW * 32);
  const uint32_t mcu_blocks = image.mcu_blocks, pairs = image.pairs;
  uint32_t phase = guess * mcu_blocks / guesses, at = begin_of(image, segment, piece) - origin;
  uint32_t table = pairs >> phase << 1 & 2;
  for (;;) {
    at += move_of(reader.find(table, reader.peek(at)));
    const bool done = at >= BLOCK_END;
    at = done ? at & AT_BIT : at;
    const uint32_t next = phase + 1 == mcu_blocks ? 0 : phase + 1;
    phase = done ? next : phase;
    table = done ? pairs >> next << 1 & 2 : table | 1;
    if (done && at >= end) break;
  }
  const uint32_t i = image.first_piece + piece;
  p.exits[i * SLOT_ROOM + guess] = place_of(origin + at, phase);
  for (uint32_t slot = guesses + guess; slot < SLOTS; slot += guesses) p.exits[i * SLOT_ROOM + slot] = FREE;
}
