//! JPEG decoders on one CPU thread: our own with each kind of vectors, libjpeg-turbo, zune-jpeg and jpeg-decoder, on
//! the same files.
//!
//! ```text
//! cargo bench --bench jpeg [-- --rounds 12] [--plain yes] [--threads 2] [FOLDER...]
//! ```
//!
//! Without folders it makes its own files: photograph-like ones of several sizes, qualities and samplings, progressive
//! ones, thumbnails and one of 12 megapixels. In every round each decoder in turn decodes all files of a set, one after
//! the other as a loader does: caches are as its own work left them, and a busy machine is busy for all. Times are the
//! thread's CPU time, the best and the median of the rounds; ratios are to libjpeg-turbo. `worst` is the smallest ratio
//! of any file of a set. With `--plain` chroma is repeated, not smoothed. With `--threads` each file is decoded by one
//! thread and by so many together, and times are those of the clock.
#![expect(clippy::unwrap_used, reason = "files that were just made")]
#![expect(unsafe_code, reason = "a thread's CPU time comes from a C function")]

use std::path::Path;
use std::time::Instant;

use gesso::cpu::decode::{Conditions, DecodeOptions, Decoder, JpegDecoder, Vectors, output_shape, probe};
use gesso::deadline::Watch;
use turbojpeg::{Compressor, Decompressor, Image, PixelFormat, Subsamp};
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Files of one kind.
struct Set {
    name: String,
    files: Vec<Vec<u8>>,
}

/// Gradients, edges and grain, as `compare.py` makes them: about a third of a byte a pixel.
fn picture(seed: u64, width: usize, height: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let (columns, rows) = (width / 12 + 2, height / 12 + 2);
    let coarse: Vec<f32> =
        (0..columns * rows * 3).map(|_| (random() + random() + random() - 1.5) * 80.0).collect();
    let waves = [0.02 + 0.18 * random(), 0.02 + 0.18 * random()];
    let grain = if width < 1000 { 7.0 } else { 3.0 };
    let mut pixels = Vec::with_capacity(width * height * 3);
    for y in 0..height {
        for x in 0..width {
            let (cx, cy) = (x as f32 / 12.0, y as f32 / 12.0);
            let (fx, fy) = (cx.fract(), cy.fract());
            let wave = 30.0 * (x as f32 * waves[0] + y as f32 * waves[1]).sin();
            let noise = (random() + random() + random() - 1.5) * 2.0 * grain;
            for channel in 0..3 {
                let at = |dx: usize, dy: usize| {
                    coarse[((cy as usize + dy) * columns + cx as usize + dx) * 3 + channel]
                };
                let upper = at(0, 0) * (1.0 - fx) + at(1, 0) * fx;
                let lower = at(0, 1) * (1.0 - fx) + at(1, 1) * fx;
                let level = 128.0 + upper * (1.0 - fy) + lower * fy + wave + noise;
                pixels.push(level.clamp(0.0, 255.0) as u8);
            }
        }
    }
    pixels
}

/// How a file is written.
#[derive(Clone, Copy)]
struct Recipe {
    size: (usize, usize),
    quality: i32,
    sampling: Subsamp,
    progressive: bool,
    optimised: bool,
}

fn encoded(seed: u64, recipe: Recipe) -> Vec<u8> {
    let (width, height) = recipe.size;
    let pixels = picture(seed, width, height);
    let mut compressor = Compressor::new().unwrap();
    compressor.set_quality(recipe.quality).unwrap();
    compressor.set_subsamp(recipe.sampling).unwrap();
    compressor.set_progressive(recipe.progressive).unwrap();
    compressor.set_optimize(recipe.optimised).unwrap();
    let image = Image { pixels: &pixels[..], width, pitch: 3 * width, height, format: PixelFormat::RGB };
    compressor.compress_to_vec(image).unwrap()
}

fn made() -> Vec<Set> {
    let base = Recipe {
        size: (500, 375),
        quality: 90,
        sampling: Subsamp::Sub2x2,
        progressive: false,
        optimised: false,
    };
    let set = |name: &str, count: u64, recipes: &[Recipe]| Set {
        name: name.to_owned(),
        files: (0..count).map(|i| encoded(i, recipes[i as usize % recipes.len()])).collect(),
    };
    let qualities = |size| [85, 90, 95].map(|quality| Recipe { size, quality, ..base });
    let mut sets = vec![
        set("500x375 q85-95 4:2:0", 12, &qualities((500, 375))),
        set("1920x1080 q85-95 4:2:0", 6, &qualities((1920, 1080))),
        set("4000x3000 q90 4:2:0", 1, &[Recipe { size: (4000, 3000), ..base }]),
    ];
    for quality in [30, 75, 98] {
        sets.push(set(&format!("500x375 q{quality} 4:2:0"), 4, &[Recipe { quality, ..base }]));
    }
    let samplings = [
        ("4:4:4", Subsamp::None),
        ("4:2:2", Subsamp::Sub2x1),
        ("4:4:0", Subsamp::Sub1x2),
        ("4:1:1", Subsamp::Sub4x1),
        ("gray", Subsamp::Gray),
    ];
    for (name, sampling) in samplings {
        sets.push(set(&format!("500x375 q90 {name}"), 4, &[Recipe { sampling, ..base }]));
    }
    let small = Recipe { size: (96, 72), quality: 80, ..base };
    sets.push(set("thumbnails 96x72 q80", 12, &[small]));
    sets.push(set("thumbnails, own tables", 12, &[Recipe { optimised: true, ..small }]));
    sets.push(set("500x375 q90, own tables", 4, &[Recipe { optimised: true, ..base }]));
    sets.push(set("progressive 500x375 q90", 4, &[Recipe { progressive: true, ..base }]));
    let large = Recipe { size: (1920, 1080), progressive: true, ..base };
    sets.push(set("progressive 1920x1080 q90", 2, &[large]));
    sets
}

fn read(folder: &str) -> Result<Set> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jpg" || extension == "jpeg"));
    paths.sort();
    let files = paths.iter().map(std::fs::read).collect::<std::io::Result<_>>()?;
    Ok(Set { name: Path::new(folder).display().to_string(), files })
}

/// CPU time of this thread, in seconds.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to a struct that is its own.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// A decoder, and what it does with a file.
type Peer<'a> = (String, Box<dyn FnMut(&[u8], &mut Vec<u8>) + 'a>);

fn peers(options: &DecodeOptions) -> Vec<Peer<'_>> {
    let ours = |by: JpegDecoder, vectors: Vectors| {
        let decoder = Decoder::with_jpeg(by, vectors);
        move |file: &[u8], out: &mut Vec<u8>| {
            let info = probe(file, false).unwrap();
            out.resize(output_shape(&info, options).iter().product(), 0);
            decoder.decode_into(file, options, out).unwrap();
        }
    };
    let mut libjpeg = Decompressor::new().unwrap();
    libjpeg.set_fast_upsample(!options.smooth_chroma).unwrap();
    let mut all: Vec<Peer<'_>> = vec![(
        "libjpeg-turbo".to_owned(),
        Box::new(move |file, out| {
            let header = libjpeg.read_header(file).unwrap();
            let (width, height) = (header.width, header.height);
            out.resize(width * height * 3, 0);
            let image =
                Image { pixels: &mut out[..], width, pitch: 3 * width, height, format: PixelFormat::RGB };
            libjpeg.decompress(file, image).unwrap();
        }),
    )];
    for vectors in Vectors::available().into_iter().rev() {
        all.push((format!("gesso, {}", vectors.name()), Box::new(ours(JpegDecoder::Own, vectors))));
    }
    all.push((
        "zune-jpeg".to_owned(),
        Box::new(|file, out| {
            let asked = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
            let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(file), asked);
            *out = decoder.decode().unwrap();
        }),
    ));
    all.push((
        "jpeg-decoder".to_owned(),
        Box::new(|file, out| *out = jpeg_decoder::Decoder::new(file).decode().unwrap()),
    ));
    all
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let (mut rounds, mut smooth_chroma, mut threads, mut folders) = (12, true, 1, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--rounds" => rounds = rest.next().ok_or("--rounds needs a number")?.parse()?,
            "--plain" => smooth_chroma = rest.next().map(String::as_str) != Some("yes"),
            "--threads" => threads = rest.next().ok_or("--threads needs a number")?.parse()?,
            folder => folders.push(folder),
        }
    }
    let options = DecodeOptions { smooth_chroma, adjust_orientation: false, ..DecodeOptions::default() };
    let sets = if folders.is_empty() {
        made()
    } else {
        folders.into_iter().map(read).collect::<Result<Vec<_>>>()?
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    for set in sets {
        match threads {
            1 => measure(&set, &options, rounds),
            _ => together(&set, &options, rounds, &pool),
        }
    }
    Ok(())
}

/// One image after the other, on one thread and on those of a pool.
fn together(set: &Set, options: &DecodeOptions, rounds: usize, pool: &rayon::ThreadPool) {
    let decoder = Decoder::new();
    let (mut best, mut out) = ([0.0; 2], Vec::new());
    for file in &set.files {
        let info = probe(file, false).unwrap();
        out.resize(output_shape(&info, options).iter().product(), 0);
        let mut least = [f64::MAX; 2];
        for _ in 0..rounds {
            let start = Instant::now();
            decoder.decode_into(file, options, &mut out).unwrap();
            least[0] = least[0].min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let conditions = Conditions { watch: &Watch::forever(), pool: Some(pool) };
            decoder.decode_under(conditions, file, options, &mut out).unwrap();
            least[1] = least[1].min(start.elapsed().as_secs_f64());
        }
        best = [best[0] + least[0], best[1] + least[1]];
    }
    let [alone, shared] = best.map(|seconds| seconds / set.files.len() as f64 * 1e6);
    let threads = pool.current_num_threads();
    println!(
        "{}: one thread {alone:.1} us, {threads} threads {shared:.1} us, {:.2}x",
        set.name,
        alone / shared
    );
}

fn measure(set: &Set, options: &DecodeOptions, rounds: usize) {
    let mut peers = peers(options);
    let count = set.files.len();
    let bytes: usize = set.files.iter().map(Vec::len).sum();
    // By decoder, by file, by round.
    let mut times = vec![vec![Vec::with_capacity(rounds); count]; peers.len()];
    let mut out = Vec::new();
    for _ in 0..rounds {
        for (peer, times) in peers.iter_mut().zip(&mut times) {
            for (file, times) in set.files.iter().zip(times) {
                let start = cpu_seconds();
                (peer.1)(file, &mut out);
                times.push(cpu_seconds() - start);
            }
        }
    }
    times.iter_mut().flatten().for_each(|rounds: &mut Vec<f64>| rounds.sort_by(f64::total_cmp));
    let sum = |peer: usize, round: usize| times[peer].iter().map(|rounds| rounds[round]).sum::<f64>();
    println!("{}: {count} files of {} bytes", set.name, bytes / count);
    for (i, (name, _)) in peers.iter().enumerate() {
        let worst = (0..count).map(|file| times[0][file][0] / times[i][file][0]).fold(f64::MAX, f64::min);
        println!(
            "    {name:16} {:9.1} us best, {:9.1} median, {:6.1} MB/s; {:5.2}x by best, {:5.2}x by median, {worst:5.2}x worst",
            sum(i, 0) / count as f64 * 1e6,
            sum(i, rounds / 2) / count as f64 * 1e6,
            bytes as f64 / sum(i, 0) / 1e6,
            sum(0, 0) / sum(i, 0),
            sum(0, rounds / 2) / sum(i, rounds / 2),
        );
    }
}
