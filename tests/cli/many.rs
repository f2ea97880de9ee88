//! `gesso run` on many files: folders, patterns, lists, and runs that were cut off.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::recorded::{Folder, Recording};
use crate::{errors, gesso, json};

/// Seven good images in a folder of folders, and the pipeline's file.
fn photos(name: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    let case = Recording::open("pipelines").case("classify");
    let model = folder.write("model.dali", &case.pipeline);
    for i in 0..7 {
        let place = if i < 4 { "photos" } else { "photos/more" };
        folder.write(&format!("{place}/{i}.jpg"), &case.inputs["IMAGE"][i % 2].bytes);
    }
    folder.write("photos/.hidden", b"no image");
    (folder, model)
}

/// The files of the samples, as the record has them.
fn recorded(folder: &Folder) -> Vec<(u64, String, bool)> {
    let text = std::fs::read_to_string(folder.path("out/samples.jsonl")).unwrap();
    let line = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let file = std::path::Path::new(line["files"]["IMAGE"].as_str().unwrap()).file_name().unwrap();
        let file = file.to_str().unwrap().to_owned();
        (line["sample"].as_u64().unwrap(), file, line["error"].is_null())
    };
    text.lines().map(line).collect()
}

#[test]
fn folders_patterns_and_lists_name_files() {
    let (folder, model) = photos("many files");
    let into = folder.path("out").display().to_string();
    folder.write("photos/.hidden.jpg", b"no image");
    std::os::unix::fs::symlink(folder.path("photos"), folder.path("photos/loop")).unwrap();
    let path = |name: &str| folder.path(name).display().to_string();
    let names = |input: &str| -> Vec<String> {
        let ran = json(&gesso(&[
            "run",
            &model,
            "--json",
            "--out",
            &into,
            "--input",
            input,
            "--format",
            "npy",
            "--overwrite",
        ]));
        assert!(ran["outputs"].as_array().unwrap().iter().all(|output| output["picture"].is_null()), "{ran}");
        recorded(&folder).into_iter().map(|(_, file, _)| file).collect()
    };
    let all = ["0.jpg", "1.jpg", "2.jpg", "3.jpg", "4.jpg", "5.jpg", "6.jpg"];
    assert_eq!(names(&path("photos")), all);
    assert_eq!(names(&format!("IMAGE={}", path("photos/*.jpg"))), all[..4]);
    assert_eq!(names(&path("photos/**/[0-4].jpg")), all[..5]);
    assert_eq!(names(&path("photos//more/./*.jpg")), all[4..]);
    let list = folder
        .write("list.txt", format!("{}\n\n{}\n", path("photos/3.jpg"), path("photos/0.jpg")).as_bytes());
    assert_eq!(names(&format!("IMAGE=@{list},{}", path("photos/more/6.jpg"))), ["3.jpg", "0.jpg", "6.jpg"]);
    assert!(!folder.path("out/PIXELS.0.3.png").exists() && folder.path("out/PIXELS.0.3.npy").exists());

    let mut child = Command::new(env!("CARGO_BIN_EXE_gesso"))
        .args(["run", &model, "--out", &into, "--input", "@-", "--overwrite"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(path("photos/2.jpg").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(recorded(&folder), [(0, "2.jpg".to_owned(), true)]);
}

/// Words may stand without the option, as a shell's pattern gives them; and a name may have a comma.
#[test]
fn files_may_stand_behind_the_pipeline() {
    let (folder, model) = photos("many words");
    let path = |name: &str| folder.path(name).display().to_string();
    folder.write("photos/a,b.jpg", &std::fs::read(folder.path("photos/0.jpg")).unwrap());
    let (into, first, comma) = (path("out"), path("photos/0.jpg"), path("photos/a,b.jpg"));
    let ran = gesso(&["run", &model, &first, &comma, "--out", &into]);
    assert!(ran.status.success(), "{}", errors(&ran));
    assert_eq!(recorded(&folder), [(0, "0.jpg".to_owned(), true), (1, "a,b.jpg".to_owned(), true)]);
    assert!(folder.path("out/PIXELS.0.0.npy").exists() && folder.path("out/PIXELS.1.a_b.png").exists());
    let told = errors(&gesso(&["run", &model, "none.jpg"]));
    assert!(told.contains("cannot read `none.jpg`"), "{told}");
    let bench =
        gesso(&["bench", &model, &first, "--batch", "1", "--threads", "1", "--seconds", "0", "--json"]);
    assert!(bench.status.success(), "{}", errors(&bench));
}

#[test]
fn a_folder_stands_for_files_of_known_kinds() {
    let (folder, model) = photos("many kinds");
    let photos = folder.path("photos").display().to_string();
    folder.write("photos/notes.txt", b"no image");
    folder.write("photos/more/list.csv", b"no image");
    let good = std::fs::read(folder.path("photos/0.jpg")).unwrap();
    folder.write("photos/LOUD.JPG", &good);
    folder.write("photos/without", &good);
    let ran = gesso(&["run", &model, &photos, "--json"]);
    assert!(ran.status.success(), "{}", errors(&ran));
    let ran = json(&ran);
    assert_eq!((ran["samples"].as_array().unwrap().len(), &ran["files_left_out"]), (9, &2.into()));
    let text = String::from_utf8(gesso(&["run", &model, &photos]).stdout).unwrap();
    assert!(text.contains("note: 2 files of folders are left out"), "{text}");
    // A pattern names any file.
    assert_eq!(gesso(&["run", &model, &format!("{photos}/*.txt")]).status.code(), Some(1));
    folder.write("texts/notes.txt", b"no image");
    let texts = folder.path("texts").display().to_string();
    let told = errors(&gesso(&["run", &model, &texts]));
    assert!(
        told.contains("holds 1 files, but none whose name ends like") && told.contains("texts/**/*'"),
        "{told}"
    );
    assert!(
        String::from_utf8(gesso(&["run", &model, &format!("{texts}/**/*")]).stdout)
            .unwrap()
            .contains("0 of 1 samples")
    );
}

#[test]
fn a_run_goes_on_behind_an_earlier_one() {
    let (folder, model) = photos("many resumed");
    let (photos, into) =
        (folder.path("photos").display().to_string(), folder.path("out").display().to_string());
    let good = std::fs::read(folder.path("photos/1.jpg")).unwrap();
    folder.write("photos/1.jpg", &good[..100]);
    let run = |more: &[&str]| {
        let arguments =
            [&["run", &model, "--json", "--out", &into, "--input", &photos, "--batch", "2"], more].concat();
        gesso(&arguments)
    };
    assert_eq!(run(&[]).status.code(), Some(1));
    let whole: Vec<Vec<u8>> =
        [0, 2, 6].map(|i| std::fs::read(folder.path(&format!("out/PIXELS.{i}.{i}.npy"))).unwrap()).into();
    // As it would be if it had been cut off within the fourth line; and the second file was mended.
    let record = std::fs::read_to_string(folder.path("out/samples.jsonl")).unwrap();
    let third = record.match_indices('\n').nth(2).unwrap().0;
    folder.write("out/samples.jsonl", &record.as_bytes()[..third + 9]);
    folder.write("photos/1.jpg", &good);
    for i in 3..7 {
        std::fs::remove_file(folder.path(&format!("out/PIXELS.{i}.{i}.npy"))).unwrap();
    }
    let ran = json(&run(&["--resume"]));
    let again: Vec<u64> =
        ran["samples"].as_array().unwrap().iter().map(|sample| sample["sample"].as_u64().unwrap()).collect();
    assert_eq!((again, &ran["samples_before"]), (vec![1, 3, 4, 5, 6], &2.into()));
    for (i, whole) in [0, 2, 6].into_iter().zip(whole) {
        assert_eq!(std::fs::read(folder.path(&format!("out/PIXELS.{i}.{i}.npy"))).unwrap(), whole);
    }
    let numbers: Vec<u64> = recorded(&folder).into_iter().map(|(sample, ..)| sample).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
    let ran = json(&run(&["--resume"]));
    assert_eq!((ran["samples"].as_array().unwrap().len(), &ran["samples_before"]), (0, &7.into()));
    // What is gone is made again.
    std::fs::remove_file(folder.path("out/PIXELS.4.4.npy")).unwrap();
    assert_eq!(json(&run(&["--resume"]))["samples"].as_array().unwrap().len(), 1);
    assert!(folder.path("out/PIXELS.4.4.npy").exists());

    assert!(errors(&run(&[])).contains("`--resume` goes on behind it, `--overwrite` replaces them"));
    let other = errors(&run(&["--resume", "--format", "npy"]));
    assert!(other.contains("were made with"), "{other}");
    folder.write("out/PIXELS.99.more.npy", b"of more files");
    assert!(run(&["--overwrite"]).status.success() && !folder.path("out/PIXELS.99.more.npy").exists());

    std::fs::remove_file(folder.path("photos/0.jpg")).unwrap();
    let told = errors(&run(&["--resume"]));
    assert!(told.contains("resume with the same inputs, or write to another folder"), "{told}");
}

#[test]
fn a_file_that_cannot_be_read_fails_alone() {
    let (folder, model) = photos("many unreadable");
    let list = format!(
        "{}\n{}\nnone.jpg\n",
        folder.path("photos/0.jpg").display(),
        folder.path("photos/1.jpg").display()
    );
    let list = folder.write("list.txt", list.as_bytes());
    let into = folder.path("out").display().to_string();
    let output = gesso(&["run", &model, "--out", &into, "--input", &format!("@{list}")]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains("2 of 3 samples") && text.contains("failed: sample 2 (`none.jpg`): cannot read"),
        "{text}"
    );
    let ended: Vec<bool> = recorded(&folder).into_iter().map(|(_, _, well)| well).collect();
    assert_eq!(ended.iter().filter(|well| !**well).count(), 1, "{ended:?}");
}

/// What a run writes is no input of the next one; and an array of another type fails alone.
#[test]
fn outputs_are_no_inputs() {
    let (folder, model) = photos("many outputs");
    let photos = folder.path("photos").display().to_string();
    let into = folder.path("photos/out").display().to_string();
    let run = |more: &[&str]| {
        gesso(
            &[&["run", &model, "--json", "--out", &into, "--input", &photos, "--batch", "2"], more].concat(),
        )
    };
    for more in [&[][..], &["--resume"], &["--overwrite"]] {
        let ran = json(&run(more));
        assert_eq!(
            ran["samples"].as_array().unwrap().len() + ran["samples_before"].as_u64().unwrap() as usize,
            7
        );
    }
    let array = crate::npy(&Recording::open("pipelines").case("region").inputs["ANCHOR"][0]);
    folder.write("photos/0.npy", &array);
    let output = run(&["--overwrite"]);
    let ran = json(&output);
    let failed =
        ran["samples"].as_array().unwrap().iter().filter(|sample| !sample["error"].is_null()).count();
    assert_eq!((output.status.code(), failed, ran["outputs"].as_array().unwrap().len()), (Some(1), 1, 7));
}

#[test]
fn random_numbers_are_those_of_a_run_that_was_not_cut_off() {
    let (folder, _) = photos("many random");
    let model = folder.write("model.dali", &Recording::open("random").case("image_random_crop").pipeline);
    let photos = folder.path("photos").display().to_string();
    let run = |into: &str, more: &[&str]| {
        let into = folder.path(into).display().to_string();
        let arguments = ["run", &model, "--json", "--out", &into, "--input", &photos, "--batch", "2"];
        json(&gesso(&[&arguments[..], more].concat()))
    };
    let files = |into: &str| {
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path(into)).unwrap().map(|file| file.unwrap().path()).collect();
        names.retain(|path| path.extension().is_some_and(|extension| extension == "npy"));
        names.sort();
        names.into_iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>()
    };
    run("whole", &[]);
    assert_eq!(files("whole").len() % 7, 0);
    run("cut", &[]);
    assert_eq!(files("cut"), files("whole"));
    // Sample 1 of the first batch is gone, and all from the fourth on.
    for file in std::fs::read_dir(folder.path("cut")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if [1, 3, 4, 5, 6].iter().any(|i| name.ends_with(&format!(".{i}.{i}.npy"))) {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(run("cut", &["--resume"])["samples_before"], 2);
    assert_eq!(files("cut"), files("whole"));
}

#[test]
fn formats_that_are_not_named_are_refused() {
    let (folder, model) = photos("formats");
    let photo = folder.path("photos/0.jpg").display().to_string();
    let run = |formats: &str| gesso(&["run", &model, "--input", &photo, &format!("--formats={formats}")]);
    assert!(run("jpeg,png").status.success());
    for formats in ["png", "-jpeg"] {
        let refused = run(formats);
        assert!(!refused.status.success());
        let said = [errors(&refused), String::from_utf8(refused.stdout).unwrap()].concat();
        assert!(said.contains("format `jpeg` is switched off by parameter `formats`"), "{said}");
    }
    let unknown = run("jpg");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(errors(&unknown).contains("`jpg` is no format, expected some of jpeg"), "{}", errors(&unknown));
}
