// Runs a kernel on a table of rows, a thread a fiber.
//
//   rows INPUT OUTPUT
//
// INPUT: arrays, each with its length in bytes (8 bytes) before it: blocks of a row and threads of a block (8 bytes
// each), the parameters, the rows, then memory. A word of both with the highest byte TAG stands for an address: in the
// next three bytes which array of the memory, in the last four an offset there. OUTPUT: the memory.
#include "emulator.h"

#include "kernels.inc"

constexpr unsigned long long TAG = 0xA5;

int main(int, char **arguments) {
  FILE *input = fopen(arguments[1], "rb");
  const std::vector<char> sizes = read(input), params_in = read(input), rows_in = read(input);
  std::vector<std::pair<char *, size_t>> memory;
  for (int next; (next = fgetc(input)) != EOF;) {
    ungetc(next, input);
    const std::vector<char> data = read(input);
    // Exactly as long as it is, so that an access behind it is seen.
    void *place = nullptr;
    if (posix_memalign(&place, 256, data.size())) return 2;
    memcpy(place, data.data(), data.size());
    memory.push_back({(char *)place, data.size()});
  }
  fclose(input);

  unsigned long long counts[2];
  memcpy(counts, sizes.data(), sizeof counts);
  const auto resolve = [&](void *data, size_t bytes) {
    auto *words = (unsigned long long *)data;
    for (size_t i = 0; i < bytes / 8; i++)
      if (words[i] >> 56 == TAG) words[i] = (unsigned long long)(memory.at(words[i] >> 32 & 0xFFFFFF).first + (unsigned)words[i]);
  };
  Row *rows = copied<Row>(rows_in);
  resolve(rows, rows_in.size());
  PARAMS params = *copied<PARAMS>(params_in);
  resolve(&params, sizeof params);
  const unsigned count = rows_in.size() / sizeof(Row);
  for (unsigned row = 0; row < count; row++)
    launch(counts[0], counts[1], [=] { ENTRY(rows, count, params); }, row);

  FILE *output = fopen(arguments[2], "wb");
  for (auto [place, bytes] : memory) fwrite(place, 1, bytes, output);
  fclose(output);
}
