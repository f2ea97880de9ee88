//! `docs/reference/operators.md` is made from the table of operators and from what `dali.rs` lists beside it:
//! `GESSO_UPDATE=1 cargo test --test project` writes it.

use std::collections::BTreeMap;

use gesso::operator::{ArgSpec, DefaultValue, EVERYWHERE, OpDef};
use gesso::ops::{self, OPS};
use gesso::readers::{READERS, SHARED};

use crate::dali::{self, DIFFERENT, MISSING};

const BEGIN: &str = "<!-- operators: made by tests/project/operators.rs -->\n";
const END: &str = "<!-- end of operators -->";

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn code(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn functions(op: &OpDef) -> Vec<String> {
    op.spellings().into_iter().map(|spelling| format!("fn.{}", spelling.function)).collect()
}

fn anchor(name: &str) -> String {
    name.to_lowercase()
}

/// What stands above the operators of each family: the folders of `src/ops`, in the order of the page.
const FAMILIES: &[(&str, &str)] = &[
    ("decode", "Decoding"),
    ("encode", "Encoding"),
    ("geometry", "Geometry"),
    ("color", "Colour"),
    ("filters", "Filters"),
    ("boxes", "Boxes, points and masks"),
    ("math", "Arithmetic and statistics"),
    ("random", "Random numbers and random windows"),
    ("audio", "Sound"),
    ("sequence", "Sequences of frames"),
    ("multimodal", "In front of vision-language and speech models"),
    ("structure", "Shapes, batches and conditionals"),
];

fn index() -> String {
    let mut text = String::new();
    let families: BTreeMap<_, _> = ops::FAMILIES.iter().copied().collect();
    assert_eq!(families.len(), FAMILIES.len());
    for (family, heading) in FAMILIES {
        text += &format!("## {heading}\n\n| operator | on | what it does |\n| --- | --- | --- |\n");
        let family = families[family];
        for op in OPS.iter().filter(|op| family.iter().any(|(one, _)| one.name == op.name)) {
            let devices = op.placements().join(", ");
            text += &format!("| [`{}`](#{}) | {devices} | {} |\n", op.name, anchor(op.name), cell(op.doc));
        }
        text.push('\n');
    }
    text + &readers()
}

/// The readers that the library has itself.
fn readers() -> String {
    let mut text = "## Readers\n\nThese run in the library. The package in Python has [more](python-api.md). The arguments that all of them take \
                    stand below.\n\n| reader | what it reads | arguments of its own |\n| --- | --- | --- |\n"
        .to_owned();
    for reader in READERS {
        let own: Vec<String> = reader.args.iter().map(|argument| argument.name.to_owned()).collect();
        text += &format!("| `{}` | {} | {} |\n", reader.name, cell(reader.doc), code(&own));
    }
    text + "\n"
}

fn default(argument: &ArgSpec) -> String {
    let text = argument.default_text();
    match argument.default {
        DefaultValue::Required | DefaultValue::None | DefaultValue::Computed(_) => cell(&text),
        _ => format!("`{}`", cell(&text)),
    }
}

fn arguments(arguments: &[&ArgSpec]) -> String {
    let mut text =
        "| argument | kind | default | varies by | meaning |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for argument in arguments {
        let varies = match (argument.tensor, argument.per_frame) {
            (_, true) => "sample, frame",
            (true, _) => "sample",
            _ => "",
        };
        let deprecated = if argument.deprecated { "; deprecated" } else { "" };
        let row = [
            format!("`{}`", argument.name),
            argument.kind.name().to_owned(),
            default(argument),
            varies.to_owned(),
            cell(argument.doc) + deprecated,
        ];
        text += &format!("| {} |\n", row.join(" | "));
    }
    text
}

fn section(op: &OpDef) -> String {
    let mut text = format!("### {}\n\n{}.\n", op.name, op.doc);
    let (least, most) = op.inputs;
    let inputs = match (least, most) {
        (1, 1) => "1 input".to_owned(),
        (least, most) if least == most => format!("{least} inputs"),
        (least, most) => format!("{least} to {most} inputs"),
    };
    let mut facts = vec![code(&functions(op)), op.placements().join(", "), inputs];
    if !op.aliases.is_empty() {
        let aliases: Vec<String> = op.aliases.iter().map(|alias| (*alias).to_owned()).collect();
        facts.push(format!("also written {}", code(&aliases)));
    }
    if op.sequences {
        facts.push("takes sequences".to_owned());
    }
    text += &format!("{}.\n\n", facts.join("; "));
    let mut all: Vec<&ArgSpec> = op.all_args().collect();
    all.sort_by_key(|argument| argument.name);
    let (read, unread): (Vec<&ArgSpec>, Vec<&ArgSpec>) = all.into_iter().partition(|argument| argument.read);
    let numbered: Vec<&ArgSpec> = read.iter().copied().filter(|argument| is_repeated(argument)).collect();
    let listed: Vec<&ArgSpec> = read.into_iter().filter(|argument| !is_repeated(argument)).collect();
    if !listed.is_empty() {
        text += &(arguments(&listed) + "\n");
    }
    if !numbered.is_empty() {
        text += "And the same for every other dimension.\n\n";
    }
    if !unread.is_empty() {
        let names: Vec<String> = unread.iter().map(|argument| argument.name.to_owned()).collect();
        text += &format!("Accepted without effect: {}.\n\n", code(&names));
    }
    text
}

/// Whether the argument is one of a numbered kind, such as `at_7`, of which the first stands for all.
fn is_repeated(argument: &ArgSpec) -> bool {
    let number = argument.name.rsplit_once('_').map(|(_, number)| number);
    number.is_some_and(|number| number != "0" && number.parse::<usize>().is_ok())
}

fn missing() -> String {
    let version = dali::version();
    let mut text = format!("## What is missing\n\nOf the operators of DALI {version}:\n\n");
    text += "| operators | why |\n| --- | --- |\n";
    for (why, names) in MISSING {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        text += &format!("| {} | {why} |\n", code(&names));
    }
    text += "\nOf arguments, and where Gesso does what DALI does rather than what its schema tells:\n\n";
    text += "| operator | arguments | what | why |\n| --- | --- | --- | --- |\n";
    let mut rows: BTreeMap<(&str, &str, &str), Vec<String>> = BTreeMap::new();
    for (op, argument, what, why) in DIFFERENT {
        rows.entry((op, what.text(), why)).or_default().push((*argument).to_owned());
    }
    for ((op, what, why), names) in rows {
        text += &format!("| `{op}` | {} | {what} | {} |\n", code(&names), cell(why));
    }
    text
}

fn page() -> String {
    let everywhere: Vec<&ArgSpec> = EVERYWHERE.iter().collect();
    let sections: String = OPS.iter().map(|op| section(op)).collect();
    format!(
        "{}## Arguments of every operator\n\n{}\n## Arguments of every reader\n\n{}\n## Each operator\n\n{sections}{}",
        index(),
        arguments(&everywhere),
        arguments(&SHARED.iter().filter(|argument| argument.read).collect::<Vec<_>>()),
        missing()
    )
}

#[test]
fn the_page_of_operators_is_that_of_the_code() {
    let path = crate::root().join("docs/reference/operators.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).unwrap();
    let (found, tail) = rest.split_once(END).unwrap();
    let expected = page();
    if std::env::var_os("GESSO_UPDATE").is_some() {
        std::fs::write(path, format!("{head}{BEGIN}{expected}{END}{tail}")).unwrap();
        return;
    }
    assert!(found == expected, "stale: run `GESSO_UPDATE=1 cargo test --test project`");
}

#[test]
fn random_pipelines_are_drawn_around_every_operator() {
    let read =
        |name: &str| std::fs::read_to_string(crate::root().join("tests/conformance").join(name)).unwrap();
    // Families are named by what tells their members apart.
    let drawn = ["draw.py", "draw_media.py", "draw_regions.py"].map(read).concat();
    let missing: Vec<&str> = OPS
        .iter()
        .map(|op| op.name)
        .filter(|name| !drawn.contains(name.rsplit("__").next().unwrap_or(name)))
        .collect();
    assert!(missing.is_empty(), "neither drawn nor in `NOT_DRAWN` of draw_regions.py: {missing:?}");
}
