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
    /// As `dali/libtriton_dali.so`, for models that say `backend: "dali"`; the file of DALI's own backend stays beside it as
    /// `libtriton_dali.so.before-gesso`.
    #[arg(long)]
    as_dali: bool,
    /// The plugin; absent: what the environment variable GESSO_LIBRARY names, else `libtriton_gesso.so` beside this program or where a
    /// release has it.
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

/// The folder of backends: `directory/backends` where there is one, else `directory` itself.
pub(crate) fn backends(directory: &Path) -> Result<PathBuf> {
    if !directory.is_dir() {
        return Err(Error::not_found(format!("`{}` is not a directory", directory.display())));
    }
    let inside = directory.join("backends");
    if inside.is_dir() {
        return Ok(inside);
    }
    // Rather refuse than leave a folder where no server looks: a folder of backends holds backends or nothing.
    let mut entries =
        std::fs::read_dir(directory).map_err(|error| cannot("read", directory, &error))?.flatten();
    let is_backend = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        path.join(format!("libtriton_{name}.so")).exists() || path.join("model.py").exists()
    };
    let empty = entries.next().is_none();
    let mut entries =
        std::fs::read_dir(directory).map_err(|error| cannot("read", directory, &error))?.flatten();
    if empty
        || directory.file_name().is_some_and(|name| name == "backends")
        || entries.any(|entry| is_backend(&entry.path()))
    {
        return Ok(directory.to_owned());
    }
    Err(Error::invalid(format!(
        "`{}` has no folder `backends` and holds no backend: expected a Triton installation or the folder that the server's \
         `--backend-directory` names",
        directory.display()
    )))
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
