// Random numbers on a device: those that the host draws (src/cpu/random.rs), which is how DALI's operators on a GPU do
// it too.
#pragma once
#include "common.cuh"

// Philox4x32-10, positioned at the numbers of one element of a sample.
class Philox {
  static constexpr uint64_t ELEMENT_STRIDE = 257;
  uint64_t key, block, sequence;
  uint32_t phase;
  bool is_stale;
  uint32_t words[4];

  __device__ void fill() {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t x = (uint32_t)block, y = (uint32_t)(block >> 32), z = (uint32_t)sequence, w = (uint32_t)(sequence >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const uint64_t first = (uint64_t)0xD2511F53u * x, second = (uint64_t)0xCD9E8D57u * z;
      x = (uint32_t)(second >> 32) ^ y ^ k0;
      y = (uint32_t)second;
      z = (uint32_t)(first >> 32) ^ w ^ k1;
      w = (uint32_t)first;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    words[0] = x, words[1] = y, words[2] = z, words[3] = w;
  }

public:
  __device__ Philox(uint64_t key, uint64_t sequence, uint64_t element) : key(key), sequence(sequence) { move_to(element); }

  // To the numbers of another element. They are made when the first is asked for, so that threads which are at
  // different elements make theirs together.
  __device__ void move_to(uint64_t element) {
    block = element * ELEMENT_STRIDE / 4, phase = element * ELEMENT_STRIDE & 3;
    is_stale = true;
  }

  __device__ uint32_t word() {
    if (phase == 4) {
      phase = 0;
      ++block;
      is_stale = true;
    }
    if (is_stale) fill();
    is_stale = false;
    const uint32_t at = phase++;
    // An index that is known keeps words in registers.
    return at == 0 ? words[0] : at == 1 ? words[1] : at == 2 ? words[2] : words[3];
  }
};

// What differs between float and double.
template <class Real> struct Reals;
template <> struct Reals<float> {
  __device__ static float bits(Philox &random) { return (float)random.word(); }
  __device__ static float unit(Philox &random) { return bits(random) * 2.3283064365386963e-10f; }
  __device__ static float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
  __device__ static float at_most(float a, float b) { return fminf(a, b); }
  __device__ static float radius(float u) { return sqrtf(-2.0f * logf(u)); }
  __device__ static float cosine(float u) { return cosf(6.283185307179586f * u); }
};
template <> struct Reals<double> {
  __device__ static double bits(Philox &random) {
    const uint64_t low = random.word();
    return (double)(low | (uint64_t)random.word() << 32);
  }
  __device__ static double unit(Philox &random) { return bits(random) * 5.421010862427522e-20; }
  __device__ static double multiply_add(double a, double b, double c) { return fma(a, b, c); }
  __device__ static double at_most(double a, double b) { return fmin(a, b); }
  __device__ static double radius(double u) { return sqrt(-2.0 * log(u)); }
  __device__ static double cosine(double u) { return cos(6.283185307179586 * u); }
};

// By the cosine of Box and Muller.
template <class Real> __device__ inline Real normal_number(Philox &random, Real mean, Real stddev) {
  Real first = Reals<Real>::unit(random), second = Reals<Real>::unit(random);
  if (first == 0) {
    first = second == 0 ? (Real)1e-30f : second;
    second = 0;
  }
  return Reals<Real>::multiply_add(Reals<Real>::radius(first) * Reals<Real>::cosine(second), stddev, mean);
}
