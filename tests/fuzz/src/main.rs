//! The program that looks for inputs on which a target fails: libFuzzer's, for the target in `GESSO_FUZZ_TARGET`.
#![no_main]

use std::sync::LazyLock;

use gesso_fuzz::TARGETS;
use libfuzzer_sys::fuzz_target;

/// The function that was asked for.
static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("GESSO_FUZZ_TARGET").unwrap_or_default();
    match TARGETS.iter().find(|(name, _)| *name == wanted) {
        Some((_, run)) => *run,
        None => {
            let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
            eprintln!("GESSO_FUZZ_TARGET is `{wanted}`, expected one of {}", names.join(", "));
            std::process::exit(2)
        }
    }
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
