//! The recorded corpus: every file through its target, and for those that make something of any bytes some random ones.
//! A panic fails, one that the engine catches too.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gesso_fuzz::TARGETS;

/// Targets that make something of any bytes.
const OF_ANY_BYTES: [&str; 4] = ["arithmetic", "calls", "operator", "requests"];
/// Random bytes that each of these gets.
const RANDOM: u64 = 4_000;
/// Names an environment variable with the first seed of those, and one with another number of them.
const FIRST: &str = "GESSO_FUZZ_FIRST";
const COUNT: &str = "GESSO_FUZZ_COUNT";
/// Names one with how often each file of the corpus is changed and tried again, and one that says of which target
/// alone.
const CHANGED: &str = "GESSO_FUZZ_CHANGED";
const TARGET: &str = "GESSO_FUZZ_TARGET";

/// What panicked last.
static PANICKED: Mutex<Option<String>> = Mutex::new(None);

/// Runs a target; says where it panicked.
fn run(target: fn(&[u8]), bytes: &[u8]) -> Result<(), String> {
    *PANICKED.lock().unwrap() = None;
    let ended = catch_unwind(AssertUnwindSafe(|| target(bytes)));
    match PANICKED.lock().unwrap().take() {
        None if ended.is_ok() => Ok(()),
        found => Err(found.unwrap_or_else(|| "a panic without a word".to_owned())),
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Bytes of a seed, as many as it says.
fn random(seed: u64) -> Vec<u8> {
    let mut state = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    let length = usize::from(next()) + 16;
    (0..length).map(|_| next()).collect()
}

/// A file with some bytes changed, or cut off, as a seed says.
fn changed(file: &[u8], seed: u64) -> Vec<u8> {
    let (mut changed, random) = (file.to_vec(), random(seed));
    let number =
        |at: usize| random.iter().cycle().skip(at).take(4).fold(0, |sum, &byte| sum << 8 | usize::from(byte));
    for change in 0..1 + number(0) % 4 {
        let Some(last) = changed.len().checked_sub(1) else { break };
        let (place, value) = (number(5 * change + 4) % (last + 1), random[change % random.len()]);
        match value % 8 {
            0 => changed[place..].iter_mut().take(4).for_each(|byte| *byte = 0xFF),
            1 => drop(changed.drain(place..(place + 1 + usize::from(value) / 8).min(last))),
            2 if change == 0 => changed.truncate(place),
            3 => changed[place] ^= 1 << (value / 32),
            _ => changed[place] = value,
        }
    }
    changed
}

#[test]
fn nothing_panics() {
    std::panic::set_hook(Box::new(|info| *PANICKED.lock().unwrap() = Some(info.to_string())));
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (first, count): (u64, u64) = (number(FIRST).unwrap_or(0), number(COUNT).unwrap_or(RANDOM));
    let (changes, only): (u64, _) = (number(CHANGED).unwrap_or(0), std::env::var(TARGET).ok());
    let mut failures = Vec::new();
    for (name, target) in TARGETS.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
    {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
        for path in files(&folder) {
            let file = std::fs::read(&path).unwrap();
            if let Err(message) = run(*target, &file) {
                failures.push(format!("{}: {message}", path.display()));
            }
            for seed in first..first + changes {
                if let Err(message) = run(*target, &changed(&file, seed)) {
                    failures.push(format!("{} changed by seed {seed}: {message}", path.display()));
                }
            }
        }
        if OF_ANY_BYTES.contains(name) {
            for seed in first..first + count {
                if let Err(message) = run(*target, &random(seed)) {
                    failures.push(format!("{name} of seed {seed}: {message}"));
                }
            }
        }
    }
    drop(std::panic::take_hook());
    let shown: Vec<_> = failures.iter().take(20).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} panics:\n{}", failures.len(), shown.join("\n"));
}

/// A target that the script does not know is never fuzzed.
#[test]
fn the_script_knows_every_target() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/lib/fuzz.py");
    let script = std::fs::read_to_string(script).unwrap();
    for (name, _) in TARGETS {
        assert!(script.contains(&format!("\n    \"{name}\": Target(")), "{name}");
    }
}
