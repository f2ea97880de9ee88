//! Which files of a tar archive are the components of one sample: by their names, or as an index tells. It must not
//! know what is wanted of them.

use super::pieces::{Opened, text};
use super::tar::{BLOCK, members};
use crate::error::{Context, Error, Result};

/// A file of a sample.
#[derive(Debug, PartialEq)]
pub(super) struct Component {
    /// What follows the first dot of its name.
    pub(super) extension: Vec<u8>,
    pub(super) at: u64,
    pub(super) size: u64,
}

/// Cuts a path at the first dot behind its last slash: name of the sample, extension.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let name = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    match path[name..].iter().position(|&byte| byte == b'.') {
        Some(dot) => (&path[..name + dot], &path[name + dot + 1..]),
        None => (path, &[]),
    }
}

/// The samples of the archive at `path`: neighbours whose names are the same.
///
/// # Errors
/// What cannot be read, or is no archive.
pub(super) fn of_archive(path: &str) -> Result<Vec<Vec<Component>>> {
    let found = members(&Opened::new(path)?).context(|| format!("the archive `{path}`"))?;
    let (mut samples, mut last): (Vec<Vec<Component>>, Option<Vec<u8>>) = (Vec::new(), None);
    for member in found {
        let (stem, extension) = split(&member.name);
        if stem.is_empty() || stem.ends_with(b"/") {
            continue;
        }
        if last.as_deref() != Some(stem) {
            samples.push(Vec::new());
            last = Some(stem.to_vec());
        }
        let component = Component { extension: extension.to_vec(), at: member.at, size: member.size };
        if let Some(sample) = samples.last_mut() {
            sample.push(component);
        }
    }
    Ok(samples)
}

/// The samples that the index at `path` lists: a line with the version and the number of samples, then a line for each.
/// Version 1.2 has names, too.
///
/// # Errors
/// What cannot be read or is no such index, or names places that no file can be at.
pub(super) fn of_index(path: &str) -> Result<Vec<Vec<Component>>> {
    let wrong = |text: String| Error::invalid(format!("the index `{path}`: {text}"));
    let text = text(path)?;
    let mut lines = text.lines();
    let mut head = lines.next().unwrap_or_default().split_ascii_whitespace();
    let width = match head.next() {
        Some("v1.1") => 3,
        Some("v1.2") => 4,
        other => {
            let found = other.unwrap_or("empty").escape_debug();
            return Err(wrong(format!(
                "Unsupported version of the index file ({found}), expected `v1.1` or `v1.2`"
            )));
        }
    };
    let count = head.next().and_then(|count| count.parse::<usize>().ok()).filter(|&count| count > 0);
    let count = count.ok_or_else(|| wrong("expected a number of samples in its first line".to_owned()))?;
    let samples: Vec<_> = lines
        .take(count)
        .enumerate()
        .map(|(i, line)| components(line, width).map_err(|error| wrong(format!("line {}: {error}", i + 2))))
        .collect::<Result<_>>()?;
    if samples.len() < count {
        return Err(wrong(format!("{} lines of samples, expected {count}", samples.len())));
    }
    Ok(samples)
}

fn components(line: &str, width: usize) -> std::result::Result<Vec<Component>, String> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(width) {
        return Err(format!("{} words, expected a multiple of {width}", words.len()));
    }
    let component = |words: &[&str]| match words {
        [extension, at, size, ..] => {
            let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}`, expected a number"));
            let (at, size) = (number(at)?, number(size)?);
            if at < BLOCK {
                return Err(format!(
                    "a file at byte {at}, expected a header of {BLOCK} bytes in front of it"
                ));
            }
            if at % BLOCK != 0 {
                return Err(format!(
                    "a file at byte {at}: tar offset is not a multiple of tar block size ({BLOCK})"
                ));
            }
            Ok(Component { extension: extension.as_bytes().to_vec(), at, size })
        }
        _ => Err("too few words".to_owned()),
    };
    words.chunks(width).map(component).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_at_the_first_dot() {
        for (path, stem, extension) in [
            ("a.b/c.seg.png", "a.b/c", "seg.png"),
            ("a.b/c", "a.b/c", ""),
            ("../x.jpg", "../x", "jpg"),
            ("..", "", "."),
            (".hidden", "", "hidden"),
            ("d/", "d/", ""),
            ("", "", ""),
        ] {
            assert_eq!(split(path.as_bytes()), (stem.as_bytes(), extension.as_bytes()), "{path}");
        }
    }

    #[test]
    fn an_index_says_where_components_are() {
        let path = std::env::temp_dir().join(format!("gesso-tar-index-{}", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            of_index(&path.display().to_string())
        };
        let part = |extension: &str, at, size| Component { extension: extension.into(), at, size };
        let wanted = vec![vec![part("jpg", 512, 4), part("seg.png", 1536, 3)], vec![part("cls", 2560, 0)]];
        assert_eq!(read("v1.1 2\njpg 512 4 seg.png 1536 3\ncls 2560 0\n").unwrap(), wanted);
        assert_eq!(
            read("v1.2 2\njpg 512 4 a.jpg seg.png 1536 3 ../a.seg.png\ncls 2560 0 b.cls").unwrap(),
            wanted
        );
        for (text, wanted) in [
            ("", "version of the index file (empty)"),
            ("v1.0 1\n", "version of the index file (v1.0)"),
            ("v1.2\n", "number of samples"),
            ("v1.2 0\n", "number of samples"),
            ("v1.2 -1\n", "number of samples"),
            ("v1.2 99999999999999999999\n", "number of samples"),
            ("v1.2 9223372036854775808\njpg 512 4 a\n", "1 lines of samples, expected 9223372036854775808"),
            ("v1.2 1\njpg 512 4\n", "line 2: 3 words"),
            ("v1.2 1\n\n", "line 2: 0 words"),
            ("v1.1 1\njpg 0 4\n", "line 2: a file at byte 0"),
            ("v1.1 1\njpg 513 4\n", "not a multiple of tar block size (512)"),
            ("v1.1 1\njpg 512 -4\n", "`-4`, expected a number"),
            ("v1.1 1\njpg x 4\n", "`x`, expected a number"),
        ] {
            let error = read(text).err().unwrap().to_string();
            assert!(error.contains(wanted), "{error}, not {wanted}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(of_index("/nowhere").is_err() && of_archive("/nowhere").is_err());
    }
}
