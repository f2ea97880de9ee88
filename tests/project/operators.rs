//! The operator table of `docs/operators.md` is made from `OPS`: `GESSO_UPDATE=1 cargo test --test project` writes it.

use gesso::ops::OPS;

const BEGIN: &str = "<!-- operators: made by tests/project/operators.rs -->\n";
const END: &str = "<!-- end of operators -->";

fn table() -> String {
    let mut rows = vec![
        "| operator | also written | on | what it does | arguments |".to_owned(),
        "| --- | --- | --- | --- | --- |".to_owned(),
    ];
    // These are not operators of the table: the importer reads them.
    rows.push(
        "| `ExternalSource` | `_ExternalSource` | cpu | An input of the model | `device`, `dtype`, `layout`, `ndim` |"
            .to_owned(),
    );
    for op in OPS {
        let code = |names: Vec<&str>| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        let devices: Vec<String> = op.devices.iter().map(ToString::to_string).collect();
        let mut arguments: Vec<&str> = op.all_args().filter(|arg| arg.read).map(|arg| arg.name).collect();
        arguments.sort_unstable();
        rows.push(format!(
            "| `{}` | {} | {} | {} | {} |",
            op.name,
            code(op.aliases.to_vec()),
            devices.join(", "),
            op.doc,
            code(arguments)
        ));
    }
    rows.join("\n") + "\n"
}

#[test]
fn the_operator_table_is_that_of_the_code() {
    let path = crate::root().join("docs/operators.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (found, tail) = rest.split_once(END).unwrap();
    let expected = table();
    if std::env::var_os("GESSO_UPDATE").is_some() {
        std::fs::write(path, format!("{head}{BEGIN}{expected}{END}{tail}")).unwrap();
        return;
    }
    assert_eq!(found, expected, "stale: run `GESSO_UPDATE=1 cargo test --test project`");
}
