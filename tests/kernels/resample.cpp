// Resizes one image with kernels/resample.cu.
//
//   resample INPUT OUTPUT
//
// INPUT: arrays, each with its length in bytes (8 bytes) before it: the row of the table, the source, two numbers (8 bytes): tiles,
// bytes of the output; and, when the source is planes, what describes them, with offsets in place of addresses. OUTPUT: the output.
#include "emulator.h"

#define ROW_BYTES sizeof(Row)
#define PARAM_BYTES sizeof(NoParams)
#include "kernels.inc"

int main(int, char **arguments) {
  FILE *input = fopen(arguments[1], "rb");
  std::vector<char> arrays[4];
  for (auto &array : arrays)
    if (&array < arrays + 3 || ((const Row *)arrays[0].data())->planes) array = read(input);
  fclose(input);
  auto &[row_in, source, sizes, planes_in] = arrays;
  unsigned long long counts[2];
  memcpy(counts, sizes.data(), sizeof counts);
  const auto [tiles, bytes] = counts;

  // Whole words, as memory of a device is.
  source.resize((source.size() + 3) / 4 * 4);
  std::vector<char> made(bytes, 0x5A);
  Row *row = copied<Row>(row_in);
  row->src = (const SRC *)source.data(), row->dst = (DST *)made.data();
  Planes *const planes = copied<Planes>(planes_in);
  if (planes_in.size())
    for (auto &samples : planes->samples) samples = (const uint8_t *)source.data() + (size_t)samples;
  row->planes = planes_in.size() ? planes : nullptr;
  launch(tiles, THREADS, [=] { resample(row, 1, NoParams()); });

  FILE *output = fopen(arguments[2], "wb");
  fwrite(made.data(), 1, made.size(), output);
  fclose(output);
}
