// Resizes one image with kernels/resample_weights.cu and kernels/resample.cu.
//
//   resample INPUT OUTPUT
//
// INPUT: arrays, each with its length in bytes (8 bytes) before it: the row of the table, the source, three numbers (8
// bytes): blocks, tiles of each, bytes of the output; and, when the source is planes, what describes them, with offsets
// in place of addresses. OUTPUT: the output.
#include "emulator.h"

#include "kernels.inc"

int main(int, char **arguments) {
  FILE *input = fopen(arguments[1], "rb");
  std::vector<char> arrays[4];
  for (auto &array : arrays)
    if (&array < arrays + 3 || ((const Row *)arrays[0].data())->planes) array = read(input);
  fclose(input);
  auto &[row_in, source, sizes, planes_in] = arrays;
  unsigned long long counts[3];
  memcpy(counts, sizes.data(), sizeof counts);
  const auto [blocks, tiles, bytes] = counts;

  // Whole words, as memory of a device is.
  source.resize((source.size() + 3) / 4 * 4);
  std::vector<char> made(bytes, 0x5A);
  Row *row = copied<Row>(row_in);
  row->src = (const SRC *)source.data(), row->dst = (DST *)made.data();
  Planes *const planes = copied<Planes>(planes_in);
  if (planes_in.size())
    for (auto &samples : planes->samples) samples = (const uint8_t *)source.data() + (size_t)samples;
  row->planes = planes_in.size() ? planes : nullptr;
  row->y.is_split = row->x.is_merged = IS_BYTE<SRC> && row->step == CH;
  for (Axis *axis : {&row->y, &row->x}) {
    axis->made = room<float>((uint64_t)axis->size * (1 + axis->taps + (axis->is_split ? 2 * SPLIT_PADDING : 0)));
    launch(1, 256, [=] { weights_of::resample_weights(axis, 1, NoParams()); });
  }
  launch(blocks, THREADS, [=] { resample(row, 1, Params{(uint32_t)tiles}); });

  FILE *output = fopen(arguments[2], "wb");
  fwrite(made.data(), 1, made.size(), output);
  fclose(output);
}
