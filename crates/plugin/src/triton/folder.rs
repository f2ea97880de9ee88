//! A folder of files that clients name in place of sending them: parameter `files.NAME`. No name leads out of the folder, whatever links are
//! in it. It must not know what the files are for.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gesso::error::{Error, ErrorKind, Result};
use gesso::limits;
use gesso::memory::{HostBuffer, HostPool, fill};

/// An existing folder.
#[derive(Debug)]
pub(super) struct Folder {
    /// Without links.
    root: PathBuf,
}

impl Folder {
    /// The folder at `path`.
    ///
    /// # Errors
    /// Not found where there is none.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let wrong = |error: &dyn std::fmt::Display| {
            Error::not_found(format!("`{}` is no folder that can be read: {error}", path.display()))
        };
        let root = fs::canonicalize(path).map_err(|error| wrong(&error))?;
        if !root.is_dir() {
            return Err(wrong(&"it is a file"));
        }
        Ok(Self { root })
    }

    /// File `name`, and how many bytes it has.
    ///
    /// # Errors
    /// Invalid for a name that is no path below the folder and for a file of more bytes than a sample may have, not found for what is no file
    /// there.
    pub(super) fn find(&self, name: &[u8]) -> Result<(File, usize)> {
        let path = Path::new(OsStr::from_bytes(name));
        let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || name.contains(&0) || !is_below {
            return Err(Error::invalid(format!(
                "`{}` is no name of a file: expected a path below the model's folder, such as `clips/a.mp4`",
                shown(name)
            )));
        }
        // Whatever the reason: a client need not learn what is elsewhere.
        let missing = || Error::not_found(format!("no file `{}` in the model's folder", shown(name)));
        // A pipe would hold up whoever opens it.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC);
        let file = options.open(self.root.join(path)).map_err(|_| missing())?;
        let size = file.metadata().ok().filter(fs::Metadata::is_file).ok_or_else(missing)?.len();
        // Asked of what was opened, so that nobody exchanges a link meanwhile.
        if !self.holds(&file) {
            return Err(missing());
        }
        let fits = usize::try_from(size).ok().filter(|&size| size <= limits::MAX_SAMPLE_BYTES);
        let size = fits.ok_or_else(|| {
            Error::invalid(format!(
                "file `{}` has {size} bytes, more than the limit of {}",
                shown(name),
                limits::MAX_SAMPLE_BYTES
            ))
        })?;
        Ok((file, size))
    }

    /// The content of file `name`, and how many bytes it has.
    ///
    /// # Errors
    /// As for [`Folder::find`]; what reading it fails with.
    pub(super) fn read(&self, name: &[u8], memory: &Arc<HostPool>) -> Result<(HostBuffer, usize)> {
        let (file, size) = self.find(name)?;
        let mut buffer = memory.take(size)?;
        let own = buffer.bytes_mut().get_mut(..size).unwrap_or_default();
        fill(own, |at, part| {
            file.read_exact_at(part, at as u64).map_err(|error| {
                Error::new(ErrorKind::Unavailable, format!("file `{}`: {error}", shown(name)))
            })
        })?;
        Ok((buffer, size))
    }

    /// Whether an open file is in the folder.
    fn holds(&self, file: &File) -> bool {
        fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .is_ok_and(|place| place.starts_with(&self.root))
    }
}

/// The beginning of a name, for a message.
fn shown(name: &[u8]) -> String {
    let name = name.get(..name.len().min(limits::MAX_NAME_BYTES)).unwrap_or_default();
    String::from_utf8_lossy(name).escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_read_and_nothing_outside() {
        let around = std::env::temp_dir().join(format!("gesso-folder-{}", std::process::id()));
        let root = around.join("root");
        fs::create_dir_all(root.join("deep")).unwrap();
        fs::write(root.join("deep/file"), [7; 1_000]).unwrap();
        fs::write(around.join("secret"), "secret").unwrap();
        symlink(around.join("secret"), root.join("link")).unwrap();
        symlink("deep/file", root.join("inner")).unwrap();
        symlink(&around, root.join("up")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
        let (folder, memory) = (Folder::open(&root).unwrap(), Arc::new(HostPool::default()));
        for name in ["deep/file", "inner", "deep//file"] {
            let (buffer, size) = folder.read(name.as_bytes(), &memory).unwrap();
            assert_eq!((size, &buffer.bytes()[..size]), (1_000, &[7; 1_000][..]), "{name}");
        }
        for name in ["link", "up/secret", "pipe", "deep", "none", "deep/file/x"] {
            let error = folder.read(name.as_bytes(), &memory).err().unwrap();
            assert_eq!(error.to_string(), format!("no file `{name}` in the model's folder"));
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
        let absolute = root.join("deep/file");
        for name in
            ["", "../secret", "deep/../../secret", "./deep/file", "deep\0", absolute.to_str().unwrap()]
        {
            let error = folder.read(name.as_bytes(), &memory).err().unwrap();
            assert!(error.to_string().contains("is no name of a file"), "{error}");
        }
        assert!(Folder::open(&root.join("none")).is_err() && Folder::open(&root.join("inner")).is_err());
        fs::remove_dir_all(&around).unwrap();
    }
}
