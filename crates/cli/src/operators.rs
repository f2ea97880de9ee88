//! `gesso operators`: which operators there are, and what one of them takes. It says only what the table of operators
//! says.

use clap::Args;
use gesso::error::{Error, Result};
use gesso::operator::{ArgSpec, OpDef};
use gesso::ops::{find, schema};

use crate::Exit;
use crate::terminal::{BOLD, DIM, Table, clean, print, styled};

/// Names that an error offers in place of one that there is not.
const OFFERED: usize = 5;

/// Show which operators Gesso runs; with a name, all that one of them takes.
#[derive(Args)]
pub(crate) struct Options {
    /// An operator, as files or as DALI's Python call it: `Resize`, `fn.decoders.image`.
    name: Option<String>,
    /// Everything, for scripts.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn operators(options: &Options) -> Result<Exit> {
    let chosen = options.name.as_deref().map(named).transpose()?;
    let text = match chosen {
        None if options.json => schema::json() + "\n",
        None => list(),
        Some(op) if options.json => schema::json_of(op) + "\n",
        Some(op) => detail(op),
    };
    print(&text);
    Ok(Exit::Success)
}

/// The operator that somebody calls `name`.
fn named(name: &str) -> Result<&'static OpDef> {
    let plain = name.strip_prefix("fn.").or_else(|| name.strip_prefix("ops.")).unwrap_or(name);
    let all = schema::all();
    let called = |op: &&&'static OpDef| {
        op.spellings().iter().any(|spelling| spelling.function == plain || spelling.class == plain)
    };
    if let Some(op) = find(name).or_else(|| all.iter().find(called).copied()) {
        return Ok(op);
    }
    let wanted = plain.to_lowercase();
    let near = all.iter().filter(|op| op.name.to_lowercase().contains(&wanted));
    let near: Vec<String> = near.take(OFFERED).map(|op| format!("`{}`", op.name)).collect();
    let offer = if near.is_empty() { String::new() } else { format!("; there are {}", near.join(", ")) };
    Err(Error::not_found(format!("there is no operator `{name}`{offer}")))
}

fn list() -> String {
    let mut table = Table::new(&["operator", "on", "what it does"]);
    let all = schema::all();
    for op in &all {
        table.row([op.name.to_owned(), op.placements().join(", "), clean(op.doc, usize::MAX)]);
    }
    let count = styled(BOLD, format!("{} operators", all.len()));
    let more = styled(DIM, "`gesso operators NAME` tells all of one.");
    format!("{count}\n{}{more}\n", table.lines())
}

fn detail(op: &OpDef) -> String {
    let (least, most) = op.inputs;
    let inputs = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let functions: Vec<String> =
        op.spellings().into_iter().map(|spelling| format!("fn.{}", spelling.function)).collect();
    let mut text = format!("{}  {}\n", styled(BOLD, op.name), clean(op.doc, usize::MAX));
    for (what, value) in [
        ("Python", functions.join(", ")),
        ("also written", op.aliases.join(", ")),
        ("runs on", op.placements().join(", ")),
        ("inputs", inputs),
        ("sequences", if op.sequences { "yes" } else { "no" }.to_owned()),
    ] {
        if !value.is_empty() {
            text += &format!("  {}  {value}\n", styled(DIM, format!("{what:12}")));
        }
    }
    let mut arguments: Vec<&ArgSpec> = op.all_args().collect();
    arguments.sort_by_key(|argument| argument.name);
    if arguments.is_empty() {
        return text + "\n  no arguments\n";
    }
    let mut table = Table::new(&["argument", "kind", "default", "varies by", "meaning"]);
    for argument in arguments {
        let varies = match (argument.tensor, argument.per_frame) {
            (_, true) => "sample, frame",
            (true, _) => "sample",
            _ => "",
        };
        let note = match (argument.read, argument.deprecated) {
            (false, _) => " (no effect)",
            (_, true) => " (deprecated)",
            _ => "",
        };
        let meaning = format!("{}{note}", clean(argument.doc, usize::MAX));
        let kind = argument.kind.name().to_owned();
        table.row([argument.name.to_owned(), kind, argument.default_text(), varies.to_owned(), meaning]);
    }
    format!("{text}\n{}", table.lines())
}
