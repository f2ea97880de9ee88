// Decodes the scans of progressive images: coefficients, and apart from them DC values. A block of threads has an
// image, a warp a scan at a time. All scans of an image are decoded at once: a scan that brings further bits of
// coefficients follows those that brought the earlier ones, some blocks behind them.
//
// Where a code begins is known only when the one before it is read, so all threads of a warp read the same codes. What
// they share is the work on the coefficients of a block: each thread has two.
#include "jpeg_bits.cuh"
#include "jpeg_blocks.cuh"
#include "jpeg_codes.cuh"

// Warps of a block at most.
constexpr uint32_t WARPS = PROGRESSIVE_THREADS / 32;
// Bits by which a warp finds the codes of DC differences.
constexpr uint32_t DC_BITS = 8;
// Blocks after which a scan says how far it is, and those that wait look again.
constexpr uint32_t STRIDE = 16;
// How far a scan is that is done, or was given up: whoever waits for it goes on.
constexpr uint32_t DONE = 1u << 31;

// Set in an entry of a refining scan's table whose code ends blocks.
constexpr uint32_t ENDS = 1u << 15;
// The entry of a table as a refining scan has it; 0 for codes that it must not have, whose values have several bits.
__device__ inline uint32_t refining(uint32_t e) {
  const uint32_t size = value_bits(e);
  return size > 1 ? 0 : size == 0 && e != 0 && e >> 9 < 15 ? e | ENDS : e;
}

// Tables of a warp's scan, by the next bits, and places of coefficients.
struct Own {
  union {
    uint16_t ac[1 << LUT_BITS];
    uint16_t dc[MAX_COMPONENTS][1 << DC_BITS];
  };
  // Places of the coefficients of a block that are 0; a code may ask for 16 more.
  uint8_t zeros[64 + 16];
  // Words of the data.
  uint32_t ring[RING_WORDS];
};

// A scan while a warp decodes it.
struct Scan {
  const Params &p;
  const Image &image;
  // In memory; what is often needed of it is here, too: the band, the lowest bit, blocks or MCUs, and the table of the
  // first component.
  const Pass &pass;
  const uint32_t begin, end, low, total;
  const Table &table;
  Own &own;
  // How far each scan of the image is.
  uint32_t *const progress;
  const uint32_t number, image_number, lane;
  // Whether this scan waits for the one with the number of this lane.
  const bool waits;
  Bits bits;
  // What it has said, and what those before it have.
  uint32_t told, ahead, bad;

  __device__ Scan(const Params &p, const Image &image, const Pass &pass, Own &own, uint32_t *progress, uint32_t number, uint32_t image_number)
      : p(p), image(image), pass(pass), begin(pass.first), end(pass.last), low(pass.low), total(pass.across * pass.down),
        table(p.tables[pass.tables[__ffs(pass.components) - 1]]), own(own), progress(progress), number(number), image_number(image_number),
        lane(threadIdx.x % 32), waits(pass.waits >> lane & 1), told(0), ahead(0), bad(0) {
    bits.data = image.data, bits.words = image.words, bits.ring = own.ring;
  }

  // Blocks before `done` are decoded.
  __device__ void tell(uint32_t done) {
    if (done - told < STRIDE) return;
    __threadfence_block();
    __syncwarp();
    if (lane == 0) atomicAdd(progress + number, done - told);
    told = done;
  }
  __device__ void finish() {
    if (bad && lane == 0) atomicOr(p.status + image_number, bad);
    __threadfence_block();
    __syncwarp();
    if (lane == 0) atomicOr(progress + number, DONE);
  }
  // Until the scans before this one have decoded blocks up to `end`.
  __device__ void wait(uint32_t end) {
    if (end <= ahead) return;
    ahead = min(end + STRIDE, total);
    if (end > ahead) ahead = end;
    while (__any_sync(~0u, waits && atomicOr(progress + lane, 0) < ahead)) __nanosleep(200);
    __threadfence_block();
    __syncwarp();
  }

  // Loads the tables of a scan with codes.
  __device__ void load() {
    if (pass.first > 0 && pass.refines) {
      for (uint32_t i = lane; i < 1 << LUT_BITS; i += 32) own.ac[i] = refining(table.lut[i]);
    } else if (pass.first > 0) {
      const uint4 *from = (const uint4 *)table.lut;
      for (uint32_t i = lane; i < sizeof(own.ac) / 16; i += 32) ((uint4 *)own.ac)[i] = __ldg(from + i);
    } else if (!pass.refines) {
      for (uint32_t c = 0; c < MAX_COMPONENTS; c++) {
        if (!(pass.components >> c & 1)) continue;
        const uint16_t *from = p.tables[pass.tables[c]].lut;
        for (uint32_t i = lane; i < 1 << DC_BITS; i += 32) {
          const uint32_t e = from[i << (LUT_BITS - DC_BITS)];
          own.dc[c][i] = code_bits(e) <= DC_BITS ? e : 0;
        }
      }
    }
    __syncwarp();
  }
  __device__ uint32_t first_component() const { return __ffs(pass.components) - 1; }

  // The bits of a segment must be used up, all but those that fill the last byte.
  __device__ void end_segment(uint32_t last) {
    if (bits.at > last) bad |= TOO_SHORT;
    else if (last - bits.at >= 8) bad |= TOO_LONG;
  }

  __device__ void decode() {
    if (pass.first > 0) {
      if (pass.refines) refine();
      else first();
    } else if (pass.refines) {
      refine_dc();
    } else {
      first_dc();
    }
  }

  // Each segment: its blocks or MCUs from `begin` to before `end`.
  template <class Decode> __device__ void each_segment(Decode decode) {
    for (uint32_t i = 0; i < pass.segments && !bad; i++) {
      const Segment segment = p.segments[pass.first_segment + i];
      const uint32_t begin = i * pass.interval, end = min(total - begin, pass.interval) + begin;
      bits.start(segment.first_bit);
      decode(begin, end, segment.first_bit + segment.bits);
      if (!bad) end_segment(segment.first_bit + segment.bits);
    }
  }

  // Blocks from this one on that have nothing (more) in the band.
  __device__ static uint32_t run_of(uint32_t next, uint32_t e) {
    const uint32_t count = e >> 9, length = code_bits(e);
    return count == 0 ? 1 : (1u << count) + (next << length >> (32 - count));
  }

  // A band for the first time. The blocks are 0.
  __device__ void first() {
    Blocks blocks(image, pass, first_component());
    each_segment([&](uint32_t from, uint32_t behind, uint32_t last) {
      blocks.set(from);
      for (uint32_t n = from; n < behind;) {
        bits.fill();
        bits.take();
        int32_t v[2] = {0, 0};
        uint32_t run = 1, k = begin;
        while (true) {
          const uint32_t next = bits.peek();
          uint32_t e = own.ac[next >> (32 - LUT_BITS)];
          if (value_bits(e) == 0) {
            if (e == 0) e = find_one(table, next);
            if (e == NO_CODE) {
              bad |= BAD_CODE;
              return;
            }
            if (value_bits(e) == 0) {
              const uint32_t zeros = e >> 9, length = code_bits(e);
              if (zeros < 15) {
                run = run_of(next, e);
                bits.at += length + zeros;
                break;
              }
              k += 16, bits.at += length;
              if (k > end) {
                if (k == end + 1) break;
                bad |= BAD_CODE;
                return;
              }
              bits.take();
              continue;
            }
          }
          const uint32_t size = value_bits(e), length = code_bits(e);
          k += e >> 9;
          const int32_t value = value_of(next << length, size) << low;
          // Not by a number: registers have none.
          if (k == 2 * lane) v[0] = value;
          if (k == 2 * lane + 1) v[1] = value;
          k++;
          const uint32_t was = bits.at;
          bits.at += length + size;
          if ((k > end) | (value != (int16_t)value) | ((bits.at ^ was) >= 32)) {
            if (k > end + 1 || value != (int16_t)value) {
              bad |= BAD_CODE;
              return;
            }
            if (k > end) break;
            bits.take();
          }
        }
        int16_t *const to = p.coefficients + (uint64_t)blocks.at * 64 + 2 * lane;
        if (v[0]) to[0] = v[0];
        if (v[1]) to[1] = v[1];
        if (bits.at > last) {
          bad |= TOO_SHORT;
          return;
        }
        run = min(run, behind - n);
        n += run;
        blocks.advance(run);
        tell(n);
      }
    });
  }

  // A further bit of a band. This takes most of the time, so there are few branches: what is seldom to be done is
  // behind one of them in front of each block.
  __device__ void refine() {
    Blocks blocks(image, pass, first_component());
    const uint32_t size_of_band = end - begin + 1, below = (1u << lane) - 1;
    const int32_t one = 1 << low;
    const bool in[2] = {2 * lane >= begin && 2 * lane <= end, 2 * lane + 1 >= begin && 2 * lane + 1 <= end};
    each_segment([&](uint32_t from, uint32_t behind, uint32_t last) {
      blocks.set(from);
      // What is not of the band another scan may write now.
      int16_t loaded[2] = {0, 0};
      const auto load = [&]() {
        const int16_t *of = p.coefficients + (uint64_t)blocks.at * 64 + 2 * lane;
#pragma unroll
        for (uint32_t i = 0; i < 2; i++)
          if (in[i]) loaded[i] = of[i];
      };
      wait(from + 1);
      load();
      uint32_t run = 0;
      for (uint32_t n = from; n < behind; n++) {
        int16_t *const to = p.coefficients + (uint64_t)blocks.at * 64 + 2 * lane;
        const int32_t v[2] = {loaded[0], loaded[1]};
        // The next block's are asked for before they are needed; behind the last block those of any that is there.
        if ((n + 2 > ahead) | bits.is_short() | (n - told >= STRIDE) | blocks.ends_row()) {
          tell(n);
          wait(min(n + 2, behind));
          bits.fill();
          if (n + 1 < behind) blocks.advance(1);
        } else {
          blocks.next_in_row();
        }
        load();
        // Those that are known, and for each how many come before it.
        const bool known[2] = {in[0] && v[0] != 0, in[1] && v[1] != 0};
        const uint32_t even = __ballot_sync(~0u, known[0]), odd = __ballot_sync(~0u, known[1]), count = __popc(even) + __popc(odd);
        uint32_t rank[2];
        rank[0] = __popc(even & below) + __popc(odd & below), rank[1] = rank[0] + known[0];
        // The bit of a known one stands behind the bits of those before it, and behind codes: so many bits of these.
        const uint32_t block_at = bits.at;
        uint32_t codes = 0, codes_before[2] = {0, 0}, before = begin - 1, used = 0;
        int32_t added[2] = {0, 0};
        const auto behind_codes = [&]() {
#pragma unroll
          for (uint32_t i = 0; i < 2; i++)
            if ((int32_t)(2 * lane + i) > (int32_t)before) codes_before[i] = codes;
        };
        if (run == 0) {
          __syncwarp();
#pragma unroll
          for (uint32_t i = 0; i < 2; i++)
            if (in[i] && !known[i]) own.zeros[2 * lane + i - begin - rank[i]] = 2 * lane + i;
          __syncwarp();
          const uint32_t free = size_of_band - count;
          bits.take();
          // Without a zero that a code asks for all is garbage, and over.
          while (true) {
            const uint32_t next = bits.peek();
            uint32_t e = own.ac[next >> (32 - LUT_BITS)];
            if (e - 1 >= ENDS - 1) {
              if (e == 0) {
                e = find_one(table, next);
                e = e == NO_CODE ? 0 : refining(e);
              }
              if (e == 0) {
                bad |= BAD_CODE;
                return;
              }
              if (e & ENDS) {
                const uint32_t length = code_bits(e - ENDS) + ((e - ENDS) >> 9);
                run = run_of(next, e - ENDS);
                bits.at += length, codes += length;
                behind_codes();
                break;
              }
            }
            const uint32_t size = value_bits(e), zeros = e >> 9, length = code_bits(e);
            used += zeros + 1, codes += length + size;
            behind_codes();
            // Past so many zeros to the one behind them; what is known on the way has a bit each.
            const uint32_t k = own.zeros[used - 1];
            const int32_t value = size == 0 ? 0 : next << length >> 31 ? one : -one;
            if (k == 2 * lane) added[0] = value;
            if (k == 2 * lane + 1) added[1] = value;
            const uint32_t was = bits.at;
            bits.at += length + size + k - before - 1 - zeros;
            before = k;
            if (k == end || used > free || (bits.at ^ was) >= 32) {
              if (k == end || used > free) break;
              bits.take();
            }
          }
          if (used > free) {
            bad |= BAD_CODE;
            return;
          }
        }
        bits.at += run > 0 ? count - (before + 1 - begin - used) : 0;
        run -= run > 0;
#pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
          // Away from zero.
          const uint32_t bit = bits.bit(block_at + codes_before[i] + rank[i]);
          if (known[i] && bit) added[i] = v[i] < 0 ? -one : one;
          if (added[i]) to[i] = v[i] + added[i];
        }
        if (bits.at > last) {
          bad |= TOO_SHORT;
          return;
        }
      }
    });
  }

  // DC values but for their lowest bits.
  __device__ void first_dc() {
    const bool alone = (pass.components & (pass.components - 1)) == 0;
    Blocks blocks(image, pass, first_component());
    each_segment([&](uint32_t begin, uint32_t end, uint32_t last) {
      int32_t sums[MAX_COMPONENTS] = {0, 0, 0};
      const auto block = [&](uint32_t c, uint32_t at) {
        const uint32_t next = bits.peek();
        uint32_t e = own.dc[c][next >> (32 - DC_BITS)];
        if (e == 0) e = find_one(p.tables[pass.tables[c]], next);
        if (e == NO_CODE) {
          bad |= BAD_CODE;
          return;
        }
        const uint32_t size = value_bits(e), length = code_bits(e);
        sums[c] += size ? value_of(next << length, size) : 0;
        bits.skip(length + size);
        if (lane == 0) p.dcs[at] = (int16_t)(sums[c] << pass.low);
      };
      if (alone) blocks.set(begin);
      for (uint32_t mcu = begin; mcu < end && !bad; mcu++) {
        bits.fill();
#pragma unroll
        for (uint32_t c = 0; c < MAX_COMPONENTS; c++) {
          if (!(pass.components >> c & 1)) continue;
          if (alone) {
            block(c, blocks.at);
            blocks.advance(1);
          } else {
            const uint32_t at = image.first_block + mcu * image.mcu_blocks + image.first[c];
            for (uint32_t i = 0; i < blocks_of(c) && !bad; i++) block(c, at + i);
          }
        }
        if (bits.at > last) bad |= TOO_SHORT;
      }
    });
  }

  // Blocks of a component that an MCU has.
  __device__ uint32_t blocks_of(uint32_t c) const { return image.across[c] * (image.mcu_height >> image.factor_y[c]); }

  // A further bit of DC values: those are found without a look at others.
  __device__ void refine_dc() {
    const bool alone = (pass.components & (pass.components - 1)) == 0;
    wait(DONE);
    uint32_t each = 0;
    for (uint32_t c = 0; c < MAX_COMPONENTS; c++) each += pass.components >> c & 1 ? blocks_of(c) : 0;
    if (alone) each = 1;
    each_segment([&](uint32_t begin, uint32_t end, uint32_t last) {
      const uint32_t count = (end - begin) * each;
      if (count > last - bits.at) {
        bad |= TOO_SHORT;
        return;
      }
      for (uint32_t i = lane; i < count; i += 32) {
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
    });
  }
};

extern "C" __global__ void __launch_bounds__(PROGRESSIVE_THREADS, 3) jpeg_progressive(const Task *rows, uint32_t count, Params p) {
  wait_for_earlier();
  __shared__ uint4 memory[WARPS * sizeof(Own) / 16];
  __shared__ uint32_t progress[MAX_PASSES], taken;
  static_assert(sizeof(Own) % 16 == 0, "tables are loaded in fours of words");
  const Task task = rows[blockIdx.x];
  const Image &image = p.images[task.image];
  if (threadIdx.x < MAX_PASSES) progress[threadIdx.x] = 0;
  if (threadIdx.x == 0) taken = 0;
  uint4 *const coefficients = (uint4 *)(p.coefficients + (uint64_t)image.first_block * 64);
  for (uint64_t i = threadIdx.x; i < (uint64_t)image.blocks * 8; i += blockDim.x) coefficients[i] = {0, 0, 0, 0};
  for (uint32_t i = threadIdx.x; i < image.blocks; i += blockDim.x) p.dcs[image.first_block + i] = 0;
  __syncthreads();
  // Warps take scans in turn. A scan waits for earlier ones only, and those are done or with other warps.
  while (true) {
    uint32_t i = 0;
    if (threadIdx.x % 32 == 0) i = atomicAdd(&taken, 1);
    i = __shfl_sync(~0u, i, 0);
    if (i >= task.count) break;
    Scan scan(p, image, p.passes[task.first + i], ((Own *)memory)[threadIdx.x / 32], progress, i, task.image);
    scan.load();
    scan.decode();
    scan.finish();
  }
}
