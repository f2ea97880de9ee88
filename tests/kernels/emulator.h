// Runs kernels on the host, as they are: a thread of a block is a fiber, and a barrier goes on to the next. Slow and
// exact; with -fsanitize=address every access is checked, with -fsanitize=thread the order of accesses: two threads of
// a block that touch the same memory without a barrier between them are found, also when nothing came of it. What
// includes this includes `kernels.inc` next: the sources, without what is written in the device's assembly.
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
static unsigned __clz(unsigned bits) { return bits ? __builtin_clz(bits) : 32; }
static unsigned __popc(unsigned bits) { return __builtin_popcount(bits); }

// One thread runs at a time, so nothing comes between; the exchange says that it is meant so.
template <class T> static bool replaces(T *p, T &old, T value) {
  return __atomic_compare_exchange(p, &old, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
template <class T> static T atomic_load(T *p) {
  T value;
  __atomic_load(p, &value, __ATOMIC_RELAXED);
  return value;
}
template <class T, class V> static T atomicAdd(T *p, V value) {
  T old = atomic_load(p);
  while (!replaces(p, old, (T)(old + value))) {}
  return old;
}
template <class T, class V> static T atomicOr(T *p, V value) {
  T old = atomic_load(p);
  while (!replaces(p, old, (T)(old | value))) {}
  return old;
}
template <class T, class C, class V> static T atomicCAS(T *p, C expected, V value) {
  T old = (T)expected;
  replaces(p, old, (T)value);
  return old;
}

// ---- threads

#ifdef __SANITIZE_THREAD__
// A fiber is a thread to the checker. Switching to one orders nothing: barriers do, by what is released and acquired.
extern "C" void *__tsan_get_current_fiber(void);
extern "C" void *__tsan_create_fiber(unsigned flags);
extern "C" void __tsan_switch_to_fiber(void *fiber, unsigned flags);
extern "C" void __tsan_acquire(void *address);
extern "C" void __tsan_release(void *address);
#define UNCHECKED __attribute__((no_sanitize("thread"), noinline))
constexpr unsigned ORDERS_NOTHING = 1;
static void *new_thread() { return __tsan_create_fiber(0); }
static void *this_thread() { return __tsan_get_current_fiber(); }
static void on_thread(void *thread) { __tsan_switch_to_fiber(thread, ORDERS_NOTHING); }
static void acquire(void *address) { __tsan_acquire(address); }
static void release(void *address) { __tsan_release(address); }
#else
#define UNCHECKED
static void *new_thread() { return nullptr; }
static void *this_thread() { return nullptr; }
static void on_thread(void *) {}
static void acquire(void *) {}
static void release(void *) {}
#endif

enum State { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, DONE };
struct Fiber {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(64 << 10);
  State state;
  unsigned long long shown;
  // Barriers of the block and of its warp that it has come to.
  unsigned block_barriers, warp_barriers;
  void *thread = new_thread();
};
static Fiber *fibers;
static unsigned fiber_count;
static ucontext_t scheduler;
static unsigned current;
static std::function<void()> kernel;
static void *scheduler_thread;
// What the barriers of a block and of its warps order, and that it begins when what was before is over. Every other
// barrier has the same: who comes to the next before another has left this one is not before him.
static char block_orders[2], warp_orders[32][2], block_begin;

UNCHECKED static void stop(State state, char *order) {
  Fiber &self = fibers[current];
  self.state = state;
  if (order) release(order);
  on_thread(scheduler_thread);
  swapcontext(&self.context, &scheduler);
  if (order) acquire(order);
}
// Who is done is so for every barrier that is to come.
static void run_kernel() {
  acquire(&block_begin);
  kernel();
  Fiber &self = fibers[current];
  release(&warp_orders[current / 32][self.warp_barriers % 2]);
  stop(DONE, &block_orders[self.block_barriers % 2]);
}
UNCHECKED static void __syncthreads() { stop(AT_BLOCK_BARRIER, &block_orders[fibers[current].block_barriers++ % 2]); }
UNCHECKED static void __syncwarp(unsigned = ~0u) { stop(AT_WARP_BARRIER, &warp_orders[current / 32][fibers[current].warp_barriers++ % 2]); }
static unsigned __activemask() { return ~0u; }

// Votes and what is passed from thread to thread bring a warp together, but order nothing in memory.
UNCHECKED static void meet() { stop(AT_WARP_BARRIER, nullptr); }

// What another thread of the warp passes.
template <class T> UNCHECKED static T exchange(T value, unsigned lane) {
  memcpy(&fibers[current].shown, &value, sizeof value);
  meet();
  memcpy(&value, &fibers[(current & ~31u) + lane].shown, sizeof value);
  meet();
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
UNCHECKED static unsigned __ballot_sync(unsigned, bool value) {
  fibers[current].shown = value;
  meet();
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; i++) bits |= (unsigned)(fibers[(current & ~31u) + i].shown & 1) << i;
  meet();
  return bits;
}
// What one thread has written before its fence, another sees behind its own.
static char fence_orders;
static void __threadfence_block() {
  acquire(&fence_orders);
  release(&fence_orders);
}
// Lets others run.
UNCHECKED static void __nanosleep(unsigned) { stop(READY, nullptr); }
static bool __any_sync(unsigned mask, bool value) { return __ballot_sync(mask, value) != 0; }

// Lets those go on who wait for `barrier` when none of them still runs.
UNCHECKED static bool open_barrier(unsigned first, unsigned count, State barrier) {
  bool waits = false;
  for (unsigned i = first; i < first + count; i++) {
    if (fibers[i].state == READY || (barrier == AT_BLOCK_BARRIER && fibers[i].state == AT_WARP_BARRIER)) return false;
    waits |= fibers[i].state == barrier;
  }
  for (unsigned i = first; i < first + count; i++)
    if (fibers[i].state == barrier) fibers[i].state = READY;
  return waits;
}

UNCHECKED static void launch(unsigned blocks, unsigned threads, std::function<void()> body, unsigned row = 0) {
  kernel = body;
  scheduler_thread = this_thread();
  blockDim = {threads, 1, 1};
  gridDim = {blocks, 1, 1};
  if (threads > fiber_count) fibers = new Fiber[fiber_count = threads];
  for (unsigned block = 0; block < blocks; block++) {
    blockIdx = {block, row, 0};
    for (unsigned i = 0; i < threads; i++) {
      Fiber &fiber = fibers[i];
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      fiber.context.uc_link = &scheduler;
      makecontext(&fiber.context, run_kernel, 0);
      fiber.state = READY, fiber.block_barriers = fiber.warp_barriers = 0;
    }
    // Blocks come one after the other: they share what on a device each has of its own.
    release(&block_begin);
    for (bool more = true; more;) {
      for (unsigned i = 0; i < threads; i++) {
        if (fibers[i].state != READY) continue;
        current = i, threadIdx = {i, 0, 0};
        on_thread(fibers[i].thread);
        swapcontext(&scheduler, &fibers[i].context);
      }
      more = false;
      for (unsigned i = 0; i < threads; i++) more |= fibers[i].state == READY;
      for (unsigned warp = 0; warp < threads; warp += 32) more |= open_barrier(warp, 32, AT_WARP_BARRIER);
      more = more || open_barrier(0, threads, AT_BLOCK_BARRIER);
    }
    for (char &order : block_orders) acquire(&order);
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
