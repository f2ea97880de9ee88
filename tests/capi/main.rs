//! The C API as programs in C and C++ use it, built from nothing but `include/` and the library, under the sanitizers;
//! and the example in Rust.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../common/recorded.rs"]
mod recorded;
#[path = "../common/skips.rs"]
mod skips;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use recorded::{Folder, Recording, root};
use skips::{Needs, skip};

/// The library that cargo built for this test, or the one that `GESSO_PLUGIN` names.
fn library() -> PathBuf {
    let built = || std::env::current_exe().unwrap().with_file_name("libtriton_gesso.so");
    std::env::var_os("GESSO_PLUGIN").map_or_else(built, PathBuf::from)
}

/// What a program needs: the header, the library, pipelines and images, in a folder without anything else of the
/// project.
fn prepare(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("include/gesso.h", &std::fs::read(root().join("include/gesso.h")).unwrap());
    // No copy: a debug build takes hundreds of megabytes.
    std::os::unix::fs::symlink(library().canonicalize().unwrap(), folder.path("libtriton_gesso.so")).unwrap();
    let recording = Recording::open("pipelines");
    for name in ["classify", "classify_made_for_gpu", "passed_through", "two_outputs"] {
        folder.write(&format!("{name}.dali"), &recording.case(name).pipeline);
    }
    for (i, image) in recording.case("classify").inputs["IMAGE"].iter().enumerate() {
        folder.write(&format!("{i}.jpg"), &image.bytes);
    }
    folder.write("broken.jpg", b"\xff\xd8\xff\xe0 is no image");
    folder
}

/// Builds `source` in `folder`; `None` where there is no such compiler.
fn build(folder: &Folder, compiler: &str, standard: &str, source: &str) -> Option<PathBuf> {
    build_with(folder, compiler, &[standard], source)
}

fn build_with(folder: &Folder, compiler: &str, options: &[&str], source: &str) -> Option<PathBuf> {
    let program = folder.path("program");
    let mut command = Command::new(compiler);
    command.args(options).args(["-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-pthread"]);
    command.arg("-I").arg(folder.path("include")).arg(root().join(source));
    command.arg(folder.path("libtriton_gesso.so")).arg("-o").arg(&program);
    let Ok(output) = command.output() else {
        skip(Needs::Tool, format_args!("no {compiler} here"));
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

fn run(folder: &Folder, program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.current_dir(folder.path("")).env("LD_LIBRARY_PATH", folder.path("")).args(arguments);
    command.output().unwrap()
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn promises_are_kept_whatever_the_caller_does() {
    let folder = prepare("contract");
    let Some(program) = build(&folder, "cc", "-std=c11", "tests/capi/contract.c") else { return };
    let files = ["classify.dali", "classify_made_for_gpu.dali", "passed_through.dali", "0.jpg"];
    let output = run(&folder, &program, &files);
    let (out, errors) = texts(&output);
    assert!(output.status.success(), "{out}{errors}");
    assert!(out.contains("passed, 0 failed"), "{out}");
}

/// The header of another version: where `gesso_input` has no `layout` yet, or where every struct has something more.
fn other_header(older: bool) -> String {
    let header = std::fs::read_to_string(root().join("include/gesso.h")).unwrap();
    let (mut made, mut in_struct) = (Vec::new(), false);
    for line in header.lines() {
        in_struct = line == "typedef struct {" || in_struct && !line.starts_with('}');
        if older && in_struct && line == "  const char *layout;" && made.last() == Some(&LAST_OF_INPUT) {
            continue;
        }
        if !older && line.starts_with("} gesso_") && !is_enum(line) {
            made.push("  int64_t later[3];");
        }
        made.push(line);
    }
    made.join("\n") + "\n"
}

/// The line in front of the field that the older header lacks.
const LAST_OF_INPUT: &str = "  // is refused.";

fn is_enum(end: &str) -> bool {
    ["status", "argument_kind", "device", "dtype"].iter().any(|name| end == format!("}} gesso_{name};"))
}

#[test]
fn programs_of_other_versions_run() {
    for (name, define) in [("older", "-DOLDER"), ("newer", "-DNEWER")] {
        let folder = prepare(name);
        let header = other_header(name == "older");
        assert_eq!(header.contains("int64_t later[3];"), name == "newer");
        assert_ne!(header, std::fs::read_to_string(root().join("include/gesso.h")).unwrap());
        folder.write("include/gesso.h", header.as_bytes());
        let Some(program) = build_with(&folder, "cc", &["-std=c11", define], "tests/capi/versions.c") else {
            return;
        };
        let (out, errors) = texts(&run(&folder, &program, &[]));
        assert!(out.contains("as promised"), "{name}: {out}{errors}");
    }
}

#[test]
fn functions_of_a_program_are_operators() {
    let folder = prepare("callbacks");
    let Some(program) = build(&folder, "cc", "-std=c11", "tests/capi/callbacks.c") else { return };
    let (out, errors) = texts(&run(&folder, &program, &[]));
    assert!(out.contains("as promised"), "{out}{errors}");
}

#[test]
fn the_c_example_writes_what_dali_answered() {
    let folder = prepare("c");
    let Some(program) = build(&folder, "cc", "-std=c99", "examples/c/jpeg_to_npy.c") else { return };
    let output = run(&folder, &program, &["classify.dali", "out", "0.jpg", "1.jpg", "2.jpg"]);
    assert!(output.status.success(), "{:?}", texts(&output));
    let case = Recording::open("pipelines").case("classify");
    for (i, expected) in case.outputs[0].iter().enumerate() {
        let file = std::fs::read(folder.path(&format!("out.{i}.npy"))).unwrap();
        let header = &file[..file.len() - expected.bytes.len()];
        let shape: String = expected.shape.iter().map(|extent| format!("{extent},")).collect();
        let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
        assert!(String::from_utf8_lossy(header).contains(&dictionary) && header.len().is_multiple_of(64));
        let far = expected.farthest(&file[header.len()..]);
        assert!(far <= case.tol, "{far} from DALI's answer");
    }
    let output = run(&folder, &program, &["classify.dali", "again", "0.jpg", "broken.jpg"]);
    let (out, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(out.contains("0.jpg -> again.0.npy") && errors.starts_with("broken.jpg: "), "{out}{errors}");
    let (_, errors) = texts(&run(&folder, &program, &["0.jpg", "again", "0.jpg"]));
    assert!(errors.contains("loading the pipeline: status 4: not a serialized DALI pipeline"), "{errors}");
}

#[test]
fn the_cpp_example_shows_statistics() {
    let folder = prepare("cpp");
    let Some(program) = build(&folder, "c++", "-std=c++17", "examples/cpp/statistics.cpp") else { return };
    let output = run(&folder, &program, &["two_outputs.dali", "0.jpg", "broken.jpg", "1.jpg"]);
    let (out, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 4, "{out}");
    assert!(lines[0].starts_with("0.jpg IMAGE_OUT [48, 56, 3] HWC uint8 min "), "{out}");
    assert!(lines[3].starts_with("1.jpg PIXELS [3, 48, 56] CHW float32 min -"), "{out}");
    assert!(errors.starts_with("broken.jpg: ") && errors.lines().count() == 1, "{errors}");
}

#[test]
fn the_rust_example_shows_what_comes_out() {
    let folder = prepare("rust");
    let program = std::env::current_exe().unwrap().parent().unwrap().join("../examples/run_pipeline");
    if !program.exists() {
        skip(
            Needs::Tool,
            format_args!("`{}` is not built: cargo builds it when it builds all tests", program.display()),
        );
        return;
    }
    let output = run(&folder, &program, &["classify.dali", "0.jpg", "broken.jpg"]);
    let (out, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        out.starts_with("0.jpg PIXELS float32 [3, 64, 64] CHW\n") && out.contains("Resize took "),
        "{out}"
    );
    assert!(errors.starts_with("broken.jpg: "), "{errors}");
}
