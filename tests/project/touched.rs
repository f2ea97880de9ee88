//! What a new operator touches: few files, and those that CONTRIBUTING.md says. `BbFlip` stands for all.

use std::path::Path;

use crate::root;

/// The files of `BbFlip` alone, which come with it.
const NEW: [&str; 5] = [
    "kernels/bb_flip.cu",
    "kernels/layouts/bb_flip.cuh",
    "src/ops/boxes/bb_flip.rs",
    "tests/conformance/cases/bb_flip.py",
    "tests/conformance/data/bb_flip.zip",
];
/// Those with a line or a few for it.
const CHANGED: [&str; 5] = [
    "src/ops/bounded.rs",
    "src/ops/boxes/mod.rs",
    "src/ops/table.rs",
    "tests/conformance/draw_media.py",
    "tests/kernels/test_elementwise_kernels.py",
];
/// Another operator uses its checks, and what DALI has is read from DALI.
const OTHERS: [&str; 3] =
    ["src/ops/boxes/bbox_paste.rs", "tests/project/dali-arguments.json", "tests/project/touched.rs"];

fn naming(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // Inputs of fuzzers hold any names.
            if !path.ends_with("corpus") && !path.ends_with("__pycache__") {
                naming(&path, found);
            }
            continue;
        }
        let names_it = |text: &str| text.contains("BbFlip") || text.contains("bb_flip");
        let is_named = path.file_name().is_some_and(|name| names_it(&name.to_string_lossy()));
        if is_named || std::fs::read_to_string(&path).is_ok_and(|text| names_it(&text)) {
            found.push(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
        }
    }
}

#[test]
fn an_operator_is_in_few_files() {
    let mut found = Vec::new();
    for folder in ["src", "crates", "kernels", "tests", "scripts", "python/gesso"] {
        naming(&root().join(folder), &mut found);
    }
    found.sort_unstable();
    let mut expected = [&NEW[..], &CHANGED[..], &OTHERS[..]].concat();
    expected.sort_unstable();
    assert_eq!(found, expected, "files that name `BbFlip`");
    let guide = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    for file in [&NEW[..], &CHANGED[..]].concat() {
        assert!(guide.contains(&format!("`{file}`")), "CONTRIBUTING.md does not name `{file}`");
    }
}
