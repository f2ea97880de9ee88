//! Sound files.

use gesso::cpu::audio::decode::{decode, effort, header};
use gesso::deadline::Watch;

/// Longer files are looked at, not decoded.
const MAX_SAMPLES: usize = 1 << 22;

pub(crate) fn run(file: &[u8]) {
    let Ok(found) = header(file) else { return };
    let samples = found.frames.saturating_mul(found.channels);
    let _ = effort(&found);
    if samples > MAX_SAMPLES {
        return;
    }
    let mut given = 0;
    let done = decode(file, &found, &Watch::forever(), &mut |block| {
        given += block.len();
        Ok(())
    });
    assert!(given <= samples, "{given} samples of {samples}");
    assert!(done.is_err() || given == samples, "{given} samples of {samples}");
}
