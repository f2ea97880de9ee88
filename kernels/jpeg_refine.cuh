// Scans of a progressive image that bring a further bit of a band: codes for coefficients that are not known yet, and
// between them a bit for each that is known. They take most of the time, so there are few branches: what is seldom to
// be done is behind one of them in front of each block (`Scan::is_odd`). A block's coefficients are asked for one block
// before they are needed; behind the last block those of any that is there.
#pragma once
#include "jpeg_pass.cuh"

// By a warp, for one image: a thread keeps its two coefficients, and what it needs to find their bits.
template <> __device__ void Scan<32>::refine() {
  Blocks blocks(image, pass, first_component());
  const uint32_t band = this->band(), below = (1u << part) - 1;
  const bool whole = is_whole(band, part);
  const int32_t one = 1 << low;
  const auto coefficients = [&]() {
    const Values *const from = place(blocks.at);
    return whole ? *from : load_some(from, band);
  };
  blocks.set(0);
  wait(1);
  Values loaded = 0;
  if (on) loaded = coefficients();
  uint32_t run = 0;
  for (uint32_t n = 0;; n++) {
    int16_t *const to = (int16_t *)place(blocks.at);
    const int32_t v[2] = {(int16_t)loaded, (int32_t)loaded >> 16};
    if (__any_sync(~0u, on && is_odd(n, blocks))) {
      tell(n);
      if (on && (n == behind || bad)) run = 0, turn(n);
      if (!__any_sync(~0u, on)) return;
      wait(min(n + 2, total));
      bits.fill(on);
      if (n + 1 < total) blocks.advance(1);
    } else {
      blocks.next_in_row();
    }
    loaded = coefficients();
    bits.take();
    // Those that are known, and for each how many come before it.
    const bool known[2] = {band & 1 && v[0] != 0, band & 2 && v[1] != 0};
    const uint32_t even = __ballot_sync(~0u, known[0]), odd = __ballot_sync(~0u, known[1]), count = __popc(even) + __popc(odd);
    uint32_t rank[2];
    rank[0] = __popc(even & below) + __popc(odd & below), rank[1] = rank[0] + known[0];
    // The bit of a known one stands behind the bits of those before it, and behind codes: so many bits of these.
    const uint32_t block_at = bits.at;
    uint32_t codes = 0, codes_before[2] = {0, 0};
    int32_t added[2] = {0, 0};
    if (run == 0) {
      __syncwarp();
#pragma unroll
      for (uint32_t i = 0; i < 2; i++)
        if (!known[i]) own.places[2 * part + i - rank[i]] = 2 * part + i;
      __syncwarp();
      // The last zero. A code may also lead to the end of the band.
      const uint32_t last_zero = end - count, limit = last_zero + ((end % 2 ? odd : even) >> end / 2 & 1);
      uint32_t used = begin - 1, passed = 0, e, next;
      do {
        next = bits.peek();
        e = own.ac[next >> (32 - BAND_BITS)];
        if (e == SPECIAL) {
          e = find_one(table, next);
          e = e == NO_CODE ? SPECIAL : refining(e);
          if (e == SPECIAL) bad |= BAD_CODE;
        }
        used += e & 31;
        // Past so many zeros to the one behind them; what is known on the way has a bit each.
        const uint32_t k = own.places[used], total = e >> 8;
        codes += total;
        // A 1 is positive.
        const int32_t value = (int32_t)((top(next, total) & 1) * 2 - 1) << low;
        const bool has = e & HAS_VALUE;
#pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
          // Not by a number: registers have none.
          if (has && k == 2 * part + i) added[i] = value;
          if (rank[i] >= passed) codes_before[i] = codes;
        }
        passed = k - used;
        const uint32_t to = block_at + codes + passed;
        if (to - bits.at <= 32) bits.move(to);
        else bits.at = to, bits.take();
      } while ((used < limit) & !(e & SPECIAL));
      if (e & SPECIAL) {
        const uint32_t more = e >> 13 << 5;
        run = run_of(top(next, e >> 8 & 31), e >> 13 | (e >> 3 & 8)), codes -= more;
#pragma unroll
        for (uint32_t i = 0; i < 2; i++)
          if (rank[i] >= passed) codes_before[i] -= more;
      }
      // Without a zero that a code asks for all is garbage.
      if (used > last_zero) bad |= BAD_CODE;
    }
    bits.at = block_at + codes + count, run -= run > 0;
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
      // Away from zero.
      if (known[i] && bits.bit(block_at + codes_before[i] + rank[i])) added[i] = v[i] < 0 ? -one : one;
      if (added[i] && !bad) to[i] = v[i] + added[i];
    }
    if (bits.at > last) bad |= TOO_SHORT;
  }
}

// By teams that share a warp. What they have of a block is in shared memory: a thread's own eight coefficients are not
// those whose bits it reads.
template <uint32_t TEAM> __device__ void Scan<TEAM>::refine() {
  // Known coefficients that a thread has at a time, so that it waits for them together.
  constexpr uint32_t AT_ONCE = 2;
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
  if (on) own.known[part] = not_zero(loaded) & band;
  __syncwarp();
  Known known(own.known);
  uint32_t run = 0;
  for (uint32_t n = 0;; n++) {
    Values *const to = place(blocks.at);
    const Values v = loaded;
      if (__any_sync(~0u, on && is_odd(n, blocks))) {
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
        if ((e == SPECIAL) | (passes > TEAM)) {
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
    if (on) own.known[part] = not_zero(loaded) & band;
    __syncwarp();
    known = Known(own.known);
    if (on && !bad) {
      bits.at = block_at + codes + count, run -= run > 0;
#pragma unroll 1
      for (uint32_t first = part; first < count; first += AT_ONCE * TEAM) {
        uint32_t k[AT_ONCE], further[AT_ONCE];
        int32_t values[AT_ONCE];
#pragma unroll
        for (uint32_t n = 0; n < AT_ONCE; n++) {
          const uint32_t i = first + n * TEAM, codes_before = own.codes_before[i];
          k[n] = n == 0 || i < count ? own.places[KNOWN + i] : 64;
          further[n] = bits.bit(block_at + (i < passed ? codes_before : codes) + i);
          values[n] = own.block[k[n]];
        }
#pragma unroll
        for (uint32_t n = 0; n < AT_ONCE; n++)
          // Away from zero.
          if (further[n] && k[n] < 64) own.block[k[n]] = values[n] + (values[n] < 0 ? -one : one);
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
