//! A pipeline written in Python: an interpreter with Gesso's package, or else with DALI, makes the bytes of a file of
//! it, in a process of its own that no shell starts, that has a time limit, and that leaves no file behind. It must not
//! know pipelines.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use gesso::error::{Error, ErrorKind, Result};
use gesso::limits;

/// Time between two looks at whether the interpreter is done.
const LOOK: Duration = Duration::from_millis(10);

/// The exit status for an interpreter that cannot import the package.
const NO_PACKAGE: i32 = 3;

/// What the interpreter runs; its arguments are the model's file, [`HERE`] or [`NOT_HERE`], a GPU, and the package that
/// is to write the pipeline: with `gesso`, `nvidia.dali` is another name of it. The bytes go to what was its standard
/// output, while what the model prints goes to its errors. The package looks the pipeline up itself, by the mark that
/// its `@autoserialize` leaves. DALI builds what it serializes, which fails without a GPU where the author names one.
/// What is serialized does not depend on that number, so that it is asked again without.
const PROGRAM: &str = r#"
import importlib.machinery, importlib.util, inspect, os, sys
pipeline = os.dup(1)
os.dup2(2, 1)
try:
    if sys.argv[3] == "gesso":
        import gesso.as_dali
    from nvidia.dali._utils.autoserialize import invoke_autoserialize
    from nvidia.dali.pipeline import Pipeline
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
name = "autoserialize_mod"
loader = importlib.machinery.SourceFileLoader(name, sys.argv[1])
spec = importlib.util.spec_from_loader(name, loader)
module = importlib.util.module_from_spec(spec)
sys.modules[name] = module
loader.exec_module(module)
make = Pipeline.__init__
def make_without_device(self, *positional, **named):
    given = inspect.signature(make).bind(self, *positional, **named)
    given.arguments["device_id"] = None
    make(*given.args, **given.kwargs)
try:
    invoke_autoserialize(module, f"/dev/fd/{pipeline}")
    sys.exit()
except Exception as error:
    if sys.argv[2] == "gpu" or sys.argv[3] == "gesso":
        raise
    print("without a GPU, tried again with device_id=None:", error, file=sys.stderr)
Pipeline.__init__ = make_without_device
invoke_autoserialize(module, f"/dev/fd/{pipeline}")
"#;

/// A GPU is here.
const HERE: &str = "gpu";
/// No GPU is here.
const NOT_HERE: &str = "no gpu";

/// The packages that can write a pipeline, the preferred one first.
const PACKAGES: [&str; 2] = ["gesso", "nvidia.dali"];

/// What came of asking a package.
enum Attempt {
    Made(Vec<u8>),
    /// The interpreter does not have it, as it says.
    NoPackage(String),
    Failed(Error),
}

/// The serialized form of the pipeline that the Python file at `path` marks with `@autoserialize`, by the interpreter
/// `python`: by Gesso's own package, or by DALI where that is not there or lacks something; and then why. A pipeline
/// that is made for a device is serialized all the same where the host `has_gpu` not.
///
/// # Errors
/// Unsupported when there is no such interpreter or it has neither package, unavailable when it takes too long, invalid
/// when none can, with the end of what they printed.
pub fn serialize(python: &str, path: &Path, has_gpu: bool) -> Result<(Vec<u8>, Option<String>)> {
    let shown = path.display();
    let (mut missing, mut failed) = (Vec::new(), Vec::new());
    for package in PACKAGES {
        match ask(python, path, has_gpu, package)? {
            Attempt::Made(bytes) => {
                let warning = failed.first().map(|why| format!("DALI's package wrote `{shown}`: {why}"));
                return Ok((bytes, warning));
            }
            Attempt::NoPackage(printed) => missing.push(printed),
            Attempt::Failed(error) => failed.push(error),
        }
    }
    match failed.pop() {
        None => Err(Error::unsupported(format!(
            "model file `{shown}` is Python, and `{python}`, which would serialize its pipeline, has neither Gesso's package nor DALI \
             ({}); {HELP}",
            missing.join("; ")
        ))),
        Some(last) => match failed.pop() {
            None => Err(last),
            Some(first) => Err(Error::new(last.kind(), format!("{first}; with DALI instead: {last}"))),
        },
    }
}

fn ask(python: &str, path: &Path, has_gpu: bool, package: &str) -> Result<Attempt> {
    let shown = path.display();
    let mut command = Command::new(python);
    // -B: no compiled file beside the model's.
    command
        .arg("-B")
        .arg("-c")
        .arg(PROGRAM)
        .arg(path)
        .arg(if has_gpu { HERE } else { NOT_HERE })
        .arg(package);
    let done = run(&mut command, Duration::from_secs(limits::MAX_SERIALIZE_SECONDS)).map_err(|error| {
        Error::unsupported(format!(
            "model file `{shown}` is Python, and `{python}`, which would serialize its pipeline, cannot be run: {error}; {HELP}"
        ))
    })?;
    let printed = String::from_utf8_lossy(&done.printed);
    let printed = printed.trim();
    match done.status {
        None => Err(Error::new(
            ErrorKind::Unavailable,
            format!(
                "`{python}` did not serialize the pipeline of `{shown}` within {} seconds; it printed: {printed}",
                limits::MAX_SERIALIZE_SECONDS
            ),
        )),
        Some(status) if status.success() && done.bytes.len() > limits::MAX_PIPELINE_BYTES => {
            Err(Error::invalid(format!(
                "the pipeline of `{shown}` has more than {} bytes when serialized",
                limits::MAX_PIPELINE_BYTES
            )))
        }
        Some(status) if status.success() => Ok(Attempt::Made(done.bytes)),
        Some(status) if status.code() == Some(NO_PACKAGE) => Ok(Attempt::NoPackage(printed.to_owned())),
        Some(status) => Ok(Attempt::Failed(Error::invalid(format!(
            "`{python}` could not serialize the pipeline of `{shown}` with `{package}` ({status}); it printed: {printed}"
        )))),
    }
}

const HELP: &str = "install `gesso` or `nvidia-dali` there, name another interpreter by the backend option `python`, or serialize the \
                    pipeline with `Pipeline.serialize()` into `model.dali`";

/// What became of a program.
struct Done {
    /// `None`: it took too long.
    status: Option<ExitStatus>,
    /// Its output; one byte more than a pipeline may have when there was more.
    bytes: Vec<u8>,
    /// The end of its errors.
    printed: Vec<u8>,
}

/// What a program prints, and how it ended; `None` when it had not within `limit`, and was ended.
///
/// # Errors
/// What the system says when it cannot be started.
pub fn printed(command: &mut Command, limit: Duration) -> std::io::Result<(Option<ExitStatus>, Vec<u8>)> {
    run(command, limit).map(|done| (done.status, done.bytes))
}

fn run(command: &mut Command, limit: Duration) -> std::io::Result<Done> {
    // A group of its own, so that what it starts ends with it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let bytes = child.stdout.take().map(|pipe| std::thread::spawn(move || head(pipe)));
    let printed = child.stderr.take().map(|pipe| std::thread::spawn(move || tail(pipe)));
    let in_time = ends_within(&child, limit);
    // Before the program's number is given back: until then the group's is nobody else's. Its ends of the pipes close,
    // so that neither thread reads in vain.
    end_group(&child);
    let status = child.wait()?;
    let status = in_time?.then_some(status);
    let joined = |thread: Option<JoinHandle<Vec<u8>>>| thread.and_then(|t| t.join().ok()).unwrap_or_default();
    Ok(Done { status, bytes: joined(bytes), printed: joined(printed) })
}

/// Whether the program ends before `limit` has passed; leaves it to be waited for.
fn ends_within(child: &Child, limit: Duration) -> std::io::Result<bool> {
    let begun = Instant::now();
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    loop {
        if waitid(WaitId::Pid(Pid::from_child(child)), look)?.is_some() {
            return Ok(true);
        }
        if begun.elapsed() > limit {
            return Ok(false);
        }
        std::thread::sleep(LOOK);
    }
}

/// Ends the program's group, of which a part may outlive the program itself.
fn end_group(child: &Child) {
    // The group is ours: it was made with the program, which is not waited for yet, so that the number is still the
    // program's. One that has ended already is as good.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

/// The first bytes, up to one more than a pipeline may have; reads to the end all the same.
fn head(mut pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut limited = (&mut pipe).take(limits::MAX_PIPELINE_BYTES as u64 + 1);
    // What was read before an error is what there is.
    let _ = limited.read_to_end(&mut bytes);
    let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    bytes
}

/// The last bytes.
fn tail(mut pipe: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut piece = [0; limits::MAX_PRINTED_BYTES];
    while let Ok(count @ 1..) = pipe.read(&mut piece) {
        kept.extend_from_slice(piece.get(..count).unwrap_or_default());
        kept.drain(..kept.len().saturating_sub(limits::MAX_PRINTED_BYTES));
    }
    kept
}

/// Writes a program of `sh`. By a process of its own, which is gone then: a file that this one had open to write may
/// still be open in a child that another test is about to make, and cannot be run until that is.
#[cfg(test)]
pub(super) fn write_program(path: &Path, script: &str) {
    let write = r#"printf '#!/bin/sh\n%s\n' "$2" > "$1" && chmod +x "$1""#;
    assert!(Command::new("sh").args(["-c", write, "sh"]).arg(path).arg(script).status().unwrap().success());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than a busy machine takes for a shell, and less than what it is to end.
    const PATIENCE: Duration = Duration::from_secs(300);

    fn shell(script: &str, limit: Duration) -> Done {
        run(Command::new("sh").arg("-c").arg(script), limit).unwrap()
    }

    #[test]
    fn output_and_errors_are_apart() {
        let done = shell("printf bytes; printf said >&2; exit 4", PATIENCE);
        assert_eq!(
            (done.status.unwrap().code(), &done.bytes[..], &done.printed[..]),
            (Some(4), &b"bytes"[..], &b"said"[..])
        );
    }

    #[test]
    fn a_program_without_end_is_ended_with_what_it_started() {
        let begun = Instant::now();
        let done = shell("sleep 600 & sleep 600", Duration::from_millis(100));
        assert!(done.status.is_none() && begun.elapsed() < PATIENCE);
        let done = shell("sleep 600 & printf bytes", PATIENCE);
        assert!(done.status.unwrap().success() && begun.elapsed() < PATIENCE);
        assert_eq!(done.bytes, b"bytes");
    }

    #[test]
    fn a_flood_is_bounded() {
        let done =
            shell("head -c 20000000 /dev/zero; head -c 100000 /dev/zero >&2; printf end >&2", PATIENCE);
        assert_eq!(
            (done.bytes.len(), done.printed.len()),
            (limits::MAX_PIPELINE_BYTES + 1, limits::MAX_PRINTED_BYTES)
        );
        assert!(done.printed.ends_with(b"end"));
    }

    /// As much of DALI as the program uses: a pipeline for a device cannot be made here.
    const DALI: &str = r#"
class Pipeline:
    def __init__(self, batch_size=None, num_threads=None, device_id=None, **more):
        if device_id is not None:
            raise RuntimeError("CUDA is not available")
        self.made = f"{batch_size} {num_threads} {device_id} {more}"
"#;
    const INVOKE: &str = r#"
def invoke_autoserialize(module, filename):
    with open(filename, "w") as file:
        file.write(module.pipe().made)
"#;

    /// As much of Gesso's package: it takes the pipeline for a device, and refuses the other.
    const OWN: &str = r#"
import sys, types
module = types.ModuleType("nvidia.dali._utils.autoserialize")
def invoke_autoserialize(model, filename):
    if "None, seed" in open(model.__file__).read():
        raise NotImplementedError("there is no operator for this")
    open(filename, "w").write("written by gesso")
module.invoke_autoserialize = invoke_autoserialize
sys.modules["nvidia.dali._utils.autoserialize"] = module
"#;

    #[test]
    fn a_pipeline_for_a_device_is_serialized_without_one() {
        let folder = std::env::temp_dir().join(format!("gesso-autoserialize-{}", std::process::id()));
        let utils = folder.join("nvidia/dali/_utils");
        std::fs::create_dir_all(&utils).unwrap();
        std::fs::write(folder.join("nvidia/dali/__init__.py"), "").unwrap();
        std::fs::write(folder.join("nvidia/dali/pipeline.py"), DALI).unwrap();
        std::fs::write(utils.join("autoserialize.py"), INVOKE).unwrap();
        let model = folder.join("dali.py");
        let source =
            "from nvidia.dali.pipeline import Pipeline\ndef pipe():\n    return Pipeline(4, 2, 0, seed=7)\n";
        std::fs::write(&model, source).unwrap();
        let python = folder.join("python");
        let path = folder.display();
        write_program(&python, &format!("PYTHONPATH='{path}' exec python3 \"$@\""));
        let python = python.to_str().unwrap();

        let (bytes, warning) = serialize(python, &model, false).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), "4 2 None {'seed': 7}");
        assert_eq!(warning, None);
        // Where there is a GPU, DALI's error is the answer.
        let error = serialize(python, &model, true).unwrap_err().to_string();
        assert!(error.contains("CUDA is not available"), "{error}");
        std::fs::write(&model, "def pipe():\n    raise ValueError('broken')\n").unwrap();
        let error = serialize(python, &model, false).unwrap_err().to_string();
        assert!(error.contains("ValueError: broken"), "{error}");

        // Gesso's package comes first; where it lacks something, DALI's writes the pipeline, and that is told.
        std::fs::create_dir_all(folder.join("gesso")).unwrap();
        std::fs::write(folder.join("gesso/__init__.py"), "").unwrap();
        std::fs::write(folder.join("gesso/as_dali.py"), OWN).unwrap();
        std::fs::write(&model, source).unwrap();
        assert_eq!(serialize(python, &model, true).unwrap(), (b"written by gesso".to_vec(), None));
        std::fs::write(&model, source.replace("0, seed", "None, seed")).unwrap();
        let (bytes, warning) = serialize(python, &model, true).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), "4 2 None {'seed': 7}");
        assert!(warning.unwrap().contains("there is no operator for this"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn interpreters_that_make_nothing_of_it_say_why() {
        let folder = std::env::temp_dir().join(format!("gesso-interpreters-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let python = folder.join("python");
        let error = |script: &str| {
            write_program(&python, script);
            serialize(python.to_str().unwrap(), Path::new("/m/1/dali.py"), true).unwrap_err()
        };
        let without = error("echo nothing here >&2; exit 3");
        assert_eq!(without.kind(), ErrorKind::Unsupported);
        let text = without.to_string();
        assert!(text.contains("neither Gesso's package nor DALI") && text.contains("nothing here"), "{text}");
        let text = error("echo not like this >&2; exit 1").to_string();
        assert!(text.contains("with DALI instead") && text.matches("not like this").count() == 2, "{text}");
        let long = error("head -c 20000000 /dev/zero").to_string();
        assert!(long.contains("bytes when serialized"), "{long}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_missing_interpreter_is_named_with_a_way_out() {
        let error = serialize("no such python", Path::new("/m/1/dali.py"), true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(text.contains("`/m/1/dali.py`") && text.contains("`no such python`"), "{text}");
        assert!(text.contains("model.dali"), "{text}");
    }
}
