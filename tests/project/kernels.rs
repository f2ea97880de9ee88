//! Holds that structs and constants of kernels are declared once, in Rust: their text in C++ is fresh, and no file has
//! another by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gesso::gpu::SOURCES;
use gesso::ops;

use crate::root;

const HEAD: &str = "// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.\n#pragma once\n\n";

fn folder() -> PathBuf {
    root().join("kernels/layouts")
}

/// The text of each file in `kernels/layouts/`.
fn layouts() -> BTreeMap<&'static str, String> {
    let mut found = BTreeMap::new();
    for spec in ops::kernels() {
        let (name, text) = spec.layout();
        let text = format!("{HEAD}{text}");
        let other = found.insert(name, text.clone());
        assert!(other.is_none_or(|other| other == text), "two texts of layouts/{name}.cuh");
    }
    found
}

/// What `file` includes, directly or not, with itself.
fn included(file: &str) -> BTreeMap<String, String> {
    let (mut found, mut more) = (BTreeMap::new(), vec![file.to_owned()]);
    while let Some(name) = more.pop() {
        let text = std::fs::read_to_string(root().join("kernels").join(&name)).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'));
        let names: Vec<String> = names.map(str::to_owned).collect();
        if found.insert(name, text).is_none() {
            more.extend(names);
        }
    }
    found
}

/// Constants that a text in C++ declares, outside of functions and of templates.
fn constants(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let Some(declared) = line.strip_prefix("constexpr ") else { continue };
        for part in declared.split(" = ").filter_map(|part| part.split_whitespace().last()) {
            let is_name = part.starts_with(|c: char| c.is_ascii_uppercase());
            if is_name && part.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_') {
                found.insert(part.to_owned());
            }
        }
    }
    found
}

/// Files in Rust that name the kernels, with their neighbours, by the file of the kernels.
fn users(text_of: &BTreeMap<PathBuf, String>, source: &str) -> Vec<PathBuf> {
    let quoted = format!("\"{source}\"");
    let names = |text: &String| text.contains("KernelSpec::of::<") && text.contains(&quoted);
    text_of.iter().filter(|(_, text)| names(text)).map(|(path, _)| path.clone()).collect()
}

fn rust_files(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.insert(path, text);
        }
    }
}

/// `text` with the first fields of these names exchanged.
fn exchanged(text: &str, first: &str, second: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let place = |field: &str| lines.iter().position(|line| line.contains(&format!(" {field};"))).unwrap();
    let (first, second) = (place(first), place(second));
    let mut lines = lines;
    lines.swap(first, second);
    lines.join("\n") + "\n"
}

#[test]
fn structs_of_kernels_are_those_of_rust() {
    let wanted = layouts();
    if std::env::var_os("GESSO_UPDATE").is_some() {
        let _ = std::fs::remove_dir_all(folder());
        std::fs::create_dir_all(folder()).unwrap();
        for (name, text) in &wanted {
            std::fs::write(folder().join(format!("{name}.cuh")), text).unwrap();
        }
    }
    for (name, text) in &wanted {
        let file = std::fs::read_to_string(folder().join(format!("{name}.cuh"))).unwrap_or_default();
        assert!(
            file == *text,
            "kernels/layouts/{name}.cuh is not what the structs in Rust say: GESSO_UPDATE=1 cargo test --test project writes it"
        );
    }
    assert_eq!(std::fs::read_dir(folder()).unwrap().count(), wanted.len(), "a layout of no kernel");
}

/// The text says where each field is, not only how large a struct is.
#[test]
fn two_fields_of_one_size_that_change_places_are_seen() {
    let all = layouts();
    for (name, first, second) in [
        ("jpeg", "mcu_width", "mcu_height"),
        ("resample", "pitch", "step"),
        ("exact", "src_pitch", "dst_pitch"),
    ] {
        let text = all.get(name).unwrap();
        assert!(text.contains(&format!("{first};")), "layouts/{name}.cuh has no {first}");
        assert_ne!(exchanged(text, first, second), *text);
    }
}

#[test]
fn kernels_take_the_structs_that_rust_gives_them() {
    for spec in ops::kernels() {
        let (source, entry) = (spec.source(), spec.entry());
        let text =
            SOURCES.iter().find(|known| known.name == source).unwrap().text.replace("__restrict__ ", "");
        let [row, params] = spec.struct_names();
        let row = if text.contains(&format!("typedef {row} Row;")) { "Row" } else { row };
        let named = format!(" {entry}(const {row} *rows, uint32_t count, {params}");
        let unused = format!(" {entry}(const {row} *, uint32_t, {params}");
        assert!(
            text.contains(&named) || text.contains(&unused),
            "kernels/{source}.cu has no `{}`",
            named.trim_start()
        );
        let header = format!("layouts/{}.cuh", spec.layout().0);
        assert!(
            included(&format!("{source}.cu")).contains_key(&header),
            "`{source}` does not include {header}"
        );
    }
}

/// A struct or a constant that a kernel has from Rust stands nowhere else in what it includes, and a constant that it
/// has of its own is none of the code that launches it.
#[test]
fn what_kernels_share_with_rust_is_declared_once() {
    let mut rust = BTreeMap::new();
    rust_files(&root().join("src"), &mut rust);
    let mut twice = Vec::new();
    for source in SOURCES {
        let files = included(&format!("{}.cu", source.name));
        let by_hand = files.iter().filter(|(name, _)| !name.starts_with("layouts/"));
        let by_hand: BTreeMap<&str, &str> =
            by_hand.map(|(name, text)| (name.as_str(), text.as_str())).collect();
        for (name, text) in &by_hand {
            for declared in ["struct Row {", "struct Params {", "enum Border", "CHECK_LAYOUT", "ROW_BYTES"] {
                assert!(!text.contains(declared), "kernels/{name} has `{declared}` by hand");
            }
        }
        let own: BTreeSet<String> = by_hand.values().flat_map(|text| constants(text)).collect();
        for file in users(&rust, source.name) {
            for name in &own {
                if rust[&file].contains(&format!("const {name}:")) {
                    twice.push(format!("{name} of kernels/{}.cu and of {}", source.name, file.display()));
                }
            }
        }
    }
    assert!(twice.is_empty(), "declare it with device_constants!: {twice:#?}");
}

#[test]
fn a_constant_is_found_in_a_kernel() {
    let text = "constexpr uint32_t A = 1, B_2 = A + 1;\n  constexpr int C = 3;\nconstexpr float D = 4.0f;\n";
    assert_eq!(constants(text), ["A", "B_2", "D"].map(str::to_owned).into());
}
