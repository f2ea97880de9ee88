// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.
#pragma once

// Slots of a piece, for places at which it may end: four a word. The last stands for none.
constexpr uint32_t SLOT_ROOM = 16;
// Guesses which block of an MCU a piece begins with, at most.
constexpr uint32_t GUESSES = 6;
// Components of an image, at most.
constexpr uint32_t MAX_COMPONENTS = 3;
// Blocks of an MCU, at most: the standard's limit.
constexpr uint32_t MAX_MCU_BLOCKS = 10;
// Bits by which a table finds a code at once.
constexpr uint32_t LUT_BITS = 10;
// Entries of a table for longer codes: enough for the tables that encoders write.
constexpr uint32_t TAIL = 512;
// Bits by which the tables of two codes find some, where only the ends of codes count, and where they are decoded.
constexpr uint32_t AC_SKIP_BITS = 11;
constexpr uint32_t DC_SKIP_BITS = 9;
constexpr uint32_t AC_CODE_BITS = 10;
constexpr uint32_t DC_CODE_BITS = 8;
// Words of data that a block of threads has at hand where it looks for ends of codes, and where it decodes.
constexpr uint32_t SKIP_WINDOW = 7168;
constexpr uint32_t DECODE_WINDOW = 4224;
// Pieces behind its own into which a block of threads follows links.
constexpr uint32_t AHEAD = 24;
// How often a piece is halved at most, so that several threads decode it.
constexpr uint32_t MOST_HALVINGS = 2;
// Pixels of a strip: eight for each thread of a warp.
constexpr uint32_t STRIP = 256;
// Threads of a block in the kernels.
constexpr uint32_t PAIRS_THREADS = 256;
// Blocks that make a table of two codes together.
constexpr uint32_t PAIRS_PARTS = 8;
constexpr uint32_t SKIP_THREADS = 192;
constexpr uint32_t SCAN_THREADS = 256;
constexpr uint32_t DECODE_THREADS = 128;
constexpr uint32_t PIXELS_THREADS = 256;
// Where a warp has a scan: of the ten scans that encoders write of an image in colour eight are decoded at once.
constexpr uint32_t PROGRESSIVE_THREADS = 256;
// Where warps have the same scan of several images: of so many, so that eight threads have one, and six warps.
constexpr uint32_t TOGETHER_IMAGES = 4;
constexpr uint32_t TOGETHER_THREADS = 192;
// Scans of an image, at most.
constexpr uint32_t MAX_PASSES = 32;

struct Task {
  uint32_t image;
  uint32_t first;  // Its first piece, MCU, block of a component, strip of pixels or scan.
  uint32_t count;  // How many of them.
  uint32_t component;  // Its component. Where blocks of threads tell one another of their parts of an image, the number of the block.
};
static_assert(sizeof(Task) == 16, "Task has another size in Rust");

struct Image {
  const uint32_t *data;  // Entropy-coded data.
  uint8_t *pixels;
  uint32_t words;  // Whole words of data that can be read.
  uint32_t first_segment;  // In the tables of the batch.
  uint32_t segments;
  uint32_t first_piece;
  uint32_t pieces;  // 0: a progressive image, whose scans jpeg_progressive decodes.
  uint32_t piece_bits;
  uint32_t guesses;
  uint32_t first_block;
  uint32_t blocks;
  uint32_t tables[4];  // DC and AC of the first pair, then of the second.
  uint32_t mcu_blocks;
  uint32_t pairs;  // For each block of an MCU a bit: which pair.
  uint32_t components;  // For each block of an MCU two bits: which component.
  uint32_t width;  // Of the window; without one, of the image.
  uint32_t height;
  uint32_t mcus_across;
  uint8_t factor_x[4];  // Of each component: log2 of by how much it is sampled more coarsely than the picture.
  uint8_t factor_y[4];
  uint8_t first[4];  // Of each component: its first block of an MCU, and how many there are across.
  uint8_t across[4];
  uint32_t quantisation[3];
  uint32_t color;  // 0 gray, 1 YCbCr, 2 RGB.
  uint32_t mcu_width;  // Of the MCU, in blocks.
  uint32_t mcu_height;
  uint32_t left;  // Where the window begins.
  uint32_t top;
  uint32_t first_mcu;  // The first MCU that the window lies in, and where the window begins there.
  uint32_t left_in_mcu;
  uint32_t top_in_mcu;
  uint32_t window_across;  // MCUs across that the window lies in.
  uint32_t first_plane;  // Of its components' planes, when it has any.
};
static_assert(sizeof(Image) == 160, "Image has another size in Rust");

struct Table {
  uint16_t lut[1024];  // Entries by the next LUT_BITS bits; 0: the code is longer, or there is none.
  uint16_t tail[512];  // Entries by the next 16 bits, of their last values: there, long codes are; 0: there is none.
  uint16_t sorted[256];  // Entries of all symbols, in the order of their codes, for long codes before the tail.
  uint32_t limit[6];  // For codes of 11 to 16 bits: the next 16 bits are below it when the code is not longer.
  int32_t base[6];  // For codes of 11 to 16 bits: what is added to a code to get its place in `sorted`.
};
static_assert(sizeof(Table) == 3632, "Table has another size in Rust");

struct Pairs {
  uint16_t skips[2048];  // Where codes end, by the next bits: their bits and those of values (0-4), how far they advance (8-15).
  uint32_t codes[1024];  // What codes mean, by the next bits: an entry of Table, above it that of the next code. 0: none is found.
};
static_assert(sizeof(Pairs) == 8192, "Pairs has another size in Rust");

struct Segment {
  uint32_t first_bit;  // Its first bit, a multiple of 32.
  uint32_t bits;  // How many bits it has; the last byte's may be filled up with ones.
  uint32_t first_piece;  // Its first piece within the image; decided when the batch is cut.
  uint32_t first_block;  // Its first block within the image.
};
static_assert(sizeof(Segment) == 16, "Segment has another size in Rust");

struct Note {
  uint32_t place;
  uint32_t passed;  // Blocks before it in the piece.
};
static_assert(sizeof(Note) == 8, "Note has another size in Rust");

struct Start {
  uint32_t place;
  uint32_t block;  // Its first block, and the first block behind its segment.
  uint32_t end;
};
static_assert(sizeof(Start) == 12, "Start has another size in Rust");

struct Plane {
  uint8_t *samples;
  uint32_t stride;  // From a row to the next, a multiple of 8 bytes.
  uint32_t left;  // Which sample of the component is the first here.
  uint32_t top;
  uint32_t width;  // How many the component has.
  uint32_t height;
  uint32_t across;  // Blocks in a row of them.
  uint8_t side;  // log2 of the samples that a block has across.
  uint8_t factor_x;  // log2 of by how much they are coarser than pixels.
  uint8_t factor_y;
  uint8_t smooth;  // Whether they are upsampled smoothly.
  uint32_t unused;
};
static_assert(sizeof(Plane) == 40, "Plane has another size in Rust");

struct Pass {
  uint32_t first_segment;  // In the table of the batch.
  uint32_t segments;
  uint32_t interval;  // MCUs of every segment but the last.
  uint32_t across;  // MCUs; of one component alone they are its blocks.
  uint32_t down;
  uint32_t components;  // A bit for each component.
  uint32_t tables[3];  // Tables of the components of the frame.
  uint32_t waits;  // A bit for each earlier scan of the image that must be ahead.
  uint8_t first;  // First and last coefficient, in zigzag order.
  uint8_t last;
  uint8_t refines;  // Whether bits of coefficients come that are known, and the lowest bit.
  uint8_t low;
};
static_assert(sizeof(Pass) == 44, "Pass has another size in Rust");

struct Params {
  const Image *images;
  const Table *tables;
  Pairs *pairs;  // Of each table.
  const Segment *segments;
  const uint16_t *quantisation;
  uint32_t *exits;  // For each piece SLOT_ROOM of them.
  uint8_t *links;
  uint16_t *passed;  // Blocks from there to the end of the piece.
  Note *notes;  // For each slot of a piece one for each section but the first.
  Start *starts;  // Of each section.
  int16_t *coefficients;
  int16_t *dcs;  // Of each block.
  uint32_t *status;  // For each image: 0 when all went well.
  const Plane *planes;
  uint64_t *told;  // What blocks of jpeg_resolve tell one another, two words each, and those of jpeg_dc, one each.
  uint64_t *told_dcs;
  const Pass *passes;  // Of all progressive images.
  uint32_t channels;
  uint32_t blue_first;
  uint32_t halvings;  // How often pieces are halved to sections.
  uint32_t told_words;
};
static_assert(sizeof(Params) == 152, "Params has another size in Rust");
