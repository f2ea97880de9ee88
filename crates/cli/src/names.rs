//! The files that `--input` names: a file, a folder, a pattern, a list. It must not open what it finds.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use gesso::error::{Error, Result};

/// Most files that one `--input` may name.
const MAX_FILES: usize = 100_000_000;

/// The files that one word names: those of a folder and of the folders in it, those that fit a pattern, those of a list, or itself. Sorted,
/// but for a list's, which stay as they are.
///
/// # Errors
/// Not found, where a pattern or a folder holds no file; what the system says of a list.
pub(crate) fn files(word: &str) -> Result<Vec<PathBuf>> {
    let path = Path::new(word);
    let found = if path.is_dir() {
        let mut found = Vec::new();
        folder(path, &mut found)?;
        found.sort();
        found
    } else if path.exists() {
        return Ok(vec![path.to_owned()]);
    } else if let Some(name) = word.strip_prefix('@') {
        list(name)?
    } else if word.contains(['*', '?', '[']) {
        pattern(word)?
    } else {
        return Err(Error::not_found(format!("cannot read `{word}`: there is no such file")));
    };
    match found.len() {
        0 => Err(Error::not_found(format!("`{word}` names no file"))),
        1..=MAX_FILES => Ok(found),
        many => Err(Error::invalid(format!("`{word}` names {many} files, expected at most {MAX_FILES}"))),
    }
}

/// The regular files below `folder`, without those whose names begin with a dot. A link to a folder is not followed: it may lead back.
fn folder(path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |error| Error::invalid(format!("cannot read the folder `{}`: {error}", path.display()));
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if kind.is_dir() {
            folder(&entry.path(), found)?;
        } else if kind.is_file() || entry.path().is_file() {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// The files that fit a shell's pattern; `**` stands for folders in folders.
fn pattern(word: &str) -> Result<Vec<PathBuf>> {
    let failed = |error: &dyn std::fmt::Display| Error::invalid(format!("the pattern `{word}`: {error}"));
    let mut found = Vec::new();
    for path in glob::glob(word).map_err(|error| failed(&error))? {
        let path = path.map_err(|error| failed(&error))?;
        if path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The lines of a file, or with `-` of the standard input; empty ones do not count.
fn list(name: &str) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::invalid(format!("cannot read the list `{name}`: {error}"));
    let lines: Box<dyn BufRead> = if name == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::io::BufReader::new(std::fs::File::open(name).map_err(failed)?))
    };
    let mut found = Vec::new();
    for line in lines.lines() {
        let line = line.map_err(failed)?;
        if !line.is_empty() {
            found.push(PathBuf::from(line));
        }
    }
    Ok(found)
}
