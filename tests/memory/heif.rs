//! HEICs whose headers ask for much: the parameters of H.265 are written bit by bit, pixels are hardly there.

use crate::File;

/// What the headers of an HEIC say.
struct Header {
    /// Columns and rows, by the container and by the stream.
    said: [u32; 2],
    coded: [u32; 2],
    /// 0 gray, 1 halved twice, 2 halved once, 3 whole.
    chroma: u32,
    /// Beyond eight.
    bits: u32,
    /// Pictures that a decoder keeps.
    kept: u32,
    /// Bytes of codes.
    codes: usize,
    /// Pictures of a grid, all the same bytes; 0 and 0 of a picture alone.
    grid: [u8; 2],
}

impl Header {
    const USUAL: Self =
        Self { said: [64; 2], coded: [64; 2], chroma: 1, bits: 0, kept: 1, codes: 200, grid: [0; 2] };

    fn square(side: u32) -> Self {
        Self { said: [side; 2], coded: [side; 2], ..Self::USUAL }
    }
}

/// Files of some hundred bytes.
pub(crate) fn hostile() -> Vec<File> {
    let large = Header { codes: 20_000, ..Header::square(2_048) };
    let files = [
        ("nearly no pixels", Header::square(2_048)),
        ("codes of noise", large),
        ("many pictures kept", Header { kept: 16, ..Header::square(2_048) }),
        ("thin", Header { said: [32_768, 64], coded: [32_768, 64], ..Header::USUAL }),
        ("high", Header { said: [64, 32_768], coded: [64, 32_768], ..Header::USUAL }),
        ("ten bits", Header { bits: 2, ..Header::square(2_048) }),
        ("gray", Header { chroma: 0, ..Header::square(2_048) }),
        ("whole chroma", Header { chroma: 3, bits: 2, ..Header::square(2_048) }),
        ("a stream that is larger than was said", Header { coded: [8_192; 2], ..Header::USUAL }),
        ("a stream that is smaller than was said", Header { said: [5_000; 2], ..Header::USUAL }),
        ("a grid of sixty-four pixels each", Header { grid: [64, 64], ..Header::USUAL }),
        ("a grid of large ones", Header { grid: [2, 2], ..Header::square(1_024) }),
        ("a grid of a row", Header { grid: [1, 255], ..Header::USUAL }),
    ];
    let named = |(name, header): (&str, Header)| File { name: format!("heic, {name}"), bytes: file(&header) };
    files.into_iter().map(named).chain(tables()).collect()
}

/// Files whose tables say that they have more entries than there are bytes.
fn tables() -> Vec<File> {
    let usual = file(&Header::USUAL);
    let changed = |name: &[u8; 4], behind: usize, bytes: &[u8]| {
        let mut file = usual.clone();
        let at = file.windows(4).position(|found| found == name).unwrap() + 4 + behind;
        file[at..at + bytes.len()].copy_from_slice(bytes);
        File { name: format!("heic, {} with other numbers", name.escape_ascii()), bytes: file }
    };
    vec![
        changed(b"iinf", 4, &[0xFF; 2]),
        changed(b"iloc", 6, &[0xFF; 2]),
        changed(b"iloc", 12, &[0xFF; 2]),
        changed(b"ipma", 4, &[0xFF; 4]),
        changed(b"ipma", 10, &[0xFF]),
        changed(b"hvcC", 22, &[0xFF]),
        changed(b"hvcC", 24, &[0xFF; 2]),
    ]
}

/// Bits, the highest of a byte first.
#[derive(Default)]
struct Bits {
    bits: Vec<bool>,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) -> &mut Self {
        self.bits.extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
        self
    }

    /// As many zeros as the number plus one has bits behind its first.
    fn number(&mut self, value: u32) -> &mut Self {
        let bits = 32 - (value + 1).leading_zeros();
        self.put(0, bits - 1).put(value + 1, bits)
    }

    fn numbers(&mut self, values: &[u32]) -> &mut Self {
        values.iter().for_each(|&value| {
            self.number(value);
        });
        self
    }

    /// A unit: its head, the bits with a one behind them, more bytes; three zeros never stand in a row.
    fn unit(&self, kind: u8, more: &[u8]) -> Vec<u8> {
        let mut bits = self.bits.clone();
        bits.push(true);
        let bytes = bits.chunks(8).map(|byte| {
            byte.iter().enumerate().fold(0, |sum, (place, &bit)| sum | u8::from(bit) << (7 - place))
        });
        let mut unit = vec![kind << 1, 1];
        for byte in bytes.chain(more.iter().copied()) {
            if byte <= 3 && unit.ends_with(&[0, 0]) {
                unit.push(3);
            }
            unit.push(byte);
        }
        unit
    }
}

fn sequence(header: &Header) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.put(0, 4).put(0, 3).put(1, 1);
    // Profile, those that it is compatible with, constraints, level.
    bits.put(if header.chroma == 1 { 2 } else { 4 }, 8).put(0x6000_0000, 32);
    bits.put(0x9, 4).put(0, 22).put(0, 22).put(186, 8);
    bits.numbers(&[0, header.chroma]);
    if header.chroma == 3 {
        bits.put(0, 1);
    }
    bits.numbers(&header.coded).put(0, 1);
    // Bits of luma and chroma, of orders; how many pictures are kept.
    bits.numbers(&[header.bits, header.bits, 4]).put(1, 1).numbers(&[header.kept - 1, 0, 0]);
    // Blocks of 8 to 64, of transforms of 4 to 32.
    bits.numbers(&[0, 3, 0, 3, 0, 0]).put(0, 4).number(0).put(0, 5);
    bits.unit(33, &[])
}

fn pictures() -> Vec<u8> {
    let mut bits = Bits::default();
    bits.numbers(&[0, 0]).put(0, 7).numbers(&[0, 0, 0]).put(0, 3).numbers(&[0, 0]).put(0, 10).number(0);
    bits.put(0, 2).unit(34, &[])
}

fn slice(codes: usize) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.put(1, 1).put(0, 1).numbers(&[0, 2, 0]);
    let mut state = 7_u32;
    let noise = (0..codes).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    bits.unit(19, &noise.collect::<Vec<_>>())
}

fn boxed(name: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&(8 + body.len() as u32).to_be_bytes()[..], name, &body].concat()
}

fn with_version(name: &[u8; 4], version: u8, parts: &[&[u8]]) -> Vec<u8> {
    boxed(name, &[&[version, 0, 0, 0], &parts.concat()])
}

fn size(sides: [u32; 2]) -> Vec<u8> {
    with_version(b"ispe", 0, &[&sides.map(u32::to_be_bytes).concat()])
}

fn file(header: &Header) -> Vec<u8> {
    let mut config = vec![1, 1, 0x60, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 186, 0xF0, 0, 0xFC, header.chroma as u8];
    config.extend([header.bits as u8, header.bits as u8, 0, 0, 3, 2]);
    for (kind, unit) in [(33, sequence(header)), (34, pictures())] {
        config.extend([kind, 0, 1]);
        config.extend((unit.len() as u16).to_be_bytes());
        config.extend(unit);
    }
    let slice = slice(header.codes);
    let stream = [&(slice.len() as u32).to_be_bytes()[..], &slice].concat();
    let [rows, columns] = header.grid.map(u32::from);
    let is_grid = rows > 0;
    let whole = [header.said[0] * columns, header.said[1] * rows];
    let mut put = vec![0, 1, header.grid[0].wrapping_sub(1), header.grid[1].wrapping_sub(1)];
    put.extend(whole.map(u32::to_be_bytes).concat());
    // Item 1 is coded, item 2 the grid, which names it again and again. Its bytes stand in front of the coded ones.
    let properties = boxed(b"ipco", &[&size(header.said), &boxed(b"hvcC", &[&config]), &size(whole)]);
    let uses = with_version(b"ipma", 0, &[&[0, 0, 0, 2], &[0, 1, 2, 1, 2], &[0, 2, 1, 3]]);
    let entry = |id: u8, kind: &[u8; 4]| with_version(b"infe", 2, &[&[0, id, 0, 0], kind, &[0]]);
    let kinds = with_version(b"iinf", 0, &[&[0, 2], &entry(1, b"hvc1"), &entry(2, b"grid")]);
    let named = (rows * columns) as u16;
    let parts = boxed(b"dimg", &[&[0, 2], &named.to_be_bytes(), &[0, 1].repeat(named.into())]);
    let references = with_version(b"iref", 0, &[&parts]);
    let meta = |start: u32| {
        let place = |id: u8, at: u32, length: usize| {
            [&[0, id, 0, 0, 0, 1][..], &at.to_be_bytes(), &(length as u32).to_be_bytes()].concat()
        };
        let places = [place(1, start + put.len() as u32, stream.len()), place(2, start, put.len())].concat();
        with_version(
            b"meta",
            0,
            &[
                &with_version(b"pitm", 0, &[&[0, 1 + u8::from(is_grid)]]),
                &with_version(b"iloc", 0, &[&[0x44, 0, 0, 2], &places]),
                &kinds,
                &references,
                &boxed(b"iprp", &[&properties, &uses]),
            ],
        )
    };
    let head = boxed(b"ftyp", &[b"heic", &[0; 4], b"mif1heic"]);
    let start = head.len() + meta(0).len() + 8;
    [head, meta(start as u32), boxed(b"mdat", &[&put, &stream])].concat()
}
