// The codes of an image's data, as a block of threads has them: the data and the tables in shared memory, and ways
// through them.
#pragma once
#include "jpeg.cuh"
#include "shared.cuh"

// Words that a block which begins before the end of a piece may reach behind it: 64 entries of at most 31 bits, and
// what a `Reader` has at hand.
constexpr uint32_t REACH = 68;

// Which of `count` items this thread of a block of `threads` works on; `count` or more: none. Items are spread evenly
// over the block's warps. Threads of a warp come to the ends of blocks at different steps, and the warp does what is
// done there for one after the other. So the fewer of its threads are at work, the sooner it is done.
__device__ inline uint32_t spread(uint32_t count, uint32_t threads) {
  const uint32_t warps = threads / 32, each = (count + warps - 1) / warps, lane = threadIdx.x % 32;
  return lane < each ? threadIdx.x / 32 * each + lane : count;
}

// What a block of threads reads of an image's data, in shared memory and as numbers. Bits count from its beginning.
template <uint32_t WORDS> struct Window {
  static_assert((WORDS + REACH) % 4 == 0, "it is loaded in fours");
  alignas(16) uint32_t words[WORDS + REACH];

  // From bit `begin`, of a word whose number is a multiple of four, to behind bit `end`. Words that are not there read
  // as ones.
  __device__ void load(const Image &image, uint32_t begin, uint32_t end) {
    const uint32_t first = begin / 32, size = min(end / 32 - first + REACH, WORDS + REACH);
    const uint4 *from = (const uint4 *)(image.data + first);
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < (size + 3) / 4; i += blockDim.x) {
      const uint32_t there = min(image.words - min(first + 4 * i, image.words), 4u);
      uint4 v = {~0u, ~0u, ~0u, ~0u};
      if (there == 4) {
        v = __ldg(from + i);
      } else {
        if (there > 0) v.x = image.data[first + 4 * i];
        if (there > 1) v.y = image.data[first + 4 * i + 1];
        if (there > 2) v.z = image.data[first + 4 * i + 2];
      }
      const auto swapped = [](uint32_t word) { return __byte_perm(word, 0, 0x0123); };
      ((uint4 *)words)[i] = {swapped(v.x), swapped(v.y), swapped(v.z), swapped(v.w)};
    }
  }
};

// What takes the place of a code that does not exist: one bit, and the block is at its end. So every loop ends. No
// table has such an entry: its one bit is a value's, and the code has none.
constexpr uint32_t NO_CODE = 1 << 5 | 64 << 9;

// Tables of an image in shared memory, of both pairs: by the next AC or DC bits.
template <class T, uint32_t AC, uint32_t DC> struct Tables {
  static constexpr uint32_t AC_BYTES = sizeof(T) << AC, PAIR_BYTES = AC_BYTES + (sizeof(T) << DC);
  static constexpr uint32_t AC_SHIFT = 32 - AC, DC_SHIFT = 32 - DC;
  struct Pair {
    T ac[1 << AC], dc[1 << DC];
  };
  alignas(16) Pair pairs[2];
  const Table *whole[4];

  // `part` is what is taken of the pairs of a table.
  template <class Part> __device__ void load(const Params &p, const Image &image, Part part) {
    if (threadIdx.x < 4) whole[threadIdx.x] = p.tables + image.tables[threadIdx.x];
#pragma unroll
    for (uint32_t pair = 0; pair < 2; pair++) {
      copy(part(p.pairs[image.tables[2 * pair]]), pairs[pair].dc, sizeof(pairs[pair].dc));
      copy(part(p.pairs[image.tables[2 * pair + 1]]), pairs[pair].ac, sizeof(pairs[pair].ac));
    }
  }

 private:
  __device__ void copy(const T *from, T *to, uint32_t bytes) {
    for (uint32_t i = threadIdx.x; i < bytes / 16; i += blockDim.x) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
  }
};

struct Skips : Tables<uint16_t, AC_SKIP_BITS, DC_SKIP_BITS> {
  __device__ void load(const Params &p, const Image &image) {
    Tables::load(p, image, [](const Pairs &pairs) { return pairs.skips; });
  }
};
struct Codes : Tables<uint32_t, AC_CODE_BITS, DC_CODE_BITS> {
  __device__ void load(const Params &p, const Image &image) {
    Tables::load(p, image, [](const Pairs &pairs) { return pairs.codes; });
  }
};

// The bits from a position on, in registers. A word is loaded from shared memory long before its bits are needed.
struct Reader {
  Shared words;
  // The word that the position lies in, and the two behind it.
  uint32_t high, low, next;

  template <uint32_t WORDS> __device__ explicit Reader(const Window<WORDS> &window) : words(window.words) {}
  __device__ static uint32_t offset(uint32_t at, uint32_t further) { return (at >> 3 & (AT_BIT >> 3 & ~3u)) + 4 * further; }
  __device__ uint32_t word(uint32_t at, uint32_t further) const { return words.word(offset(at, further)); }
  __device__ void start(uint32_t at) { high = word(at, 0), low = word(at, 1), next = word(at, 2); }
  // The 32 bits from that of the position on.
  __device__ uint32_t peek(uint32_t at) const { return __funnelshift_l(low, high, at); }
  // Goes on to a position of at most 31 bits further.
  __device__ void move(uint32_t from, uint32_t to) {
    const uint32_t is_next = (from ^ to) & 32;
    high = is_next ? low : high;
    low = is_next ? next : low;
    words.word_if(is_next, next, offset(to, 2));
  }
};

// The entry of a table for a code of more than LUT_BITS bits at the beginning of `bits`, or NO_CODE.
__device__ __noinline__ uint32_t find_sorted(const Table &t, uint32_t bits) {
  bits >>= 16;
  if (bits >= t.limit[5]) return NO_CODE;
  uint32_t i = 0;
  while (bits >= t.limit[i]) i++;
  return t.sorted[((bits >> (5 - i)) + t.base[i]) & 255];
}

// The entry of a table for the code at the beginning of `bits`, or NO_CODE.
__device__ __noinline__ uint32_t find_one(const Table &t, uint32_t bits) {
  constexpr uint32_t TAIL_BEGIN = 65536 - TAIL;
  const uint32_t e = bits >= TAIL_BEGIN << 16 ? t.tail[(bits >> 16) - TAIL_BEGIN] : t.lut[bits >> (32 - LUT_BITS)];
  return e ? e : find_sorted(t, bits);
}

// Where a thread looks up its next code.
template <class T> struct Finder {
  Reader reader;
  Shared entries;
  const Table *const *whole;
  uint32_t mcu_blocks, pairs;
  // The block of the MCU. In bytes from the first entry: the table for the next code, and the AC table of the block.
  // How far to shift the next bits for that table.
  uint32_t phase, table, ac, shift;

  template <uint32_t WORDS>
  __device__ Finder(const Window<WORDS> &window, const T &tables, const Image &image)
      : reader(window), entries(tables.pairs), whole(tables.whole), mcu_blocks(image.mcu_blocks), pairs(image.pairs) {}

  // The next code is the first of a block, or behind that.
  __device__ void turn(bool first, uint32_t block) {
    const uint32_t own = (pairs >> block & 1) * T::PAIR_BYTES;
    phase = first ? block : phase;
    ac = first ? own : ac;
    table = first ? own + T::AC_BYTES : ac;
    shift = first ? T::DC_SHIFT : T::AC_SHIFT;
  }
  __device__ uint32_t next_block() const { return phase + 1 == mcu_blocks ? 0 : phase + 1; }
  // The entry for one code that the tables do not have.
  __device__ uint32_t one(uint32_t bits) const { return find_one(*whole[ac / T::PAIR_BYTES * 2 + (shift == T::AC_SHIFT)], bits); }
};

// A thread on its way through the codes, two at a time where it can.
struct Walk : Finder<Skips> {
  uint32_t at;

  template <uint32_t WORDS>
  __device__ Walk(const Window<WORDS> &window, const Skips &skips, const Image &image) : Finder(window, skips, image) {}

  __device__ void start(uint32_t bit, uint32_t block) {
    at = bit;
    reader.start(at);
    turn(true, block);
  }
  // One code further, or two. Whether a block ended.
  __device__ bool step() {
    const uint32_t bits = reader.peek(at);
    uint32_t next = at + __byte_perm(entries.half(table + (bits >> shift) * 2), 0, 0x1440);
    // When the first of two codes ends the block, the second is none. A missing entry comes here, too.
    if (next & COEFFICIENT << 6 && next >= BLOCK_END + COEFFICIENT) next = at + move_of(one(bits));
    const bool done = next >= BLOCK_END;
    reader.move(at, next);
    at = done ? next & AT_BIT : next;
    turn(done, next_block());
    return done;
  }
};

// The value of `count` bits, at least one, at the beginning of `bits`, as JPEG extends its sign: numbers that begin
// with 0 are negative, and their bits are those of what is above them turned.
__device__ inline int32_t value_of(uint32_t bits, uint32_t count) {
  const int32_t positive = (int32_t)bits >> 31;
  return (int32_t)(__funnelshift_r(bits ^ ~positive, 0, -count) ^ ~positive) + positive + 1;
}

// The segment of an image that a piece belongs to.
__device__ inline Segment segment_of(const Params &p, const Image &image, uint32_t piece) {
  const Segment *s = p.segments + image.first_segment;
  uint32_t low = 0, high = image.segments;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (s[middle].first_piece <= piece) low = middle;
    else high = middle;
  }
  return s[low];
}

// Where the bits of a piece begin.
__device__ inline uint32_t begin_of(const Image &image, const Segment &s, uint32_t piece) {
  return s.first_bit + (piece - s.first_piece) * image.piece_bits;
}

// Where the bits of a piece end.
__device__ inline uint32_t end_of(const Image &image, const Segment &s, uint32_t piece) {
  return s.first_bit + min((piece - s.first_piece + 1) * image.piece_bits, s.bits);
}

// Where the bits of a section of a piece end.
__device__ inline uint32_t end_of_section(const Image &image, const Segment &s, uint32_t piece, uint32_t section, uint32_t halvings) {
  return s.first_bit + min((piece - s.first_piece) * image.piece_bits + ((section + 1) * image.piece_bits >> halvings), s.bits);
}

// Loads the data that the pieces from `first` on read, up to before `beyond`; returns the bit at which the window
// begins.
template <uint32_t WORDS>
__device__ inline uint32_t load(Window<WORDS> &window, const Params &p, const Image &image, uint32_t first, uint32_t beyond) {
  const uint32_t last = min(beyond, image.pieces) - 1;
  const Segment s = segment_of(p, image, first), t = segment_of(p, image, last);
  const uint32_t begin = begin_of(image, s, first) & ~127u;
  window.load(image, begin, end_of(image, t, last));
  return begin;
}
