// Shared memory by an address that is kept in a register. Of a variable the compiler computes the address anew at every
// access, with a special register that takes long to read: five instructions of forty in the loops that decode.
#pragma once
#include "common.cuh"

struct Shared {
  uint32_t address;

  // Of what is at `first`. All threads of a warp ask together: passing the address around keeps the compiler from
  // knowing where it is from.
  __device__ explicit Shared(const void *first) {
    asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(address) : "l"(first));
    address = __shfl_sync(~0u, address, 0);
  }
  // A thread's own part of it.
  __device__ Shared(const Shared &whole, uint32_t offset) : address(whole.address + offset) { asm volatile("" : "+r"(address)); }

  // What is `offset` bytes behind it.
  __device__ uint32_t word(uint32_t offset) const {
    uint32_t v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address + offset) : "memory");
    return v;
  }
  // The same if `wanted` is not 0, and into `v` itself: so the thread goes on until it uses `v`.
  __device__ void word_if(uint32_t wanted, uint32_t &v, uint32_t offset) const {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.shared.u32 %0, [%1]; }" : "+r"(v) : "r"(address + offset), "r"(wanted) : "memory");
  }
  __device__ uint32_t half(uint32_t offset) const {
    uint16_t v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(address + offset) : "memory");
    return v;
  }
  __device__ uint4 four(uint32_t offset) const {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address + offset) : "memory");
    return v;
  }
  __device__ void put_four(uint32_t offset, uint4 v) const {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address + offset), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
  }
  __device__ void put_word(uint32_t offset, uint32_t v) const {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address + offset), "r"(v) : "memory");
  }
  __device__ void put_half(uint32_t offset, uint32_t v) const {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(address + offset), "h"((uint16_t)v) : "memory");
  }
};
