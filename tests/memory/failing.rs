//! Memory for a picture that is not there: our own decoders answer with an error. Crates that ask for it without an
//! answer for that end the process, as Rust does then; SECURITY.md says which.

use std::path::Path;
use std::process::Command;

use gesso::cpu::decode::{ColorSpace, DecodeOptions, Decoder, output_shape, probe};

use crate::counting;
use crate::files::{self, large};

/// Says to the test that it is the process of one file and one request.
const ALONE: &str = "GESSO_TEST_FAILING_MEMORY";
/// The bytes of requests that count: a picture's, and not those of tables.
const LEAST: usize = 256 << 10;
/// Requests of a file that are tried, at most.
const MOST_REQUESTS: usize = 12;
/// Begins of the names of files that a crate asks for memory for.
const BY_CRATES: &[&str] = &["gif", "png"];

fn all() -> Vec<crate::File> {
    let mut all = large();
    all.extend(files::plain());
    all
}

/// Decodes a file while one of its requests fails: to gray, so that samples are kept and changed. Returns whether it
/// did fail.
fn decode(bytes: &[u8], request: usize) -> bool {
    let options = DecodeOptions { color: ColorSpace::Gray, ..DecodeOptions::default() };
    let info = probe(bytes, true).unwrap();
    let mut out = vec![0; output_shape(&info, &options).iter().product()];
    let decoder = Decoder::new();
    let (decoded, failed) =
        counting::without(LEAST, request, || decoder.decode_into(bytes, &options, &mut out));
    match decoded {
        Ok(()) => assert!(!failed, "decoded without memory"),
        Err(error) => assert!(failed && error.to_string().contains("memory"), "{error}"),
    }
    failed
}

/// Whether request `request` of the file at `path` is there, and whether the process ends without an answer.
fn outcome(path: &Path, request: usize) -> (bool, bool) {
    let test = "failing::memory_for_a_picture_that_is_not_there_is_an_error";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(ALONE, format!("{request} {}", path.display()));
    let ended = command.output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr);
    match ended.status.code() {
        Some(0) => (false, false),
        Some(3) => (true, false),
        None => (true, true),
        Some(code) => panic!("{}, request {request}: ended with {code}: {text}", path.display()),
    }
}

#[test]
fn memory_for_a_picture_that_is_not_there_is_an_error() {
    if let Ok(asked) = std::env::var(ALONE) {
        let (request, path) = asked.split_once(' ').unwrap();
        let failed = decode(&std::fs::read(path).unwrap(), request.parse().unwrap());
        std::process::exit(if failed { 3 } else { 0 });
    }
    let _turn = counting::nobody_counts();
    let path = std::env::temp_dir().join(format!("gesso-memory-{}", std::process::id()));
    let mut ended = Vec::new();
    for file in all() {
        std::fs::write(&path, &file.bytes).unwrap();
        for request in 0..MOST_REQUESTS {
            let (is_there, ends) = outcome(&path, request);
            if ends {
                ended.push(format!("{}, request {request}", file.name));
            }
            if !is_there {
                break;
            }
        }
    }
    std::fs::remove_file(&path).unwrap();
    if std::env::var_os("GESSO_PRICED").is_some() {
        println!("{ended:#?}");
    }
    ended.retain(|what| !BY_CRATES.iter().any(|name| what.starts_with(name)));
    assert!(ended.is_empty(), "the process ends: {ended:#?}");
}
