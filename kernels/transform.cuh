// Fourier transforms of two real signals at once, in doubles, by all threads of a block: one signal is the real part of
// complex numbers, the other the imaginary.
#pragma once

#include "common.cuh"

struct Complex {
  double re, im;
};

// The spectrum of SIZE numbers, where it then lies: in `from` or in `to`. SIZE is the product of the radices, of which
// passes over DONE numbers are made; `turns` has the parts of a circle, clockwise. A pass puts what it makes in order,
// so that the last one leaves the spectrum in that of its bins.
template <uint32_t SIZE, uint32_t DONE, uint32_t RADIX, uint32_t... MORE>
__device__ inline Complex *transformed(Complex *from, Complex *to, const Complex *turns) {
  constexpr uint32_t DISTANCE = SIZE / RADIX;
  for (uint32_t i = threadIdx.x; i < SIZE; i += blockDim.x) {
    const uint32_t bin = i / DONE % RADIX, group = i / (DONE * RADIX), step = bin * DISTANCE;
    uint32_t at = i % DONE + group * DONE, angle = bin * group * DONE;
    double re = 0, im = 0;
    for (uint32_t k = 0; k < RADIX; ++k) {
      const Complex value = from[at], turn = turns[angle];
      re = fma(value.re, turn.re, fma(-value.im, turn.im, re));
      im = fma(value.re, turn.im, fma(value.im, turn.re, im));
      at += DISTANCE;
      angle += step;
      if (angle >= SIZE) angle -= SIZE;
    }
    to[i] = {re, im};
  }
  __syncthreads();
  if constexpr (sizeof...(MORE) > 0) return transformed<SIZE, DONE * RADIX, MORE...>(to, from, turns);
  else return to;
}

// Bin `bin` of each of the two signals whose common spectrum is `spectrum`, rounded to floats.
struct Bins {
  float re[2], im[2];
};
template <uint32_t SIZE> __device__ inline Bins apart(const Complex *spectrum, uint32_t bin) {
  const Complex a = spectrum[bin], b = spectrum[bin == 0 ? 0 : SIZE - bin];
  return {{(float)(0.5 * (a.re + b.re)), (float)(0.5 * (a.im + b.im))},
          {(float)(0.5 * (a.im - b.im)), (float)(0.5 * (b.re - a.re))}};
}
