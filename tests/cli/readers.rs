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
    let told = json(&gesso(&["run", &path, "--json", "--out", &to, "--overwrite"]));
    assert_eq!(told["samples"].as_array().map(Vec::len), Some(3), "an epoch: {told}");
    let file = |name: &str| std::fs::read(folder.path("out").join(name)).unwrap();
    for (i, (data, label)) in [("zero", 0), ("one", 0), ("two", 1)].iter().enumerate() {
        assert!(file(&format!("data.{i}.npy")).ends_with(data.as_bytes()));
        assert!(file(&format!("label.{i}.npy")).ends_with(&i32::to_le_bytes(*label)));
    }
    let told = out(&gesso(&["inspect", &path]));
    assert!(
        told.contains("runs on the CPU") && told.contains("does not run in Triton, for `readers.File`"),
        "{told}"
    );
}

/// What `gesso run` finds of a pipeline with one reader: how many samples, and the files that it wrote.
fn run(folder: &Folder, reader: &str, outputs: usize, arguments: &str) -> (usize, Vec<Vec<u8>>) {
    let names: Vec<String> = (0..outputs).map(|i| format!("out{i}")).collect();
    let list = |made: &dyn Fn(&String) -> String| names.iter().map(made).collect::<Vec<_>>().join(", ");
    let description = format!(
        r#"{{"max_batch_size": 2, "operators": [{{"name": "{reader}", "instance": "r", "outputs": [{}], "arguments": {{{arguments}}}}}],
            "outputs": [{}]}}"#,
        list(&|name| format!("{name:?}")),
        list(&|name| format!("{{\"name\": {name:?}}}"))
    );
    let file = Pipeline::author(&serde_json::from_str(&description).unwrap()).unwrap();
    let path = folder.write("model.dali", &file);
    let to = folder.path(reader).display().to_string();
    let told = json(&gesso(&["run", &path, "--json", "--out", &to, "--overwrite"]));
    let samples = told["samples"].as_array().map_or(0, Vec::len);
    let file = |name: &String| std::fs::read(folder.path(reader).join(format!("{name}.0.npy"))).unwrap();
    (samples, names.iter().map(file).collect())
}

#[test]
fn data_sets_of_every_kind_are_read() {
    let folder = Folder::new("reads kinds");
    let mut archive = tar::Builder::new(Vec::new());
    for (name, data) in [("0.jpg", "zero"), ("0.cls", "0"), ("1.jpg", "one")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        archive.append_data(&mut header, name, data.as_bytes()).unwrap();
    }
    let path = folder.write("a.tar", &archive.into_inner().unwrap());
    out(&gesso(&["index", "webdataset", &path]));
    let index = path.replace("a.tar", "a.idx");
    for more in [String::new(), format!(r#", "index_paths": [{index:?}]"#)] {
        let arguments = format!(r#""paths": [{path:?}], "ext": ["jpg", "cls"]{more}"#);
        let (samples, found) = run(&folder, "readers__Webdataset", 2, &arguments);
        assert!(samples == 2 && found[0].ends_with(b"zero") && found[1].ends_with(b"0"), "{arguments}");
    }

    let value = b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x0a\x03\x0a\x01x";
    let record = [&(value.len() as u64).to_le_bytes(), &[0; 4][..], value, &[0; 4]].concat();
    let path = folder.write("b.tfrecord", &record);
    out(&gesso(&["index", "tfrecord", &path]));
    let index = path.replace("b.tfrecord", "b.idx");
    let arguments = format!(
        r#""path": [{path:?}], "index_path": [{index:?}], "feature_names": ["a"], "features": ["{{\"type\": [1]}}"]"#
    );
    let (samples, found) = run(&folder, "readers___TFRecord", 1, &arguments);
    assert!(samples == 1 && found[0].ends_with(b"x"));

    let record = [&[0; 4][..], &2.5_f32.to_le_bytes(), &[0; 16], b"image"].concat();
    let path = folder.write(
        "c.rec",
        &[&0xCED7_230A_u32.to_le_bytes(), &(record.len() as u32).to_le_bytes(), &record[..], &[0; 3]]
            .concat(),
    );
    out(&gesso(&["index", "recordio", &path]));
    let index = path.replace("c.rec", "c.idx");
    let arguments = format!(r#""path": [{path:?}], "index_path": [{index:?}]"#);
    let (samples, found) = run(&folder, "readers__MXNet", 2, &arguments);
    assert!(samples == 1 && found[0].ends_with(b"image") && found[1].ends_with(&2.5_f32.to_le_bytes()));

    let header = "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }";
    let array = [b"\x93NUMPY\x01\0", &[header.len() as u8, 0][..], header.as_bytes(), &7_i32.to_le_bytes()];
    let path = folder.write("set/d.npy", &array.concat());
    let (samples, found) = run(&folder, "readers__Numpy", 1, &format!(r#""files": [{path:?}]"#));
    assert!(samples == 1 && found[0].ends_with(&7_i32.to_le_bytes()));

    let annotations = r#"{"images": [{"id": 3, "file_name": "d.npy", "width": 2, "height": 2}], "categories": [{"id": 5}],
        "annotations": [{"image_id": 3, "category_id": 5, "bbox": [0, 0, 1, 2]}]}"#;
    let path = folder.write("all.json", annotations.as_bytes());
    let root = folder.path("set").display().to_string();
    let arguments = format!(r#""file_root": {root:?}, "annotations_file": {path:?}, "image_ids": true"#);
    let (samples, found) = run(&folder, "readers__COCO", 4, &arguments);
    assert!(
        samples == 1
            && found[1].ends_with(&2.0_f32.to_le_bytes())
            && found[2].ends_with(&1_i32.to_le_bytes())
    );
    assert!(found[3].ends_with(&3_i32.to_le_bytes()));
}

/// A database of LMDB with one record.
fn database(record: &[u8]) -> Vec<u8> {
    const PAGE: usize = 512;
    let mut pages = vec![0; 3 * PAGE];
    let mut put = |place: usize, bytes: &[u8]| pages[place..place + bytes.len()].copy_from_slice(bytes);
    for page in [0, PAGE] {
        // The mark, the size of pages, and the root.
        put(page + 16, &0xBEEF_C0DE_u32.to_le_bytes());
        put(page + 16 + 24, &(PAGE as u32).to_le_bytes());
        put(page + 16 + 112, &2_u64.to_le_bytes());
    }
    // A leaf with one node at its byte 18.
    put(2 * PAGE + 10, &[2, 0, 18, 0, 0, 0, 18, 0]);
    put(2 * PAGE + 18, &[&(record.len() as u32).to_le_bytes()[..], &[0, 0, 1, 0], b"k", record].concat());
    pages
}

#[test]
fn databases_tables_speech_and_sequences_are_read() {
    let folder = Folder::new("reads more");
    let path = folder.write("a.mdb", &database(b"\x22\x05image\x28\x07\x38\x01"));
    let (samples, found) = run(&folder, "readers__Caffe", 2, &format!(r#""path": [{path:?}]"#));
    assert!(samples == 1 && found[0].ends_with(b"image") && found[1].ends_with(&7_i32.to_le_bytes()));

    let record = b"\x0a\x09\x10\x04\x32\x05image\x0a\x07\x08\x01\x10\x02\x22\x01\x07";
    let path = folder.write("b.mdb", &database(record));
    let (samples, found) = run(&folder, "readers__Caffe2", 2, &format!(r#""path": [{path:?}]"#));
    assert!(samples == 1 && found[0].ends_with(b"image") && found[1].ends_with(&7_i32.to_le_bytes()));

    folder.write("set/0/0.pgm", b"P5 1 1 255\n\x05");
    folder.write("set/0/1.pgm", b"P5 1 1 255\n\x06");
    let root = folder.path("set").display().to_string();
    let arguments = format!(r#""file_root": {root:?}, "sequence_length": 2, "image_type": 2"#);
    let (samples, found) = run(&folder, "readers__Sequence", 1, &arguments);
    assert!(samples == 1 && found[0].ends_with(&[5, 6]));

    let path = folder.write("set/labels.csv", b"name,image,x,y\nfive,0/0.pgm,1,2.5\nsix,0/1.pgm,3,4\n");
    let arguments = format!(r#""file_list": {path:?}, "path_column": "image", "label_columns": ["y", "x"]"#);
    let (samples, found) = run(&folder, "readers__Csv", 2, &arguments);
    assert!(samples == 2 && found[0].ends_with(b"\x05"));
    assert!(found[1].ends_with(&[2.5_f32.to_le_bytes(), 1.0_f32.to_le_bytes()].concat()));

    let front = b"RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x0a\0\0\0\x14\0\0\0\x02\0\x10\0data\x04\0\0\0";
    let path = folder.write("a.wav", &[&front[..], &300_i16.to_le_bytes(), &400_i16.to_le_bytes()].concat());
    let line = format!(r#"{{"audio_filepath": {path:?}, "text": "two", "offset": 0.1}}"#);
    let path = folder.write("all.json", line.as_bytes());
    let (samples, found) =
        run(&folder, "readers__NemoAsr", 3, &format!(r#""manifest_filepaths": [{path:?}], "dtype": 5"#));
    assert!(samples == 1 && found[0].ends_with(&400_i16.to_le_bytes()));
    assert!(found[1].ends_with(&10.0_f32.to_le_bytes()) && found[2].ends_with(b"two"));
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
