// Products of small matrices, which the threads of a warp make together: of halves, summed as floats.
#pragma once
#include "common.cuh"

// Adds a * b to d. Of a, 16 x 16, a thread has two neighbours in a register: with g = lane / 4 and t = lane % 4, of
// rows g and g + 8 the columns from 2 t on, then of both the columns from 2 t + 8 on; of b, 16 x 8, in column g the
// rows from 2 t and from 2 t + 8 on; of d, 16 x 8, in rows g and g + 8 the columns from 2 t on.
__device__ inline void multiply(const uint4 &a, uint32_t b_low, uint32_t b_high, float d[4]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b_low), "r"(b_high));
#else
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(b_low));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a.z), "r"(a.w), "r"(b_high));
#endif
}
