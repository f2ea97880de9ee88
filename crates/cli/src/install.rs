//! `gesso install`: the plugin where a Triton installation looks for it.

use std::path::{Path, PathBuf};

use clap::Args;
use gesso::error::{Context, Error, ErrorKind, Result};

use crate::Exit;
use crate::terminal::{GOOD, print, read_file, read_regular, styled};

/// The plugin, as cargo calls it.
const PLUGIN: &str = "libtriton_gesso.so";

/// Where it is, seen from the program's folder: what cargo builds, a release's archive, the Debian package.
const PLACES: [&str; 3] = [".", "../backends/gesso", "../lib/gesso/backends/gesso"];

/// Names the library of the Python package, which is a plugin, too.
const LIBRARY: &str = "GESSO_LIBRARY";

/// Where Triton's containers have the server.
pub(crate) const TRITON: &str = "/opt/tritonserver";

/// The folder of backends in an installation.
const BACKENDS: &str = "backends";

/// Entries of a folder that an error lists.
const LISTED: usize = 5;

/// What the file of another backend is kept as.
const KEPT: &str = "before-gesso";

/// What every Triton backend has, and what only ours has.
const BACKEND_MARK: &[u8] = b"TRITONBACKEND_ModelInstanceExecute";
pub(crate) const OWN_MARK: &[u8] = b"Gesso is loaded";

/// Bytes of a plugin; ours has about ten megabytes, one with debugging information hundreds.
pub(crate) const MAX_PLUGIN_BYTES: usize = 2 << 30;

/// Put the plugin where a Triton installation looks for backends.
#[derive(Args)]
pub(crate) struct Options {
    /// The installation (`/opt/tritonserver`), or its folder of backends.
    directory: PathBuf,
    /// As `dali/libtriton_dali.so`, for models that say `backend: "dali"`; the file of DALI's own backend stays beside
    /// it as `libtriton_dali.so.before-gesso`.
    #[arg(long)]
    as_dali: bool,
    /// The plugin; absent: what the environment variable GESSO_LIBRARY names, else `libtriton_gesso.so` beside this
    /// program or where a release has it.
    #[arg(long)]
    plugin: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn install(options: &Options) -> Result<Exit> {
    let plugin = match &options.plugin {
        Some(path) => path.clone(),
        None => std::env::var_os(LIBRARY).map_or_else(beside_this_program, |path| Ok(path.into()))?,
    };
    let bytes = read_file(&plugin, MAX_PLUGIN_BYTES).context(|| {
        "the plugin (`cargo build --release` makes it, `--plugin FILE` names another)".to_owned()
    })?;
    if !holds(&bytes, BACKEND_MARK) || !holds(&bytes, OWN_MARK) {
        return Err(Error::invalid(format!("`{}` is not Gesso's plugin", plugin.display())));
    }
    let backends = backends(&options.directory)?;
    let name = if options.as_dali { "dali" } else { "gesso" };
    let target = backends.join(name).join(format!("libtriton_{name}.so"));
    let kept = put(&bytes, &target)?;
    let mut text = format!("{} `{}`\n", styled(GOOD, "installed"), target.display());
    if let Some(kept) = kept {
        text += &format!("the backend that was there is now `{}`\n", kept.display());
    }
    text += &format!("models with `backend: \"{name}\"` use it from the server's next start on\n");
    if let Some(note) = start_option(&backends) {
        text += &note;
    }
    print(&text);
    Ok(Exit::Success)
}

fn beside_this_program() -> Result<PathBuf> {
    let program = std::env::current_exe()
        .map_err(|error| Error::not_found(format!("cannot tell where this program is: {error}")))?;
    let places = PLACES.map(|place| program.with_file_name(place).join(PLUGIN));
    let found = places.iter().find(|path| path.is_file());
    Ok(found.cloned().unwrap_or_else(|| program.with_file_name(PLUGIN)))
}

/// What the server's command line must say so that it looks in `backends`; `None` where it looks by itself.
fn start_option(backends: &Path) -> Option<String> {
    let own = Path::new(TRITON).join(BACKENDS);
    // What is not there has no other name.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let backends = std::path::absolute(backends).unwrap_or_else(|_| backends.to_owned());
    (real(&backends) != real(&own)).then(|| {
        format!(
            "start the server with `--backend-directory {}`: by itself it looks in `{}`\n",
            backends.display(),
            own.display()
        )
    })
}

/// The folder of backends: `directory/backends` where there is one, else `directory` itself, if it is called so or
/// holds a backend. Any other folder is refused: no server looks there.
pub(crate) fn backends(directory: &Path) -> Result<PathBuf> {
    const EXPECTED: &str = "expected a Triton installation, which has a folder `backends`, or a folder of backends, which is called so \
                            or holds one";
    if !directory.is_dir() {
        return Err(Error::not_found(format!("`{}` is not a directory, {EXPECTED}", directory.display())));
    }
    let inside = directory.join(BACKENDS);
    if inside.is_dir() {
        return Ok(inside);
    }
    let entries = std::fs::read_dir(directory).map_err(|error| cannot("read", directory, &error))?;
    let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    if directory.file_name().is_some_and(|name| name == BACKENDS)
        || entries.iter().any(|path| is_backend(path))
    {
        return Ok(directory.to_owned());
    }
    entries.sort();
    let names = entries.iter().filter_map(|path| path.file_name());
    let mut listed: Vec<String> = names.map(|name| format!("`{}`", name.to_string_lossy())).collect();
    if listed.len() > LISTED {
        let more = listed.len() - LISTED;
        listed.truncate(LISTED);
        listed.push(format!("{more} more"));
    }
    let found =
        if listed.is_empty() { "it is empty".to_owned() } else { format!("it holds {}", listed.join(", ")) };
    Err(Error::invalid(format!(
        "`{}` has no folder `backends` and holds no backend: {found}; {EXPECTED}",
        directory.display()
    )))
}

/// Whether a folder is a backend: its library is called after it, or it is written in Python. A version of a model in
/// Python has a number for its name.
fn is_backend(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_version = name.parse::<u64>().is_ok();
    folder.join(format!("libtriton_{name}.so")).exists() || (!is_version && folder.join("model.py").exists())
}

/// Writes the plugin as a whole or not at all. What another backend had there is kept; returns where.
fn put(bytes: &[u8], target: &Path) -> Result<Option<PathBuf>> {
    let folder = target.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))?;
    let fresh = target.with_extension(format!("so.{}", std::process::id()));
    let written = std::fs::write(&fresh, bytes).map_err(|error| cannot("write", &fresh, &error));
    let replaced = written.and_then(|()| replace(&fresh, target));
    if replaced.is_err() {
        // The error says what went wrong; a file that stays behind is harmless.
        let _ = std::fs::remove_file(&fresh);
    }
    replaced
}

fn replace(fresh: &Path, target: &Path) -> Result<Option<PathBuf>> {
    let mut kept = None;
    if target.exists() && !holds(&read_regular(target, MAX_PLUGIN_BYTES)?, OWN_MARK) {
        let aside = target.with_extension(format!("so.{KEPT}"));
        if aside.exists() {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!(
                    "`{}` and `{}` are both there and neither is Gesso: move one away",
                    target.display(),
                    aside.display()
                ),
            ));
        }
        std::fs::rename(target, &aside).map_err(|error| cannot("rename", target, &error))?;
        kept = Some(aside);
    }
    std::fs::rename(fresh, target).map_err(|error| cannot("write", target, &error))?;
    Ok(kept)
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Error {
    let help = if error.kind() == std::io::ErrorKind::PermissionDenied {
        "; run it as the installation's owner"
    } else {
        ""
    };
    Error::invalid(format!("cannot {what} `{}`: {error}{help}", path.display()))
}

/// Whether a file has these bytes in it.
pub(crate) fn holds(bytes: &[u8], mark: &[u8]) -> bool {
    memchr::memmem::find(bytes, mark).is_some()
}
