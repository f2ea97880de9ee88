//! Files in a store that the program reads, such as `s3://bucket/key`: one store for all pipelines of a process. It
//! must not know what is in the files, nor how the program reads them (`capi` does).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::error::{Error, Layer, Result};
use crate::memory::{HostBuffer, HostPool};

static STORE: RwLock<Option<Arc<dyn Store>>> = RwLock::new(None);

/// Bytes that come at once where small pieces are read one behind the other.
const NEAR_BYTES: u64 = 4 << 20;

/// Reads files by their paths. Several threads call it at a time.
pub trait Store: Send + Sync {
    /// How many bytes a file has.
    ///
    /// # Errors
    /// Why it cannot be read, without its path.
    fn size(&self, path: &str) -> Result<u64>;

    /// Fills `to` with what is in a file from byte `at` on.
    ///
    /// # Errors
    /// As there.
    fn read(&self, path: &str, at: u64, to: &mut [u8]) -> Result<()>;

    /// A whole file and how many bytes it has, in memory of `memory`.
    ///
    /// # Errors
    /// As there; a file that is larger than a sample may be.
    fn get(&self, path: &str, memory: &Arc<HostPool>) -> Result<(HostBuffer, usize)>;

    /// The names of all files below `root`, relative to it, in any order.
    ///
    /// # Errors
    /// Why they cannot be listed.
    fn list(&self, root: &str) -> Result<Vec<String>>;
}

/// Lets `store` read all files whose paths begin with a scheme and `://`.
pub fn set_store(store: Arc<dyn Store>) {
    *STORE.write() = Some(store);
}

/// Whether a path is that of a file in a store.
pub(super) fn is_stored(path: &Path) -> bool {
    let scheme = path.to_str().and_then(|path| path.split_once("://"));
    // A single letter may be a folder of this machine.
    scheme.is_some_and(|(scheme, _)| {
        scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

/// A path below `base`, unless it says itself where it is.
pub(super) fn joined(base: &Path, path: &Path) -> PathBuf {
    if is_stored(path) { path.to_owned() } else { base.join(path) }
}

/// A file or a folder in a store.
#[derive(Clone)]
pub(super) struct Stored {
    store: Arc<dyn Store>,
    path: Arc<str>,
    /// What was read last of small pieces, and where it begins.
    near: Arc<Mutex<(u64, Vec<u8>)>>,
}

impl Stored {
    /// What is at `path`, if that is in a store.
    ///
    /// # Errors
    /// Unsupported without a store.
    pub(super) fn at(path: &Path) -> Result<Option<Self>> {
        let Some(path) = path.to_str().filter(|_| is_stored(path)) else { return Ok(None) };
        let store = STORE.read().clone();
        let store = store.ok_or_else(|| {
            let error = Error::unsupported("it is in a store, and the program says of none how it is read");
            error.context(Layer::File(path.to_owned()))
        })?;
        Ok(Some(Self { store, path: path.into(), near: Arc::default() }))
    }

    fn named(&self, error: Error) -> Error {
        error.context(Layer::File(self.path.to_string()))
    }

    /// How many bytes it has.
    pub(super) fn size(&self) -> Result<u64> {
        self.store.size(&self.path).map_err(|error| self.named(error))
    }

    /// Fills `to` with what is there from byte `at` on.
    pub(super) fn read(&self, at: u64, to: &mut [u8]) -> Result<()> {
        self.store.read(&self.path, at, to).map_err(|error| self.named(error))
    }

    /// The same of a small piece of a file that has `size` bytes, behind which the next one will be.
    pub(super) fn read_near(&self, size: u64, at: u64, to: &mut [u8]) -> Result<()> {
        let mut near = self.near.lock();
        let part = |(begin, bytes): &(u64, Vec<u8>)| {
            let begin = usize::try_from(at.checked_sub(*begin)?).ok()?;
            Some(begin..begin.checked_add(to.len())?).filter(|range| range.end <= bytes.len())
        };
        let mut found = part(&near);
        if found.is_none() {
            let length = size.saturating_sub(at).min(NEAR_BYTES.max(to.len() as u64));
            let mut bytes = vec![0; length as usize];
            self.read(at, &mut bytes)?;
            *near = (at, bytes);
            found = part(&near);
        }
        let bytes = found.and_then(|range| near.1.get(range));
        let bytes = bytes.ok_or_else(|| self.named(Error::invalid("it ends too early")))?;
        to.copy_from_slice(bytes);
        Ok(())
    }

    /// All of it.
    pub(super) fn get(&self, memory: &Arc<HostPool>) -> Result<(HostBuffer, usize)> {
        self.store.get(&self.path, memory).map_err(|error| self.named(error))
    }

    /// The names of all files below it, relative to it and sorted.
    pub(super) fn list(&self) -> Result<Vec<String>> {
        let mut names = self.store.list(&self.path).map_err(|error| self.named(error))?;
        names.sort_unstable();
        Ok(names)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Files in memory, whose paths begin with `test://`.
    #[derive(Default)]
    pub(in super::super) struct InMemory(pub(in super::super) BTreeMap<String, Vec<u8>>);

    impl InMemory {
        fn file(&self, path: &str) -> Result<&[u8]> {
            self.0.get(path).map(Vec::as_slice).ok_or_else(|| Error::not_found("no such key"))
        }
    }

    impl Store for InMemory {
        fn size(&self, path: &str) -> Result<u64> {
            Ok(self.file(path)?.len() as u64)
        }

        fn read(&self, path: &str, at: u64, to: &mut [u8]) -> Result<()> {
            let at = at as usize;
            let bytes = self.file(path)?.get(at..at + to.len());
            to.copy_from_slice(bytes.ok_or_else(|| Error::not_found("it ends too early"))?);
            Ok(())
        }

        fn get(&self, path: &str, memory: &Arc<HostPool>) -> Result<(HostBuffer, usize)> {
            let bytes = self.file(path)?;
            let mut buffer = memory.take(bytes.len())?;
            buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
            Ok((buffer, bytes.len()))
        }

        fn list(&self, root: &str) -> Result<Vec<String>> {
            let root = format!("{root}/");
            Ok(self.0.keys().filter_map(|path| Some(path.strip_prefix(&root)?.to_owned())).collect())
        }
    }

    #[test]
    fn paths_in_a_store_have_a_scheme() {
        for (path, expected) in
            [("s3://a/b", true), ("https://a", true), ("C://a", false), ("a:b", false), ("/a://b", false)]
        {
            assert_eq!(is_stored(Path::new(path)), expected, "{path}");
        }
        assert_eq!(joined(Path::new("gs://a"), Path::new("b/c")), Path::new("gs://a/b/c"));
        assert_eq!(joined(Path::new("/a"), Path::new("gs://b/c")), Path::new("gs://b/c"));
    }

    #[test]
    fn small_pieces_come_in_larger_ones() {
        let files = [("test://pieces/a".to_owned(), (0..100).collect())].into();
        let stored =
            Stored { store: Arc::new(InMemory(files)), path: "test://pieces/a".into(), near: Arc::default() };
        let mut to = [0; 3];
        for at in [0, 1, 97, 50] {
            stored.read_near(100, at, &mut to).unwrap();
            assert_eq!(to, [at as u8, at as u8 + 1, at as u8 + 2]);
        }
        assert!(
            stored.read_near(100, 98, &mut to).is_err() && stored.read_near(100, u64::MAX, &mut to).is_err()
        );
        assert!(stored.size().is_ok_and(|size| size == 100));
    }
}
