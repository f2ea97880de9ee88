//! Files to measure: the recorded ones, large ones, those whose headers ask for much, and changed ones.

use std::io::Write;

use crate::File;
use crate::npz::Npz;

/// How often each recorded file is changed.
pub(crate) const CHANGES: usize = 10;

/// All recorded images.
pub(crate) fn recorded() -> Vec<File> {
    let mut all = Vec::new();
    for archive in ["pictures.npz", "jxl.npz", "tiff.npz", "kinds.npz", "heif.npz", "avif.npz"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/decode").join(archive);
        let mut stored = Npz::open(path);
        let names = stored.names().into_iter().filter(|name| !name.ends_with("_pixels"));
        all.extend(names.map(|name| File { bytes: stored.array(&name).1, name }));
    }
    all
}

/// Numbers that follow from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end.max(1)
    }

    /// A file of which one to three numbers near its begin, or anywhere, are others.
    pub(crate) fn changed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut changed = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let within = if self.below(2) == 0 { bytes.len().min(120) } else { bytes.len() };
            let (at, size) = (self.below(within), 1 << self.below(3));
            let extreme = [0, 1, 255, 0x7FFF, 0xFFFF, 1 << 24, 0xFFFF_FFFF, self.next()];
            let number = extreme[self.below(extreme.len())].to_be_bytes();
            for (to, from) in changed.iter_mut().skip(at).take(size).zip(&number[8 - size..]) {
                *to = *from;
            }
        }
        changed
    }
}

/// Noise that does not compress well.
fn noise(bytes: usize) -> Vec<u8> {
    let mut random = Random(3);
    (0..bytes).map(|_| random.next() as u8 & 0x3F).collect()
}

fn file(name: &str, bytes: Vec<u8>) -> File {
    File { name: name.to_owned(), bytes }
}

/// Pictures of a megapixel.
pub(crate) fn large() -> Vec<File> {
    let side = 1_000;
    let mut all = Vec::new();
    for (name, color, bits, channels) in
        [("rgb", 2, 8, 3), ("rgba", 6, 8, 4), ("gray", 0, 8, 1), ("rgb16", 2, 16, 3), ("palette", 3, 8, 1)]
    {
        for interlaced in [0, 1] {
            let bytes = png(
                side,
                color,
                bits,
                interlaced,
                &noise(side as usize * side as usize * channels * bits / 8),
            );
            all.push(file(&format!("png of a megapixel, {name}, interlaced {interlaced}"), bytes));
        }
    }
    all.push(file("gif of a megapixel", gif(side as u16, side as u16, 1)));
    all.push(file("gif of a megapixel, a frame that is smaller", gif(side as u16, side as u16 / 2, 1)));
    for (name, compression) in [("as it is", 1), ("deflated", 8)] {
        for channels in [1, 3, 4] {
            all.push(file(
                &format!("tiff of a megapixel, {name}, {channels} channels"),
                tiff(side, channels, compression),
            ));
        }
    }
    all
}

/// Pictures of a megapixel without compression: PNM, and BMP with colours and with a palette.
pub(crate) fn plain() -> Vec<File> {
    let side = 1_000_u32;
    let pixels = (side * side) as usize;
    let pnm = |kind: u8, most: u32, bytes: usize| {
        [format!("P{kind}\n{side} {side}\n{most}\n").into_bytes(), noise(bytes)].concat()
    };
    let bmp = |bits: u16, palette: usize| {
        let start = 54 + 4 * palette;
        let mut bytes = b"BM".to_vec();
        bytes.extend(
            [(start + pixels * usize::from(bits) / 8) as u32, 0, start as u32, 40]
                .map(u32::to_le_bytes)
                .concat(),
        );
        bytes.extend([side, side].map(u32::to_le_bytes).concat());
        bytes.extend([1_u16.to_le_bytes(), bits.to_le_bytes()].concat());
        bytes.extend([0, 0, 0, 0, palette as u32, 0].map(u32::to_le_bytes).concat());
        bytes.extend(vec![77; 4 * palette]);
        bytes.extend(noise(pixels * usize::from(bits) / 8));
        bytes
    };
    vec![
        file("pnm, colors", pnm(6, 255, 3 * pixels)),
        file("pnm, gray, 16 bits", pnm(5, 65_535, 2 * pixels)),
        file("bmp, colors", bmp(24, 0)),
        file("bmp, palette", bmp(8, 256)),
    ]
}

/// Files of some bytes to some hundred thousand whose headers ask for much.
pub(crate) fn hostile() -> Vec<File> {
    let mut all = Vec::new();
    // A JPEG 2000 whose every way to be cut into parts is extreme, none of which has any data.
    for (name, image) in [
        ("one tile", Codestream { side: [2_000, 2_000], ..Codestream::USUAL }),
        ("color", Codestream { side: [1_000, 1_000], components: 3, ..Codestream::USUAL }),
        ("no levels", Codestream { side: [2_000, 2_000], levels: 0, ..Codestream::USUAL }),
        ("tiny tiles", Codestream { side: [200, 200], tile: [1, 1], levels: 0, ..Codestream::USUAL }),
        ("small tiles", Codestream { side: [1_000, 1_000], tile: [16, 16], ..Codestream::USUAL }),
        (
            "precincts of a sample",
            Codestream { side: [500, 500], levels: 0, precinct: Some(0), ..Codestream::USUAL },
        ),
        ("small precincts", Codestream { side: [1_000, 1_000], precinct: Some(0x22), ..Codestream::USUAL }),
        ("small blocks", Codestream { side: [1_000, 1_000], block: 2, ..Codestream::USUAL }),
        ("many levels", Codestream { side: [1_000, 1_000], levels: 32, ..Codestream::USUAL }),
        ("many layers", Codestream { side: [300, 300], layers: 200, ..Codestream::USUAL }),
        (
            "sorted packets",
            Codestream { side: [500, 500], precinct: Some(0x33), order: 3, ..Codestream::USUAL },
        ),
        ("thin", Codestream { side: [1_000_000, 1], ..Codestream::USUAL }),
    ] {
        // Of empty packets, and of blocks that are said to be there and are not.
        for (data, filled) in [("empty", 0), ("full", 0xFF)] {
            all.push(file(&format!("jpeg 2000, {name}, {data}"), image.bytes(filled)));
        }
    }
    all.push(file("png, many chunks of nothing", png_of_chunks(20_000)));
    all.push(file("png of zeros", png(4_000, 2, 8, 0, &vec![0; 4_000 * 4_000 * 3])));
    all.push(file("gif, codes for no pixels", gif(8, 8, 40_000)));
    all.push(file("gif, a small frame in a large image", gif(4_000, 1, 1)));
    all.push(file("tiff of zeros", tiff(4_000, 3, 8)));
    all
}

/// A PNG of a square of `side` pixels whose lines, with what stands before each, are of `samples`; the last are left
/// over.
fn png(side: u32, color: u8, bits: usize, interlaced: u8, samples: &[u8]) -> Vec<u8> {
    let channels = [1, 0, 3, 1, 2, 0, 4][usize::from(color)];
    let mut rows = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut rest = samples.iter();
    let passes: &[[u32; 4]] = match interlaced {
        0 => &[[0, 0, 1, 1]],
        _ => &[
            [0, 0, 8, 8],
            [4, 0, 8, 8],
            [0, 4, 4, 8],
            [2, 0, 4, 4],
            [0, 2, 2, 4],
            [1, 0, 2, 2],
            [0, 1, 1, 2],
        ],
    };
    for [x, y, across, down] in passes {
        let width = (side - x).div_ceil(*across) as usize;
        for _ in 0..(side - y).div_ceil(*down) {
            rows.write_all(&[0]).unwrap();
            let row: Vec<u8> = rest.by_ref().take(width * channels * bits / 8).copied().collect();
            rows.write_all(&row).unwrap();
        }
    }
    let side = side.to_be_bytes();
    let header = [&side[..], &side, &[bits as u8, color, 0, 0, interlaced]].concat();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut bytes, b"IHDR", &header);
    if color == 3 {
        chunk(&mut bytes, b"PLTE", &noise(3 * 256));
    }
    chunk(&mut bytes, b"IDAT", &rows.finish().unwrap());
    chunk(&mut bytes, b"IEND", b"");
    bytes
}

fn png_of_chunks(count: usize) -> Vec<u8> {
    let whole = png(8, 2, 8, 0, &[0; 200]);
    let at = whole.windows(4).position(|name| name == b"IDAT").unwrap() - 4;
    let mut bytes = whole[..at].to_vec();
    (0..count).for_each(|_| chunk(&mut bytes, b"IDAT", b""));
    bytes.extend(&whole[at..]);
    bytes
}

fn chunk(bytes: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    let mut sum = flate2::Crc::new();
    sum.update(name);
    sum.update(data);
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(name);
    bytes.extend(data);
    bytes.extend(sum.sum().to_be_bytes());
}

/// A GIF of `side` squared whose frame has `rows` rows, and whose codes come so many times as often as they are needed.
/// They are of nine bits and reset the table before each pixel.
fn gif(side: u16, rows: u16, times: usize) -> Vec<u8> {
    let mut bits = Vec::new();
    let pixels = usize::from(side) * usize::from(rows) * times;
    let (mut held, mut count) = (0_u32, 0);
    let mut put = |code: u32, bits: &mut Vec<u8>| {
        held |= code << count;
        count += 9;
        while count >= 8 {
            bits.push(held as u8);
            held >>= 8;
            count -= 8;
        }
    };
    for pixel in 0..pixels {
        if pixel % 64 == 0 {
            put(256, &mut bits);
        }
        put(pixel as u32 % 251, &mut bits);
    }
    put(257, &mut bits);
    put(0, &mut bits);
    let mut bytes = b"GIF89a".to_vec();
    bytes.extend([side.to_le_bytes(), side.to_le_bytes()].concat());
    bytes.extend([0xF7, 0, 0]);
    bytes.extend(noise(3 * 256));
    bytes.push(0x2C);
    bytes.extend([0_u16, 0, side, rows].map(u16::to_le_bytes).concat());
    bytes.extend([0, 8]);
    for block in bits.chunks(255) {
        bytes.push(block.len() as u8);
        bytes.extend(block);
    }
    bytes.extend([0, 0x3B]);
    bytes
}

/// A TIFF of one strip, of noise, or of zeros where it is large.
fn tiff(side: u32, channels: u32, compression: u32) -> Vec<u8> {
    let count = (side * side * channels) as usize;
    let samples = if side > 2_000 { vec![0; count] } else { noise(count) };
    let strip = match compression {
        1 => samples,
        _ => {
            let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(&samples).unwrap();
            packed.finish().unwrap()
        }
    };
    let photometric = if channels == 1 { 1 } else { 2 };
    let (shorts, strip_at) = (8_u32, 8 + 8);
    let directory = strip_at + strip.len() as u32 + (strip.len() as u32 & 1);
    // Number, type (3: 16 bits, 4: 32 bits), count, value.
    let mut fields = vec![
        [256, 4, 1, side],
        [257, 4, 1, side],
        [258, 3, channels, if channels > 2 { shorts } else { 8 }],
        [259, 3, 1, compression],
        [262, 3, 1, photometric],
        [273, 4, 1, strip_at],
        [277, 3, 1, channels],
        [278, 4, 1, side],
        [279, 4, 1, strip.len() as u32],
    ];
    if channels == 4 {
        fields.push([338, 3, 1, 2]);
    }
    let mut bytes = b"II*\0".to_vec();
    bytes.extend(directory.to_le_bytes());
    bytes.extend([8, 0].repeat(4));
    bytes.extend(&strip);
    bytes.resize(directory as usize, 0);
    bytes.extend((fields.len() as u16).to_le_bytes());
    for [number, kind, count, value] in fields {
        bytes.extend([(number as u16).to_le_bytes(), (kind as u16).to_le_bytes()].concat());
        bytes.extend([count.to_le_bytes(), value.to_le_bytes()].concat());
    }
    bytes.extend([0; 4]);
    bytes
}

/// What the headers of a JPEG 2000 say.
struct Codestream {
    side: [u32; 2],
    /// Of a tile; nothing: the image's.
    tile: [u32; 2],
    components: u16,
    levels: u8,
    /// Logarithms of the sides of precincts.
    precinct: Option<u8>,
    layers: u16,
    /// Logarithm of the side of a code block.
    block: u8,
    order: u8,
}

impl Codestream {
    const USUAL: Self = Self {
        side: [0; 2],
        tile: [0; 2],
        components: 1,
        levels: 5,
        precinct: None,
        layers: 1,
        block: 6,
        order: 0,
    };

    /// The file: all tiles have some bytes of data, all the same.
    fn bytes(&self, data: u8) -> Vec<u8> {
        let tile = [0, 1].map(|d| if self.tile[d] == 0 { self.side[d] } else { self.tile[d] });
        let mut bytes = vec![0xFF, 0x4F, 0xFF, 0x51];
        bytes.extend((38 + 3 * self.components).to_be_bytes());
        bytes.extend([0, 0]);
        for pair in [self.side, [0, 0], tile, [0, 0]] {
            bytes.extend(pair.map(u32::to_be_bytes).concat());
        }
        bytes.extend(self.components.to_be_bytes());
        bytes.extend([7, 1, 1].repeat(usize::from(self.components)));
        let mut style = vec![u8::from(self.precinct.is_some()), self.order];
        style.extend(self.layers.to_be_bytes());
        style.extend([0, self.levels, self.block - 2, self.block - 2, 0, 1]);
        style.extend(vec![
            self.precinct.unwrap_or_default();
            if self.precinct.is_some() { usize::from(self.levels) + 1 } else { 0 }
        ]);
        bytes.extend([0xFF, 0x52]);
        bytes.extend((2 + style.len() as u16).to_be_bytes());
        bytes.extend(style);
        let steps = vec![8 << 3; 3 * usize::from(self.levels) + 1];
        bytes.extend([0xFF, 0x5C]);
        bytes.extend((3 + steps.len() as u16).to_be_bytes());
        bytes.push(0x40);
        bytes.extend(steps);
        let tiles = self.side[0].div_ceil(tile[0]) * self.side[1].div_ceil(tile[1]);
        let packets = if tiles > 1 {
            4 * usize::from(self.components) * (usize::from(self.levels) + 1)
        } else {
            400_000
        };
        for number in 0..tiles as u16 {
            bytes.extend([0xFF, 0x90, 0, 10]);
            bytes.extend(number.to_be_bytes());
            bytes.extend((14 + packets as u32).to_be_bytes());
            bytes.extend([0, 1, 0xFF, 0x93]);
            // No byte behind 255 may be 144 or more.
            bytes.extend((0..packets).map(|at| if data == 0 || at % 2 == 1 { data & 0x7F } else { data }));
        }
        bytes.extend([0xFF, 0xD9]);
        bytes
    }
}
