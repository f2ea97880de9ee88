//! Holds the arrows of ARCHITECTURE.md: which module may use which.

use std::path::{Path, PathBuf};

use gesso::ops::OPS;

use crate::root;

/// Modules from the bottom up; each may use those on the lines before it and itself, but not its neighbours on one
/// line.
const LAYERS: [&[&str]; 17] = [
    &["faults", "limits", "sync"],
    &["error"],
    &["lanes", "threads", "deadline"],
    &["memory"],
    &["tensor"],
    &["cpu", "gpu"],
    &["coded_video", "operator"],
    &["ops", "source"],
    &["readers"],
    &["graph"],
    &["executor"],
    &["pipeline"],
    &["capi"],
    // The plugin's own.
    &["fetch"],
    &["config"],
    &["record"],
    &["triton"],
];

/// Where the modules of [`LAYERS`] are. What the packages use of one another, cargo holds.
const ROOTS: [&str; 2] = ["src", "crates/plugin/src"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The files of the engine and of the plugin, each with its path below its package's sources.
fn layered() -> Vec<(PathBuf, PathBuf)> {
    let mut found = Vec::new();
    for folder in ROOTS.map(|folder| root().join(folder)) {
        let mut files = Vec::new();
        sources(&folder, &mut files);
        found.extend(files.into_iter().map(|file| (file.strip_prefix(&folder).unwrap().to_owned(), file)));
    }
    found
}

fn level(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

#[test]
fn modules_use_only_what_lies_below_them() {
    let mut wrong = Vec::new();
    for (relative, file) in layered() {
        let first = relative.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let module = first.trim_end_matches(".rs");
        // Tests may look at the whole from inside of a part.
        if module == "lib" || relative.ends_with("tests.rs") {
            continue;
        }
        let own = level(module).unwrap_or_else(|| panic!("module `{module}` has no layer"));
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, used) in used(&text) {
            if used != module && level(&used).is_some_and(|other| other >= own) {
                wrong.push(format!("{}:{number}: uses `{used}`", relative.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Lines, and the modules of the crate that they name: `crate::gpu::Gpu`, and each of `crate::{cpu, gpu::Gpu}`.
fn used(text: &str) -> Vec<(usize, String)> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let word = |text: &str| text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let number = 1 + code[..at].matches('\n').count();
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.push((number, word(rest)));
            continue;
        };
        let mut depth = 0;
        let ends = |c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth < 0
        };
        let group = &group[..group.find(ends).unwrap_or(group.len())];
        let mut depth = 0;
        let separates = |c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0 && c == ','
        };
        found.extend(group.split(separates).map(|path| (number, word(path.trim_start()))));
    }
    found
}

#[test]
fn modules_in_braces_count() {
    let text = "use crate::error::Error;\nuse crate::{\n    cpu::{self, npy},\n    gpu, // crate::ops\n};\nlet x = crate::graph::y();";
    let found = used(text);
    let expected = [(1, "error"), (2, "cpu"), (2, "gpu"), (6, "graph")];
    let named = |(number, name): &(usize, String)| (*number, name.clone());
    let found: Vec<_> = found.iter().filter(|(_, name)| !name.is_empty()).map(named).collect();
    assert_eq!(found, expected.map(|(number, name)| (number, name.to_owned())));
}

#[test]
fn every_file_says_what_it_owns() {
    let mut files = Vec::new();
    for folder in ["src", "crates", "tests"] {
        sources(&root().join(folder), &mut files);
    }
    let silent: Vec<_> = files
        .into_iter()
        .filter(|file| {
            !file.ends_with("sys.rs") && !std::fs::read_to_string(file).unwrap().starts_with("//!")
        })
        .collect();
    assert!(silent.is_empty(), "no `//!` at the top of {silent:?}");
}

#[test]
fn unsafe_code_stays_at_the_boundaries() {
    // The command line is no layer.
    let mut own = Vec::new();
    sources(&root().join("crates/cli/src"), &mut own);
    let command_line = own.into_iter().map(|file| (PathBuf::from(file.file_name().unwrap()), file));
    for (relative, file) in layered().into_iter().chain(command_line) {
        // Boundaries to C, of which `memory` only declares what is unsafe to call; and intrinsics behind safe
        // functions, in `memory`, in two folders and in one file: what decoding of JPEG, PNG and VP8 is made of must be
        // as fast as it can be.
        let boundaries = [
            "triton",
            "capi",
            "gpu",
            "memory",
            "cpu/decode/jpeg/handle.rs",
            "cpu/decode/jpeg/vector",
            "cpu/decode/png/staggered.rs",
            "cpu/video/ffmpeg/sys.rs",
            "cpu/video/vp8/vector",
            "readers/pattern.rs",
            "capi.rs",
        ];
        if boundaries.iter().any(|boundary| relative.starts_with(boundary)) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains("unsafe {") && !text.contains("unsafe fn"),
            "unsafe code in {}",
            relative.display()
        );
    }
}

#[test]
fn the_driver_stays_inside_of_its_module() {
    for (relative, file) in layered() {
        let text = std::fs::read_to_string(&file).unwrap();
        let names_it =
            text.lines().any(|line| line.split("//").next().unwrap_or_default().contains("cudarc"));
        assert!(relative.starts_with("gpu") || !names_it, "{} names cudarc", relative.display());
    }
}

/// What an operator is, its definition says; whoever asks for its name will forget the next one.
#[test]
fn operators_are_not_told_by_their_names() {
    let spellings = OPS.iter().flat_map(|op| op.spellings()).map(|spelling| spelling.schema);
    let quoted = |schema: String| match schema.rsplit_once("__") {
        Some((module, _)) => format!("\"{module}__"),
        None => format!("\"{schema}\""),
    };
    let names: Vec<String> = spellings.map(quoted).collect();
    for (relative, file) in layered() {
        let watched = ["graph", "executor", "executor.rs", "pipeline.rs", "operator"];
        let is_test =
            relative.components().any(|part| ["tests", "tests.rs"].iter().any(|t| part.as_os_str() == *t));
        if is_test || !watched.iter().any(|watched| relative.starts_with(watched)) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let line = line.trim_start();
            let named = names.iter().find(|name| line.contains(*name) && !line.starts_with("//"));
            assert!(named.is_none(), "{}:{}: {line}", relative.display(), number + 1);
        }
    }
}
