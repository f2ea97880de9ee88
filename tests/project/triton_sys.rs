//! `crates/plugin/src/triton/sys.rs` is what bindgen makes of `include/triton.h` and `include/triton_newer.h`. This
//! test makes it again and compares; with `GESSO_BLESS=1` in the environment it writes the file instead.

use std::path::Path;
use std::process::Command;

use crate::root;
use crate::skips::{Needs, skip};

/// Each header and the struct of function pointers that its functions become. The functions of `triton.h` must all be
/// there; each of `triton_newer.h` may be missing.
const TABLES: [(&str, &str, bool); 2] = [("triton.h", "Required", true), ("triton_newer.h", "Newer", false)];

const HEADER: &str = "\
//! Triton's C API as Rust types and two tables of functions that are looked up at run time. Made by bindgen from
//! `include/triton.h` and `include/triton_newer.h`: edit those, then run `GESSO_BLESS=1 cargo test --test project`.
";

/// The oldest Rust with edition 2024.
const RUST: &str = "1.85";

/// Where headers of the language itself are, which a libclang without its own finds beside the C compiler.
fn language_headers() -> Vec<String> {
    let Ok(output) = Command::new("cc").arg("-print-file-name=include").output() else { return Vec::new() };
    vec!["-idirafter".to_owned(), String::from_utf8_lossy(&output.stdout).trim().to_owned()]
}

fn generate(root: &Path) -> Result<String, bindgen::BindgenError> {
    let mut text = String::from(HEADER);
    for (header, table, require_all) in TABLES {
        let file = root.join("include").join(header);
        let bindings = bindgen::builder()
            .header(file.display().to_string())
            .clang_args(language_headers())
            .allowlist_file(format!(".*/{}", header.replace('.', r"\.")))
            .allowlist_recursively(false)
            .dynamic_library_name(table)
            .dynamic_link_require_all(require_all)
            .default_enum_style(bindgen::EnumVariation::NewType { is_bitfield: false, is_global: false })
            .prepend_enum_name(false)
            .wrap_unsafe_ops(true)
            .size_t_is_usize(true)
            .layout_tests(false)
            .disable_header_comment()
            .rust_target(RUST.parse().unwrap())
            .rust_edition(bindgen::RustEdition::Edition2024)
            .formatter(bindgen::Formatter::Rustfmt)
            .rustfmt_configuration_file(Some(root.join("rustfmt.toml")))
            .generate()?;
        text.push('\n');
        text.push_str(&bindings.to_string());
    }
    Ok(text)
}

#[test]
fn sys_is_made_from_the_headers() {
    let root = root();
    // bindgen panics where it finds no libclang.
    let made = match std::panic::catch_unwind(|| generate(root)) {
        Ok(made) => made.unwrap(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map_or("unknown", String::as_str);
            assert!(text.contains("libclang"), "{text}");
            skip(Needs::Tool, format_args!("no libclang here: {text}"));
            return;
        }
    };
    let path = root.join("crates/plugin/src/triton/sys.rs");
    if std::env::var_os("GESSO_BLESS").is_some() {
        std::fs::write(&path, made).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == made,
        "`crates/plugin/src/triton/sys.rs` is stale: run `GESSO_BLESS=1 cargo test --test project`"
    );
}
