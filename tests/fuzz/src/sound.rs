//! Audio files.

use gesso::cpu::audio::decode::{decode, header};

/// Longer files are looked at, not decoded.
const MAX_SAMPLES: usize = 1 << 22;

pub(crate) fn run(file: &[u8]) {
    if let Ok(found) = header(file)
        && found.frames.checked_mul(found.channels).is_some_and(|samples| samples <= MAX_SAMPLES)
    {
        let _ = decode(file, found);
    }
}
