//! The command line `gesso`: look into the file of a pipeline, run it without a server, check a model repository. It
//! uses the engine as any program does; each command is a file. A library, because two things are made of it: the
//! program, and the one shared library of the Python package, which holds the engine, the plugin and this, so that none
//! of it is there twice.

mod bench;
pub mod capi;
mod check;
mod doctor;
pub mod index;
mod inputs;
mod inspect;
mod install;
mod names;
mod operators;
mod preview;
mod progress;
mod python;
mod replay;
mod run;
mod server;
mod terminal;
mod work;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use gesso::capi::library;
use gesso::error::Result;
use gesso::tensor::Device;

/// Write pipelines into files, look into them, run them without a server, check model repositories. No DALI is needed;
/// files that NVIDIA DALI serialized are taken, too.
#[derive(Parser)]
#[command(name = "gesso", version, max_term_width = 100)]
struct Cli {
    /// Colours: on a terminal, always, or never.
    #[arg(long, global = true, value_enum, default_value_t = Colour::Auto)]
    color: Colour,
    /// A library with operators of its own, made for Gesso; may be given again.
    #[arg(long, global = true, value_name = "LIBRARY")]
    plugin_lib: Vec<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Inspect(inspect::Options),
    Run(run::Options),
    Check(check::Options),
    Replay(replay::Options),
    Bench(bench::Options),
    Install(install::Options),
    Doctor(doctor::Options),
    Operators(operators::Options),
    #[command(subcommand)]
    Index(index::Kind),
    Serialize(python::Serialize),
    #[command(disable_help_flag = true)]
    Compare(python::Compare),
    #[command(disable_help_flag = true)]
    From(python::From),
    #[command(disable_help_flag = true)]
    Tokens(python::Tokens),
}

#[derive(Clone, Copy, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

/// Where a pipeline runs.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum On {
    /// Host threads; the devices in the file are ignored.
    Cpu,
    /// Operators run where the file puts them.
    Gpu,
}

impl From<On> for Device {
    fn from(on: On) -> Self {
        match on {
            On::Cpu => Device::Cpu,
            On::Gpu => Device::Gpu,
        }
    }
}

/// How a command ended, as the program's exit status.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Success = 0,
    Failure = 1,
}

/// Runs the command line; `arguments` begin with the program's name. Returns the exit status: 0, 1 when something
/// failed, 2 for a wrong command line.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(told) => {
            // Help is told, too.
            let printed = told.print().and_then(|()| std::io::stdout().flush());
            let lost = printed.err().map_or(Exit::Success, |error| terminal::lost(&error));
            let code = u8::try_from(told.exit_code()).unwrap_or(Exit::Failure as u8);
            return code.max(lost as u8);
        }
    };
    match cli.color {
        Colour::Auto => anstream::ColorChoice::Auto,
        Colour::Always => anstream::ColorChoice::Always,
        Colour::Never => anstream::ColorChoice::Never,
    }
    .write_global();
    let exit = run(&cli).unwrap_or_else(|error| {
        terminal::complain(&error);
        Exit::Failure
    });
    exit as u8
}

fn run(cli: &Cli) -> Result<Exit> {
    for path in &cli.plugin_lib {
        library::load(path)?;
    }
    match &cli.command {
        Command::Inspect(options) => inspect::inspect(options),
        Command::Run(options) => run::run(options),
        Command::Check(options) => check::check(options),
        Command::Replay(options) => replay::replay(options),
        Command::Bench(options) => bench::bench(options),
        Command::Install(options) => install::install(options),
        Command::Doctor(options) => doctor::doctor(options),
        Command::Operators(options) => operators::operators(options),
        Command::Index(kind) => index::index(kind),
        Command::Serialize(options) => python::serialize(options),
        Command::Compare(options) => python::compare(options),
        Command::From(options) => python::from(options),
        Command::Tokens(options) => python::tokens(options),
    }
}
