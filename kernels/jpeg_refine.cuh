// Scans of a progressive image that bring a further bit of a band: codes for coefficients that are not known yet, and
// between them a bit for each that is known. They take most of the time, so there are few branches: what is seldom to
// be done is behind one of them in front of each block (`Scan::more_to_do`). A block's coefficients are asked for one
// block before they are needed; behind the last block those of any that is there.
#pragma once
#include "jpeg_pass.cuh"

template <uint32_t TEAM> __device__ void Scan<TEAM>::refine() {
  // Known coefficients that a thread has at a time, so that it waits for them together.
  constexpr uint32_t AT_ONCE = TEAM < 32 ? 2 : 1;
  // So many known coefficients behind a code of the table, its value and their bits are at most a word, and have a
  // thread each.
  constexpr uint32_t NEAR = 32 - (BAND_BITS + 1), FEW = TEAM < NEAR ? TEAM : NEAR;
  Blocks blocks(image, pass, first_component());
  const uint32_t band = this->band();
  const bool whole = is_whole(band, part);
  const int32_t one = 1 << low;
  int16_t *const mine = own.block + EACH * part;
  const auto coefficients = [&]() {
    const Values *const from = place(blocks.at);
    return whole ? *from : load_some(from, band);
  };
  blocks.set(0);
  wait(1);
  Values loaded = {};
  if (on) loaded = coefficients();
  // Of the next block.
  uint32_t own_known = Part<TEAM>::not_zero(loaded) & band;
  if (on) Part<TEAM>::tell(own.known, part, own_known);
  __syncwarp();
  Part<TEAM> known;
  known.hear(own.known, own_known);
  uint32_t run = 0;
  for (uint32_t n = 0;; n++) {
    Values *const to = place(blocks.at);
    const Values v = loaded;
    if (__any_sync(~0u, on && more_to_do(n, blocks))) {
      tell(n);
      if (on && (n == behind || bad)) run = 0, turn(n);
      if (!__any_sync(~0u, on)) return;
      wait(min(n + 2, total));
      bits.fill(on);
      if (n + 1 < total) blocks.advance(1);
    } else {
      blocks.next_in_row();
    }
    if (on) loaded = coefficients(), bits.take();
    // How many of them are known, and how many of those come before this thread's.
    const uint32_t count = known.count();
    uint32_t rank = known.before(part);
    if (on) {
      const uint32_t is = known.own(part);
      *(Values *)mine = v;
#pragma unroll
      for (uint32_t i = 0; i < EACH; i++) {
        const uint32_t k = EACH * part + i, is_known = is >> i & 1;
        own.places[is_known ? KNOWN + rank : k - rank] = k;
        rank += is_known;
      }
    }
    __syncwarp();
    // The bit of a known one stands behind the bits of those before it, and behind codes: so many bits of these.
    const uint32_t block_at = bits.at;
    uint32_t codes = 0, passed = 0;
    if (on && run == 0) {
      // The last zero. A code may also lead to the end of the band.
      const uint32_t last_zero = end - count, limit = last_zero + known.has(end);
      uint32_t used = begin - 1, passes, next;
      const auto step = [&](uint32_t e) {
        used += e & 31;
        // Past so many zeros to the one behind them; what is known on the way has a bit each.
        const uint32_t k = own.places[used], total = e >> 8, now = k - used;
        codes += total;
        // A 1 is positive.
        if (part == 0 && e & HAS_VALUE) own.block[k] = (int32_t)((top(next, total) & 1) * 2 - 1) << low;
        if (passed + part < now) own.codes_before[passed + part] = codes;
        passes = now - passed, passed = now;
        bits.move(block_at + codes + passed);
      };
      uint32_t e;
      do {
        next = bits.peek();
        e = own.ac[next >> (32 - BAND_BITS)];
        step(e);
        if ((e == SPECIAL) | (passes > FEW)) {
          if (e == SPECIAL) {
            e = find_one(table, next);
            e = e == NO_CODE ? SPECIAL : refining(e);
            if (e == SPECIAL) bad |= BAD_CODE;
            else step(e);
          }
          const uint32_t until = used > last_zero ? 0 : passed;
#pragma unroll 1
          for (uint32_t i = passed - passes + part + TEAM; i < until; i += TEAM) own.codes_before[i] = codes;
          bits.take();
        }
      } while ((used < limit) & !(e & SPECIAL));
      if (e & SPECIAL) run = run_of(top(next, e >> 8 & 31), e >> 13 | (e >> 3 & 8)), codes -= e >> 13 << 5;
      // Without a zero that a code asks for all is garbage.
      if (used > last_zero) bad |= BAD_CODE;
    }
    own_known = Part<TEAM>::not_zero(loaded) & band;
    if (on) Part<TEAM>::tell(own.known, part, own_known);
    __syncwarp();
    known.hear(own.known, own_known);
    if (on && !bad) {
      bits.at = block_at + codes + count, run -= run > 0;
#pragma unroll 1
      for (uint32_t first = part; first < count; first += AT_ONCE * TEAM) {
        uint32_t k[AT_ONCE], further[AT_ONCE];
        int32_t values[AT_ONCE];
#pragma unroll
        for (uint32_t n = 0; n < AT_ONCE; n++) {
          const uint32_t i = first + n * TEAM, codes_before = own.codes_before[i];
          k[n] = n == 0 || i < count ? own.places[KNOWN + i] : NOWHERE;
          further[n] = bits.bit(block_at + (i < passed ? codes_before : codes) + i);
          values[n] = own.block[k[n]];
        }
#pragma unroll
        for (uint32_t n = 0; n < AT_ONCE; n++)
          // Away from zero.
          if (further[n] && k[n] < NOWHERE) own.block[k[n]] = values[n] + (values[n] < 0 ? -one : one);
      }
      if (bits.at > last) bad |= TOO_SHORT;
    }
    __syncwarp();
    if (on && !bad && count + codes > 0) {
      if (whole) *to = *(const Values *)mine;
      else store_some(to, band, mine);
    }
  }
}
