// Follows the links of each image from the known beginning of each segment: where each piece really begins, and at
// which block. Links are maps from ends of one piece to ends of the next, so a scan composes them. A block of threads
// has neighbouring pieces of an image, and tells the blocks behind it where they lead, and how many blocks they pass.
#include "jpeg_scan.cuh"

// A map from slots to slots, a byte each; NO_SLOT stays NO_SLOT.
struct Map {
  uint32_t to[4];
};

__device__ inline Map then(const Map &first, const Map &second) {
  Map both;
#pragma unroll
  for (uint32_t i = 0; i < 4; i++) {
    // Four slots as half bytes choose among 8 bytes of the second map, and then among both halves of it.
    uint32_t choice = first.to[i] & 0x07070707;
    choice = (choice | choice >> 4) & 0x00FF00FF;
    choice |= choice >> 8;
    const uint32_t upper = (first.to[i] >> 3 & 0x01010101) * 255;
    const uint32_t low = __byte_perm(second.to[0], second.to[1], choice & 0xFFFF);
    const uint32_t high = __byte_perm(second.to[2], second.to[3], choice & 0xFFFF);
    both.to[i] = (low & ~upper) | (high & upper);
  }
  return both;
}

__device__ inline Map from_below(const Map &m, uint32_t distance) {
  Map o;
  for (uint32_t i = 0; i < 4; i++) o.to[i] = __shfl_up_sync(~0u, m.to[i], distance);
  return o;
}

// A map in half a byte a slot. The last is for TOLD: it is NO_SLOT's.
__device__ inline uint64_t packed(const Map &m) {
  uint64_t word = 0;
#pragma unroll
  for (uint32_t i = 0; i < 4; i++) {
    uint32_t halves = m.to[i] | m.to[i] >> 4;
    halves = (halves & 0xFF) | (halves >> 8 & 0xFF00);
    word |= (uint64_t)halves << 16 * i;
  }
  return word;
}

// Slots that no piece before comes to lead nowhere.
__device__ inline Map map_of(uint4 v, bool first) {
  Map m = {{v.x, v.y, v.z, v.w}};
  if (first) {
    const uint32_t all = (m.to[0] & 15) * 0x01010101;
    m = {{all, all, all, (all & 0x00FFFFFF) | NO_SLOT << 24}};
  }
  return m;
}

__device__ inline uint32_t slot_of(const Map &m, uint32_t slot) { return m.to[slot / 4] >> 8 * (slot % 4) & 15; }

// How many blocks pieces pass.
struct Sum {
  // Whether a segment begins in them: then what was before does not count.
  uint32_t reset, blocks;
};

__device__ inline Sum add(const Sum &a, const Sum &b) { return b.reset ? b : Sum{a.reset, a.blocks + b.blocks}; }

__device__ inline uint64_t packed(const Sum &s) { return (uint64_t)s.reset << 32 | s.blocks; }
__device__ inline Sum unpacked(uint64_t word) { return {(uint32_t)(word >> 32) & 1, (uint32_t)word}; }

__device__ inline Sum from_below(const Sum &s, uint32_t distance) {
  return {__shfl_up_sync(~0u, s.reset, distance), __shfl_up_sync(~0u, s.blocks, distance)};
}

extern "C" __global__ void __launch_bounds__(THREADS) jpeg_resolve(const Task *rows, uint32_t count, Params p) {
  __shared__ Map maps[WARPS];
  __shared__ Sum sums[WARPS];
  __shared__ uint32_t status, entry_slot;
  __shared__ Sum entry_sum;
  const Task task = rows[blockIdx.x];
  const uint32_t number = task.component;
  const Image image = p.images[task.image];
  const Segment *segments = p.segments + image.first_segment;
  uint64_t *const told = p.told + blockIdx.x;
  if (threadIdx.x == 0) status = 0;
  const uint32_t piece = task.first + threadIdx.x;
  const bool there = threadIdx.x < task.count;
  const uint64_t at = image.first_piece + piece;
  Segment segment = {0, 0, 0, 0};
  uint32_t next_piece = image.pieces, limit = image.blocks;
  if (there) {
    uint32_t low = 0, high = image.segments;
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      if (segments[middle].first_piece <= piece) low = middle;
      else high = middle;
    }
    segment = segments[low];
    if (low + 1 < image.segments) next_piece = segments[low + 1].first_piece, limit = segments[low + 1].first_block;
  }
  const bool first = there && segment.first_piece == piece;
  begin_early();
  if (image.pieces == 0) {
    // A progressive image has none, but a status.
    if (threadIdx.x == 0) p.status[task.image] = 0;
    return;
  }
  Map map = {{0x03020100, 0x07060504, 0x0B0A0908, 0x0F0E0D0C}};
  if (there) map = map_of(*(const uint4 *)(p.links + at * SLOT_ROOM), first);
  const Map upto = scan(map, maps, then);
  if (threadIdx.x == 0) tell(told, packed(maps[WARPS - 1]));
  if (threadIdx.x < 32) {
    // The first piece of an image begins a segment, whatever slot is said.
    const auto next = [](uint32_t slot, uint64_t word) { return slot == NO_SLOT ? NO_SLOT : (uint32_t)(word >> 4 * slot) & 15; };
    const uint32_t slot = listen(told, number, 0u, next);
    if (threadIdx.x == 0) entry_slot = slot;
  }
  __syncthreads();
  const uint32_t slot = entry_slot;
  // The slot that this piece begins with is where the one before ended.
  Map before = from_below(upto, 1);
  if (threadIdx.x % 32 == 0 && threadIdx.x > 0) before = maps[threadIdx.x / 32 - 1];
  uint32_t mine = threadIdx.x == 0 ? slot : slot_of(before, slot);
  if (first) mine = 0;

  const bool known = there && mine != NO_SLOT;
  const uint32_t through = known ? p.passed[at * SLOT_ROOM + mine] : NOT_FOLLOWED;
  // Loaded at the same time as `through`.
  const uint32_t entered = known && !first ? p.exits[(at - 1) * SLOT_ROOM + mine] : ~0u;
  const uint32_t sections = 1 << p.halvings;
  Note notes[(1 << MOST_HALVINGS) - 1];
#pragma unroll
  for (uint32_t i = 0; i + 1 < 1 << MOST_HALVINGS; i++)
    if (known && i + 1 < sections) notes[i] = p.notes[note_of(at, mine, p.halvings) + i];
  Sum own = {};
  if (through != NOT_FOLLOWED) own = {first, through + (first ? segment.first_block : 0)};
  else if (there) atomicOr(&status, UNRESOLVED);
  Sum sum = scan(own, sums, add);
  if (threadIdx.x == 0) tell(told + gridDim.x, packed(sums[WARPS - 1]));
  if (threadIdx.x < 32) {
    const auto next = [](const Sum &passed, uint64_t word) { return add(passed, unpacked(word)); };
    const Sum passed = listen(told + gridDim.x, number, Sum{}, next);
    if (threadIdx.x == 0) entry_sum = passed;
  }
  __syncthreads();
  sum = add(entry_sum, sum);
  if (there) {
    // What was passed before this piece.
    Start start = {entered, sum.blocks - own.blocks, limit};
    if (first) start.block = segment.first_block, start.place = place_of(segment.first_bit, 0);
    p.starts[at << p.halvings] = start;
#pragma unroll
    for (uint32_t i = 0; i + 1 < 1 << MOST_HALVINGS; i++) {
      // Sections of a piece that nobody went through begin nowhere.
      const Note note = through != NOT_FOLLOWED ? notes[i] : Note{~0u, 0};
      if (i + 1 < sections) p.starts[(at << p.halvings) + i + 1] = {note.place, start.block + note.passed, limit};
    }
    if (piece + 1 == next_piece && mine != NO_SLOT && sum.blocks < limit) atomicOr(&status, TOO_SHORT);
  }
  __syncthreads();
  // The image's was 0.
  if (threadIdx.x == 0 && status) atomicOr(p.status + task.image, status);
}
