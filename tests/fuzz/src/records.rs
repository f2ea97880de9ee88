//! Data sets of many samples in a file, as readers read them: archives, records, databases, arrays and annotations,
//! with their indices; tables, manifests and frames of folders.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use gesso::pipeline::{ArgumentType, ArgumentValue, Dataset, Pipeline};

use crate::bytes::Bytes;
use crate::operator::{called, pipeline_of, set_argument, set_outputs};

/// Samples that are read of one input.
const SAMPLES: usize = 8;

/// A folder of ours.
static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = std::env::temp_dir().join(format!("gesso-fuzz-records-{}", std::process::id()));
    let _ = std::fs::create_dir_all(&root);
    root
});

/// The readers: arguments for the file and its index, other arguments, outputs.
type Reader =
    (&'static str, &'static str, &'static str, &'static [(&'static str, &'static [&'static str])], usize);
const READERS: [Reader; 11] = [
    ("readers__Webdataset", "paths", "", &[("ext", &["jpg;a", "cls"])], 2),
    ("readers__Webdataset", "paths", "index_paths", &[("ext", &["jpg;a", "cls"])], 2),
    ("readers___TFRecord", "path", "index_path", FEATURES, 3),
    ("readers__MXNet", "path", "index_path", &[], 2),
    ("readers__Numpy", "files", "", &[], 1),
    ("readers__COCO", "annotations_file", "", &[], 3),
    ("readers__Caffe", "path", "", &[], 2),
    ("readers__Caffe2", "path", "", &[], 2),
    ("readers__Csv", "file_list", "", &[], 2),
    ("readers__NemoAsr", "manifest_filepaths", "", &[], 3),
    ("readers__Sequence", "file_root", "", &[], 1),
];
const FEATURES: &[(&str, &[&str])] = &[
    ("feature_names", &["a", "b", "c"]),
    ("features", &[r#"{"type": [1]}"#, r#"{"type": [0], "partial_shape": [2]}"#, r#"{"type": [2]}"#]),
];

/// The first bytes choose the reader and how long the index is.
pub(crate) fn run(input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let Some((name, path, index, others, outputs)) = bytes.pick(&READERS) else { return };
    let length = if index.is_empty() { 0 } else { usize::from(bytes.byte()) };
    let (listed, file) = (bytes.some(length).to_vec(), bytes.rest());
    let mut reader = called(name, &[]);
    let written = |name: &str, bytes: &[u8]| {
        let path = ROOT.join(name);
        std::fs::write(&path, bytes).ok().map(|()| path.display().to_string())
    };
    if path == "file_root" {
        // A folder in a folder, with the same frame twice.
        let _ = std::fs::create_dir_all(ROOT.join("frames/0"));
        let frames = ["frames/0/0", "frames/0/1"].map(|name| written(name, file));
        if frames.contains(&None) {
            return;
        }
    }
    let (Some(mut file), Some(listed)) = (written("file", file), written("index", &listed)) else { return };
    if path == "file_root" {
        file = ROOT.join("frames").display().to_string();
    }
    let mut set = |name: &str, texts: Vec<String>| {
        let is_list = !matches!(name, "annotations_file" | "file_list" | "file_root");
        set_argument(&mut reader, name, (ArgumentValue::Strings(texts), ArgumentType::String, is_list));
    };
    set(path, vec![file]);
    if !index.is_empty() {
        set(index, vec![listed]);
    }
    for (name, texts) in others {
        set(name, texts.iter().map(|&text| text.to_owned()).collect());
    }
    if path == "file_root" {
        let length = ArgumentValue::Ints(vec![2]);
        set_argument(&mut reader, "sequence_length", (length, ArgumentType::Int64, false));
    }
    let mut description = pipeline_of(reader, Vec::new());
    set_outputs(&mut description, outputs);
    let Ok(file) = Pipeline::author(&description) else { return };
    let Ok(dataset) = Dataset::open(&file) else { return };
    let memory = Arc::default();
    for sample in 0..dataset.count().min(SAMPLES) {
        // What is wrong with one says nothing of the next.
        let _ = dataset.read(sample, &memory);
    }
}
