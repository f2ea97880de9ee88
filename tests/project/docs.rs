//! What the pages claim of the code: errors that they quote exist, files that they link to or name exist, and
//! configurations are read.

use std::path::{Path, PathBuf};

use crate::root;

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

/// Those under `docs/`, those of the root, and the guides to tests and benchmarks.
fn pages() -> Vec<(PathBuf, String)> {
    let mut found = vec![root().join("tests/README.md"), root().join("benches/README.md")];
    files(&root().join("docs"), "md", &mut found);
    for entry in std::fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
    found.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// All sources as one text in which strings that go on over lines are one.
fn sources() -> String {
    let mut found = Vec::new();
    for (folder, extension) in [("src", "rs"), ("crates", "rs"), ("python/gesso", "py")] {
        files(&root().join(folder), extension, &mut found);
    }
    files(&root().join("python"), "py", &mut found);
    let text: String = found.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let mut joined = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("\\\n") {
        joined.push_str(before);
        rest = after.trim_start();
    }
    joined + rest
}

#[test]
fn every_quoted_error_is_one_of_the_code() {
    let page = std::fs::read_to_string(root().join("docs/guides/troubleshooting.md")).unwrap();
    let sources = sources();
    let quoted: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert!(quoted.len() > 20);
    for heading in quoted {
        let error = heading.trim_matches('`').trim();
        // Between the names and numbers, which differ.
        let pieces: Vec<&str> = error
            .split("...")
            .map(|piece| piece.trim_matches(|c: char| !c.is_alphanumeric()))
            .filter(|piece| piece.len() > 8)
            .collect();
        assert!(!pieces.is_empty(), "{heading}");
        for piece in pieces {
            assert!(sources.contains(piece), "no error of the code holds `{piece}`");
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    for (path, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", path.display());
            if heading.is_empty() {
                continue;
            }
            let plain = |line: &str| -> String {
                let kept = line.trim_start_matches('#').trim().to_lowercase();
                kept.chars()
                    .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                    .collect::<String>()
                    .replace(' ', "-")
            };
            let text = std::fs::read_to_string(&target).unwrap();
            let found = text.lines().any(|line| line.starts_with('#') && plain(line) == heading);
            assert!(found, "{}: no heading `{heading}` in {file}", path.display());
        }
    }
}

/// The recipes of `guides/training` have an index of their own.
#[test]
fn every_page_is_in_the_index() {
    let docs = root().join("docs");
    let index = std::fs::read_to_string(docs.join("README.md")).unwrap();
    let mut found = Vec::new();
    files(&docs, "md", &mut found);
    for path in found {
        let name = path.strip_prefix(&docs).unwrap().display().to_string();
        let is_elsewhere = name == "README.md" || name.starts_with("guides/training/");
        assert!(
            is_elsewhere || index.contains(&format!("]({name})")),
            "docs/README.md has no link to {name}"
        );
    }
}

/// Names between backticks that say a folder and a source file, `gpu/jpeg/share.rs` say. Paths may leave out their
/// first folders. The changelog speaks of files that have moved since, and `1` is a version of a model.
#[test]
fn every_named_source_file_exists() {
    let mut known = Vec::new();
    for folder in ["src", "crates", "kernels", "tests", "benches", "python", "scripts", "examples", "docs"] {
        for extension in ["rs", "cu", "cuh", "py", "c", "md"] {
            files(&root().join(folder), extension, &mut known);
        }
    }
    let mut checked = 0;
    for (path, text) in pages() {
        if path.ends_with("CHANGELOG.md") {
            continue;
        }
        for name in text.split('`').skip(1).step_by(2) {
            let is_source = [".rs", ".cu", ".cuh", ".py", ".md"].iter().any(|end| name.ends_with(end));
            let plain = name.chars().all(|c| c.is_alphanumeric() || "/_-.".contains(c));
            if !is_source || !plain || !name.contains('/') || name.contains("/1/") || name.starts_with("1/") {
                continue;
            }
            checked += 1;
            assert!(known.iter().any(|file| file.ends_with(name)), "{}: no file `{name}`", path.display());
        }
    }
    assert!(checked > 50, "only {checked} names were found");
}

/// So every build is one with the oldest Rust that `Cargo.toml` promises.
#[test]
fn the_oldest_rust_builds_it() {
    let value = |file: &str, key: &str| {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let line =
            text.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim_matches([' ', '=', '"']);
        line.to_owned()
    };
    let (promised, used) = (value("Cargo.toml", "rust-version"), value("rust-toolchain.toml", "channel"));
    assert_eq!(used, format!("{promised}.0"));
}

#[test]
fn configurations_are_read() {
    let page = std::fs::read_to_string(root().join("docs/guides/configuration.md")).unwrap();
    let blocks: Vec<&str> = page.split("```\n").skip(1).step_by(2).collect();
    assert!(blocks.len() > 4);
    for block in blocks {
        let fields =
            triton_gesso::config::pbtxt::parse(block).unwrap_or_else(|error| panic!("{error}:\n{block}"));
        let json = serde_json::Value::Object(triton_gesso::config::pbtxt::to_json(&fields)).to_string();
        triton_gesso::config::ModelConfig::parse(&json).unwrap().settings().unwrap();
    }
}
