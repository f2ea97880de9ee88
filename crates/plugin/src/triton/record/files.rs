//! The folder of a model's records. No name leads out of the folder that the backend allows: the model's is opened
//! below it and is no link, and files are made in the open folder.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};

use crate::config::Recording;
use crate::record::{ENDING, Recorded};
use gesso::error::{Error, ErrorKind, Result};

/// What the folder may still take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// Whether a request did not fit: nothing is recorded any more.
    pub(super) is_over: bool,
}

/// Opens folder `name` in `root`, made where it is not there.
pub(super) fn open(root: &Path, name: &str) -> Result<OwnedFd> {
    let wrong = |what: &str, error: rustix::io::Errno| {
        Error::not_found(format!("{what} is no folder that can be opened: {error}"))
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root_folder = rustix::fs::open(root, flags, Mode::empty())
        .map_err(|error| wrong(&format!("`{}`", root.display()), error))?;
    match rustix::fs::mkdirat(&root_folder, name, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(wrong(&format!("`{name}` in `{}`", root.display()), error)),
    }
    rustix::fs::openat(&root_folder, name, flags | OFlags::NOFOLLOW, Mode::empty())
        .map_err(|error| wrong(&format!("`{name}` in `{}`", root.display()), error))
}

/// What a folder may still take, beside the records that are in it.
pub(super) fn left(folder: &OwnedFd, recording: &Recording) -> Result<Room> {
    let failed = |error| Error::new(ErrorKind::Unavailable, format!("cannot list the folder: {error}"));
    let mut room = Room { count: recording.max_count(), bytes: recording.max_bytes(), is_over: false };
    for entry in Dir::read_from(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_bytes().ends_with(ENDING.as_bytes())
            && let Ok(found) = rustix::fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
        {
            room.count = room.count.saturating_sub(1);
            room.bytes = room.bytes.saturating_sub(u64::try_from(found.st_size).unwrap_or_default());
        }
    }
    Ok(room)
}

/// Writes a record. It has its name only once it is whole.
pub(super) fn write(folder: &impl AsFd, name: &str, recorded: &Recorded) -> std::io::Result<()> {
    let begun = format!(".{name}");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let written = (|| {
        let mut file = File::from(rustix::fs::openat(folder, &begun, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(recorded.header().as_bytes())?;
        recorded.pieces().try_for_each(|piece| file.write_all(piece))?;
        rustix::fs::renameat(folder, &begun, folder, name)?;
        Ok(())
    })();
    written.inspect_err(|_| {
        // Half of a record is none.
        let _ = rustix::fs::unlinkat(folder, &begun, AtFlags::empty());
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::record::{Answer, Tensor};

    fn recorded(bytes: usize) -> Recorded {
        let input = Tensor {
            name: "X".to_owned(),
            datatype: "UINT8".to_owned(),
            shape: vec![1, bytes],
            sent: None,
            index: None,
            bytes: Some(vec![3; bytes]),
        };
        Recorded {
            model: "m".to_owned(),
            version: "1".to_owned(),
            id: String::new(),
            time_ms: 5,
            inputs: vec![input],
            answer: Answer::Failed("no".to_owned()),
        }
    }

    fn root(name: &str) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("gesso-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        root
    }

    #[test]
    fn records_are_written_below_the_folder_and_count_when_it_is_opened_again() {
        let root = root("records");
        let folder = open(&root, "r").unwrap();
        write(&folder, "5-1-0.request", &recorded(10)).unwrap();
        let path = root.join("r/5-1-0.request");
        assert_eq!(Recorded::parse(&fs::read(&path).unwrap()).unwrap(), recorded(10));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(root.join("r")).unwrap().permissions().mode() & 0o777, 0o700);
        // Nothing that is there is written over, and nothing half stays.
        fs::write(root.join("r/.taken"), "x").unwrap();
        assert!(write(&folder, "taken", &recorded(10)).is_err());
        assert!(!root.join("r/taken").exists());
        let size = fs::metadata(&path).unwrap().len();
        let room = left(&open(&root, "r").unwrap(), &Recording::default()).unwrap();
        assert_eq!((room.count, room.bytes), (999, (1 << 30) - size));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_link_is_no_folder() {
        let root = root("record-links");
        fs::create_dir_all(root.join("elsewhere")).unwrap();
        symlink(root.join("elsewhere"), root.join("r")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        for name in ["r", "file"] {
            let error = open(&root, name).unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}` in ")) && error.contains("is no folder"), "{error}");
        }
        assert!(open(&root.join("none"), "r").is_err());
        fs::remove_dir_all(&root).unwrap();
    }
}
