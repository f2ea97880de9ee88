// Resizes one image with kernels/resample.cu.
//
//   resample INPUT OUTPUT
//
// INPUT: arrays, each with its length in bytes (8 bytes) before it: the row of the table, the source, and two numbers (8 bytes): tiles,
// bytes of the output. OUTPUT: the output.
#include "emulator.h"

#define ROW_BYTES sizeof(Row)
#define PARAM_BYTES sizeof(NoParams)
#include "kernels.inc"

int main(int, char **arguments) {
  FILE *input = fopen(arguments[1], "rb");
  std::vector<char> arrays[3];
  for (auto &array : arrays) array = read(input);
  fclose(input);
  auto &[row_in, source, sizes] = arrays;
  unsigned long long counts[2];
  memcpy(counts, sizes.data(), sizeof counts);
  const auto [tiles, bytes] = counts;

  // Whole words, as memory of a device is.
  source.resize((source.size() + 3) / 4 * 4);
  std::vector<char> made(bytes, 0x5A);
  Row *row = copied<Row>(row_in);
  row->src = (const SRC *)source.data(), row->dst = (DST *)made.data();
  launch(tiles, THREADS, [=] { resample(row, 1, NoParams()); });

  FILE *output = fopen(arguments[2], "wb");
  fwrite(made.data(), 1, made.size(), output);
  fclose(output);
}
