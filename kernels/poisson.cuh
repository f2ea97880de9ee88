// Poisson numbers: those that the host draws (src/cpu/random/standard.rs), by the algorithm of libstdc++.
#pragma once
#include "random.cuh"

// Draws after which the number of a huge mean is the largest one.
constexpr int MAX_DRAWS = 10000;

// From 0 up to 1.
__device__ inline double below_one(Philox &random) {
  return fmin(Reals<double>::unit(random), 1 - 1.1102230246251565e-16);
}

// Normal numbers by Marsaglia's polar method, which makes two at a time.
class PolarNormal {
  bool is_saved = false;
  double saved = 0;

public:
  __device__ double draw(Philox &random) {
    if (is_saved) {
      is_saved = false;
      return saved;
    }
    for (;;) {
      const double x = 2 * below_one(random) - 1, y = 2 * below_one(random) - 1, square = x * x + y * y;
      if (square <= 1 && square != 0) {
        const double scale = sqrt(-2 * log(square) / square);
        saved = x * scale;
        is_saved = true;
        return y * scale;
      }
    }
  }
};

// Numbers of means below this are found by counting, of others by rejection.
constexpr double FEW = 12;
// Means of which there is a number to draw; below them it is 0, above them the largest.
__device__ inline bool is_drawn(double mean) { return mean > 0 && mean < 2147483647.0; }

// log(n!) of the first n, which a block makes once.
struct Factorials {
  static constexpr int COUNT = 256;
  double logs[COUNT];

  __device__ void make() {
    for (int n = threadIdx.x; n < COUNT; n += blockDim.x) logs[n] = lgamma(n + 1.0);
  }

  __device__ double log_of(double n) const { return n >= 0 && n < COUNT ? logs[(int)n] : lgamma(n + 1); }
};

// Drawing one number is several steps: those of threads which draw different numbers are made together.

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

  // Whether `found` is the number now.
  __device__ bool step(Philox &random, const Mean &mean, const Factorials &, int32_t &found) {
    product *= below_one(random);
    found = number++;
    return product <= mean.limit;
  }
};

// The rejection method of Devroye.
class Rejection {
  PolarNormal normal;
  int draws = 0;

public:
  struct Mean {
    double m, d, cx, inverse, root, c1, c2, all, ln_mean, ln_m;
    Mean() = default;
    __device__ explicit Mean(double mean) {
      constexpr double PI = 3.141592653589793;
      m = floor(mean);
      d = round(fmax(6.0, fmin(m, sqrt(2 * m * log(32 * m / (PI / 4))))));
      cx = 2 * m + d, inverse = 1 / cx, root = sqrt(m);
      const double cb = 2 * cx * exp(-d * inverse * (1 + d / 2)) / d;
      c1 = root * sqrt(PI / 2), c2 = sqrt(PI / 4 * cx) * exp(inverse) + c1;
      all = cb + (c2 + 2 + exp(1.0 / 78));
      ln_mean = log(mean), ln_m = lgamma(m + 1);
    }
  };
  __device__ static bool takes(double mean) { return mean >= FEW; }

  __device__ bool step(Philox &random, const Mean &of, const Factorials &factorials, int32_t &found) {
    if (draws++ == MAX_DRAWS) {
      found = 2147483647;
      return true;
    }
    const double u = of.all * below_one(random), e = -log(1 - below_one(random));
    double x, w;
    if (u <= of.c2) {
      const double n = fabs(normal.draw(random)), y = 1 + n * sqrt(of.cx / 2);
      const bool is_below = u <= of.c1;
      x = is_below ? floor(-n * of.root - 1) : ceil(y);
      w = is_below ? -n * n / 2 : y * (2 - y) * of.inverse;
      if (is_below ? x < -of.m : x > of.d) return false;
    } else if (u <= of.c2 + 1) {
      x = -1, w = 0;
    } else if (u <= of.c2 + 2) {
      x = 0, w = 0;
    } else if (u <= of.c2 + 2 + exp(1.0 / 78)) {
      x = 1, w = 1.0 / 78;
    } else {
      const double y = of.d - log(1 - below_one(random)) * 2 * of.cx / of.d;
      x = ceil(y);
      w = -of.d * of.inverse * (1 + y / 2);
    }
    const double number = x + of.m;
    found = (int32_t)number;
    return w - e - x * of.ln_mean <= of.ln_m - factorials.log_of(number) && number < 2147483647.0;
  }
};
