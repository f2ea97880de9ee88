//! `gesso serialize`: the file of a pipeline that is written in Python. The Python package does it; this only finds it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use gesso::error::{Error, Result};

use crate::Exit;

/// Write the pipeline of a Python program as a file; by the Python package `gesso`, which must be there.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// The interpreter that has the package.
    #[arg(long, env = "GESSO_PYTHON", default_value = "python3")]
    python: OsString,
    /// What the package's own `serialize` takes: `MODEL.py -o model.dali`; `--help` tells.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs the command: becomes the interpreter.
pub(crate) fn serialize(options: &Options) -> Result<Exit> {
    let python = &options.python;
    let error = Command::new(python).args(["-m", "gesso", "serialize"]).args(&options.arguments).exec();
    Err(Error::not_found(format!("cannot run `{}`: {error}", python.display())))
}
