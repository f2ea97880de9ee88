// Colours, or grays, from the image of a sensor whose pixels see one colour each, as src/cpu/debayer.rs computes them:
// 0 bilinear, 1 edge aware, 2 gray, 3 by gradients is the ALGORITHM. ELEMENT is the type; a row of the table is an
// image.
#include "common.cuh"

#include "layouts/debayer.cuh"

// Gray has one channel.
constexpr int CHANNELS = ALGORITHM == 2 ? 1 : 3;

__device__ inline int change(int a, int b) { return a < b ? b - a : a - b; }

// Red, green and blue, or gray, of a pixel from those around it.
__device__ inline void by_neighbours(const ELEMENT *from, uint64_t width, bool is_blue, bool in_blue_column, ELEMENT *to) {
  uint32_t v[3][3];
  for (int j = 0; j < 3; j++)
    for (int i = 0; i < 3; i++) v[j][i] = *(from + (int64_t)(j - 1) * (int64_t)width + (i - 1));
  const uint32_t beside = v[1][0] + v[1][2], upright = v[0][1] + v[2][1], corners = v[0][0] + v[0][2] + v[2][0] + v[2][2], own = v[1][1];
  const bool at_colour = is_blue == in_blue_column;
  if (ALGORITHM == 2) {
    const uint64_t red = 4899, green = 9617, blue = 1868;
    const uint64_t mine = is_blue ? blue : red, other = is_blue ? red : blue;
    // Twice or four times the gray, so that means of two or four pixels lose nothing.
    to[0] = at_colour ? (corners * other + (beside + upright) * green + 4 * own * mine + (1 << 15)) >> 16
                      : (beside * mine + upright * other + 2 * own * green + (1 << 14)) >> 15;
    return;
  }
  uint32_t mine = own, green = own, other;
  if (at_colour) {
    green = (upright + beside + 2) >> 2;
    if (ALGORITHM == 1) green = ((change(v[1][0], v[1][2]) > change(v[0][1], v[2][1]) ? upright : beside) + 1) >> 1;
    other = (corners + 2) >> 2;
  } else {
    mine = (beside + 1) >> 1;
    other = (upright + 1) >> 1;
  }
  to[0] = is_blue ? other : mine;
  to[1] = green;
  to[2] = is_blue ? mine : other;
}

#if ALGORITHM == 3
// The pixels around one, and how the image changes at the inner nine: sums of differences on both sides.
struct Around {
  int v[5][5];

  __device__ int upright(int r, int c) const {
    return change(v[r - 1][c - 1], v[r + 1][c - 1]) + 2 * change(v[r - 1][c], v[r + 1][c]) + change(v[r - 1][c + 1], v[r + 1][c + 1]);
  }
  __device__ int beside(int r, int c) const {
    return change(v[r - 1][c - 1], v[r - 1][c + 1]) + 2 * change(v[r][c - 1], v[r][c + 1]) + change(v[r + 1][c - 1], v[r + 1][c + 1]);
  }
  // From below left to above right, and from above left to below right; alone, and with those of the colour between.
  __device__ int rising(int r, int c) const { return 2 * change(v[r - 1][c + 1], v[r + 1][c - 1]); }
  __device__ int falling(int r, int c) const { return 2 * change(v[r - 1][c - 1], v[r + 1][c + 1]); }
  __device__ int rising_near(int r, int c) const {
    return rising(r, c) + change(v[r - 1][c], v[r][c - 1]) + change(v[r + 1][c], v[r][c + 1]);
  }
  __device__ int falling_near(int r, int c) const {
    return falling(r, c) + change(v[r - 1][c], v[r][c + 1]) + change(v[r + 1][c], v[r][c - 1]);
  }
  // Half of the sum of the four neighbours.
  __device__ int half(int r, int c) const { return (v[r - 1][c] + v[r][c - 1] + v[r][c + 1] + v[r + 1][c]) >> 1; }
};

// How much the image changes in a direction, and twice the values there: of the colour that is known, and of two that
// are not.
struct Direction {
  int change, known, first, second;
};

// The two colours that a pixel lacks: what it has, `known`, plus the mean difference to it of the directions in which
// the image changes least. Half of a `seventh` is taken where seven of them count.
__device__ inline void choose(const Direction directions[8], int known, float seventh, int found[2]) {
  int least = 0x7FFFFFFF, most = 0, count = 0, sums[3] = {0, 0, 0};
  for (int i = 0; i < 8; i++) {
    least = min(least, directions[i].change);
    most = max(most, directions[i].change);
  }
  const int threshold = least + max(most / 2, 1);
  for (int i = 0; i < 8; i++) {
    if (directions[i].change >= threshold) continue;
    count++;
    sums[0] += directions[i].known, sums[1] += directions[i].first, sums[2] += directions[i].second;
  }
  const float part = count == 7 ? seventh : 0.5f / count;
  for (int c = 0; c < 2; c++) found[c] = min(max(known + (int)rintf((sums[c + 1] - sums[0]) * part), 0), 255);
}

// A place that is up to two pixels outside, mirrored at the outermost pixel.
__device__ inline int mirrored(int place, int extent) {
  place = place < 0 ? -place : place;
  return min(place, 2 * (extent - 1) - place);
}

__device__ inline void by_gradients(const Row &row, int x, int y, bool is_blue, bool in_blue_column, ELEMENT *to) {
  Around a;
  for (int j = 0; j < 5; j++) {
    const ELEMENT *line = row.from + (uint64_t)mirrored(y + j - 2, row.height) * row.width;
    for (int i = 0; i < 5; i++) a.v[j][i] = line[mirrored(x + i - 2, row.width)];
  }
  const int(*v)[5] = a.v, own = v[2][2];
  // Eight pixels are computed side by side from the first that is not green on; those that are left have another
  // factor.
  const int first = is_blue == (row.blue[1] == 1), blocks = ((int)row.width - first) / 8 * 8;
  const float seventh = x >= first && x < first + blocks ? 1.0f / 14.0f : 0.0714286f;
  int found[2];
  if (is_blue == in_blue_column) {
    const Direction directions[8] = {
        {a.upright(1, 2) + a.upright(2, 2), v[0][2] + own, 2 * v[1][2], v[1][1] + v[1][3]},
        {a.upright(2, 2) + a.upright(3, 2), v[4][2] + own, 2 * v[3][2], v[3][1] + v[3][3]},
        {a.beside(2, 1) + a.beside(2, 2), v[2][0] + own, 2 * v[2][1], v[1][1] + v[3][1]},
        {a.beside(2, 2) + a.beside(2, 3), v[2][4] + own, 2 * v[2][3], v[1][3] + v[3][3]},
        {a.rising_near(1, 3) + a.rising_near(2, 2), v[0][4] + own, a.half(1, 3), 2 * v[1][3]},
        {a.rising_near(2, 2) + a.rising_near(3, 1), v[4][0] + own, a.half(3, 1), 2 * v[3][1]},
        {a.falling_near(1, 1) + a.falling_near(2, 2), v[0][0] + own, a.half(1, 1), 2 * v[1][1]},
        {a.falling_near(2, 2) + a.falling_near(3, 3), v[4][4] + own, a.half(3, 3), 2 * v[3][3]},
    };
    choose(directions, own, seventh, found);
    to[0] = is_blue ? found[1] : own;
    to[1] = found[0];
    to[2] = is_blue ? own : found[1];
    return;
  }
  const Direction directions[8] = {
      {a.upright(1, 2) + a.upright(2, 2), v[0][2] + own, v[0][1] + v[0][3], 2 * v[1][2]},
      {a.upright(2, 2) + a.upright(3, 2), v[4][2] + own, v[4][1] + v[4][3], 2 * v[3][2]},
      {a.beside(2, 1) + a.beside(2, 2), v[2][0] + own, 2 * v[2][1], v[1][0] + v[3][0]},
      {a.beside(2, 2) + a.beside(2, 3), v[2][4] + own, 2 * v[2][3], v[1][4] + v[3][4]},
      {a.rising(1, 2) + a.rising(1, 3) + a.rising(2, 2) + a.rising(2, 3), 2 * v[1][3], v[0][3] + v[2][3], v[1][2] + v[1][4]},
      {a.rising(2, 1) + a.rising(2, 2) + a.rising(3, 1) + a.rising(3, 2), 2 * v[3][1], v[4][1] + v[2][1], v[3][2] + v[3][0]},
      {a.falling(1, 1) + a.falling(1, 2) + a.falling(2, 1) + a.falling(2, 2), 2 * v[1][1], v[0][1] + v[2][1], v[1][0] + v[1][2]},
      {a.falling(2, 2) + a.falling(2, 3) + a.falling(3, 2) + a.falling(3, 3), 2 * v[3][3], v[4][3] + v[2][3], v[3][4] + v[3][2]},
  };
  choose(directions, own, seventh, found);
  to[0] = is_blue ? found[1] : found[0];
  to[1] = own;
  to[2] = is_blue ? found[0] : found[1];
}
#endif

extern "C" __global__ void debayer(const Row *rows, uint32_t count, NoParams) {
  const Row &row = rows[blockIdx.y];
  const uint64_t pixels = (uint64_t)row.height * row.width, step = (uint64_t)gridDim.x * blockDim.x;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pixels; i += step) {
    uint32_t x = i % row.width, y = i / row.width;
    ELEMENT *to = row.to + i * CHANNELS;
#if ALGORITHM == 3
    if (row.height >= 8 && row.width >= 8) {
      by_gradients(row, x, y, y % 2 == row.blue[0], x % 2 == row.blue[1], to);
      continue;
    }
#endif
    if (row.height <= 2 || row.width <= 2) {
      for (int c = 0; c < CHANNELS; c++) to[c] = 0;
      continue;
    }
    // The frame of an image is that of the pixels inside of it.
    x = min(max(x, 1u), row.width - 2);
    y = min(max(y, 1u), row.height - 2);
    by_neighbours(row.from + (uint64_t)y * row.width + x, row.width, y % 2 == row.blue[0], x % 2 == row.blue[1], to);
  }
}
