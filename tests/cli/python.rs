//! `gesso serialize`, `gesso compare` and `gesso tokens`, which the Python package does: how the program finds an
//! interpreter, and what it says without one.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use crate::recorded::Folder;
use crate::{errors, out};

fn gesso(arguments: &[&str], python: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gesso"));
    command.args(arguments).env_remove("GESSO_PYTHON");
    if let Some(python) = python {
        command.env("GESSO_PYTHON", python);
    }
    command.output().unwrap()
}

/// A program in the place of an interpreter, which says what it was called with.
fn interpreter(folder: &Folder, name: &str) -> String {
    let path = folder.write(name, b"#!/bin/sh\nshift 2; echo \"$0: $GESSO_SERIALIZE_BY: $*\"\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn the_interpreter_may_be_named_before_and_behind_the_program() {
    let folder = Folder::new("serialize");
    let (mine, other) = (interpreter(&folder, "mine"), interpreter(&folder, "other"));
    let called = format!("{mine}: {mine}: serialize --python {mine} --output a.dali -- x.py\n");
    for arguments in [
        &["serialize", "x.py", "-o", "a.dali", "--python", &mine][..],
        &["serialize", "--python", &mine, "x.py", "--output", "a.dali"],
    ] {
        assert_eq!(out(&gesso(arguments, Some(&other))), called);
    }
    assert_eq!(out(&gesso(&["serialize", "x.py", "-o", "a.dali"], Some(&mine))), called);
    let compared = gesso(&["compare", "a.dali", "photos", "--python", &mine, "--reference", "pillow"], None);
    assert_eq!(out(&compared), format!("{mine}: {mine}: compare a.dali photos --reference pillow\n"));
    let counted = gesso(&["tokens", "a.jpg", "--for", "model", "--python", &mine], None);
    assert_eq!(out(&counted), format!("{mine}: {mine}: tokens a.jpg --for model\n"));
}

#[test]
fn without_the_package_an_error_says_how_to_name_an_interpreter() {
    let help = out(&gesso(&["serialize", "--help"], Some("no-python")));
    assert!(help.contains("--python") && help.contains("GESSO_PYTHON"), "{help}");
    let none = errors(&gesso(&["serialize", "x.py", "--python", "no-python"], None));
    let way = "`--python` or the environment variable GESSO_PYTHON";
    assert!(none.contains("cannot run `no-python`") && none.contains(way), "{none}");
    // An interpreter that has no packages at all.
    let folder = Folder::new("serialize without");
    let bare = folder.write("bare", b"#!/bin/sh\nexec python3 -I -S \"$@\"\n");
    std::fs::set_permissions(&bare, std::fs::Permissions::from_mode(0o755)).unwrap();
    for command in ["serialize", "compare", "tokens"] {
        let output = gesso(&[command, "x.py", "--python", &bare], None);
        let told = errors(&output);
        assert!(
            !output.status.success()
                && told.contains("does not have the package `gesso`")
                && told.contains(way),
            "{told}"
        );
    }
}
