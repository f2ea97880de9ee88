//! How many files a new operator and a new image format touch: as many as CONTRIBUTING.md says.

use std::path::Path;

use crate::root;

/// An operator with a kernel, as files and as pipelines call it.
const OPERATOR: [&str; 2] = ["coord_flip", "CoordFlip"];

/// Where files that make an operator may be.
const SOURCES: [&str; 6] =
    ["src", "crates", "kernels", "python/gesso", "tests", "docs/reference/operators.md"];

/// What names operators, but is not touched for one: DALI's own list, those whose outputs keep what is known of their
/// inputs, and the tests of kernels on the host, which are by kind.
const OTHERS: [&str; 4] = [
    "tests/project/dali-arguments.json",
    "python/gesso/_dynamic/metadata.py",
    "tests/project/counts.rs",
    "tests/kernels/test_elementwise_kernels.py",
];

/// Calls `seen` with the path of each file below `path`, from the project's folder on.
fn each_file(path: &Path, seen: &mut dyn FnMut(&Path)) {
    if path.is_file() {
        seen(path.strip_prefix(root().canonicalize().unwrap()).unwrap());
        return;
    }
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if !path.ends_with("__pycache__") && !path.ends_with(".pytest_cache") {
            each_file(&path, seen);
        }
    }
}

#[test]
fn an_operator_is_eight_files_five_of_them_its_own() {
    let mut found = Vec::new();
    for source in SOURCES {
        each_file(&root().join(source).canonicalize().unwrap(), &mut |path| {
            let name = path.to_str().unwrap();
            let text = std::fs::read_to_string(root().join(path)).unwrap_or_default();
            let is_named = OPERATOR.iter().any(|word| name.contains(word) || text.contains(word));
            if is_named && !OTHERS.contains(&name) {
                found.push(name.to_owned());
            }
        });
    }
    let (mut own, mut shared): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|name| name.contains(OPERATOR[0]));
    own.sort();
    shared.sort();
    assert_eq!(
        own,
        [
            "kernels/coord_flip.cu",
            "kernels/layouts/coord_flip.cuh",
            "src/ops/boxes/coord_flip.rs",
            "tests/conformance/cases/coord_flip.py",
            "tests/conformance/data/coord_flip.zip",
        ]
    );
    assert_eq!(
        shared,
        ["docs/reference/operators.md", "src/ops/boxes/mod.rs", "tests/conformance/draw_media.py"]
    );
}

/// Modules of formats are private to `src/cpu/decode`, so no other code names them.
#[test]
fn an_image_format_is_two_files_one_of_them_its_own() {
    let folder = root().join("src/cpu/decode").canonicalize().unwrap();
    let mut files = Vec::new();
    each_file(&folder, &mut |path| {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        files.push((path.strip_prefix("src/cpu/decode").unwrap().to_owned(), text));
    });
    let row = "const FORMAT: ImageFormat = ";
    let formats = files.iter().filter(|(_, text)| text.contains(row)).map(|(path, _)| {
        let path = if path.ends_with("mod.rs") { path.parent().unwrap() } else { path };
        path.file_stem().unwrap().to_str().unwrap().to_owned()
    });
    let formats: Vec<String> = formats.collect();
    assert!(formats.len() >= 10, "{formats:?}");
    for format in formats {
        let named = [format!("super::{format}::"), format!("mod {format};"), format!("use super::{format};")];
        let others = files.iter().filter(|(path, text)| {
            // A TIFF holds files of other formats.
            let is_own =
                path.starts_with(&format) || path.file_stem().is_some_and(|stem| stem == format.as_str());
            !is_own
                && !path.starts_with("tiff")
                && path != Path::new("tiff.rs")
                && named.iter().any(|word| text.contains(word))
        });
        let others: Vec<_> = others.map(|(path, _)| path.to_str().unwrap()).collect();
        assert_eq!(others, ["mod.rs"], "{format}");
    }
}
