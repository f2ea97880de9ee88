//! `include/gesso.h` is what cbindgen makes of `src/capi`. This test makes it again and compares; with `GESSO_BLESS=1`
//! in the environment it writes the file instead.

use crate::root;

/// The files whose functions and types the header has, in its order.
const SOURCES: [&str; 13] = [
    "types.rs",
    "status.rs",
    "failure.rs",
    "pipeline.rs",
    "instance.rs",
    "stream.rs",
    "dataset.rs",
    "result.rs",
    "dlpack.rs",
    "operator.rs",
    "callback.rs",
    "store.rs",
    "library.rs",
];

#[test]
fn the_header_is_made_from_the_code() {
    let root = root();
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let builder = cbindgen::Builder::new().with_config(config);
    let builder =
        SOURCES.iter().fold(builder, |builder, file| builder.with_src(root.join("src/capi").join(file)));
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    // What Rust asks of a caller stands in the text already.
    let made = without_safety(&String::from_utf8(made).unwrap());
    let path = root.join("include/gesso.h");
    if std::env::var_os("GESSO_BLESS").is_some() {
        std::fs::write(&path, made).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(committed == made, "`include/gesso.h` is stale: run `GESSO_BLESS=1 cargo test --test project`");
}

/// The header without the sections that Rust's documentation calls `# Safety`, which begin there with a line of their
/// own.
fn without_safety(header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut skipping = false;
    for line in header.lines() {
        if line == "// # Safety" {
            skipping = true;
            if kept.last() == Some(&"//") {
                kept.pop();
            }
        }
        skipping &= line.starts_with("//");
        if !skipping {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}
