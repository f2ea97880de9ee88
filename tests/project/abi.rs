//! What compiled programs rely on of `include/gesso.h`: functions with their types, the places of fields, numbers of
//! enumerations. `include/gesso.abi` lists that, a line each. A line may be added and a struct may grow at its end; for
//! any other change `GESSO_ABI_VERSION` is raised. `GESSO_BLESS=1` writes the list, when that is so.

use std::collections::BTreeMap;

use crate::root;

const HEAD: &str = "# What compiled programs rely on of gesso.h, on machines of 64 bits. Made by \
                    `GESSO_BLESS=1 cargo test --test project`.\n";

/// The header without comments and preprocessor lines, as one line, and its numbers with names.
fn read(header: &str) -> (String, BTreeMap<&str, &str>) {
    let lines = header.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let (directives, code): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with('#'));
    let constants = directives.iter().filter_map(|line| {
        let (name, value) = line.strip_prefix("#define ")?.split_once(' ')?;
        value.parse::<u32>().is_ok().then_some((name, value))
    });
    let code = code.join(" ");
    let mut plain = String::new();
    let mut rest = code.as_str();
    while let Some((before, after)) = rest.split_once("/*") {
        plain += before;
        rest = after.split_once("*/").unwrap().1;
    }
    let plain = (plain + rest).replace("extern \"C\" {", "");
    let words: Vec<&str> = plain.split_whitespace().collect();
    (words.join(" "), constants.collect())
}

/// The declarations, each up to its semicolon.
fn declarations(code: &str) -> Vec<&str> {
    let (mut found, mut begin, mut depth) = (Vec::new(), 0, 0);
    for (i, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ';' if depth == 0 => {
                found.push(code[begin..i].trim());
                begin = i + 1;
            }
            _ => {}
        }
    }
    found
}

/// Type and name of a field or parameter, `const int64_t *shape`; of a function pointer all is the type.
fn split(declaration: &str) -> (&str, &str) {
    if let Some((_, rest)) = declaration.split_once("(*") {
        return (declaration, rest.split_once(')').unwrap().0);
    }
    let at = declaration.rfind([' ', '*']).map_or(0, |at| at + 1);
    (declaration[..at].trim(), &declaration[at..])
}

/// Size of a field, and where it may begin.
fn layout(kind: &str) -> usize {
    match kind {
        _ if kind.contains('*') => 8,
        "size_t" | "uint64_t" | "int64_t" => 8,
        other => {
            assert!(
                ["int32_t", "uint32_t"].contains(&other),
                "a field of the type `{other}`: what is its size?"
            );
            4
        }
    }
}

/// The lines of a struct: its size, then each field with its place and type.
fn fields(name: &str, body: &str, constants: &BTreeMap<&str, &str>) -> Vec<String> {
    let (mut lines, mut end, mut widest) = (Vec::new(), 0_usize, 1);
    for field in body.split_terminator(';').map(str::trim).filter(|field| !field.is_empty()) {
        let (kind, field) = split(field);
        let (field, count) = field.split_once('[').map_or((field, 1), |(field, count)| {
            let count = count.trim_end_matches(']');
            (field, constants.get(count).unwrap_or(&count).parse().unwrap())
        });
        let size = layout(kind);
        let begin = end.next_multiple_of(size);
        lines.push(format!("field {name}.{field} at {begin}: {kind} x {count}"));
        end = begin + size * count;
        widest = widest.max(size);
    }
    lines.insert(0, format!("struct {name}: {}", end.next_multiple_of(widest)));
    lines
}

/// All that programs rely on, a line each.
fn lines(header: &str) -> Vec<String> {
    let (code, constants) = read(header);
    let mut lines: Vec<String> =
        constants.iter().map(|(name, value)| format!("constant {name}: {value}")).collect();
    for declaration in declarations(&code) {
        let braces =
            declaration.split_once('{').and_then(|(head, rest)| Some((head, rest.rsplit_once('}')?)));
        match braces {
            Some((head, (body, name))) if head.contains("enum") => {
                let values = body.split(',').map(str::trim).filter(|value| !value.is_empty());
                lines.extend(values.map(|value| format!("value {}: {value}", name.trim())));
            }
            Some((_, (body, name))) => lines.extend(fields(name.trim(), body, &constants)),
            None if declaration.starts_with("typedef struct") => {}
            None if declaration.starts_with("typedef") => lines.push(format!("type {}", &declaration[8..])),
            None => {
                let (head, parameters) = declaration.split_once('(').unwrap();
                let parameters = parameters.trim_end_matches(')').split(',').map(str::trim);
                let kinds: Vec<&str> = parameters.map(|p| if p == "void" { p } else { split(p).0 }).collect();
                lines.push(format!("function {head}({})", kinds.join(", ")));
            }
        }
    }
    lines
}

/// The lines of `before` that `now` breaks.
fn broken(before: &[String], now: &[String]) -> Vec<String> {
    let size =
        |line: &str| Some((line.strip_prefix("struct ")?.split_once(": ")?.0.to_owned(), line.to_owned()));
    let sizes: BTreeMap<String, String> = now.iter().filter_map(|line| size(line)).collect();
    let number = |line: &str| line.rsplit_once(": ").and_then(|(_, size)| size.parse::<usize>().ok());
    let holds = |line: &String| match size(line) {
        Some((name, _)) => sizes.get(&name).is_some_and(|other| number(other) >= number(line)),
        None => line.starts_with("constant ") && line.contains("_ABI_VERSION") || now.contains(line),
    };
    before.iter().filter(|line| !holds(line)).cloned().collect()
}

fn version(lines: &[String]) -> Option<&String> {
    lines.iter().find(|line| line.starts_with("constant GESSO_ABI_VERSION:"))
}

#[test]
fn programs_of_before_still_run() {
    let header = std::fs::read_to_string(root().join("include/gesso.h")).unwrap();
    let path = root().join("include/gesso.abi");
    let now = lines(&header);
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let before: Vec<String> = committed.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect();
    if version(&before) == version(&now) {
        let broken = broken(&before, &now);
        assert!(
            broken.is_empty(),
            "compiled programs rely on this of `include/gesso.h`, which is no longer so:\n{}\nAdd fields at the end and \
             functions under new names, or raise `GESSO_ABI_VERSION`",
            broken.join("\n")
        );
    }
    let text = HEAD.to_owned() + &now.join("\n") + "\n";
    if std::env::var_os("GESSO_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    assert!(committed == text, "`include/gesso.abi` is stale: run `GESSO_BLESS=1 cargo test --test project`");
}

#[test]
fn incompatible_changes_are_seen() {
    let header = "#define MOST 2\ntypedef enum {\n A = 0,\n} kind;\ntypedef struct {\n size_t struct_size;\n \
                  int32_t a;\n int32_t b;\n int64_t shape[MOST];\n} info;\nvoid run(const info *of, size_t count);\n";
    let before = lines(header);
    assert!(before.contains(&"field info.b at 12: int32_t x 1".to_owned()), "{before:?}");
    assert!(before.contains(&"struct info: 32".to_owned()), "{before:?}");
    assert!(before.contains(&"function void run(const info *, size_t)".to_owned()), "{before:?}");
    let after = |from: &str, to: &str| broken(&before, &lines(&header.replace(from, to)));
    for (from, to) in [
        ("int32_t a;\n int32_t b;", "int32_t b;\n int32_t a;"),
        ("int32_t b;", ""),
        ("int32_t b;", "int64_t b;"),
        ("MOST 2", "MOST 3"),
        ("A = 0", "A = 1"),
        ("size_t count", "int32_t count"),
        ("void run", "int32_t run"),
        ("size_t struct_size;", "size_t struct_size; size_t first;"),
    ] {
        assert!(!after(from, to).is_empty(), "{from} became {to}");
    }
    for (from, to) in [
        ("shape[MOST];", "shape[MOST];\n int32_t more;"),
        ("A = 0,", "A = 0,\n B = 1,"),
        ("void run", "void walk(void);\nvoid run"),
        ("size_t count)", "size_t number)"),
    ] {
        assert_eq!(after(from, to), Vec::<String>::new(), "{from} became {to}");
    }
}
