// Weights of the pixels in a line around a place, of the middle two of which the first is `part` of a pixel before it.
#pragma once
#include "common.cuh"

// Keys' cubic convolution with a = -0.75.
__device__ inline void cubic_weights(float part, float weights[4]) {
  const float a = -0.75f, far = part + 1, near = 1 - part;
  weights[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
  weights[1] = ((a + 2) * part - (a + 3)) * part * part + 1;
  weights[2] = ((a + 2) * near - (a + 3)) * near * near + 1;
  weights[3] = 1 - weights[0] - weights[1] - weights[2];
}

// A sine under the arch of one that is four times as long, on both sides, of a sum of 1: see `lanczos_weights` of
// src/cpu/weights.rs.
__device__ inline void lanczos_weights(float part, float weights[8]) {
  const float least = 1.1920929e-7f, diagonal = 0.70710678f, angle = part * 0.78539816f;
  const float s = sinf(angle), c = cosf(angle);
  const float arch[8] = {diagonal * (c - s), -c, diagonal * (s + c), -s, diagonal * (s - c), c, -diagonal * (s + c), s};
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const float away = part + 3 - i;
    weights[i] = part < least ? (i == 3 ? 1 : 0) : arch[i] / (away * away);
    sum += weights[i];
  }
#pragma unroll
  for (int i = 0; i < 8; i++) weights[i] /= sum;
}
