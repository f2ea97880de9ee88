// What stands in for elements outside of an image. Behind the layout of a kernel, which has the enum.

// Where position `at` is taken from in a dimension of `extent`; -1: from nowhere.
__device__ inline int source_of(int at, int extent, Border border) {
  if (at >= 0 && at < extent) return at;
  int period;
  switch (border) {
    case CLAMP: return at < 0 ? 0 : extent - 1;
    case REFLECT_1001:
      period = 2 * extent;
      at = (at % period + period) % period;
      return min(at, period - 1 - at);
    case REFLECT_101:
      period = extent > 1 ? 2 * extent - 2 : 1;
      at = (at % period + period) % period;
      return min(at, period - at);
    case WRAP: return (at % extent + extent) % extent;
    default: return -1;
  }
}
