// A scan of a progressive image, as a team of threads decodes it: where it is, which scans it waits for, and all kinds
// but those that bring a further bit of a band, which are in jpeg_refine.cuh.
#pragma once
#include "jpeg_blocks.cuh"
#include "jpeg_team.cuh"

// Blocks after which a scan says how far it is.
constexpr uint32_t STRIDE = 16;
// How far a scan is that is done, or was given up: whoever waits for it goes on.
constexpr uint32_t DONE = 1u << 31;

// A scan while a team decodes it. All threads of a warp call what says so; the others, those whose team is `on`.
template <uint32_t TEAM> struct Scan {
  // Coefficients of a thread.
  static constexpr uint32_t EACH = 64 / TEAM, ALL = (1 << EACH) - 1;
  using Values = typename Part<TEAM>::Values;

  const Params &p;
  const Image &image;
  // In memory; what is often needed of it is here, too: the band, the lowest bit, blocks or MCUs, and the table of the
  // first component.
  const Pass &pass;
  const uint32_t begin, end, low, total;
  const Table &table;
  Own<TEAM> &own;
  // How far each scan of the image is.
  uint32_t *const progress;
  const uint32_t number, image_number, part;
  // Whether there is something to do.
  bool on;
  Bits<TEAM> bits;
  // The segment at hand: the block or MCU behind it, the bit behind it, how many came before it.
  uint32_t behind, last, segment;
  // What it has said, and how far those before it are at least.
  uint32_t told, ahead, bad;

  __device__ Scan(const Params &p, const Image &image, const Pass &pass, Own<TEAM> &own, uint32_t *progress, uint32_t number, uint32_t image_number, bool on)
      : p(p), image(image), pass(pass), begin(pass.first), end(pass.last), low(pass.low), total(pass.across * pass.down),
        table(p.tables[pass.tables[first_component()]]), own(own), progress(progress), number(number), image_number(image_number),
        part(threadIdx.x % TEAM), on(on), behind(0), last(0), segment(0), told(0), ahead(pass.waits ? 0 : DONE), bad(0) {
    bits.data = image.data, bits.words = image.words, bits.ring = own.ring, bits.at = 0;
  }
  __device__ uint32_t first_component() const { return __ffs(pass.components) - 1; }
  __device__ bool is_alone() const { return (pass.components & (pass.components - 1)) == 0; }

  // Decodes it; all threads of the warp. Teams with scans of other kinds come one after the other.
  __device__ void decode() {
    const uint32_t kind = 2 * (begin > 0) + (pass.refines > 0);
    load(kind);
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
      const bool was = on;
      on = on && kind == i;
      if (__any_sync(~0u, on)) {
        if (i == 0) first_dc();
        if (i == 1) refine_dc();
        if (i == 2) first();
        if (i == 3) refine();
      }
      on = was && kind != i;
    }
  }

  // Loads the tables of a scan with codes; all threads of the warp.
  __device__ void load(uint32_t kind) {
    if (on && kind >= 2) {
      for (uint32_t i = part; i < 1 << BAND_BITS; i += TEAM) {
        const uint32_t e = table.lut[i << (LUT_BITS - BAND_BITS)];
        const uint32_t there = code_bits(e) > BAND_BITS ? 0 : e;
        own.ac[i] = kind == 3 ? refining(there) : bringing(there, low);
      }
    }
    if (on && kind == 0) {
      for (uint32_t c = 0; c < MAX_COMPONENTS; c++) {
        if (!(pass.components >> c & 1)) continue;
        const uint16_t *from = p.tables[pass.tables[c]].lut;
        for (uint32_t i = part; i < 1 << DC_BITS; i += TEAM) {
          const uint32_t e = from[i << (LUT_BITS - DC_BITS)];
          own.dc[c][i] = code_bits(e) > DC_BITS ? 0 : e;
        }
      }
    }
    if (on) {
      ((Values *)own.block)[part] = {};
      for (uint32_t i = part; i < sizeof(own.places); i += TEAM) own.places[i] = 0;
    }
    __syncwarp();
  }

  // Says that blocks before `done` are decoded; all threads of the warp.
  __device__ void tell(uint32_t done) {
    __threadfence_block();
    __syncwarp();
    if (on && part == 0 && done != told) atomicAdd(progress + number, done - told);
    if (on) told = done;
  }
  // Until the scans before this one have decoded blocks up to `needed`; all threads of the warp.
  __device__ void wait(uint32_t needed) {
    while (__any_sync(~0u, on && ahead < needed)) {
      uint32_t least = DONE;
      if (on && ahead < needed)
        for (uint32_t i = part; i < MAX_PASSES; i += TEAM)
          if (pass.waits >> i & 1) least = min(least, atomicOr(progress + i, 0));
#pragma unroll
      for (uint32_t bits = 1; bits < TEAM; bits *= 2) least = min(least, __shfl_xor_sync(~0u, least, bits));
      if (on && ahead < needed) ahead = least;
      if (!__any_sync(~0u, on && ahead < needed)) break;
      __nanosleep(200);
    }
    __threadfence_block();
    __syncwarp();
  }
  // At the end of a segment before block or MCU `next`, or of all: goes on, or is not on any more.
  __device__ void turn(uint32_t next) {
    if (next > 0 && !bad) {
      // The bits of a segment must be used up, all but those that fill the last byte.
      if (bits.at > last) bad |= TOO_SHORT;
      else if (last - bits.at >= 8) bad |= TOO_LONG;
    }
    if (bad || next >= total || segment >= pass.segments) {
      finish();
      return;
    }
    const Segment own = p.segments[pass.first_segment + segment++];
    behind = min(total - next, pass.interval) + next, last = own.first_bit + own.bits;
    bits.start(own.first_bit);
  }
  __device__ void finish() {
    on = false;
    if (part > 0) return;
    if (bad) atomicOr(p.status + image_number, bad);
    __threadfence_block();
    atomicOr(progress + number, DONE);
  }

  // Which of this thread's coefficients are in the band, a bit each.
  __device__ uint32_t band() const {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < EACH; i++) bits |= (uint32_t)(EACH * part + i >= begin && EACH * part + i <= end) << i;
    return bits;
  }
  // Nobody else writes any of them now: what no scan brings is the first.
  __device__ static bool is_whole(uint32_t band, uint32_t part) { return (band | (part == 0)) == ALL; }
  // Those of a block: what is not of the band another scan may write now.
  __device__ Values *place(uint32_t at) const { return (Values *)(p.coefficients + (uint64_t)at * 64 + EACH * part); }
  __device__ __noinline__ static Values load_some(const Values *from, uint32_t band) {
    uint32_t words[EACH / 2] = {};
    for (uint32_t i = 0; i < EACH; i++)
      if (band >> i & 1) words[i / 2] |= (uint32_t)((const uint16_t *)from)[i] << i % 2 * 16;
    Values v;
    for (uint32_t i = 0; i < EACH / 2; i++) ((uint32_t *)&v)[i] = words[i];
    return v;
  }
  __device__ __noinline__ static void store_some(Values *to, uint32_t band, const int16_t *from) {
    for (uint32_t i = 0; i < EACH; i++)
      if (band >> i & 1) ((int16_t *)to)[i] = from[i];
  }

  // A band for the first time. The blocks are 0.
  __device__ void first() {
    Blocks blocks(image, pass, first_component());
    const uint32_t band = this->band();
    const bool whole = is_whole(band, part);
    int16_t *const mine = own.block + EACH * part;
    blocks.set(0);
    for (uint32_t n = 0;;) {
      if (__any_sync(~0u, on && ((n == behind) | bits.is_short() | (n - told >= STRIDE) | (bad > 0)))) {
        tell(n);
        if (on && (n == behind || bad)) turn(n);
        if (!__any_sync(~0u, on)) return;
        bits.fill(on);
      }
      uint32_t run = 1;
      if (on) {
        uint32_t k = begin, next;
        const auto step = [&](uint32_t e) {
          const uint32_t size = value_bits(e), length = code_bits(e);
          k += e >> 9;
          const int32_t value = value_of(next << length, size) << low;
          if (part == 0 && size > 0 && k <= end) own.block[k] = value;
          k++;
          bits.move(bits.at + length + size);
        };
        bits.take();
        while (true) {
          next = bits.peek();
          uint32_t e = own.ac[next >> (32 - BAND_BITS)];
          if (e & NO_VALUE) {
            e = e == NO_VALUE ? find_one(table, next) : e - NO_VALUE;
            const uint32_t size = value_bits(e), zeros = e >> 9, length = code_bits(e);
            if (e == NO_CODE || size + low > 15) bad |= BAD_CODE;
            if (bad) break;
            if (size == 0 && zeros < 15) {
              bits.at += length + zeros;
              run = run_of(top(next, length + zeros), zeros);
              break;
            }
          }
          step(e);
          if (k > end) {
            bad |= k == end + 1 ? 0 : BAD_CODE;
            break;
          }
        }
        if (bits.at > last) bad |= TOO_SHORT;
      }
      __syncwarp();
      if (on) {
        const Values v = *(const Values *)mine;
        if (Part<TEAM>::any(v)) {
          Values *const to = place(blocks.at);
          if (whole) *to = v;
          else store_some(to, band, mine);
          *(Values *)mine = {};
        }
        run = min(run, behind - n);
        n += run;
        blocks.advance(run);
      }
      __syncwarp();
    }
  }

  // A further bit of a band.
  __device__ void refine();
  // Whether there is more to do in front of its block `n` than to go on to the next one.
  __device__ bool more_to_do(uint32_t n, const Blocks &blocks) const {
    return (n == behind) | (n + 2 > ahead) | bits.is_short() | (n - told >= STRIDE) | blocks.ends_row() | (bad > 0);
  }

  // DC values but for their lowest bits.
  __device__ void first_dc() {
    const bool alone = is_alone();
    const uint32_t only = first_component();
    Blocks blocks(image, pass, only);
    blocks.set(0);
    for (uint32_t mcu = 0;;) {
      if (__any_sync(~0u, on && ((mcu == behind) | bits.is_short() | (bad > 0)))) {
        __syncwarp();
        if (on && (mcu == behind || bad)) {
          for (uint32_t c = 0; c < MAX_COMPONENTS && part == 0; c++) own.sums[c] = 0;
          turn(mcu);
        }
        if (!__any_sync(~0u, on)) return;
        bits.fill(on);
        if (on) bits.take();
      }
      if (!on) continue;
#pragma unroll 1
      for (uint32_t c = 0; c < MAX_COMPONENTS; c++) {
        if (!(pass.components >> c & 1)) continue;
        const uint32_t at = alone ? blocks.at : image.first_block + mcu * image.mcu_blocks + image.first[c];
        const uint32_t count = alone ? 1 : blocks_of(c);
#pragma unroll 1
        for (uint32_t i = 0; i < count; i++) {
          const uint32_t next = bits.peek();
          uint32_t e = own.dc[c][next >> (32 - DC_BITS)];
          if (e == 0) e = find_one(p.tables[pass.tables[c]], next);
          if (e == NO_CODE) bad |= BAD_CODE;
          const uint32_t size = value_bits(e), length = code_bits(e);
          bits.move(bits.at + length + size);
          if (part > 0) continue;
          const int32_t sum = own.sums[c] + (size ? value_of(next << length, size) : 0);
          own.sums[c] = sum;
          p.dcs[at + i] = (int16_t)(sum << pass.low);
        }
      }
      if (alone) blocks.advance(1);
      if (bits.at > last) bad |= TOO_SHORT;
      mcu++;
    }
  }

  // Blocks of a component that an MCU has.
  __device__ uint32_t blocks_of(uint32_t c) const { return image.across[c] * (image.mcu_height >> image.factor_y[c]); }

  // A further bit of DC values: those are found without a look at others.
  __device__ void refine_dc() {
    const bool alone = is_alone();
    wait(DONE);
    uint32_t each = 0;
    for (uint32_t c = 0; c < MAX_COMPONENTS; c++) each += pass.components >> c & 1 ? blocks_of(c) : 0;
    if (alone) each = 1;
    for (uint32_t begin = 0;; begin = behind) {
      __threadfence_block();
      __syncwarp();
      if (on) turn(begin);
      if (!__any_sync(~0u, on)) return;
      const uint32_t count = (behind - begin) * each;
      if (on && count > last - bits.at) bad |= TOO_SHORT;
      for (uint32_t i = part; i < count && on && !bad; i += TEAM) {
        if (!bits.far_bit(bits.at + i)) continue;
        uint32_t at;
        if (alone) {
          Blocks blocks(image, pass, first_component());
          blocks.set(begin + i);
          at = blocks.at;
        } else {
          const uint32_t mcu = begin + i / each;
          uint32_t c = 0, own = i % each;
          for (; c + 1 < MAX_COMPONENTS; c++) {
            const uint32_t has = pass.components >> c & 1 ? blocks_of(c) : 0;
            if (own < has) break;
            own -= has;
          }
          at = image.first_block + mcu * image.mcu_blocks + image.first[c] + own;
        }
        p.dcs[at] |= 1 << pass.low;
      }
      bits.at += count;
    }
  }
};
