// In place of kernels/shared.cuh.
#pragma once
#include "common.cuh"

struct Shared {
  char *address;

  explicit Shared(const void *first) : address((char *)first) {}
  Shared(const Shared &whole, uint32_t offset) : address(whole.address + offset) {}
  uint32_t word(uint32_t offset) const { return *(const uint32_t *)(address + offset); }
  void word_if(uint32_t wanted, uint32_t &v, uint32_t offset) const {
    if (wanted) v = word(offset);
  }
  uint32_t half(uint32_t offset) const { return *(const uint16_t *)(address + offset); }
  uint4 four(uint32_t offset) const { return *(const uint4 *)(address + offset); }
  void put_four(uint32_t offset, uint4 v) const { *(uint4 *)(address + offset) = v; }
  void put_word(uint32_t offset, uint32_t v) const { *(uint32_t *)(address + offset) = v; }
  void put_half(uint32_t offset, uint32_t v) const { *(uint16_t *)(address + offset) = (uint16_t)v; }
};
