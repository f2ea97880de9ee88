//! Holds that structs of kernels are declared once, in Rust: their text in C++ is fresh, and no file has another by
//! hand.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gesso::ops;

use crate::root;

/// Kernels whose structs still stand twice, with `CHECK_LAYOUT` in their file.
const BY_HAND: &[&str] = &[
    "exact_across",
    "exact_copy",
    "exact_down",
    "jpeg_dc",
    "jpeg_decode",
    "jpeg_guess",
    "jpeg_link",
    "jpeg_pairs",
    "jpeg_pixels",
    "jpeg_planes",
    "jpeg_resolve",
    "jpeg_upsample",
    "resample",
    "resample_weights",
];

const HEAD: &str = "// Made from the structs in Rust by `GESSO_UPDATE=1 cargo test --test project`; do not edit.\n#pragma once\n\n";

fn folder() -> PathBuf {
    root().join("kernels/layouts")
}

/// The text of each kernel file's structs.
fn layouts() -> BTreeMap<&'static str, String> {
    let mut found = BTreeMap::new();
    for spec in ops::kernels() {
        let Some(layout) = spec.layout() else { continue };
        let text = format!("{HEAD}{layout}");
        let other = found.insert(spec.source(), text.clone());
        assert!(other.is_none_or(|other| other == text), "two layouts of `{}`", spec.source());
    }
    found
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

#[test]
fn no_kernel_declares_its_rows_again() {
    let wanted = layouts();
    for source in gesso::gpu::SOURCES {
        let (name, text) = (source.name, source.text);
        let by_hand = BY_HAND.contains(&name);
        assert_eq!(!by_hand, wanted.contains_key(name), "`{name}`: is it by hand, or declared in Rust?");
        if !by_hand {
            assert!(
                text.contains(&format!("#include \"layouts/{name}.cuh\"")),
                "`{name}` does not include its structs"
            );
            for declared in ["struct Row", "struct Params"] {
                assert!(!text.contains(declared), "`{name}` has a `{declared}` by hand");
            }
        }
    }
}
