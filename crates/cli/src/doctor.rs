//! `gesso doctor`: what this machine has of what Gesso can use, and how to get the rest. It changes nothing but the
//! kernels' cache, where it writes a file and takes it away again.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use gesso::cpu::decode::Vectors;
use gesso::cpu::video::Ffmpeg;
use gesso::error::Result;
use gesso::gpu::{self, Gpu, Library};
use serde_json::json;
use triton_gesso::config::printed;

use crate::Exit;
use crate::install::{self, MAX_PLUGIN_BYTES, OWN_MARK, TRITON, holds};
use crate::terminal::{BAD, DIM, GOOD, WARN, print, print_json, read_regular, styled};

/// How long an interpreter may say nothing. On a busy machine with a cold disk it needs seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Show what this machine has of what Gesso can use, and how to get the rest.
#[derive(Args)]
pub(crate) struct Options {
    /// The Triton installation, or its folder of backends.
    #[arg(long, default_value = TRITON)]
    triton: PathBuf,
    /// The interpreter for models in Python and for `gesso serialize`.
    #[arg(long, env = "GESSO_PYTHON", default_value = "python3")]
    python: OsString,
    /// For scripts.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Good,
    /// Not there, and not needed by everybody.
    Absent,
    /// What is there does not work.
    Broken,
}

#[derive(serde::Serialize)]
struct Finding {
    what: &'static str,
    state: State,
    found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

fn good(what: &'static str, found: impl Into<String>) -> Finding {
    Finding { what, state: State::Good, found: found.into(), mend: None }
}

fn lacking(what: &'static str, state: State, found: impl Into<String>, mend: impl Into<String>) -> Finding {
    Finding { what, state, found: found.into(), mend: Some(mend.into()) }
}

/// Runs the command. It fails when something is broken; what is merely absent is no failure.
pub(crate) fn doctor(options: &Options) -> Result<Exit> {
    let mut findings =
        vec![good("gesso", concat!("version ", env!("CARGO_PKG_VERSION"))), processor(), ffmpeg()];
    findings.extend(devices());
    findings.extend([
        python(&options.python),
        triton(&options.triton, "gesso"),
        triton(&options.triton, "dali"),
    ]);
    if options.json {
        print_json(&json!(findings));
    } else {
        print(&findings.iter().map(line).collect::<String>());
    }
    let broken = findings.iter().any(|finding| finding.state == State::Broken);
    Ok(if broken { Exit::Failure } else { Exit::Success })
}

fn line(finding: &Finding) -> String {
    let (style, word) = match finding.state {
        State::Good => (GOOD, "ok"),
        State::Absent => (WARN, "absent"),
        State::Broken => (BAD, "broken"),
    };
    let mut text =
        format!("{}  {:<14}  {}\n", styled(style, format!("{word:<6}")), finding.what, finding.found);
    if let Some(mend) = &finding.mend {
        text += &format!("{:24}{}\n", "", styled(DIM, mend));
    }
    text
}

fn processor() -> Finding {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let vectors = Vectors::best();
    if vectors.are_plain() {
        return lacking(
            "processor",
            State::Absent,
            format!("{threads} threads, without AVX2 or NEON"),
            "JPEGs are decoded by libjpeg-turbo here, which takes twice as long",
        );
    }
    good("processor", format!("{threads} threads, JPEGs are decoded with {}", vectors.name()))
}

/// What decodes videos on the host beside Gesso's own decoders.
fn ffmpeg() -> Finding {
    match Ffmpeg::find() {
        Ffmpeg::Used(found) => good("FFmpeg", found),
        Ffmpeg::Absent(why) => lacking(
            "FFmpeg",
            State::Absent,
            why,
            "videos are decoded by Gesso's own decoders, MPEG-4 Part 2 by none; GESSO_FFMPEG names a folder",
        ),
        Ffmpeg::Refused(why) => {
            lacking("FFmpeg", State::Broken, why, "install FFmpeg 5 to 8, or set GESSO_FFMPEG to off")
        }
    }
}

/// The driver, devices, and the libraries that are needed on them.
fn devices() -> Vec<Finding> {
    let count = match gpu::devices() {
        Ok(count) => count,
        Err(error) => {
            let found = error.to_string();
            return vec![lacking("GPU", State::Absent, found, "pipelines run on the CPU")];
        }
    };
    let mut findings = vec![
        match Library::NVRTC.open() {
            Ok(found) => good("NVRTC", found.path.display().to_string()),
            Err(error) => lacking("NVRTC", State::Broken, error.to_string(), Library::NVRTC.hint),
        },
        optional(
            Library::NVJPEG,
            "JPEGs are decoded by the multiprocessors and the host, not by the JPEG engines",
        ),
        optional(Library::NVJPEG2000, "JPEG 2000 is decoded by the host"),
        optional(Library::NVDEC, "videos are decoded by the host, not by the video engines"),
        optional(Library::OPTICAL_FLOW, "pipelines with `optical_flow` do not load on a GPU"),
    ];
    findings.extend((0..count).map(|device| match Gpu::open(device) {
        Ok(gpu) => {
            good("GPU", format!("{device}: {}, {} multiprocessors", gpu.name(), gpu.multiprocessors()))
        }
        Err(error) => lacking("GPU", State::Broken, error.to_string(), "models cannot run on it"),
    }));
    findings.push(cache());
    findings
}

/// A library without which less of a GPU is used: `without` says what is not.
fn optional(library: Library, without: &str) -> Finding {
    match library.open() {
        Ok(found) => good(library.name, found.path.display().to_string()),
        Err(_) => lacking(library.name, State::Absent, without, library.hint),
    }
}

/// Whether compiled kernels can be kept.
fn cache() -> Finding {
    let Some(folder) = gpu::kernel_cache() else {
        return lacking(
            "kernel cache",
            State::Absent,
            "none: there is no home folder, or GESSO_KERNEL_CACHE is empty",
            "each load of a model compiles its kernels: set GESSO_KERNEL_CACHE to a folder",
        );
    };
    let probe = folder.join(format!("doctor-{}", std::process::id()));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&probe, b""));
    // What was written a moment ago.
    let _ = std::fs::remove_file(&probe);
    match written {
        Ok(()) => good("kernel cache", folder.display().to_string()),
        Err(error) => lacking(
            "kernel cache",
            State::Broken,
            format!("cannot write to `{}`: {error}", folder.display()),
            "let the server's user write there, or set GESSO_KERNEL_CACHE to another folder",
        ),
    }
}

/// The interpreter for models in Python and for commands that the package does.
fn python(program: &OsStr) -> Finding {
    const ASK: &str = "import sys, gesso; print(sys.executable, gesso.__version__)";
    asked(Command::new(program).args(["-c", ASK]), PATIENCE)
}

/// What an interpreter says within `patience`.
fn asked(python: &mut Command, patience: Duration) -> Finding {
    const NEED: &str = "models in Python (`1/dali.py`) and `gesso serialize` need";
    let name = python.get_program().display().to_string();
    match printed(python, patience) {
        Ok((Some(status), said)) if status.success() => {
            good("Python", format!("gesso in {}", String::from_utf8_lossy(&said).trim()))
        }
        Ok((None, _)) => lacking(
            "Python",
            State::Broken,
            format!("`{name}` says nothing for {} s", patience.as_secs()),
            format!("{NEED} one that does: see what `{name} -c 'import gesso'` waits for"),
        ),
        Ok((Some(_), _)) => lacking(
            "Python",
            State::Absent,
            format!("`{name}` cannot import the package gesso"),
            format!(
                "{NEED} it: `pip install` the wheel, or name an interpreter that has it by `--python` or GESSO_PYTHON"
            ),
        ),
        Err(error) => lacking(
            "Python",
            State::Absent,
            format!("cannot run `{name}`: {error}"),
            format!("{NEED} an interpreter: `--python` or GESSO_PYTHON names it"),
        ),
    }
}

/// The backend that a server would load for models that name it.
fn triton(directory: &Path, backend: &str) -> Finding {
    let what = if backend == "gesso" { "Triton, gesso" } else { "Triton, dali" };
    let at = directory.display();
    let install = format!("`gesso install {at}{}`", if backend == "dali" { " --as-dali" } else { "" });
    let Ok(backends) = install::backends(directory) else {
        return lacking(
            what,
            State::Absent,
            format!("no server in `{at}`"),
            "`--triton FOLDER` names another place",
        );
    };
    let plugin = backends.join(backend).join(format!("libtriton_{backend}.so"));
    match read_regular(&plugin, MAX_PLUGIN_BYTES) {
        Ok(bytes) if holds(&bytes, OWN_MARK) => good(what, format!("`{}` is Gesso", plugin.display())),
        Ok(_) => lacking(what, State::Absent, format!("`{}` is another backend", plugin.display()), install),
        Err(_) if plugin.exists() => {
            let found = format!("`{}` cannot be read", plugin.display());
            lacking(what, State::Broken, found, "let this user read it, and the server's")
        }
        Err(_) => lacking(what, State::Absent, format!("no `{}`", plugin.display()), install),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_that_says_nothing_is_broken() {
        let silent = asked(Command::new("sleep").arg("600"), Duration::from_millis(50));
        assert!(silent.state == State::Broken && silent.found.contains("says nothing"), "{}", silent.found);
        let there = asked(Command::new("echo").arg("here"), Duration::from_secs(600));
        assert!(there.state == State::Good && there.found == "gesso in here", "{}", there.found);
        let none = asked(&mut Command::new("false"), Duration::from_secs(600));
        assert!(none.state == State::Absent, "{}", none.found);
    }
}
