// Goes on from each place where a piece may end, through the next piece, and finds which of that one's ends it comes
// to, and how many blocks it passes. A new end takes a slot of its own and is followed further, as far as the window
// reaches. On its way it notes where the sections of the piece begin.
#include "jpeg_codes.cuh"

constexpr uint32_t THREADS = SKIP_THREADS;

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_link(const Task *rows, uint32_t count, Params p) {
  __shared__ Skips tables;
  __shared__ Window<SKIP_WINDOW> window;
  // What there is to follow in this round and in the next: how many, the pieces and slots, and the places. In a full
  // block they fill as few warps as possible, because few threads have much to do. In a block of few pieces they are
  // spread over all warps.
  __shared__ uint32_t size[2];
  __shared__ uint16_t work[2][THREADS];
  __shared__ uint32_t places[2][THREADS];
  const Task task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  if (threadIdx.x < 2) size[threadIdx.x] = 0;
  const uint32_t guesses = image.guesses;
  const uint32_t origin = load(window, p, image, task.first, task.first + task.count + AHEAD);
  tables.load(p, image);
  begin_early();
  __syncthreads();
  Walk walk(window, tables, image);
  const auto add = [&](uint32_t round, uint32_t piece, uint32_t slot, uint32_t place) {
    const uint32_t i = atomicAdd(&size[round], 1);
    work[round][i] = (piece - task.first) * SLOT_ROOM + slot, places[round][i] = place;
  };
  {
    // Guesses that came to the same place are followed once.
    const uint32_t piece = task.first + threadIdx.x / guesses, slot = threadIdx.x % guesses;
    if (threadIdx.x < task.count * guesses && piece < image.pieces) {
      const Segment segment = segment_of(p, image, piece);
      if (piece == segment.first_piece) {
        if (slot == 0) add(0, piece, slot, place_of(segment.first_bit, 0));
      } else {
        const uint32_t *exits = p.exits + (image.first_piece + piece - 1) * SLOT_ROOM;
        bool first = true;
        for (uint32_t i = 0; i < slot; i++) first &= exits[i] != exits[slot];
        if (first) add(0, piece, slot, exits[slot]);
      }
    }
  }
  const bool few = task.count * guesses <= THREADS / 2;
  for (uint32_t round = 0;; round ^= 1) {
    __syncthreads();
    const uint32_t items = size[round], mine = few ? spread(items, THREADS) : threadIdx.x;
    if (items == 0) return;
    if (mine < items) {
      const uint32_t item = work[round][mine], place = places[round][mine];
      const uint32_t piece = task.first + item / SLOT_ROOM, slot = item % SLOT_ROOM, i = image.first_piece + piece;
      const Segment segment = segment_of(p, image, piece);
      // Where the guesses ended; asked for before it is needed.
      uint32_t guessed[GUESSES];
#pragma unroll
      for (uint32_t g = 0; g < GUESSES; g++) guessed[g] = g < guesses ? p.exits[i * SLOT_ROOM + g] : FREE;
      walk.start((place >> 4) - origin, place & 15);
      uint32_t passed = 0;
      for (uint32_t section = 0;;) {
        const uint32_t end = end_of_section(image, segment, piece, section, p.halvings) - origin;
        // Until a block boundary at or behind the end.
        while (walk.at - end >= COEFFICIENT - end) passed += walk.step();
        if (++section >> p.halvings) break;
        p.notes[note_of(i, slot, p.halvings) + section - 1] = {place_of(origin + walk.at, walk.phase), passed};
      }
      p.passed[i * SLOT_ROOM + slot] = passed;
      const uint32_t here = place_of(origin + walk.at, walk.phase);
      uint32_t found = NO_SLOT;
#pragma unroll
      for (uint32_t g = GUESSES; g-- > 0;)
        if (guessed[g] == here) found = g;
      bool known = found != NO_SLOT;
      // Who comes to a new place second leaves the rest to the first.
      for (uint32_t slot = guesses; slot < SLOTS && found == NO_SLOT; slot++) {
        const uint32_t taken = atomicCAS(p.exits + i * SLOT_ROOM + slot, FREE, here);
        known = taken == here;
        if (known || taken == FREE) found = slot;
      }
      p.links[i * SLOT_ROOM + slot] = found;
      const uint32_t next = piece + 1;
      if (!known && found != NO_SLOT && next < image.pieces && end_of(image, segment, piece) < segment.first_bit + segment.bits) {
        // It ends where the next piece is not in the window.
        if (end_of(image, segment, next) - origin <= SKIP_WINDOW * 32 && next < task.first + task.count + AHEAD) add(round ^ 1, next, found, here);
        else p.passed[(i + 1) * SLOT_ROOM + found] = NOT_FOLLOWED;
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) size[round] = 0;
  }
}
