// Decodes each piece of each image from its first bit, once for every guess which block of the MCU that is. A decoder
// that starts wrong soon reads right codes again, mostly in the right block of the MCU for at least one of the guesses.
#include "jpeg_codes.cuh"

extern "C" __global__ void __launch_bounds__(SKIP_THREADS) jpeg_guess(const Task *rows, uint32_t count, Params p) {
  __shared__ Skips tables;
  __shared__ Window<SKIP_WINDOW> window;
  const Task task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  const uint32_t guesses = image.guesses;
  const uint32_t origin = load(window, p, image, task.first, task.first + task.count);
  begin_early();
  tables.load(p, image);
  __syncthreads();
  Walk walk(window, tables, image);
  const uint32_t mine = spread(task.count * guesses, SKIP_THREADS), piece = task.first + mine / guesses, guess = mine % guesses;
  if (mine >= task.count * guesses || piece >= image.pieces) return;
  const Segment segment = segment_of(p, image, piece);
  const uint32_t end = min(end_of(image, segment, piece) - origin, SKIP_WINDOW * 32);
  walk.start(begin_of(image, segment, piece) - origin, guess * image.mcu_blocks / guesses);
  while (!walk.step() || walk.at < end) {}
  const uint32_t i = image.first_piece + piece;
  p.exits[i * SLOT_ROOM + guess] = place_of(origin + walk.at, walk.phase);
  for (uint32_t slot = guesses + guess; slot < SLOTS; slot += guesses) p.exits[i * SLOT_ROOM + slot] = FREE;
  // Nobody has been followed yet.
  if (guess == 0) *(uint4 *)(p.links + (uint64_t)i * SLOT_ROOM) = {NO_SLOTS, NO_SLOTS, NO_SLOTS, NO_SLOTS};
  if (guess == 0 && piece == 0) p.status[task.image] = 0;
}
