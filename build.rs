//! Lists the kernels: every file in `kernels/`, with its text.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("kernels");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder)? {
        files.push(entry?.path());
    }
    files.sort();
    let (mut headers, mut sources) = (String::new(), String::new());
    for file in files {
        let (Some(name), Some(stem)) = (file.file_name(), file.file_stem()) else { continue };
        let (name, stem) = (name.to_string_lossy(), stem.to_string_lossy());
        let text = format!("include_str!({:?})", file.display().to_string());
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("cuh") => write!(headers, "({name:?}, {text}), ")?,
            Some("cu") => write!(sources, "KernelSource {{ name: {stem:?}, text: {text} }}, ")?,
            _ => (),
        }
    }
    let list = format!(
        "/// What kernels include.\nconst HEADERS: &[(&str, &str)] = &[{headers}];\n\n\
         /// Every kernel file, sorted by name.\npub const SOURCES: &[KernelSource] = &[{sources}];\n"
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("kernels.rs"), list)?;
    Ok(())
}
