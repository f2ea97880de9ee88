// Decodes a batch of JPEGs with kernels/jpeg_*.cu, each in a namespace of its own.
//
//   jpeg INPUT OUTPUT
//
// INPUT: arrays, each with its length in bytes (8 bytes) before it: images, segments, tables, quantisation, data, tasks
// of pairs, of guess and link, of resolve, of decode, of progressive, of DC values, of pixels, of planes, of upsample,
// planes, passes, and six numbers (8 bytes): pieces, blocks, bytes of samples and of pixels, how often pieces are
// halved, and progressive images of a block of threads. Addresses in images and planes are offsets.
// OUTPUT: a status for each image (4 bytes), the pixels.
#include "emulator.h"

#include "kernels.inc"

int main(int, char **arguments) {
  FILE *input = fopen(arguments[1], "rb");
  std::vector<char> arrays[17];
  for (auto &array : arrays) array = read(input);
  fclose(input);
  auto &[images_in, segments, tables, quantisation, data, pairs, guesses, resolves, decodes, progressive, dcs, pixels, planes, upsamples, planes_in, passes, sizes] = arrays;
  unsigned long long counts[6];
  memcpy(counts, sizes.data(), sizeof counts);
  const auto [pieces, blocks, sample_bytes, pixel_bytes, halvings, together] = counts;

  Image *images = copied<Image>(images_in);
  const unsigned count = images_in.size() / sizeof(Image);
  std::vector<char> made(pixel_bytes);
  std::vector<uint32_t> status(count, ~0u);
  for (unsigned i = 0; i < count; i++) {
    images[i].data = (const uint32_t *)(data.data() + (size_t)images[i].data);
    images[i].pixels = (uint8_t *)made.data() + (size_t)images[i].pixels;
  }
  Plane *components = copied<Plane>(planes_in);
  uint8_t *samples = (uint8_t *)room<char>(sample_bytes);
  for (unsigned i = 0; i < planes_in.size() / sizeof(Plane); i++) components[i].samples = samples + (size_t)components[i].samples;
  Params p = {};
  p.images = images, p.tables = copied<Table>(tables), p.pairs = room<Pairs>(tables.size() / sizeof(Table));
  p.segments = copied<Segment>(segments);
  p.quantisation = copied<uint16_t>(quantisation);
  p.exits = room<uint32_t>(pieces * SLOT_ROOM), p.links = room<uint8_t>(pieces * SLOT_ROOM);
  p.passed = room<uint16_t>(pieces * SLOT_ROOM), p.starts = room<Start>(pieces << halvings);
  p.notes = room<Note>(pieces * SLOT_ROOM << halvings), p.halvings = halvings;
  p.coefficients = room<int16_t>(blocks * 64), p.dcs = room<int16_t>(blocks), p.status = status.data(), p.channels = 3, p.planes = components;
  p.passes = copied<Pass>(passes);
  const unsigned told_pairs = resolves.size() / sizeof(Task), told_dcs = dcs.size() / sizeof(Task);
  p.told_words = 2 * told_pairs + told_dcs, p.told = room<uint64_t>(p.told_words), p.told_dcs = p.told + 2 * told_pairs;

  const auto over = [&](const std::vector<char> &tasks, unsigned threads, auto function, unsigned blocks_each = 1) {
    const Task *rows = copied<Task>(tasks);
    const unsigned length = tasks.size() / sizeof(Task);
    launch(length * blocks_each, threads, [=] { function(rows, length, p); });
  };
  over(pairs, PAIRS_THREADS, pairs_of::jpeg_pairs, PAIRS_PARTS);
  over(guesses, SKIP_THREADS, guess::jpeg_guess);
  over(guesses, SKIP_THREADS, link::jpeg_link);
  over(resolves, SCAN_THREADS, resolve::jpeg_resolve);
  over(decodes, DECODE_THREADS, decode::jpeg_decode);
  const unsigned scanned = progressive.size() / sizeof(Task);
  const Task *scans = copied<Task>(progressive);
  if (together == 1)
    launch(scanned, PROGRESSIVE_THREADS, [&] { progressive_of::jpeg_progressive(scans, scanned, p); });
  else
    launch((scanned + together - 1) / together, TOGETHER_THREADS, [&] { progressive_of::jpeg_progressive_together(scans, scanned, p); });
  over(dcs, SCAN_THREADS, dc_of::jpeg_dc);
  over(pixels, PIXELS_THREADS, pixels_of::jpeg_pixels);
  over(planes, PIXELS_THREADS, planes_of::jpeg_planes);
  over(upsamples, PIXELS_THREADS, upsample::jpeg_upsample);

  FILE *output = fopen(arguments[2], "wb");
  fwrite(status.data(), 4, count, output);
  fwrite(made.data(), 1, made.size(), output);
  fclose(output);
}
