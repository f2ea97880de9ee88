// Sums in numpy's order, by all threads of a block, each equal to the host's to the bit: eight sums side by side within
// parts, halves above them. LANES and PART come from the layout of the kernel that includes this.
#pragma once

// The sum of what `value` gives for `count` positions from `begin` on, no more than PART.
template <class T, class Value>
__device__ inline T sum_of_part(uint64_t begin, uint32_t count, const Value &value) {
  T all = -0.0f;
  uint32_t i = 0;
  if (count >= LANES) {
    T lane[LANES];
    for (; i < LANES; ++i) lane[i] = value(begin + i);
    for (; i + LANES <= count; i += LANES)
      for (uint32_t k = 0; k < LANES; ++k) lane[k] += value(begin + i + k);
    all = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
  }
  for (; i < count; ++i) all += value(begin + i);
  return all;
}

// The sum for positions below `count`, which are parts after `depth` divisions. `tree` has room for 2 << depth sums:
// number 1 is the whole, the halves of number n are numbers 2 n and 2 n + 1. What is a part earlier is the first of
// those that it would be divided into, and the others are -0, to which nothing happens in a sum.
template <class T, class Value>
__device__ inline T pairwise_sum(uint64_t count, uint32_t depth, T *tree, const Value &value) {
  const uint64_t parts = 1ull << depth;
  // Others may still read the sum before.
  __syncthreads();
  for (uint64_t part = threadIdx.x; part < parts; part += blockDim.x) {
    uint64_t begin = 0, length = count;
    bool is_there = true;
    for (uint32_t level = depth; level > 0; --level) {
      const bool is_second = part >> (level - 1) & 1;
      if (length <= PART) {
        is_there = is_there && !is_second;
        continue;
      }
      const uint64_t half = length / 2 - length / 2 % LANES;
      begin += is_second ? half : 0;
      length = is_second ? length - half : half;
    }
    tree[parts + part] = is_there ? sum_of_part<T>(begin, (uint32_t)length, value) : (T)-0.0f;
  }
  for (uint64_t width = parts / 2; width > 0; width /= 2) {
    __syncthreads();
    for (uint64_t i = width + threadIdx.x; i < 2 * width; i += blockDim.x) tree[i] = tree[2 * i] + tree[2 * i + 1];
  }
  __syncthreads();
  return tree[1];
}
