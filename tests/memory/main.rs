//! What decoders of images take of memory against what is told beforehand, counted by the allocator: of ordinary files,
//! of changed ones, and of hostile ones. And no file makes one ask for more at once than was told, in a way that would
//! end the process.
//!
//! And what an instance of a pipeline took comes back.
//!
//! `GESSO_PRICED=FOLDER` measures the files of a folder too, and prints all figures.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod counting;
mod failing;
mod files;
mod heif;
mod instances;
#[path = "../cpu/npz.rs"]
mod npz;

use gesso::cpu::decode::{DecodeOptions, Decoder, ImageInfo, effort, output_shape, probe};

/// What is taken beyond what is told: tables of a decoder, which do not grow with a file.
const TABLES: usize = 1 << 20;
/// Of what is told, in hundredths, as much may be taken.
const MOST: usize = 120;
/// Larger pictures take a while to decode and show no more.
const MOST_PIXELS: usize = 1 << 25;

/// A file and how it was made.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// What was told of a file and what it took.
struct Measured {
    told: usize,
    taken: usize,
    largest: usize,
    error: Option<String>,
}

fn options() -> DecodeOptions {
    DecodeOptions::default()
}

/// `None` for what is refused by its header, or too large for a test.
fn info(bytes: &[u8]) -> Option<ImageInfo> {
    probe(bytes, true).ok().filter(|info| info.width * info.height <= MOST_PIXELS)
}

/// Decodes a file while the allocator counts; single requests of more than `budget` bytes fail.
fn measure(bytes: &[u8], budget: impl Fn(usize) -> usize) -> Option<Measured> {
    let info = info(bytes)?;
    let told = effort(bytes, &info, &options()).scratch;
    let mut out = vec![0; output_shape(&info, &options()).iter().product()];
    let decoder = Decoder::new();
    let (error, counted) =
        counting::counted(budget(told), || decoder.decode_into(bytes, &options(), &mut out).err());
    let error = error.map(|error| error.to_string());
    Some(Measured { told, taken: counted.peak, largest: counted.largest, error })
}

/// The allowed ratio of what is taken to what is told.
fn is_told(found: &Measured) -> bool {
    found.taken <= found.told / 100 * MOST + TABLES
}

fn all() -> Vec<File> {
    let mut all = files::recorded();
    all.extend(files::large());
    all.extend(files::hostile());
    all.extend(heif::hostile());
    if let Ok(folder) = std::env::var("GESSO_PRICED") {
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        all.extend(paths.filter_map(|path| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some(File { name, bytes: std::fs::read(path).ok()? })
        }));
    }
    all
}

/// One test, as the allocator counts what all threads ask for.
#[test]
fn decoders_take_the_memory_that_is_told() {
    files_take_the_memory_that_is_told();
    changed_files_take_the_memory_that_is_told();
}

fn files_take_the_memory_that_is_told() {
    let shows = std::env::var_os("GESSO_PRICED").is_some();
    let mut wrong = Vec::new();
    for File { name, bytes } in all() {
        let Some(found) = measure(&bytes, |_| usize::MAX) else { continue };
        let line = format!(
            "{name}: {} bytes told, {} taken, {} at once, {}",
            found.told,
            found.taken,
            found.largest,
            found.error.as_deref().unwrap_or("decoded")
        );
        if shows {
            println!("{line}");
        }
        if !is_told(&found) {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{} files take more than is told:\n{}", wrong.len(), wrong.join("\n"));
}

/// Changed files: what a header says is not what is there. An allocation that fails and has no answer ends this
/// process.
fn changed_files_take_the_memory_that_is_told() {
    let (mut wrong, mut random) = (Vec::new(), files::Random(7));
    for File { name, bytes } in files::recorded() {
        for _ in 0..files::CHANGES {
            let changed = random.changed(&bytes);
            let Some(found) = measure(&changed, |told| told / 100 * MOST + TABLES) else { continue };
            if !is_told(&found) {
                wrong.push(format!(
                    "{name}, changed: {} bytes told, {} taken: {changed:?}",
                    found.told, found.taken
                ));
            }
        }
    }
    wrong.truncate(5);
    assert!(wrong.is_empty(), "files take more than is told:\n{}", wrong.join("\n"));
}
