//! The program `gesso`; what it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gesso_cli::main(std::env::args_os()))
}
