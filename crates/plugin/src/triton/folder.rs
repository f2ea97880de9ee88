//! A folder of files that clients name in place of sending them: parameter `files.NAME`. No name leads out of the
//! folder, whatever links are in it. It must not know what the files are for.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gesso::error::{Error, ErrorKind, Result};
use gesso::limits;
use gesso::memory::{HostBuffer, HostPool, fill};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

/// Links on the way to one file, as Linux has it. Stops those that lead to one another.
const MAX_LINKS: usize = 40;

/// Folders within one another. Each is held open on the way to a file.
const MAX_DEPTH: usize = 128;

/// Bytes that are read before it is asked again whether anybody waits.
const READ_AT_ONCE: usize = 1 << 20;

/// An existing folder.
#[derive(Debug)]
pub(super) struct Folder {
    /// Without links.
    root: PathBuf,
    /// As it was given: links in it may be written that way.
    given: PathBuf,
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
        Ok(Self { root, given: path.to_owned() })
    }

    /// File `name`, and how many bytes it has. The name is in memory that nobody else writes to.
    ///
    /// # Errors
    /// Invalid for a name that is no path below the folder and for a file of more bytes than a sample may have, not
    /// found for what is no file there.
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
        let file = self.walk(path).ok_or_else(missing)?;
        let size = file.metadata().ok().filter(fs::Metadata::is_file).ok_or_else(missing)?.len();
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

    /// The content of file `name`, and how many bytes it has. `wanted` is asked meanwhile, and ends it.
    ///
    /// # Errors
    /// As for [`Folder::find`]; what reading it fails with; what `wanted` says.
    pub(super) fn read(
        &self,
        name: &[u8],
        memory: &Arc<HostPool>,
        wanted: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<(HostBuffer, usize)> {
        let (file, size) = self.find(name)?;
        let mut buffer = memory.take(size)?;
        let own = buffer.bytes_mut().get_mut(..size).unwrap_or_default();
        fill(own, |at, part| {
            for (i, piece) in part.chunks_mut(READ_AT_ONCE).enumerate() {
                wanted()?;
                let at = (at + i * READ_AT_ONCE) as u64;
                file.read_exact_at(piece, at).map_err(|error| {
                    Error::new(ErrorKind::Unavailable, format!("file `{}`: {error}", shown(name)))
                })?;
            }
            Ok(())
        })?;
        Ok((buffer, size))
    }

    /// The file at `path`. Folder by folder, each opened in the one before: a link is read in place of being followed
    /// by the system, so that nothing outside is ever opened, whoever exchanges links meanwhile, and the way up is the
    /// way that led down.
    fn walk(&self, path: &Path) -> Option<File> {
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.root, folder, Mode::empty()).ok()?;
        let (mut inside, mut links): (Vec<OwnedFd>, _) = (Vec::new(), 0);
        let mut left = parts(path);
        while let Some(part) = left.pop() {
            if part == ".." {
                // Above the folder nothing is.
                inside.pop()?;
                continue;
            }
            let here = inside.last().unwrap_or(&root);
            let found = rustix::fs::statat(here, &part, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Symlink if links < MAX_LINKS => {
                    links += 1;
                    let target = rustix::fs::readlinkat(here, &part, Vec::new()).ok()?;
                    let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                    if target.is_absolute() {
                        inside.clear();
                        left.extend(parts(self.relative(target)?));
                    } else {
                        left.extend(parts(target));
                    }
                }
                FileType::Directory if inside.len() < MAX_DEPTH => {
                    let next = rustix::fs::openat(here, &part, folder, Mode::empty()).ok()?;
                    inside.push(next);
                }
                FileType::RegularFile if left.is_empty() => {
                    // A pipe that has taken its place would hold up whoever opens it.
                    let file = OFlags::RDONLY
                        | OFlags::NOFOLLOW
                        | OFlags::NONBLOCK
                        | OFlags::NOCTTY
                        | OFlags::CLOEXEC;
                    return rustix::fs::openat(here, &part, file, Mode::empty()).ok().map(File::from);
                }
                _ => return None,
            }
        }
        None
    }

    /// What an absolute link in the folder leads to, from the folder on.
    fn relative<'p>(&self, target: &'p Path) -> Option<&'p Path> {
        target.strip_prefix(&self.root).or_else(|_| target.strip_prefix(&self.given)).ok()
    }
}

/// The parts of a relative path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| !matches!(part, Component::CurDir));
    parts.rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// The beginning of a name, for a message.
fn shown(name: &[u8]) -> String {
    let name = name.get(..name.len().min(limits::MAX_NAME_BYTES)).unwrap_or_default();
    String::from_utf8_lossy(name).escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::inotify;

    use super::*;

    fn read(folder: &Folder, name: &str) -> Result<(HostBuffer, usize)> {
        folder.read(name.as_bytes(), &Arc::new(HostPool::default()), &|| Ok(()))
    }

    /// The system tells of each time that a file is opened.
    #[test]
    fn what_a_link_leads_to_outside_is_never_opened() {
        let around = std::env::temp_dir().join(format!("gesso-links-{}", std::process::id()));
        let root = around.join("root");
        fs::create_dir_all(&root).unwrap();
        fs::write(around.join("secret"), "secret").unwrap();
        fs::write(root.join("file"), "file").unwrap();
        let folder = Folder::open(&root).unwrap();
        let opened = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        inotify::add_watch(&opened, around.join("secret"), inotify::WatchFlags::OPEN).unwrap();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (links, next) = (["file", "../secret"], root.join("next"));
                for i in 0.. {
                    symlink(links[i % 2], &next).unwrap();
                    fs::rename(&next, root.join("link")).unwrap();
                    if over.load(std::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                }
            });
            for _ in 0..2_000 {
                if let Ok((buffer, size)) = read(&folder, "link") {
                    assert_eq!(&buffer.bytes()[..size], b"file");
                }
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let mut room = [std::mem::MaybeUninit::uninit(); 512];
        assert!(inotify::Reader::new(&opened, &mut room).next().is_err(), "it was opened");
        fs::remove_dir_all(&around).unwrap();
    }

    #[test]
    fn reading_ends_when_nobody_waits_any_more() {
        let root = std::env::temp_dir().join(format!("gesso-late-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let file = File::create(root.join("large")).unwrap();
        file.set_len(3 * READ_AT_ONCE as u64).unwrap();
        let folder = Folder::open(&root).unwrap();
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let wanted = || match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(Error::invalid("too late")),
        };
        let error = folder.read(b"large", &Arc::new(HostPool::default()), &wanted).err().unwrap();
        assert_eq!((error.to_string().as_str(), asked.into_inner()), ("too late", 2));
        fs::remove_dir_all(&root).unwrap();
    }

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
        symlink(root.join("deep/file"), root.join("whole")).unwrap();
        symlink("../deep/./file", root.join("deep/back")).unwrap();
        symlink("../../secret", root.join("deep/out")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let folder = Folder::open(&root).unwrap();
        for name in ["deep/file", "inner", "deep//file", "whole", "deep/back"] {
            let (buffer, size) = read(&folder, name).unwrap();
            assert_eq!((size, &buffer.bytes()[..size]), (1_000, &[7; 1_000][..]), "{name}");
        }
        for name in ["link", "up/secret", "pipe", "deep", "none", "deep/file/x", "deep/out", "loop"] {
            let error = read(&folder, name).err().unwrap();
            assert_eq!(error.to_string(), format!("no file `{name}` in the model's folder"));
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
        let absolute = root.join("deep/file");
        for name in
            ["", "../secret", "deep/../../secret", "./deep/file", "deep\0", absolute.to_str().unwrap()]
        {
            let error = read(&folder, name).err().unwrap();
            assert!(error.to_string().contains("is no name of a file"), "{error}");
        }
        assert!(Folder::open(&root.join("none")).is_err() && Folder::open(&root.join("inner")).is_err());
        fs::remove_dir_all(&around).unwrap();
    }
}
