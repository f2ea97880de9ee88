//! `gesso index`, and pipelines that read their data set by themselves.

use crate::recorded::Folder;
use crate::{errors, gesso, json, out};
use gesso::pipeline::Pipeline;

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_index_of_a_tfrecord_file() {
    let folder = Folder::new("index tfrecord");
    let record = |data: &[u8]| [&(data.len() as u64).to_le_bytes(), &[0; 4][..], data, &[0; 4]].concat();
    let path = folder.write("a.tfrecord", &[record(b"one"), record(b""), record(b"three")].concat());
    assert!(out(&gesso(&["index", "tfrecord", &path])).contains("3 samples"));
    assert_eq!(text(&path.replace("a.tfrecord", "a.idx")), "0 19\n19 16\n35 21\n");
    let path = folder.write("cut.tfrecord", &record(b"one")[..18]);
    assert!(
        errors(&gesso(&["index", "tfrecord", &path])).contains("18 bytes, but its last record ends at 19")
    );
}

#[test]
fn the_index_of_a_recordio_file_has_whole_records() {
    let folder = Folder::new("index recordio");
    let part = |kind: u32, data: &[u8]| {
        let mut bytes =
            [0xCED7_230A_u32.to_le_bytes(), (kind << 29 | data.len() as u32).to_le_bytes()].concat();
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let path =
        folder.write("a.rec", &[part(0, b"abcde"), part(1, b"x"), part(3, b"y"), part(0, b"z")].concat());
    let to = folder.path("b.txt").display().to_string();
    out(&gesso(&["index", "recordio", &path, "--out", &to]));
    assert_eq!(text(&to), "0\t0\n1\t16\n2\t40\n");
    let path = folder.write("b.rec", b"not a record");
    assert!(errors(&gesso(&["index", "recordio", &path])).contains("no record begins at byte 0"));
}

#[test]
fn the_index_of_a_tar_archive() {
    let folder = Folder::new("index webdataset");
    let mut archive = tar::Builder::new(Vec::new());
    let long = "x".repeat(150) + "/1.jpg";
    for (name, data) in [("d/0.jpg", "zero"), ("d/0.seg.png", "seg"), (long.as_str(), "one"), ("d/none", "")]
    {
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        archive.append_data(&mut header, name, data.as_bytes()).unwrap();
    }
    let path = folder.write("a.tar", &archive.into_inner().unwrap());
    out(&gesso(&["index", "webdataset", &path]));
    let found = text(&path.replace("a.tar", "a.idx"));
    assert_eq!(found, format!("v1.2 2\njpg 512 4 d/0.jpg seg.png 1536 3 d/0.seg.png\njpg 3584 3 {long}\n"));
}

/// A pipeline that reads files of a folder.
fn reading(root: &str, arguments: &str) -> Vec<u8> {
    let description = format!(
        r#"{{"max_batch_size": 2, "seed": 5,
            "operators": [{{"name": "readers__File", "instance": "files", "outputs": ["data", "label"],
                           "arguments": {{"file_root": {root:?}, "file_filters": ["*.bin"], {arguments}}}}}],
            "outputs": [{{"name": "data"}}, {{"name": "label"}}]}}"#
    );
    Pipeline::author(&serde_json::from_str(&description).unwrap()).unwrap()
}

#[test]
fn a_pipeline_reads_its_files_in_order() {
    let folder = Folder::new("reads");
    for (label, name, data) in
        [("a", "0.bin", "zero"), ("a", "1.bin", "one"), ("b", "2.bin", "two"), ("b", "no.txt", "")]
    {
        folder.write(&format!("set/{label}/{name}"), data.as_bytes());
    }
    let root = folder.path("set").display().to_string();
    let path = folder.write("model.dali", &reading(&root, r#""shard_id": 0"#));
    let to = folder.path("out").display().to_string();
    let told = json(&gesso(&["run", &path, "--json", "--out", &to]));
    assert_eq!(told["samples"].as_array().map(Vec::len), Some(3), "an epoch: {told}");
    let file = |name: &str| std::fs::read(folder.path("out").join(name)).unwrap();
    for (i, (data, label)) in [("zero", 0), ("one", 0), ("two", 1)].iter().enumerate() {
        assert!(file(&format!("data.{i}.npy")).ends_with(data.as_bytes()));
        assert!(file(&format!("label.{i}.npy")).ends_with(&i32::to_le_bytes(*label)));
    }
    assert!(out(&gesso(&["inspect", &path])).contains("runs on the CPU"));
}

#[test]
fn a_reader_says_what_is_wrong() {
    let folder = Folder::new("reads wrong");
    folder.write("set/a/0.bin", b"zero");
    let root = folder.path("set").display().to_string();
    for (arguments, wanted) in [
        (r#""num_shards": 2"#, "`num_shards` is 2, but there are only 1 samples"),
        (r#""shard_id": 1"#, "`shard_id` is 1, expected 0 to 0"),
        (r#""colour": 1"#, "argument `colour` is not supported by reader `readers__File`"),
        (r#""random_shuffle": true, "shuffle_after_epoch": true"#, "cannot both be true"),
    ] {
        let path = folder.write("model.dali", &reading(&root, arguments));
        let output = gesso(&["run", &path]);
        assert!(!output.status.success() && errors(&output).contains(wanted), "{}", errors(&output));
    }
    assert!(std::process::Command::new("mkfifo").arg(folder.path("set/a/-.bin")).status().unwrap().success());
    for arguments in [&["run"][..], &["index", "tfrecord"]] {
        let path = folder.write("model.dali", &reading(&root, r#""shard_id": 0"#));
        let path = if arguments.len() > 1 { folder.path("set/a/-.bin").display().to_string() } else { path };
        let output = gesso(&[arguments, &[&path]].concat());
        // A sample that fails stands among the others.
        let told = format!("{}{}", errors(&output), String::from_utf8_lossy(&output.stdout));
        assert!(!output.status.success() && told.contains("not a regular file"), "{told}");
    }
    std::fs::remove_file(folder.path("set/a/-.bin")).unwrap();
    let path = folder.write("model.dali", &reading("/no such folder", r#""shard_id": 0"#));
    assert!(errors(&gesso(&["run", &path])).contains("the folder `/no such folder`"));
}
