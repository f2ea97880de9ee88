//! Our own JPEG decoder against libjpeg-turbo: of every file the same pixels, or the same refusal. Files are generated:
//! all samplings and qualities, tables of all kinds, restarts, odd sizes, damage.

use std::sync::atomic::{AtomicU64, Ordering};

use gesso::cpu::decode::{
    ColorSpace, Conditions, DecodeOptions, Decoder, JpegDecoder, Vectors, Window, output_shape, probe,
};
use gesso::deadline::Watch;
use rayon::{ThreadPool, ThreadPoolBuilder};
use turbojpeg::{Compressor, Image, PixelFormat, Subsamp};

use crate::coder::{Dice, Recipe, damaged};
use crate::decode::PICTURES;

/// Files of the quick test.
const QUICK: u64 = 600;
/// Files of the long test that were once decoded to other pixels: numbers that libjpeg-turbo keeps in 32 bits.
const FOUND: [u64; 1] = [5_236_363];
/// How many files the long test makes, if it is not told otherwise.
const LONG: u64 = 1_000_000;
/// Names an environment variable with another number, and one with the first file's.
const FILES: &str = "GESSO_JPEG_FILES";
const FIRST: &str = "GESSO_JPEG_FIRST";

/// A picture that is smooth, noisy, or flat with edges.
fn picture(dice: &mut Dice, width: usize, height: usize, channels: usize) -> Vec<u8> {
    let (kind, noise) = (dice.below(4), dice.below(80));
    let waves = [dice.part() / 4.0 + 0.01, dice.part() / 4.0 + 0.01];
    let mut pixels = Vec::with_capacity(width * height * channels);
    for i in 0..width * height {
        let (x, y) = (i % width, i / width);
        for channel in 0..channels {
            let wave = (x as f64 * waves[0] + channel as f64).sin() * (y as f64 * waves[1]).cos();
            let level = match kind {
                0 => 128.0 + 100.0 * wave,
                1 => 128.0 + 100.0 * wave + dice.below(noise + 1) as f64 - noise as f64 / 2.0,
                2 => dice.below(256) as f64,
                _ => ((x / 9 + y / 7) % 2 * 180 + 25 * channel) as f64,
            };
            pixels.push(level.clamp(0.0, 255.0) as u8);
        }
    }
    pixels
}

/// What libjpeg-turbo writes: inks and progressive files too.
fn written(dice: &mut Dice) -> Vec<u8> {
    let side = dice.pick(&[20, 70, 70, 250]);
    let (width, height) = (1 + dice.below(side), 1 + dice.below(side));
    let format = if dice.below(8) == 0 { PixelFormat::CMYK } else { PixelFormat::RGB };
    let pixels = picture(dice, width, height, format.size());
    let mut compressor = Compressor::new().unwrap();
    compressor.set_quality(1 + dice.below(100) as i32).unwrap();
    let samplings =
        [Subsamp::None, Subsamp::Sub2x1, Subsamp::Sub2x2, Subsamp::Sub1x2, Subsamp::Sub4x1, Subsamp::Gray];
    let samplings = if format == PixelFormat::CMYK { &samplings[..5] } else { &samplings };
    compressor.set_subsamp(dice.pick(samplings)).unwrap();
    compressor.set_optimize(dice.below(3) == 0).unwrap();
    compressor.set_progressive(dice.below(3) == 0).unwrap();
    let pitch = width * format.size();
    compressor.compress_to_vec(Image { pixels: &pixels[..], width, pitch, height, format }).unwrap()
}

/// What libjpeg-turbo does not write: odd samplings, tables, restarts, fill bytes, a scan for each component.
fn composed(seed: u64) -> Vec<u8> {
    let recipe = Recipe::random(seed, 90);
    Recipe { separate: seed.is_multiple_of(6), ..recipe }.encode().file
}

/// A file, whole or damaged.
fn file(seed: u64, dice: &mut Dice) -> Vec<u8> {
    let whole = if dice.below(2) == 0 { written(dice) } else { composed(seed) };
    match dice.below(6) {
        0 | 1 => damaged(&whole, seed),
        2 => whole[..dice.below(whole.len())].to_vec(),
        _ => whole,
    }
}

fn options(dice: &mut Dice) -> DecodeOptions {
    DecodeOptions {
        color: dice.pick(&[
            ColorSpace::Rgb,
            ColorSpace::Rgb,
            ColorSpace::Bgr,
            ColorSpace::Gray,
            ColorSpace::Any,
        ]),
        smooth_chroma: dice.below(2) == 0,
        shrink: dice.pick(&[0, 0, 0, 1, 2, 3]),
        ..DecodeOptions::default()
    }
}

fn window(dice: &mut Dice, width: usize, height: usize) -> Window {
    let (x, y) = (dice.below(width), dice.below(height));
    Window { x, y, width: 1 + dice.below(width - x), height: 1 + dice.below(height - y) }
}

/// The decoders that are compared; libjpeg-turbo is the last one. One of them shares each image among threads.
struct Decoders {
    all: Vec<(&'static str, Decoder)>,
    pool: ThreadPool,
}

/// The name of the one with threads.
const SHARING: &str = "threads";

impl Decoders {
    /// All of them, or those that need one thread.
    fn new(sharing: bool) -> Self {
        let own = |vectors: Vectors| (vectors.name(), Decoder::with_jpeg(JpegDecoder::Own, vectors));
        let mut all: Vec<_> = Vectors::available().into_iter().map(own).collect();
        if sharing {
            all.push((SHARING, Decoder::with_jpeg(JpegDecoder::Own, Vectors::best())));
        }
        all.push(("libjpeg-turbo", Decoder::with_jpeg(JpegDecoder::LibjpegTurbo, Vectors::best())));
        Self { all, pool: ThreadPoolBuilder::new().num_threads(3).build().unwrap() }
    }

    /// Whether all make the same of a file. What libjpeg-turbo makes of it, and how many left it to that.
    fn agree(&self, file: &[u8], options: &DecodeOptions, label: &str) -> (bool, u64) {
        let Ok(info) = probe(file, options.adjust_orientation) else { return (false, 0) };
        let length: usize = output_shape(&info, options).iter().product();
        let left = || self.all.iter().map(|(_, decoder)| decoder.left_to_libjpeg_turbo()).sum::<u64>();
        let before = left();
        let decoded = |name: &str, decoder: &Decoder| {
            let mut pixels = vec![0x55; length];
            let pool = (name == SHARING).then_some(&self.pool);
            let conditions = Conditions { watch: &Watch::forever(), pool };
            let done = decoder.decode_under(conditions, file, options, &mut pixels);
            done.map(|()| pixels).map_err(|error| error.to_string())
        };
        let (name, libjpeg) = self.all.last().unwrap();
        let expected = decoded(name, libjpeg);
        for (name, decoder) in &self.all {
            let found = decoded(name, decoder);
            if found != expected {
                let at = |(a, b): (&Vec<u8>, &Vec<u8>)| a.iter().zip(b).position(|(a, b)| a != b);
                let place = found.as_ref().ok().zip(expected.as_ref().ok()).and_then(at);
                panic!(
                    "{label}, {options:?}, {name}: byte {place:?}, errors {:?} and {:?}",
                    found.err(),
                    expected.err()
                );
            }
        }
        (expected.is_ok(), left() - before)
    }
}

/// Compares the file of a seed. Whether it is one that libjpeg-turbo decodes, and how often it was left to that.
fn compare(decoders: &Decoders, seed: u64) -> (bool, u64) {
    let mut dice = Dice::new(seed ^ 0x5EED);
    let file = file(seed, &mut dice);
    let mut options = options(&mut dice);
    if dice.below(4) == 0
        && let Ok(info) = probe(&file, true)
    {
        let info = info.reduced(options.shrink);
        options.window = Some(window(&mut dice, info.width, info.height));
    }
    decoders.agree(&file, &options, &format!("file {seed}"))
}

#[test]
fn equals_libjpeg_turbo() {
    let decoders = Decoders::new(true);
    let (mut decoded, mut left) = (0, 0);
    for seed in (0..QUICK).chain(FOUND) {
        let (fine, by_libjpeg) = compare(&decoders, seed);
        decoded += u64::from(fine);
        left += if fine { by_libjpeg } else { 0 };
    }
    assert!(decoded > QUICK / 2, "{decoded} of {QUICK} files are decoded");
    // Damaged files that libjpeg-turbo forgives are left.
    let kinds = decoders.all.len() as u64 - 1;
    assert!(left * 4 < decoded * kinds, "{left} of {} decodings were left to libjpeg-turbo", decoded * kinds);
}

#[test]
fn recorded_files_equal_libjpeg_turbo() {
    let decoders = Decoders::new(true);
    let jpegs = PICTURES.iter().filter(|(name, _)| name.starts_with("jpeg"));
    for (name, file) in jpegs {
        for color in [ColorSpace::Rgb, ColorSpace::Bgr, ColorSpace::Gray, ColorSpace::YCbCr] {
            for smooth_chroma in [false, true] {
                for shrink in 0..=3 {
                    let options = DecodeOptions { color, smooth_chroma, shrink, ..DecodeOptions::default() };
                    decoders.agree(file, &options, name);
                }
            }
        }
    }
}

/// Whole files are decoded by our own decoder, or all of this would test nothing.
#[test]
fn whole_files_are_not_left_to_libjpeg_turbo() {
    let mut dice = Dice::new(1);
    let decoders = Decoders::new(true);
    for seed in 0..300 {
        for file in [written(&mut dice), composed(seed)] {
            let (fine, left) =
                decoders.agree(&file, &DecodeOptions::default(), &format!("whole file {seed}"));
            assert!(fine && left == 0, "file {seed}: decoded {fine}, left {left} times");
        }
    }
}

/// As many files as time allows: `cargo test --release -p gesso --test cpu -- --ignored many_files`.
#[test]
#[ignore = "takes hours"]
fn many_files_equal_libjpeg_turbo() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (files, first) = (number(FILES).unwrap_or(LONG), number(FIRST).unwrap_or(0));
    let [next, decoded, left] = [first, 0, 0].map(AtomicU64::new);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // Waking threads takes as long as all the rest: for some files.
                let (some, all) = (Decoders::new(false), Decoders::new(true));
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + files {
                        break;
                    }
                    let decoders = if seed.is_multiple_of(8) { &all } else { &some };
                    let (fine, by_libjpeg) = compare(decoders, seed);
                    decoded.fetch_add(u64::from(fine), Ordering::Relaxed);
                    left.fetch_add(u64::from(fine && by_libjpeg > 0), Ordering::Relaxed);
                }
            });
        }
    });
    let [decoded, left] = [decoded, left].map(AtomicU64::into_inner);
    println!(
        "{files} files from {first} on: {decoded} decoded, the others refused alike; {left} left to libjpeg-turbo"
    );
}
