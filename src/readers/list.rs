//! Lists of files: in folders whose order gives the labels, in a text file, or as they are given. It must not know what
//! is in the files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::pattern::Filter;
use super::pieces::text;
use super::stored::Stored;
use crate::error::{Error, Result};
use crate::limits;

/// A file and its label.
pub(super) type Labelled = (PathBuf, i32);

/// The files of the folders of `root` that are wanted, as paths below it; the label is the number of the folder, in
/// order of their names.
pub(super) fn in_folders(root: &Path, files: &Filter, folders: Option<&Filter>) -> Result<Vec<Labelled>> {
    let mut found = Vec::new();
    if let Some(stored) = Stored::at(root)? {
        return in_stored_folders(&stored.list()?, files, folders);
    }
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

/// The same in a store, whose folders are parts of `names`, which are sorted.
fn in_stored_folders(names: &[String], files: &Filter, folders: Option<&Filter>) -> Result<Vec<Labelled>> {
    let mut by_folder: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (folder, name) in names.iter().filter_map(|name| name.split_once('/')) {
        let inside = by_folder.entry(folder).or_default();
        // What is deeper below makes a folder, too.
        inside.extend(Some(name).filter(|name| !name.contains('/')));
    }
    let wanted = by_folder.into_iter().filter(|(name, _)| folders.is_none_or(|filter| filter.takes(name)));
    let mut found = Vec::new();
    for (label, (folder, names)) in (0..).zip(wanted) {
        let names = names.into_iter().filter(|name| files.takes(name));
        found.extend(names.map(|name| (Path::new(folder).join(name), label)));
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
    match Stored::at(root)? {
        None => add_below(root, files, 0, &mut found)?,
        Some(stored) => {
            let names = stored.list()?.into_iter();
            let wanted = names.filter(|name| files.takes(name.rsplit('/').next().unwrap_or_default()));
            found.extend(wanted.map(|name| root.join(name).display().to_string()));
            check_count(found.len())?;
        }
    }
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
    let text = text(&list.display().to_string())?;
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
        let files = Filter::new(["*.npy".to_owned()], true).unwrap();
        let names = ["a.npy", "b/0.npy", "b/c/1.npy"].map(|name| root.join(name).display().to_string());
        assert_eq!(below(&root, &files).unwrap(), names);
        assert!(below(Path::new("/nowhere"), &files).unwrap().is_empty());
        std::os::unix::fs::symlink(&root, root.join("b/back")).unwrap();
        // The system follows some links only.
        assert!(below(&root, &files).is_ok_and(|found| found.len() > 3) || below(&root, &files).is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
