//! Commands that the Python package does: `gesso serialize`, `gesso compare`, `gesso from` and `gesso tokens`. This
//! only finds an interpreter that has it.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use gesso::error::{Error, Result};

use crate::Exit;

/// Runs the package's own command line, or says how to name an interpreter that has the package.
const PROGRAM: &str = r#"
import sys
try:
    from gesso_command import main
except ImportError as error:
    sys.exit(f"error: `{sys.executable}` does not have the package `gesso` ({error}): name an interpreter that has it by `--python` or the environment variable GESSO_PYTHON")
sys.exit(main())
"#;

/// Tells the package's command line that this interpreter was asked for, so that it starts no other.
const ASKED: &str = "GESSO_SERIALIZE_BY";

/// Write the pipeline of a Python program as a file. The Python package `gesso` does it.
#[derive(Args)]
pub(crate) struct Serialize {
    /// A program with a function marked by `pipeline_def`.
    script: PathBuf,
    /// The file to write.
    #[arg(short, long, default_value = "model.dali")]
    output: PathBuf,
    /// The function, where there are several.
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    by: By,
}

#[derive(Args)]
struct By {
    /// The interpreter that has the package `gesso` and what the program needs.
    #[arg(long, env = "GESSO_PYTHON", default_value = "python3")]
    python: OsString,
}

/// Compare a pipeline with the preprocessing of training. The Python package `gesso` does it.
#[derive(Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    by: By,
    /// What the package's own command takes: `gesso compare --help` tells.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Make a served stage of preprocessing that you have (Hugging Face, timm, torchvision, Ultralytics, open_clip), and
/// prove that the two are equal. The Python package `gesso` does it.
#[derive(Args)]
pub(crate) struct From {
    #[command(flatten)]
    by: By,
    /// What the package's own command takes: `gesso from --help` tells.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Print how many tokens images become for a vision-language model, from their headers. The Python package `gesso` does
/// it.
#[derive(Args)]
pub(crate) struct Tokens {
    #[command(flatten)]
    by: By,
    /// What the package's own command takes: `gesso tokens --help` tells.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs `gesso serialize`: becomes the interpreter.
pub(crate) fn serialize(options: &Serialize) -> Result<Exit> {
    let python = options.by.python.as_os_str();
    let mut arguments =
        vec![OsStr::new("--python"), python, OsStr::new("--output"), options.output.as_os_str()];
    if let Some(name) = &options.name {
        arguments.extend([OsStr::new("--name"), OsStr::new(name)]);
    }
    arguments.extend([OsStr::new("--"), options.script.as_os_str()]);
    become_python(python, "serialize", &arguments)
}

/// Runs `gesso compare`: becomes the interpreter.
pub(crate) fn compare(options: &Compare) -> Result<Exit> {
    with_words("compare", &options.by, &options.arguments)
}

/// Runs `gesso from`: becomes the interpreter.
pub(crate) fn from(options: &From) -> Result<Exit> {
    with_words("from", &options.by, &options.arguments)
}

/// Runs `gesso tokens`: becomes the interpreter.
pub(crate) fn tokens(options: &Tokens) -> Result<Exit> {
    with_words("tokens", &options.by, &options.arguments)
}

fn with_words(command: &str, by: &By, words: &[OsString]) -> Result<Exit> {
    let (python, arguments) = interpreter(words)?;
    become_python(python.unwrap_or(&by.python), command, &arguments)
}

/// The interpreter that `--python` names among the words of a command, and the other words.
fn interpreter(words: &[OsString]) -> Result<(Option<&OsStr>, Vec<&OsStr>)> {
    let (mut python, mut others) = (None, Vec::new());
    let mut words = words.iter().map(OsString::as_os_str);
    while let Some(word) = words.next() {
        if word == "--" {
            others.push(word);
            others.extend(words.by_ref());
        } else if word == "--python" {
            let named = words.next();
            python = Some(named.ok_or_else(|| {
                Error::invalid("`--python` stands at the end, expected an interpreter behind it")
            })?);
        } else if let Some(named) = word.to_str().and_then(|word| word.strip_prefix("--python=")) {
            python = Some(OsStr::new(named));
        } else {
            others.push(word);
        }
    }
    Ok((python, others))
}

fn become_python(python: &OsStr, command: &str, arguments: &[&OsStr]) -> Result<Exit> {
    let mut program = Command::new(python);
    program.args(["-c", PROGRAM, command]).args(arguments).env(ASKED, python);
    let error = program.exec();
    Err(Error::not_found(format!(
        "cannot run `{}`: {error}; `--python` or the environment variable GESSO_PYTHON names an interpreter",
        python.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_may_stand_anywhere() {
        let found = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(|&word| word.into()).collect();
            let (python, others) = interpreter(&words).unwrap();
            let others: Vec<String> = others.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            (python.map(|word| word.to_string_lossy().into_owned()), others.join(" "))
        };
        let p = Some("p".to_owned());
        assert_eq!(found(&["a.py", "photos", "--python", "p"]), (p.clone(), "a.py photos".to_owned()));
        assert_eq!(found(&["a.py", "--python=p", "photos"]), (p, "a.py photos".to_owned()));
        assert_eq!(found(&["a.py", "--", "--python", "p"]), (None, "a.py -- --python p".to_owned()));
        assert!(interpreter(&["--python".into()]).is_err());
    }
}
