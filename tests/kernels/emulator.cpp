// Runs the kernels of kernels/jpeg_*.cu on the host, as they are: a thread of a block is a fiber, and a barrier goes on to the next.
// Slow and exact; with -fsanitize=address every access is checked. `kernels.inc`, which the test makes, holds their sources, each in
// a namespace of its own.
//
//   emulator INPUT OUTPUT
//
// INPUT: arrays, each with its length in bytes (8 bytes) before it: images, segments, tables, quantisation, data, tasks of guess and
// link, of decode, of pixels, and three numbers (8 bytes): pieces, blocks, bytes of pixels. Addresses in images are offsets.
// OUTPUT: a status for each image (4 bytes), the pixels.
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

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct Index {
  unsigned x, y, z;
};
static Index threadIdx, blockIdx, blockDim;

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

static void launch(unsigned blocks, unsigned threads, std::function<void()> body) {
  kernel = body;
  blockDim = {threads, 1, 1};
  fibers.resize(threads);
  for (unsigned block = 0; block < blocks; block++) {
    blockIdx = {block, 0, 0};
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

#define ROW_BYTES sizeof(Row)
#define PARAM_BYTES sizeof(Params)
#include "kernels.inc"

// ---- a batch

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

int main(int, char **arguments) {
  FILE *input = fopen(arguments[1], "rb");
  std::vector<char> arrays[9];
  for (auto &array : arrays) array = read(input);
  fclose(input);
  auto &[images_in, segments, tables, quantisation, data, guesses, decodes, pixels, sizes] = arrays;
  unsigned long long counts[3];
  memcpy(counts, sizes.data(), sizeof counts);
  const auto [pieces, blocks, pixel_bytes] = counts;

  Image *images = copied<Image>(images_in);
  const unsigned count = images_in.size() / sizeof(Image);
  std::vector<char> made(pixel_bytes);
  std::vector<uint32_t> status(count);
  for (unsigned i = 0; i < count; i++) {
    images[i].data = (const uint32_t *)(data.data() + (size_t)images[i].data);
    images[i].pixels = (uint8_t *)made.data() + (size_t)images[i].pixels;
  }
  Params p = {};
  p.images = images, p.tables = copied<Table>(tables), p.segments = copied<Segment>(segments);
  p.quantisation = copied<uint16_t>(quantisation);
  p.exits = room<uint32_t>(pieces * SLOT_ROOM), p.links = room<uint8_t>(pieces * SLOT_ROOM);
  p.steps = room<Step>(pieces * SLOT_ROOM), p.starts = room<Start>(pieces);
  p.coefficients = room<int16_t>(blocks * 64), p.status = status.data(), p.channels = 3;

  const auto over = [&](const std::vector<char> &tasks, unsigned threads, auto function) {
    const Task *rows = copied<Task>(tasks);
    const unsigned length = tasks.size() / sizeof(Task);
    launch(length, threads, [=] { function(rows, length, p); });
  };
  over(guesses, 256, guess::jpeg_guess);
  over(guesses, 256, link::jpeg_link);
  launch(count, 1024, [&] { resolve::jpeg_resolve(images, count, p); });
  over(decodes, 128, decode::jpeg_decode);
  over(pixels, 256, pixels_of::jpeg_pixels);

  FILE *output = fopen(arguments[2], "wb");
  fwrite(status.data(), 4, count, output);
  fwrite(made.data(), 1, made.size(), output);
  fclose(output);
}
