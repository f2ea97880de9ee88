//! The files that `--input` names: a file, a folder, a pattern, a list. It must not open what it finds.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use gesso::error::{Error, Result};
use glob::{MatchOptions, Pattern};

/// Most files that one `--input` may name.
const MAX_FILES: usize = 100_000_000;

/// As a shell matches: `*` stays in a folder and takes no hidden file.
const AS_SHELL: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// How the names of files end that a folder stands for: of images, sounds, videos and arrays. A name without an ending
/// may be any of them.
const ENDINGS: [&str; 49] = [
    "jpg", "jpeg", "jpe", "jfif", "mpo", "png", "apng", "bmp", "gif", "tif", "tiff", "webp", "avif", "heic",
    "heif", "hif", "jp2", "j2k", "j2c", "jpc", "jpx", "jxl", "pnm", "ppm", "pgm", "pbm", "wav", "flac",
    "ogg", "oga", "opus", "mp3", "aac", "m4a", "mp4", "m4v", "mov", "mkv", "webm", "avi", "ivf", "264",
    "h264", "265", "h265", "hevc", "mjpg", "mjpeg", "npy",
];

/// What some editors begin a text with.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What one word names.
pub(crate) struct Named {
    pub(crate) files: Vec<PathBuf>,
    /// Files of a folder whose names end otherwise than in [`ENDINGS`].
    pub(crate) left_out: usize,
}

/// The files that one word names: those of a folder and of the folders in it that end as [`ENDINGS`] say, those that
/// fit a pattern, those of a list, or itself. Sorted, but for a list's, which stay as they are. None of a folder or a
/// pattern is below `without`.
///
/// # Errors
/// Not found, where a pattern or a folder holds no file; what the system says of a file or a list.
pub(crate) fn files(word: &str, without: Option<&Path>) -> Result<Named> {
    let path = Path::new(word);
    let all = |files| Named { files, left_out: 0 };
    let found = match path.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            let mut walk = Walk::new(without, None);
            walk.folder(path, 1)?;
            let mut files = walk.sorted();
            let count = files.len();
            files.retain(|path| has_known_ending(path));
            Named { left_out: count - files.len(), files }
        }
        Ok(_) => all(vec![path.to_owned()]),
        Err(error) => match word.strip_prefix('@') {
            Some(name) => all(list(name)?),
            None if word.contains(['*', '?', '[']) => all(pattern(word, without)?),
            None => return Err(Error::not_found(format!("cannot read `{word}`: {error}"))),
        },
    };
    match (found.files.len(), found.left_out) {
        (0, 0) => Err(Error::not_found(format!("`{word}` names no file"))),
        (0, others) => Err(Error::not_found(format!(
            "`{word}` holds {others} files, but none whose name ends like that of an image, a sound, a video or an array (`.npy`): the pattern \
             `'{}/**/*'` names all of them",
            word.trim_end_matches('/')
        ))),
        (1..=MAX_FILES, _) => Ok(found),
        (many, _) => {
            Err(Error::invalid(format!("`{word}` names {many} files, expected at most {MAX_FILES}")))
        }
    }
}

fn has_known_ending(path: &Path) -> bool {
    path.extension().is_none_or(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// A path as text that tells it from all others: bytes that are no UTF-8 are escaped.
pub(crate) fn shown(path: &Path) -> String {
    let escaped = || path.as_os_str().as_encoded_bytes().escape_ascii().to_string();
    path.to_str().map_or_else(escaped, str::to_owned)
}

/// A search of folders, without files and folders whose names begin with a dot. A link to a folder is not followed: it
/// may lead back.
struct Walk<'a> {
    /// Where nothing is looked for.
    without: Option<PathBuf>,
    /// What files must fit, and how many folders deep they may lie.
    wanted: Option<(&'a Pattern, usize)>,
    found: Vec<PathBuf>,
}

impl<'a> Walk<'a> {
    fn new(without: Option<&Path>, wanted: Option<(&'a Pattern, usize)>) -> Self {
        let without = without.and_then(|path| std::path::absolute(path).ok());
        Self { without, wanted, found: Vec::new() }
    }

    fn folder(&mut self, path: &Path, depth: usize) -> Result<()> {
        let failed = |error| Error::invalid(format!("cannot read the folder `{}`: {error}", path.display()));
        if self.without.is_some() && std::path::absolute(path).ok() == self.without {
            return Ok(());
        }
        let here = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        for entry in std::fs::read_dir(here).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let below = path.join(entry.file_name());
            if kind.is_dir() {
                if self.wanted.is_none_or(|(_, deepest)| depth < deepest) {
                    self.folder(&below, depth + 1)?;
                }
            } else if (kind.is_file() || below.is_file())
                && self
                    .wanted
                    .is_none_or(|(pattern, _)| pattern.matches_with(&below.to_string_lossy(), AS_SHELL))
            {
                self.found.push(below);
            }
        }
        Ok(())
    }

    fn sorted(mut self) -> Vec<PathBuf> {
        self.found.sort();
        self.found
    }
}

/// The files that fit a shell's pattern; `**` stands for folders in folders.
fn pattern(word: &str, without: Option<&Path>) -> Result<Vec<PathBuf>> {
    let is_wild = |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
    let parts: Vec<Component<'_>> = Path::new(word).components().collect();
    // As paths are put together: without doubled slashes.
    let plain: PathBuf = parts.iter().collect();
    let pattern = Pattern::new(&plain.to_string_lossy())
        .map_err(|error| Error::invalid(format!("the pattern `{word}`: {error}")))?;
    let fixed = parts.iter().take_while(|part| !is_wild(part)).count();
    let base: PathBuf = parts.iter().take(fixed).collect();
    let deepest = if word.contains("**") { usize::MAX } else { parts.len() - fixed };
    let mut walk = Walk::new(without, Some((&pattern, deepest)));
    if base.as_os_str().is_empty() || base.is_dir() {
        walk.folder(&base, 1)?;
    }
    Ok(walk.sorted())
}

/// The lines of a file, or with `-` of the standard input; empty ones do not count.
fn list(name: &str) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::invalid(format!("cannot read the list `{name}`: {error}"));
    let mut text = Vec::new();
    if name == "-" {
        std::io::stdin().lock().read_to_end(&mut text).map_err(failed)?;
    } else {
        std::fs::File::open(name).and_then(|mut file| file.read_to_end(&mut text)).map_err(failed)?;
    }
    let lines = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text).split(|&byte| byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).filter(|line| !line.is_empty());
    Ok(lines.map(|line| PathBuf::from(OsString::from_vec(line.to_vec()))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_text_stay_apart() {
        let name = |byte| PathBuf::from(OsString::from_vec(vec![b'a', byte]));
        assert_eq!((shown(&name(0xE8)), shown(&name(0xE9))), ("a\\xe8".to_owned(), "a\\xe9".to_owned()));
        assert_eq!(shown(Path::new("\u{e9}.jpg")), "\u{e9}.jpg");
    }
}
