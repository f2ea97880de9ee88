//! Lists the kernels: every file in `kernels/`, with its text.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("kernels");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder of kernels")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let (mut headers, mut sources) = (String::new(), String::new());
    for file in files {
        let (Some(name), Some(stem)) = (file.file_name(), file.file_stem()) else { continue };
        let (name, stem) = (name.to_string_lossy(), stem.to_string_lossy());
        let text = format!("include_str!({:?})", file.display().to_string());
        let _ = match file.extension().and_then(|extension| extension.to_str()) {
            Some("cuh") => write!(headers, "({name:?}, {text}), "),
            Some("cu") => write!(sources, "Source {{ name: {stem:?}, text: {text} }}, "),
            _ => Ok(()),
        };
    }
    let list = format!(
        "/// What kernels include.\nconst HEADERS: &[(&str, &str)] = &[{headers}];\n\n\
         /// Every kernel file, sorted by name.\npub const SOURCES: &[Source] = &[{sources}];\n"
    );
    let to = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join("kernels.rs");
    fs::write(to, list).expect("the list of kernels");
}
