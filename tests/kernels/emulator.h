// Runs kernels on the host, as they are: a thread of a block is a fiber, and a barrier goes on to the next. Slow and exact; with
// -fsanitize=address every access is checked. What includes this includes `kernels.inc` next: the sources, without what is written
// in the device's assembly.
#include <math.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>
#include <vector>

// kernels/common.cuh declares its own.
#define uint8_t kernel_uint8_t
#define uint16_t kernel_uint16_t
#define uint32_t kernel_uint32_t
#define uint64_t kernel_uint64_t
#define int8_t kernel_int8_t
#define int16_t kernel_int16_t
#define int32_t kernel_int32_t
#define int64_t kernel_int64_t

#define __device__
#define __global__
#define __noinline__
#define __shared__ static
#define __constant__ static const
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct Index {
  unsigned x, y, z;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

template <class A, class B> using Common = std::common_type_t<A, B>;
template <class A, class B> static Common<A, B> min(A a, B b) { return (Common<A, B>)a < (Common<A, B>)b ? a : b; }
template <class A, class B> static Common<A, B> max(A a, B b) { return (Common<A, B>)a > (Common<A, B>)b ? a : b; }

static unsigned __byte_perm(unsigned low, unsigned high, unsigned choice) {
  const unsigned long long bytes = (unsigned long long)high << 32 | low;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) result |= (unsigned)(bytes >> 8 * (choice >> 4 * i & 7) & 255) << 8 * i;
  return result;
}
static unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  shift &= 31;
  return shift ? high << shift | low >> (32 - shift) : high;
}
static unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  shift &= 31;
  return shift ? low >> shift | high << (32 - shift) : low;
}
template <class T> static T __ldg(const T *from) { return *from; }
static float __uint_as_float(unsigned bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static unsigned __brev(unsigned bits) {
  unsigned result = 0;
  for (int i = 0; i < 32; i++) result |= (bits >> i & 1) << (31 - i);
  return result;
}
static unsigned __ffs(unsigned bits) { return __builtin_ffs((int)bits); }

// One thread runs at a time, so nothing comes between.
template <class T, class V> static T atomicAdd(T *p, V value) {
  const T old = *p;
  *p += value;
  return old;
}
template <class T, class V> static T atomicOr(T *p, V value) {
  const T old = *p;
  *p |= value;
  return old;
}
template <class T, class C, class V> static T atomicCAS(T *p, C expected, V value) {
  const T old = *p;
  if (old == (T)expected) *p = value;
  return old;
}

// ---- threads

enum State { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, DONE };
struct Fiber {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(64 << 10);
  State state;
  unsigned long long shown;
};
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static unsigned current;
static std::function<void()> kernel;

static void stop(State state) {
  Fiber &self = fibers[current];
  self.state = state;
  swapcontext(&self.context, &scheduler);
}
static void run_kernel() {
  kernel();
  stop(DONE);
}
static void __syncthreads() { stop(AT_BLOCK_BARRIER); }
static void __syncwarp(unsigned = ~0u) { stop(AT_WARP_BARRIER); }
static unsigned __activemask() { return ~0u; }

// What another thread of the warp passes.
template <class T> static T exchange(T value, unsigned lane) {
  memcpy(&fibers[current].shown, &value, sizeof value);
  __syncwarp();
  memcpy(&value, &fibers[(current & ~31u) + lane].shown, sizeof value);
  __syncwarp();
  return value;
}
template <class T> static T __shfl_sync(unsigned, T value, unsigned lane) { return exchange(value, lane & 31); }
template <class T> static T __shfl_up_sync(unsigned, T value, unsigned distance) {
  const unsigned lane = threadIdx.x & 31;
  return exchange(value, lane >= distance ? lane - distance : lane);
}
template <class T> static T __shfl_xor_sync(unsigned, T value, unsigned bits) {
  return exchange(value, (threadIdx.x ^ bits) & 31);
}
static unsigned __ballot_sync(unsigned, bool value) {
  fibers[current].shown = value;
  __syncwarp();
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; i++) bits |= (unsigned)(fibers[(current & ~31u) + i].shown & 1) << i;
  __syncwarp();
  return bits;
}
static bool __any_sync(unsigned mask, bool value) { return __ballot_sync(mask, value) != 0; }

// Lets those go on who wait for `barrier` when none of them still runs.
static bool open_barrier(unsigned first, unsigned count, State barrier) {
  bool waits = false;
  for (unsigned i = first; i < first + count; i++) {
    if (fibers[i].state == READY || (barrier == AT_BLOCK_BARRIER && fibers[i].state == AT_WARP_BARRIER)) return false;
    waits |= fibers[i].state == barrier;
  }
  for (unsigned i = first; i < first + count; i++)
    if (fibers[i].state == barrier) fibers[i].state = READY;
  return waits;
}

static void launch(unsigned blocks, unsigned threads, std::function<void()> body, unsigned row = 0) {
  kernel = body;
  blockDim = {threads, 1, 1};
  gridDim = {blocks, 1, 1};
  fibers.resize(threads);
  for (unsigned block = 0; block < blocks; block++) {
    blockIdx = {block, row, 0};
    for (Fiber &fiber : fibers) {
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      fiber.context.uc_link = &scheduler;
      makecontext(&fiber.context, run_kernel, 0);
      fiber.state = READY;
    }
    for (bool more = true; more;) {
      for (unsigned i = 0; i < threads; i++) {
        if (fibers[i].state != READY) continue;
        current = i, threadIdx = {i, 0, 0};
        swapcontext(&scheduler, &fibers[i].context);
      }
      more = false;
      for (unsigned warp = 0; warp < threads; warp += 32) more |= open_barrier(warp, 32, AT_WARP_BARRIER);
      more = more || open_barrier(0, threads, AT_BLOCK_BARRIER);
    }
  }
}

// ---- files and memory

// An array of the input, exactly as long as it is.
static std::vector<char> read(FILE *file) {
  unsigned long long bytes = 0;
  if (fread(&bytes, sizeof bytes, 1, file) != 1) exit(2);
  std::vector<char> data(bytes);
  if (fread(data.data(), 1, bytes, file) != bytes) exit(2);
  return data;
}

// Memory that nobody has written to yet, aligned as a device's.
template <class T> static T *room(size_t count) {
  char *memory = (char *)aligned_alloc(256, (count * sizeof(T) + 255) / 256 * 256 + 256);
  memset(memory, 0x5A, count * sizeof(T));
  return (T *)memory;
}
template <class T> static T *copied(const std::vector<char> &data) {
  T *memory = room<T>((data.size() + sizeof(T) - 1) / sizeof(T));
  memcpy((void *)memory, data.data(), data.size());
  return memory;
}
