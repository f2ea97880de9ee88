//! Commands that the Python package does: `gesso serialize`, `gesso compare` and `gesso from`. This only finds it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use gesso::error::{Error, Result};

use crate::Exit;

#[derive(Args)]
pub(crate) struct Options {
    /// The interpreter that has the package.
    #[arg(long, env = "GESSO_PYTHON", default_value = "python3")]
    python: OsString,
    /// What the package's own command of this name takes; `--help` tells.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs a command: becomes the interpreter.
pub(crate) fn run(command: &str, options: &Options) -> Result<Exit> {
    let python = &options.python;
    let error = Command::new(python).args(["-m", "gesso", command]).args(&options.arguments).exec();
    Err(Error::not_found(format!("cannot run `{}`: {error}", python.display())))
}
