// Folds samples with kernels/reduce.cu, as one batch.
//
//   reduce INPUT OUTPUT
//
// INPUT: arrays, each with its length in bytes (8 bytes) before it: three numbers (8 bytes: samples, blocks of a
// launch, whether the samples have their results together), the parameters, and of each sample the row of the table,
// the elements and the means. OUTPUT: the results of all samples.
#include "emulator.h"

#include "kernels.inc"

int main(int, char **arguments) {
  FILE *input = fopen(arguments[1], "rb");
  unsigned long long numbers[3];
  memcpy(numbers, read(input).data(), sizeof numbers);
  const auto [samples, blocks, together] = numbers;
  const Params params = *copied<Params>(read(input));
  std::vector<std::vector<char>> kept(2 * samples);
  std::vector<std::vector<TO>> made;
  std::vector<Row> rows;
  size_t parts = 0;
  for (size_t i = 0; i < samples; i++) {
    Row row = *copied<Row>(read(input));
    kept[2 * i] = read(input), kept[2 * i + 1] = read(input);
    row.from = (const FROM *)kept[2 * i].data(), row.means = (const float *)kept[2 * i + 1].data();
    made.emplace_back(together && i ? 0 : row.results);
    row.to = made[together ? 0 : i].data();
    parts += row.results * row.chunks;
    rows.push_back(row);
  }
  fclose(input);

  std::vector<ACC> memory(parts);
  parts = 0;
  for (Row &row : rows) {
    row.parts = together || row.chunks > 1 ? memory.data() + parts : nullptr;
    parts += row.results * row.chunks;
  }
  for (unsigned i = 0; i < samples; i++) launch(blocks, THREADS, [&] { fold(rows.data(), samples, params); }, i);
  for (size_t i = 1; together && i < samples; i++) rows[0].chunks += rows[i].chunks, rows[0].each += rows[i].each;
  for (unsigned i = 0; i < (together ? 1 : samples); i++)
    if (rows[i].parts) launch(blocks, THREADS, [&] { finish(rows.data(), samples, params); }, i);

  FILE *output = fopen(arguments[2], "wb");
  for (auto &results : made) fwrite(results.data(), sizeof(TO), results.size(), output);
  fclose(output);
}
