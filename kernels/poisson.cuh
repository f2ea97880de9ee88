// Poisson numbers: those that the host draws (src/cpu/random/standard.rs), by the algorithm of libstdc++.
//
// Drawing one takes several steps, each of two uniform numbers: then the threads of a warp, which are at different numbers and places of
// these, make a block of Philox together in every step.
#pragma once
#include "random.cuh"

// Draws after which the number of a huge mean is the largest one.
constexpr int MAX_DRAWS = 10000;
constexpr int32_t LARGEST = 2147483647;

// Uniform numbers from 0 up to 1 of one element of a sample, by twos.
class UniformPairs {
  uint64_t key, sequence, block;
  // The words of the last block, and where among them and the next block's the numbers go on: 1 to 4; 0: the last block is still to be made.
  uint32_t last[4];
  uint32_t place, first_place;

  __device__ static double unit(uint32_t low, uint32_t high) {
    return fmin((double)(low | (uint64_t)high << 32) * 5.421010862427522e-20, 1 - 1.1102230246251565e-16);
  }

public:
  __device__ UniformPairs(uint64_t key, uint64_t sequence) : key(key), sequence(sequence) {}

  __device__ void move_to(uint64_t element) {
    const uint64_t word = element * ELEMENT_STRIDE;
    block = word / 4, first_place = word % 4;
    place = first_place == 0 ? 4 : 0;
  }

  // Whether the next two numbers are there: not in the first call for most elements.
  __device__ bool draw(double &first, double &second) {
    uint32_t next[4];
    philox_block(key, sequence, block++, next);
    const bool is_there = place != 0;
    // Indices that are known keep words in registers.
    uint32_t a = place == 4 ? next[0] : place == 3 ? last[3] : place == 2 ? last[2] : last[1];
    uint32_t b = place == 4 ? next[1] : place == 3 ? next[0] : place == 2 ? last[3] : last[2];
    uint32_t c = place == 4 ? next[2] : place == 3 ? next[1] : place == 2 ? next[0] : last[3];
    uint32_t d = place == 4 ? next[3] : place == 3 ? next[2] : place == 2 ? next[1] : next[0];
    first = unit(a, b), second = unit(c, d);
    if (!is_there) place = first_place;
    for (int i = 0; i < 4; ++i) last[i] = next[i];
    return is_there;
  }

  // Gives the second of the last two numbers back: it is the first of the next.
  __device__ void give_back() {
    if (place > 2) {
      place -= 2;
    } else {
      // Of the words before the last block two are needed again.
      block -= 2;
      first_place = place + 2, place = 0;
    }
  }
};

// Numbers of means below this are found by counting, of others by rejection.
constexpr double FEW = 12;
// Means of which there is a number to draw; below them it is 0, above them the largest.
__device__ inline bool is_drawn(double mean) { return mean > 0 && mean < (double)LARGEST; }

// log(n!) of the first n, which a block makes once.
struct Factorials {
  static constexpr int COUNT = 256;
  double logs[COUNT];

  __device__ void make() {
    for (int n = threadIdx.x; n < COUNT; n += blockDim.x) logs[n] = lgamma(n + 1.0);
  }

  __device__ double log_of(double n) const { return n >= 0 && n < COUNT ? logs[(int)n] : lgamma(n + 1); }
};

// As many uniform numbers as their product stays above a limit.
class Counting {
  double product = 1;
  int32_t number = 0;

public:
  // What is to be known of a mean.
  struct Mean {
    double limit;
    Mean() = default;
    __device__ explicit Mean(double mean) : limit(exp(-mean)) {}
  };
  __device__ static bool takes(double mean) { return mean < FEW; }

  // Whether `found` is the number, by the next two uniform numbers.
  __device__ bool step(UniformPairs &, double first, double second, const Mean &mean, const Factorials &, int32_t &found) {
    product *= first;
    const bool is_first = product <= mean.limit;
    product *= second;
    found = number + !is_first;
    number += 2;
    return is_first || product <= mean.limit;
  }
};

// exp(1 / 78).
constexpr double EDGE = 1.0129030479320018;

// The rejection method of Devroye.
class Rejection {
  enum { CHOOSING, NORMAL, TAIL } state = CHOOSING;
  int draws = 0;
  // A normal number is left of two that Marsaglia's polar method made.
  bool is_saved = false;
  double saved;
  // The last choice, and what its number is accepted by.
  double u, rest;

public:
  struct Mean {
    double m, d, cx, inverse, root, spread, c1, c2, all, ln_mean, ln_m;
    Mean() = default;
    __device__ explicit Mean(double mean) {
      constexpr double PI = 3.141592653589793;
      m = floor(mean);
      d = round(fmax(6.0, fmin(m, sqrt(2 * m * log(32 * m / (PI / 4))))));
      cx = 2 * m + d, inverse = 1 / cx, root = sqrt(m), spread = sqrt(cx / 2);
      const double cb = 2 * cx * exp(-d * inverse * (1 + d / 2)) / d;
      c1 = root * sqrt(PI / 2), c2 = sqrt(PI / 4 * cx) * exp(inverse) + c1;
      all = cb + (c2 + 2 + EDGE);
      ln_mean = log(mean), ln_m = lgamma(m + 1);
    }
  };
  __device__ static bool takes(double mean) { return mean >= FEW; }

  __device__ bool step(UniformPairs &pairs, double first, double second, const Mean &of, const Factorials &factorials, int32_t &found) {
    double normal;
    if (state == CHOOSING) {
      if (draws++ == MAX_DRAWS) {
        found = LARGEST;
        return true;
      }
      u = of.all * first, rest = 1 - second;
      if (u > of.c2) {
        const double one = of.c2 + 1, two = of.c2 + 2;
        if (u <= one) return accepts(-1, 0, of, factorials, found);
        if (u <= two) return accepts(0, 0, of, factorials, found);
        if (u <= two + EDGE) return accepts(1, 1.0 / 78, of, factorials, found);
        state = TAIL;
        return false;
      }
      if (!is_saved) {
        state = NORMAL;
        return false;
      }
      normal = saved, is_saved = false;
    } else if (state == TAIL) {
      pairs.give_back();
      state = CHOOSING;
      const double y = of.d - log(1 - first) * 2 * of.cx / of.d;
      return accepts(ceil(y), -of.d * of.inverse * (1 + y / 2), of, factorials, found);
    } else {
      const double x = 2 * first - 1, y = 2 * second - 1, square = x * x + y * y;
      if (!(square <= 1 && square != 0)) return false;
      const double scale = sqrt(-2 * log(square) / square);
      saved = x * scale, is_saved = true;
      normal = y * scale;
      state = CHOOSING;
    }
    const double n = fabs(normal), y = 1 + n * of.spread;
    const bool is_below = u <= of.c1;
    const double x = is_below ? floor(-n * of.root - 1) : ceil(y);
    if (is_below ? x < -of.m : x > of.d) return false;
    return accepts(x, is_below ? -n * n / 2 : y * (2 - y) * of.inverse, of, factorials, found);
  }

private:
  __device__ bool accepts(double x, double w, const Mean &of, const Factorials &factorials, int32_t &found) const {
    const double number = x + of.m, limit = of.ln_m - factorials.log_of(number), most = w - x * of.ln_mean;
    found = (int32_t)number;
    if (!(number < (double)LARGEST)) return false;
    // Mostly a rough logarithm decides.
    const float gap = (float)(limit - most), e = -logf((float)rest), unsure = 1e-4f + 1e-6f * fmaxf(gap, -gap);
    if (fmaxf(e + gap, -e - gap) > unsure) return e + gap > 0;
    return w - -log(rest) - x * of.ln_mean <= limit;
  }
};
