//! `gesso`: look into a serialized pipeline, run it without a server, check a model repository. It uses the library as any
//! program does; each command is a file.

mod bench;
mod check;
mod index;
mod inputs;
mod inspect;
mod install;
mod npy;
mod operators;
mod preview;
mod run;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use gesso::capi::library;
use gesso::error::Result;
use gesso::tensor::Device;

/// Look into pipelines that NVIDIA DALI serialized, run them without a server, check model repositories.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
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
    Bench(bench::Options),
    Install(install::Options),
    Operators(operators::Options),
    #[command(subcommand)]
    Index(index::Kind),
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

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.color {
        Colour::Auto => anstream::ColorChoice::Auto,
        Colour::Always => anstream::ColorChoice::Always,
        Colour::Never => anstream::ColorChoice::Never,
    }
    .write_global();
    match run(&cli) {
        Ok(code) => code,
        Err(error) => {
            terminal::complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode> {
    for path in &cli.plugin_lib {
        library::load(path)?;
    }
    match &cli.command {
        Command::Inspect(options) => inspect::inspect(options),
        Command::Run(options) => run::run(options),
        Command::Check(options) => check::check(options),
        Command::Bench(options) => bench::bench(options),
        Command::Install(options) => install::install(options),
        Command::Operators(options) => operators::operators(options),
        Command::Index(kind) => index::index(kind),
    }
}
