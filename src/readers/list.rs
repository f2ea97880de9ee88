//! Lists of files: in folders whose order gives the labels, in a text file, or as they are given. It must not know what
//! is in the files.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::limits;

/// A file and its label.
pub(super) type Labelled = (PathBuf, i32);

/// Which names are wanted.
pub(super) struct Filter {
    pub(super) patterns: Vec<String>,
    pub(super) is_case_sensitive: bool,
}

impl Filter {
    fn takes(&self, name: &str) -> bool {
        let folded = |text: &str| if self.is_case_sensitive { text.to_owned() } else { text.to_lowercase() };
        let name = folded(name);
        self.patterns.iter().any(|pattern| matches(folded(pattern).as_bytes(), name.as_bytes()))
    }
}

/// Whether `name` is as `pattern` says: `*` stands for anything, `?` for one byte, `[a-z]` for one of these.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Behind the last star, and where in the name it ended.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(b'?') => Some(p + 1),
            Some(b'[') => one_of(pattern, p, name[n]),
            Some(&byte) if byte == name[n] => Some(p + 1),
            _ => None,
        };
        (p, n) = match (step, star) {
            (Some(next), _) => (next, n + 1),
            (None, Some((behind, taken))) => {
                star = Some((behind, taken + 1));
                (behind, taken + 1)
            }
            (None, None) => return false,
        };
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Behind the class that begins at `start`, if `byte` is in it.
fn one_of(pattern: &[u8], start: usize, byte: u8) -> Option<usize> {
    let body = pattern.get(start + 1..)?;
    let negated = matches!(body.first(), Some(b'!' | b'^'));
    let body = if negated { &body[1..] } else { body };
    let end = body.iter().skip(1).position(|&b| b == b']')? + 1;
    let (mut i, mut is_in) = (0, false);
    while i < end {
        let (low, high, length) = match body.get(i + 1..i + 3) {
            Some([b'-', high]) if i + 2 < end => (body[i], *high, 3),
            _ => (body[i], body[i], 1),
        };
        is_in |= (low..=high).contains(&byte);
        i += length;
    }
    (is_in != negated).then_some(start + 1 + usize::from(negated) + end + 1)
}

/// The files of the folders of `root` that are wanted, as paths below it; the label is the number of the folder, in
/// order of their names.
pub(super) fn in_folders(root: &Path, files: &Filter, folders: Option<&Filter>) -> Result<Vec<Labelled>> {
    let mut found = Vec::new();
    let wanted =
        names(root, true)?.into_iter().filter(|name| folders.is_none_or(|filter| filter.takes(name)));
    for (label, folder) in (0..).zip(wanted) {
        let folder = Path::new(&folder);
        for name in names(&root.join(folder), false)?.into_iter().filter(|name| files.takes(name)) {
            found.push((folder.join(name), label));
        }
        check_count(found.len())?;
    }
    Ok(found)
}

/// Sorted names of what is in a folder: its folders, or its files.
pub(super) fn names(folder: &Path, is_folder: bool) -> Result<Vec<String>> {
    let failed =
        |error: std::io::Error| Error::not_found(format!("the folder `{}`: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // What a link points at counts.
        let metadata = std::fs::metadata(entry.path()).map_err(failed)?;
        if metadata.is_dir() == is_folder
            && let Ok(name) = entry.file_name().into_string()
        {
            found.push(name);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The files below `root` that are wanted, sorted by their paths. A folder that is not there has none.
///
/// # Errors
/// Folders that are too deep, too many files, a name that is no text.
pub(super) fn below(root: &Path, files: &Filter) -> Result<Vec<String>> {
    let mut found = Vec::new();
    add_below(root, files, 0, &mut found)?;
    found.sort_unstable();
    Ok(found)
}

fn add_below(folder: &Path, files: &Filter, depth: usize, found: &mut Vec<String>) -> Result<()> {
    if depth > limits::MAX_FOLDER_DEPTH {
        let (folder, most) = (folder.display(), limits::MAX_FOLDER_DEPTH);
        return Err(Error::invalid(format!("the folder `{folder}` is more than {most} folders deep")));
    }
    // One that cannot be read has no files.
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            add_below(&path, files, depth + 1, found)?;
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).zip(path.to_str());
        let (name, path) = name.ok_or_else(|| {
            Error::unsupported(format!("the name `{}` is no text, expected UTF-8", path.display()))
        })?;
        if files.takes(name) {
            found.push(path.to_owned());
            check_count(found.len())?;
        }
    }
    Ok(())
}

/// Each line `path label` of a text file, with the path as it stands there.
pub(super) fn of_list(list: &Path) -> Result<Vec<Labelled>> {
    let text = std::fs::read_to_string(list)
        .map_err(|error| Error::not_found(format!("the list `{}`: {error}", list.display())))?;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let parsed =
            line.trim().rsplit_once(' ').and_then(|(name, label)| Some((name.trim(), label.parse().ok()?)));
        let (name, label) = parsed.ok_or_else(|| {
            Error::invalid(format!("line {} of `{}`: expected `path label`", number + 1, list.display()))
        })?;
        found.push((name.into(), label));
    }
    check_count(found.len())?;
    Ok(found)
}

/// Fails for more than a data set may have.
pub(super) fn check_count(count: usize) -> Result<()> {
    match count <= limits::MAX_DATASET_SAMPLES {
        true => Ok(()),
        false => Err(Error::invalid(format!("more than {} files", limits::MAX_DATASET_SAMPLES))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_path_and_a_label() {
        let path = std::env::temp_dir().join(format!("gesso-list-{}", std::process::id()));
        std::fs::write(&path, "a b.jpg 3\n\nc.jpg -1\n").unwrap();
        let found = of_list(&path).unwrap();
        assert_eq!(found, [("a b.jpg".into(), 3), ("c.jpg".into(), -1)]);
        for text in ["a.jpg", "a.jpg x", "a.jpg 99999999999"] {
            std::fs::write(&path, format!("a.jpg 1\n{text}\n")).unwrap();
            let error = of_list(&path).err().unwrap().to_string();
            assert!(error.contains("line 2 of") && error.contains("expected `path label`"), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(of_list(&path).is_err());
    }

    #[test]
    fn files_below_a_folder() {
        let root = std::env::temp_dir().join(format!("gesso-below-{}", std::process::id()));
        std::fs::create_dir_all(root.join("b/c")).unwrap();
        for name in ["b/c/1.npy", "a.npy", "b/0.npy", "b/x.txt"] {
            std::fs::write(root.join(name), b"").unwrap();
        }
        let files = Filter { patterns: vec!["*.npy".to_owned()], is_case_sensitive: true };
        let names = ["a.npy", "b/0.npy", "b/c/1.npy"].map(|name| root.join(name).display().to_string());
        assert_eq!(below(&root, &files).unwrap(), names);
        assert!(below(Path::new("/nowhere"), &files).unwrap().is_empty());
        std::os::unix::fs::symlink(&root, root.join("b/back")).unwrap();
        // The system follows some links only.
        assert!(below(&root, &files).is_ok_and(|found| found.len() > 3) || below(&root, &files).is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn patterns() {
        let holds = |pattern: &str, name: &str| matches(pattern.as_bytes(), name.as_bytes());
        for (pattern, name) in [
            ("*.jpg", "a.jpg"),
            ("a?c", "abc"),
            ("*", ""),
            ("[a-c]x*", "bx1"),
            ("[!a]b", "cb"),
            ("a*b*c", "aXbYbZc"),
        ] {
            assert!(holds(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.jpg", "a.jpeg"), ("a?c", "ac"), ("[a-c]x", "dx"), ("[!a]b", "ab"), ("[a", "a"), ("", "a")]
        {
            assert!(!holds(pattern, name), "{pattern} {name}");
        }
    }
}
