//! Compiled kernels on disk, so that only the first load of a model on a machine compiles. A file holds its whole key,
//! so that a stale or foreign file is never used. Failures are not errors: then the kernel is compiled.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

/// Names the folder of the cache; empty: no cache.
pub(super) const CACHE_VARIABLE: &str = "GESSO_KERNEL_CACHE";

/// Where compiled kernels lie: `$GESSO_KERNEL_CACHE`, else `gesso` in the user's cache folder.
pub fn kernel_cache() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(CACHE_VARIABLE) {
        return (!folder.is_empty()).then(|| PathBuf::from(folder));
    }
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    Some(base.join("gesso"))
}

fn path(key: &str) -> Option<PathBuf> {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    Some(kernel_cache()?.join(format!("{:016x}.cubin", hasher.finish())))
}

/// The machine code stored under `key`.
pub(super) fn read(key: &str) -> Option<Vec<u8>> {
    let bytes = fs::read(path(key)?).ok()?;
    let length = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let (found, code) = bytes.get(8..)?.split_at_checked(usize::try_from(length).ok()?)?;
    (found == key.as_bytes()).then(|| code.to_vec())
}

/// Writes a file that is not there yet: one that is may be another container's, whose processes have the same numbers.
fn write_whole(path: &Path, parts: &[&[u8]]) -> std::io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    let written = parts.iter().try_for_each(|part| file.write_all(part));
    if written.is_err() {
        // A disk that is full need not hold half a kernel, too.
        let _ = fs::remove_file(path);
    }
    written
}

/// Stores `code` under `key`, at once: a reader never sees half a file.
pub(super) fn write(key: &str, code: &[u8]) {
    let Some(path) = path(key) else { return };
    let store = || -> std::io::Result<()> {
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder)?;
        // Instances load at the same time, in this process and in others.
        static WRITES: AtomicU64 = AtomicU64::new(0);
        let number = WRITES.fetch_add(1, Ordering::Relaxed);
        let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let part = folder.join(format!("{:x}-{number:x}-{now:x}.part", std::process::id()));
        write_whole(&part, &[&(key.len() as u64).to_le_bytes(), key.as_bytes(), code])?;
        fs::rename(&part, &path)
    };
    if let Err(error) = store() {
        tracing::debug!("cannot store a compiled kernel in `{}`: {error}", path.display());
    }
}
