//! JPEG XLs against pixels recorded from libjxl (tests/data/decode/make_jxl.py says how), and files that are changed by
//! hand.

use std::sync::atomic::{AtomicUsize, Ordering};

use gesso::cpu::decode::{ColorSpace, Conditions, DecodeOptions, Decoder, Window, probe};
use gesso::deadline::{Deadline, Watch};
use gesso::error::{Error, ErrorKind, Result};
use gesso::tensor::DType;

use crate::decode::{PICTURES, data, decode, message};
use crate::npz::Npz;
use crate::turned::{AS_STORED, assert_turned};

/// Files, their channels and bits, and how far from libjxl's pixels theirs may be: both round what is lossy.
const FILES: [(&str, usize, usize, f64); 20] = [
    ("jxl_lossless", 3, 8, 0.0),
    ("jxl_boxes", 3, 8, 0.0),
    ("jxl_gray", 1, 8, 0.0),
    ("jxl_la", 2, 8, 0.0),
    ("jxl_rgba", 4, 8, 0.0),
    ("jxl_1x1", 3, 8, 0.0),
    ("jxl_lossless_groups", 3, 8, 0.0),
    ("jxl_animation", 3, 8, 0.0),
    ("jxl_lossy", 3, 8, 1.0),
    ("jxl_lossy_gray", 1, 8, 1.0),
    ("jxl_lossy_rgba", 4, 8, 1.0),
    ("jxl_groups", 3, 8, 1.0),
    ("jxl_jpeg", 3, 8, 1.0),
    ("jxl_16_gray", 1, 16, 0.0),
    ("jxl_16_rgb", 3, 16, 0.0),
    ("jxl_16_rgba", 4, 16, 0.0),
    ("jxl_16_lossy", 3, 16, 96.0),
    ("jxl_10", 3, 10, 0.0),
    ("jxl_float", 3, 32, 0.0),
    ("jxl_half", 3, 16, 0.0),
];

/// What libjxl made of a file, as numbers of the type that it is decoded to here.
fn recorded(archive: &mut Npz, file: &str, bits: usize) -> (DType, Vec<usize>, Vec<f64>) {
    let name = format!("{file}_pixels");
    if let "jxl_float" | "jxl_half" = file {
        let (shape, pixels) = archive.array::<f32>(&name);
        return (DType::F32, shape, pixels.into_iter().map(f64::from).collect());
    }
    if bits == 8 {
        let (shape, pixels) = archive.array::<u8>(&name);
        return (DType::U8, shape, pixels.into_iter().map(f64::from).collect());
    }
    // Of fewer bits than 16 the record has them alone, and here the range is that of 16.
    let scale = 65535.0 / f64::from((1 << bits) - 1);
    let (shape, pixels) = archive.array::<u16>(&name);
    (DType::U16, shape, pixels.into_iter().map(|level| (f64::from(level) * scale).round()).collect())
}

#[test]
fn pixels_are_those_of_libjxl() {
    let (mut archive, decoder) = (Npz::open(data("jxl.npz")), Decoder::new());
    let mut wrong = Vec::new();
    for (file, channels, bits, most) in FILES {
        let bytes = &PICTURES[file];
        let info = probe(bytes, false).unwrap();
        assert_eq!((info.channels, info.bit_depth), (channels, bits), "{file}");
        let (dtype, shape, expected) = recorded(&mut archive, file, bits);
        let found = decode(&decoder, bytes, &DecodeOptions { dtype, ..AS_STORED }).unwrap();
        assert_eq!(found.0, shape, "{file}");
        let off = found.1.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        if off > most {
            wrong.push(format!("{file}: {off} at most"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn other_colours_types_and_windows_are_of_the_same_pixels() {
    let decoder = Decoder::new();
    let of = |file: &str, options: DecodeOptions| decode(&decoder, &PICTURES[file], &options).unwrap();
    let rgb = DecodeOptions { color: ColorSpace::Rgb, ..AS_STORED };
    let (_, four) = of("jxl_rgba", AS_STORED);
    let three: Vec<f64> = four.chunks_exact(4).flat_map(|p| &p[..3]).copied().collect();
    assert_eq!(of("jxl_rgba", rgb).1, three);
    let (_, gray) = of("jxl_gray", AS_STORED);
    assert_eq!(of("jxl_gray", DecodeOptions { color: ColorSpace::Gray, ..AS_STORED }).1, gray);
    let (_, thrice) = of("jxl_gray", rgb);
    assert!(thrice.chunks_exact(3).zip(&gray).all(|(p, &v)| p == [v; 3]));
    let bgr = of("jxl_lossless", DecodeOptions { color: ColorSpace::Bgr, ..AS_STORED }).1;
    let (shape, stored) = of("jxl_lossless", AS_STORED);
    assert!(bgr.chunks_exact(3).zip(stored.chunks_exact(3)).all(|(a, b)| a == [b[2], b[1], b[0]]));
    let floats = of("jxl_lossless", DecodeOptions { dtype: DType::F32, ..AS_STORED }).1;
    assert!(floats.iter().zip(&stored).all(|(a, b)| (a * 255.0 - b).abs() < 1e-4));
    let window = Some(Window { x: 5, y: 3, width: 7, height: 2 });
    let (_, part) = of("jxl_lossless", DecodeOptions { window, ..AS_STORED });
    let rows = (3..5).flat_map(|y| &stored[3 * (y * shape[1] + 5)..][..21]);
    assert!(part.iter().eq(rows));
}

#[test]
fn pictures_are_turned_as_the_header_says() {
    // What EXIF says beside the header does not count.
    assert_eq!(probe(&PICTURES["jxl_boxes"], true).unwrap().width, 23);
    for number in 2..=8 {
        assert_turned(&PICTURES[&format!("jxl_turned{number}")], number);
    }
}

/// A bare codestream of a header alone: sides below 2^30, all else as usual.
fn header_of(width: u64, height: u64) -> Vec<u8> {
    // From the lowest bit: not small, height in 30 bits, no usual ratio, width in 30 bits, usual metadata, usual
    // transforms.
    let bits: [(u64, u32); 8] =
        [(0, 1), (3, 2), (height - 1, 30), (0, 3), (3, 2), (width - 1, 30), (1, 1), (1, 1)];
    let (mut all, mut length) = (0_u128, 0);
    for (value, count) in bits {
        all |= u128::from(value) << length;
        length += count;
    }
    let mut bytes = vec![0xFF, 0x0A];
    bytes.extend(&all.to_le_bytes()[..length.div_ceil(8) as usize]);
    bytes
}

#[test]
fn errors_say_what_is_wrong() {
    let decoder = Decoder::new();
    assert_eq!(probe(&header_of(700, 500), true).unwrap().width, 700);
    for (width, height) in [(60_000, 60_000), (10_000, 10_000), (1 << 27, 200)] {
        let text = message(probe(&header_of(width, height), true));
        assert!(text.contains("more samples than the limit of 268435456"), "{text}");
    }
    for file in ["jxl_lossless", "jxl_boxes", "jxl_groups", "jxl_lossless_groups", "jxl_16_lossy"] {
        let whole = &PICTURES[file];
        for length in [12, 30, whole.len() / 2, whole.len() - 2] {
            let error = decode(&decoder, &whole[..length.min(whole.len())], &AS_STORED).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArg, "{file}");
            assert!(error.to_string().contains("truncated"), "{file} of {length} bytes: {error}");
        }
    }
    assert!(message(probe(&PICTURES["jxl_lossless"][..3], true)).contains("truncated header"));
    let mut damaged = PICTURES["jxl_lossless"].clone();
    damaged[40..200].fill(0xA5);
    assert!(message(decode(&decoder, &damaged, &AS_STORED)).contains("damaged"));
}

/// A file with some bytes changed, taken out or doubled, as `state` has it.
fn changed(file: &[u8], state: &mut u64) -> Vec<u8> {
    let mut below = |limit: usize| {
        // Marsaglia's xorshift.
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 16) as usize % limit
    };
    let mut bytes = file.to_vec();
    for _ in 0..1 + below(4) {
        // Half of them in the first bytes, where headers are.
        let most = if below(2) == 0 { bytes.len().min(64) } else { bytes.len() };
        let at = below(most);
        match below(6) {
            0 => bytes[at] = below(256) as u8,
            1 => bytes.truncate(at + 1),
            2 => drop(bytes.drain(at..(at + 1 + below(8)).min(most))),
            3 => bytes.insert(at, below(256) as u8),
            _ => bytes[at] ^= 1 << below(8),
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

/// Nothing that was in the output before is left in it, and no file makes the decoder panic, which would be caught, but
/// cost the time that takes. `GESSO_JPEG_XL_CASES` says how many of each file.
#[test]
fn changed_files_are_errors_or_pictures() {
    let cases = std::env::var("GESSO_JPEG_XL_CASES").map_or(20, |cases| cases.parse().unwrap());
    let decoder = Decoder::new();
    let (mut state, mut pictures, mut all) = (0x9E37_79B9_7F4A_7C15, 0, 0);
    let files = PICTURES.iter().filter(|(name, _)| name.starts_with("jxl_"));
    for (name, file) in files {
        for _ in 0..cases {
            let bytes = changed(file, &mut state);
            all += 1;
            let Ok(info) = probe(&bytes, true) else { continue };
            if info.width * info.height > 1 << 20 {
                continue;
            }
            let options = DecodeOptions { color: ColorSpace::Any, ..DecodeOptions::default() };
            let decoded = [0x55, 0xAA].map(|filled| {
                let mut out = vec![filled; info.width * info.height * info.channels];
                decoder
                    .decode_into(&bytes, &options, &mut out)
                    .map(|()| out)
                    .map_err(|error| error.to_string())
            });
            assert_eq!(decoded[0], decoded[1], "{name}");
            pictures += usize::from(decoded[0].is_ok());
        }
    }
    println!("{all} files, of which {pictures} were decoded");
}

/// Somebody who goes away after a few looks.
struct ForLooks(AtomicUsize);

impl Deadline for ForLooks {
    fn check(&self, _sample: Option<usize>) -> Result<()> {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| Error::new(ErrorKind::Cancelled, "nobody waits"))
    }
}

#[test]
fn decoding_stops_in_the_middle_when_nobody_waits() {
    let (decoder, file) = (Decoder::new(), &PICTURES["jxl_groups"]);
    let mut out = vec![0; 264 * 20 * 3];
    let mut after = |looks| {
        let deadline = ForLooks(AtomicUsize::new(looks));
        let conditions = Conditions { watch: &Watch::new(&deadline, None), pool: None };
        decoder.decode_under(conditions, file, &AS_STORED, &mut out)
    };
    assert_eq!(after(1).unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(after(1_000).is_ok());
}
