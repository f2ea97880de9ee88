//! What comments hold themselves to: no line is wider than 120 columns, and files that they name exist.

use std::path::{Path, PathBuf};

use crate::root;

/// As `ruff.toml` says it for Python.
const WIDTH: usize = 120;

/// Sources by the end of their names, and scripts, which have none. Those of `kernels/layouts` are made from others.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in
        ["src", "crates", "include", "kernels", "tests", "benches", "examples", "python", "scripts", ".ci"]
    {
        walk(&root().join(folder), &mut found);
    }
    found
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "__pycache__", "corpus", "data", "layouts"].contains(&name.as_str()) {
                walk(&path, found);
            }
        } else if path.extension().is_none_or(|e| {
            ["rs", "cu", "cuh", "c", "h", "hpp", "cpp", "py", "sh", "toml"].iter().any(|known| e == *known)
        }) {
            found.push(path);
        }
    }
}

/// What begins a comment: in scripts and Python another mark than in Rust and C.
fn marks(path: &Path) -> &'static [&'static str] {
    match path.extension().and_then(|e| e.to_str()) {
        None | Some("py" | "sh" | "toml") => &["#"],
        _ => &["//", "/*", "* "],
    }
}

/// The text of a line from its comment on: a whole line, or what stands behind code.
fn comment<'l>(line: &'l str, marks: &[&str]) -> Option<&'l str> {
    let plain = line.trim_start();
    if marks.iter().any(|mark| plain.starts_with(mark)) {
        return Some(plain);
    }
    let at = line.find(if marks[0] == "#" { "  # " } else { "  // " }).or_else(|| line.find(" // "))?;
    // A mark in a text is none.
    line[..at].matches('"').count().is_multiple_of(2).then(|| &line[at..])
}

fn comments(read: &mut dyn FnMut(&Path, usize, &str, &str)) {
    for path in sources() {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for (i, line) in text.lines().enumerate() {
            if let Some(found) = comment(line, marks(&path)) {
                read(&path, i + 1, line, found);
            }
        }
    }
}

#[test]
fn comments_have_120_columns() {
    let mut wide = Vec::new();
    comments(&mut |path, number, line, _| {
        // Ruff looks at Python's.
        let is_wide = line.chars().count() > WIDTH && path.extension().is_none_or(|e| e != "py");
        if is_wide && !line.starts_with("#include") {
            wide.push(format!("{}:{number}", path.display()));
        }
    });
    assert!(wide.is_empty(), "these comments are wider than {WIDTH} columns:\n{}", wide.join("\n"));
}

/// A path needs a folder to be looked for, `gpu/jpeg/share.rs`; it may leave out its first ones. `1` is a version of a
/// model, and a word of capitals stands for any.
#[test]
fn files_that_comments_name_exist() {
    let mut known = Vec::new();
    let folders = [
        "src",
        "crates",
        "kernels",
        "tests",
        "benches",
        "python",
        "scripts",
        "examples",
        "docs",
        "model_repository",
    ];
    for folder in folders {
        walk_all(&root().join(folder), &mut known);
    }
    let (mut missing, mut checked) = (Vec::new(), 0);
    comments(&mut |path, number, _, text| {
        for word in text.split(|c: char| !c.is_alphanumeric() && !"/_-.".contains(c)) {
            let name = word.trim_end_matches('.');
            let is_source = [".rs", ".cu", ".cuh", ".py", ".md"].iter().any(|end| name.ends_with(end));
            let parts: Vec<&str> = name.split('/').collect();
            let is_any = |part: &&str| part.starts_with('.') || part.starts_with(|c: char| c.is_uppercase());
            if !is_source || parts.len() < 2 || parts.contains(&"1") || parts.iter().any(is_any) {
                continue;
            }
            checked += 1;
            if !name.starts_with('/') && !known.iter().any(|file| file.ends_with(name)) {
                missing.push(format!("{}:{number}: {name}", path.display()));
            }
        }
    });
    assert!(missing.is_empty(), "no such files:\n{}", missing.join("\n"));
    assert!(checked > 100, "only {checked} names were found");
}

fn walk_all(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk_all(&path, found) } else { found.push(path) }
    }
}
