//! The program `gesso`: what it says of good and of broken files, that it never panics, and that what it writes is what
//! the library computes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod check;
mod many;
mod python;
mod readers;
#[path = "../common/recorded.rs"]
mod recorded;
mod videos;

use std::path::PathBuf;
use std::process::{Command, Output};

use recorded::{Folder, Recording, root};
use serde_json::Value;

fn gesso<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_gesso")).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("panicked"), "{errors}");
    assert!(output.status.code().is_some_and(|code| code < 3), "{:?}: {errors}", output.status);
    output
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", errors(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", errors(output)))
}

fn rand_augment() -> String {
    root().join("tests/cli/data/rand_augment.dali").display().to_string()
}

#[test]
fn every_recorded_pipeline_is_inspected_in_every_way() {
    let folder = Folder::new("inspect");
    for module in ["pipelines", "arithmetic", "slice"] {
        for case in Recording::open(module).cases {
            let path = folder.write("model.dali", &case.pipeline);
            let text = out(&gesso(&["inspect", &path]));
            assert!(
                text.contains("runs on the CPU") && text.contains("in the format of DALI "),
                "{}: {text}",
                case.name
            );
            for input in case.inputs.keys() {
                assert!(text.contains(input.as_str()), "{}: {text}", case.name);
            }
            let told = json(&gesso(&["inspect", "--json", &path]));
            assert_eq!(told["gesso"][0]["loads"], Value::Bool(true), "{}", case.name);
        }
    }
    let path =
        folder.write("model.dali", &Recording::open("pipelines").case("classify_made_for_gpu").pipeline);
    assert!(out(&gesso(&["inspect", "--plan", &path])).starts_with("step  operator"));
    assert!(out(&gesso(&["inspect", "--plan", "--device", "gpu", &path])).contains("mixed"));
    assert!(out(&gesso(&["inspect", "--dot", &path])).contains("n0 -> n1"));
    assert!(out(&gesso(&["inspect", "--svg", &path])).ends_with("</svg>\n"));
    assert!(!out(&gesso(&["inspect", &path])).contains('\u{1b}'), "colours without a terminal");
    assert!(out(&gesso(&["--color", "always", "inspect", &path])).contains('\u{1b}'));
}

#[test]
fn hundreds_of_operators_are_a_page() {
    let text = out(&gesso(&["inspect", &rand_augment()]));
    assert!(text.lines().count() < 60, "{text}");
    assert!(text.contains("choices 1, 2, each") && text.contains("14 alternatives, 13 conditions"), "{text}");
    assert!(text.contains("Constant, TensorSubscript, Rotate\n"), "{text}");
    let all = out(&gesso(&["inspect", "--all", &rand_augment()]));
    assert!(all.lines().count() > 352, "{all}");
    assert_eq!(
        json(&gesso(&["inspect", "--json", &rand_augment()]))["pipeline"]["operators"]
            .as_array()
            .unwrap()
            .len(),
        352
    );
    let drawn = out(&gesso(&["inspect", "--svg", &rand_augment()]));
    assert!(drawn.matches("<rect").count() < 30 && drawn.contains("1 of 14"), "{drawn}");
}

/// Also where an operator behind the choice in the file feeds it.
#[test]
fn every_line_of_a_picture_goes_down() {
    let folder = Folder::new("picture");
    for case in ["rand", "trivial"] {
        let path = folder.write("a.dali", &Recording::open("automatic").case(case).pipeline);
        let drawn = out(&gesso(&["inspect", "--svg", &path]));
        // `M x y C ... x y`
        for line in drawn.split("d=\"M").skip(1) {
            let line = line.split('"').next().unwrap();
            let numbers: Vec<i64> =
                line.replace('C', "").split(' ').map(|number| number.parse().unwrap()).collect();
            assert!(numbers[1] < numbers[7], "{case}: {line}");
        }
    }
}

#[test]
fn broken_files_are_one_clear_error() {
    let folder = Folder::new("broken");
    let whole = Recording::open("pipelines").case("classify").pipeline;
    let mut files =
        vec![Vec::new(), b"not a pipeline".to_vec(), vec![0xff; 4096], whole[..whole.len() / 2].to_vec()];
    for at in (0..whole.len()).step_by(23) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x15;
        files.push(bytes);
    }
    let image = folder.write("a.jpg", b"no image");
    for (number, bytes) in files.iter().enumerate() {
        let path = folder.write("broken.dali", bytes);
        let inspected = gesso(&["inspect", &path]);
        assert!(inspected.status.success() || errors(&inspected).starts_with("error: `"), "file {number}");
        for arguments in [
            &["inspect", "--svg", &path][..],
            &["run", &path, "--input", &image],
            &["inspect", "--plan", &path],
        ] {
            let output = gesso(arguments);
            assert!(output.status.success() || !errors(&output).is_empty() || !output.stdout.is_empty());
        }
    }
    let missing = errors(&gesso(&["inspect", "no such file.dali"]));
    assert!(missing.starts_with("error: cannot read `no such file.dali`"), "{missing}");
    let plan = errors(&gesso(&["inspect", "--plan", "--device", "gpu", &folder.write("empty.dali", b"")]));
    assert!(plan.contains("the pipeline file is empty"), "{plan}");
}

/// As numpy writes it.
fn npy(array: &recorded::Array) -> Vec<u8> {
    let code = match array.dtype.as_str() {
        "uint8" => "|u1",
        "bool" => "|b1",
        "int32" => "<i4",
        "int64" => "<i8",
        "float16" => "<f2",
        "float32" => "<f4",
        other => panic!("no code for {other}"),
    };
    let dims: Vec<String> = array.shape.iter().map(ToString::to_string).collect();
    let dims = if dims.len() == 1 { format!("{},", dims[0]) } else { dims.join(", ") };
    let mut text = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({dims}), }}");
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.as_bytes());
    file.extend(&array.bytes);
    file
}

/// The arguments that feed `case`, whose samples become files.
fn fed(folder: &Folder, case: &recorded::Case) -> Vec<String> {
    let mut arguments = Vec::new();
    for (name, samples) in &case.inputs {
        let paths: Vec<String> = samples
            .iter()
            .enumerate()
            .map(|(i, sample)| {
                let encoded = sample.dtype == "uint8" && sample.shape.len() == 1;
                let file = if encoded { format!("{name}{i}.jpg") } else { format!("{name}{i}.npy") };
                folder.write(&file, &if encoded { sample.bytes.clone() } else { npy(sample) })
            })
            .collect();
        arguments.extend(["--input".to_owned(), format!("{name}={}", paths.join(","))]);
    }
    arguments
}

#[test]
fn runs_write_what_dali_answered() {
    for case in Recording::open("pipelines").cases {
        let folder = Folder::new(&format!("run {}", case.name));
        let model = folder.write("model.dali", &case.pipeline);
        let into = folder.path("out").display().to_string();
        let mut arguments = vec!["run".to_owned(), model, "--json".to_owned(), "--out".to_owned(), into];
        arguments.extend(fed(&folder, &case));
        let ran = json(&gesso(&arguments));
        let written = ran["outputs"].as_array().unwrap();
        let expected: Vec<&recorded::Array> = case.outputs.iter().flatten().collect();
        assert_eq!(written.len(), expected.len(), "{}", case.name);
        for (written, expected) in written.iter().zip(expected) {
            let bytes = std::fs::read(written["file"].as_str().unwrap()).unwrap();
            let header = npy(expected).len() - expected.bytes.len();
            assert_eq!(bytes[..header], npy(expected)[..header], "{}: type and shape", case.name);
            let far = expected.farthest(&bytes[header..]);
            assert!(far <= case.tol.max(1e-6), "{}: {far} from DALI's answer", case.name);
        }
        let pictures = written.iter().filter(|written| !written["picture"].is_null()).count();
        assert!(pictures > 0 || case.name == "passed_through", "{}: {ran}", case.name);
    }
}

#[test]
fn one_broken_image_fails_alone() {
    let folder = Folder::new("one broken");
    let case = Recording::open("pipelines").case("classify");
    let model = folder.write("model.dali", &case.pipeline);
    let good = folder.write("good.jpg", &case.inputs["IMAGE"][0].bytes);
    let bad = folder.write("bad.jpg", &case.inputs["IMAGE"][0].bytes[..100]);
    let input = format!("{good},{bad},{good}");
    let into = folder.path("out").display().to_string();
    let output = gesso(&["run", &model, "--input", &input, "--out", &into, "--batch", "2"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("2 of 3 samples") && text.contains("failed: sample 1 (`"), "{text}");
    let names: Vec<bool> = (0..3)
        .map(|i| folder.path(&format!("out/PIXELS.{i}.{}.npy", ["good", "bad", "good"][i])).exists())
        .collect();
    assert_eq!(names, [true, false, true]);
}

#[test]
fn wrong_inputs_say_what_is_expected() {
    let folder = Folder::new("wrong inputs");
    let recording = Recording::open("pipelines");
    let model = folder.write("model.dali", &recording.case("region").pipeline);
    let image = folder.write("a.jpg", b"x");
    let said = |input: &[&str]| {
        let mut arguments = vec!["run", &model];
        input.iter().for_each(|input| arguments.extend(["--input", input]));
        let output = gesso(&arguments);
        assert_eq!(output.status.code(), Some(1));
        errors(&output)
    };
    assert!(said(&[]).contains("has no files: give them with `--input"), "{}", said(&[]));
    assert!(said(&["NO=a.jpg"]).contains("`NO=a.jpg` names no input of the pipeline, expected"));
    assert!(said(&["IMAGE=none.jpg"]).contains("cannot read `none.jpg`"));
    assert!(said(&["IMAGE=none/*.jpg"]).contains("`none/*.jpg` names no file"));
    // What a file holds is known when it is read: its sample fails.
    let broken = folder.write("a.npy", b"\x93NUMPY");
    let [image_file, anchor, shape] = ["IMAGE", "ANCHOR", "SHAPE"]
        .map(|name| format!("{name}={}", if name == "SHAPE" { &broken } else { &image }));
    let output = gesso(&["run", &model, "--input", &image_file, "--input", &anchor, "--input", &shape]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains("takes float32 of 1 dimensions: give it an array of numpy")
            || text.contains("not an array of numpy"),
        "{text}"
    );
}

#[test]
fn benchmarks_have_a_row_for_each_setting() {
    let folder = Folder::new("bench");
    let case = Recording::open("pipelines").case("classify");
    let model = folder.write("model.dali", &case.pipeline);
    let image = folder.write("a.jpg", &case.inputs["IMAGE"][0].bytes);
    let arguments = [
        "bench",
        &model,
        "--input",
        &image,
        "--batch",
        "1,4",
        "--threads",
        "1,2",
        "--seconds",
        "0",
        "--json",
    ];
    let figures = json(&gesso(&arguments));
    let settings: Vec<_> =
        figures.as_array().unwrap().iter().map(|f| (f["threads"].as_u64(), f["batch"].as_u64())).collect();
    assert_eq!(settings, [(Some(1), Some(1)), (Some(1), Some(4)), (Some(2), Some(1)), (Some(2), Some(4))]);
    assert!(figures[0]["p50_ms"].as_f64().unwrap() > 0.0);
    let text = out(&gesso(&arguments[..arguments.len() - 1]));
    assert_eq!(text.lines().count(), 6, "{text}");
}

#[test]
fn the_plugin_goes_where_a_server_looks() {
    let folder = Folder::new("install");
    let plugin = folder.write("plugin.so", b"...TRITONBACKEND_ModelInstanceExecute...Gesso is loaded...");
    let installed = |arguments: &[&str]| gesso(&[&["install", "--plugin", &plugin], arguments].concat());
    let tree = |path: &str| folder.path(path);
    let server = tree("tritonserver").display().to_string();

    assert!(errors(&installed(&[&server])).contains("is not a directory"));
    std::fs::create_dir_all(tree("tritonserver/backends/dali")).unwrap();
    std::fs::write(tree("tritonserver/backends/dali/libtriton_dali.so"), b"DALI's own").unwrap();
    let text = out(&installed(&[&server]));
    assert!(text.contains("backends/gesso/libtriton_gesso.so`"), "{text}");
    assert!(
        text.contains(&format!("start the server with `--backend-directory {server}/backends`: by itself")),
        "{text}"
    );
    assert!(out(&installed(&[&server, "--as-dali"])).contains("libtriton_dali.so.before-gesso"));
    assert_eq!(
        std::fs::read(tree("tritonserver/backends/dali/libtriton_dali.so.before-gesso")).unwrap(),
        b"DALI's own"
    );
    for path in ["gesso/libtriton_gesso.so", "dali/libtriton_dali.so"] {
        assert_eq!(
            std::fs::read(tree("tritonserver/backends").join(path)).unwrap(),
            std::fs::read(&plugin).unwrap()
        );
    }
    // Once more: over itself, and into the folder of backends by its own name.
    assert!(!out(&installed(&[&server, "--as-dali"])).contains("is now"));
    out(&installed(&[&format!("{server}/backends"), "--as-dali"]));
    let left: Vec<PathBuf> = std::fs::read_dir(tree("tritonserver/backends/dali"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");

    let refused = |path: &str| errors(&installed(&[&tree(path).display().to_string()]));
    std::fs::create_dir(tree("elsewhere")).unwrap();
    let told = refused("elsewhere");
    assert!(
        told.contains("it is empty; expected a Triton installation") && !tree("elsewhere/gesso").exists(),
        "{told}"
    );
    std::fs::write(tree("elsewhere/file"), b"").unwrap();
    assert!(
        refused("elsewhere").contains("holds no backend: it holds `file`; expected a Triton installation")
    );
    // A model in Python is no backend in Python.
    folder.write("model/1/model.py", b"");
    assert!(refused("model").contains("it holds `1`; expected"));
    std::fs::create_dir_all(tree("new/backends")).unwrap();
    out(&installed(&[&tree("new/backends").display().to_string()]));
    assert!(tree("new/backends/gesso/libtriton_gesso.so").exists());
    std::fs::write(&plugin, b"something else").unwrap();
    assert!(errors(&installed(&[&server])).contains("is not Gesso's plugin"));
}

#[test]
fn the_doctor_tells_what_is_there() {
    let folder = Folder::new("doctor");
    folder.write("server/backends/gesso/libtriton_gesso.so", b"...Gesso is loaded...");
    folder.write("server/backends/dali/libtriton_dali.so", b"DALI's own");
    let server = folder.path("server").display().to_string();
    let found = json(&gesso(&["doctor", "--json", "--triton", &server]));
    let state = |what: &str| {
        let finding = found.as_array().unwrap().iter().find(|finding| finding["what"] == what).unwrap();
        (finding["state"].as_str().unwrap(), finding["mend"].as_str().unwrap_or_default())
    };
    assert_eq!(state("gesso"), ("good", ""));
    assert_eq!(state("Triton, gesso"), ("good", ""));
    let (absent, mend) = state("Triton, dali");
    assert!(absent == "absent" && mend.contains("--as-dali"), "{mend}");
    let text = out(&gesso(&["doctor", "--triton", &folder.path("nowhere").display().to_string()]));
    assert!(text.contains("processor") && text.contains("no server in"), "{text}");
    let output = Command::new(env!("CARGO_BIN_EXE_gesso"))
        .arg("doctor")
        .env("GESSO_PYTHON", "no-python")
        .output()
        .unwrap();
    assert!(out(&output).contains("cannot run `no-python`"), "{}", out(&output));
}

/// A device that is always full.
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for arguments in [
        &["operators"][..],
        &["operators", "--json"],
        &["inspect", &rand_augment()],
        &["--help"],
        &["--version"],
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_gesso")).args(arguments).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(errors(&output).contains("cannot write the output"), "{arguments:?}: {}", errors(&output));
    }
    // A reader that has gone has read what it wanted.
    let mut child = Command::new(env!("CARGO_BIN_EXE_gesso"))
        .args(["inspect", "--all", &rand_augment()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_plugin_that_does_not_fit_leaves_nothing() {
    let folder = Folder::new("install full");
    let mark = b"TRITONBACKEND_ModelInstanceExecute...Gesso is loaded...";
    let plugin = folder.write("plugin.so", &[&mark[..], &[0; 100_000]].concat());
    std::fs::create_dir_all(folder.path("server/backends")).unwrap();
    // No file of the program may have more than a few kilobytes; to write more is an error.
    let limited = Command::new("sh")
        .args([
            "-c",
            "ulimit -f 8; trap '' XFSZ; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_gesso"),
            "install",
            "--plugin",
        ])
        .arg(plugin)
        .arg(folder.path("server"))
        .output()
        .unwrap();
    assert!(limited.status.code() == Some(1) && errors(&limited).contains("cannot write"), "{limited:?}");
    assert_eq!(std::fs::read_dir(folder.path("server/backends/gesso")).unwrap().count(), 0);
}

#[test]
fn help_names_every_command() {
    let help = out(&gesso(&["--help"]));
    for command in ["inspect", "run", "check", "replay", "bench", "install", "doctor", "operators"] {
        assert!(help.contains(command), "{help}");
        assert!(out(&gesso(&[command, "--help"])).contains("Usage:"));
    }
    assert_eq!(gesso(&["paint"]).status.code(), Some(2));
}

#[test]
fn operators_are_told() {
    let list = out(&gesso(&["operators"]));
    assert!(
        list.contains("CropMirrorNormalize") && list.contains("decoders__Image  ") && list.contains("mixed")
    );
    for name in ["Rotate", "fn.rotate", "rotate", "ops.Rotate"] {
        let told = out(&gesso(&["operators", name]));
        assert!(
            told.contains("keep_size") && told.contains("false") && told.contains("sample, frame"),
            "{told}"
        );
    }
    let all = json(&gesso(&["operators", "--json"]));
    let names: Vec<&str> = all.as_array().unwrap().iter().filter_map(|op| op["name"].as_str()).collect();
    assert!(names.is_sorted() && names.contains(&"Rotate"));
    let image = json(&gesso(&["operators", "--json", "ImageDecoder"]));
    assert_eq!(image["spellings"][0]["fn"], "decoders.image");
    let error = errors(&gesso(&["operators", "mirror"]));
    assert!(error.contains("`mirror`") && error.contains("`CropMirrorNormalize`"), "{error}");
}
