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

// Of means below 12: as many uniform numbers as their product stays above a limit.
__device__ inline int32_t small_poisson(Philox &random, double mean) {
  const double limit = exp(-mean);
  double product = 1;
  for (int32_t number = 0;; ++number) {
    product *= below_one(random);
    if (product <= limit) return number;
  }
}

// Of larger ones: by the rejection method of Devroye.
__device__ inline int32_t large_poisson(Philox &random, double mean) {
  constexpr double PI = 3.141592653589793;
  const double m = floor(mean);
  const double d = round(fmax(6.0, fmin(m, sqrt(2 * m * log(32 * m / (PI / 4))))));
  const double cx = 2 * m + d, inverse = 1 / cx, root = sqrt(m);
  const double cb = 2 * cx * exp(-d * inverse * (1 + d / 2)) / d;
  const double c1 = root * sqrt(PI / 2), c2 = sqrt(PI / 4 * cx) * exp(inverse) + c1;
  const double c5 = c2 + 2 + exp(1.0 / 78);
  const double ln_mean = log(mean), ln_m = lgamma(m + 1);
  PolarNormal normal;
  for (int draws = 0; draws < MAX_DRAWS; ++draws) {
    const double u = (cb + c5) * below_one(random), e = -log(1 - below_one(random));
    double x, w;
    if (u <= c1) {
      const double n = normal.draw(random);
      x = floor(-fabs(n) * root - 1);
      w = -n * n / 2;
      if (x < -m) continue;
    } else if (u <= c2) {
      const double y = 1 + fabs(normal.draw(random)) * sqrt(cx / 2);
      x = ceil(y);
      w = y * (2 - y) * inverse;
      if (x > d) continue;
    } else if (u <= c2 + 1) {
      x = -1, w = 0;
    } else if (u <= c2 + 2) {
      x = 0, w = 0;
    } else if (u <= c5) {
      x = 1, w = 1.0 / 78;
    } else {
      const double y = d - log(1 - below_one(random)) * 2 * cx / d;
      x = ceil(y);
      w = -d * inverse * (1 + y / 2);
    }
    const double number = x + m;
    if (w - e - x * ln_mean <= ln_m - lgamma(number + 1) && number < 2147483647.0) return (int32_t)number;
  }
  return 2147483647;
}

// The number of events of which there are `mean` on average.
__device__ inline int32_t poisson(Philox &random, double mean) {
  if (!(mean > 0)) return 0;
  if (mean >= 2147483647.0) return 2147483647;
  return mean < 12 ? small_poisson(random, mean) : large_poisson(random, mean);
}
