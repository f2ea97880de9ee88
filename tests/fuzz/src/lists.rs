//! What says where samples are: files of many samples, of which an index is made, and the lists that readers take.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::LazyLock;

use gesso::pipeline::{ArgumentType, ArgumentValue, Dataset, Pipeline};
use gesso_cli::index::{Format, lines};

use crate::bytes::Bytes;
use crate::operator::{called, pipeline_of, set_argument, set_outputs};

/// Records of TFRecord and RecordIO, archives: the first byte says which.
pub(crate) fn index(input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let format = bytes.pick(&[Format::Tfrecord, Format::Recordio, Format::Webdataset]);
    let file = bytes.rest();
    let made = format.map(|format| lines(format, Cursor::new(file), file.len() as u64, &|_| ()));
    let _ = made;
}

/// Stands for a video in a list of videos; other names with folders in them are not tried.
const VIDEO: &str = "@";

/// A folder of ours.
static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = std::env::temp_dir().join(format!("gesso-fuzz-{}", std::process::id()));
    let _ = std::fs::create_dir_all(root.join("images"));
    root
});
/// A list as a file, in a folder in which nothing else is.
static LIST: LazyLock<PathBuf> = LazyLock::new(|| ROOT.join("images").join("list.jpg"));

/// Lists of files and of videos, and patterns of names: the first bytes choose the reader and how it reads them.
pub(crate) fn list(input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let (kind, flag) = (bytes.below(3), bytes.once_in(2));
    let rounding = bytes.pick(&["start_down_end_up", "start_up_end_down", "all_up", "all_down", "up"]);
    let Ok(text) = std::str::from_utf8(bytes.rest()) else { return };
    if text.contains('/') {
        return;
    }
    let (list, folder) = (LIST.display().to_string(), LIST.with_file_name("").display().to_string());
    let root = ROOT.display().to_string();
    let video = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/video/vp8.ivf");
    if std::fs::write(&*LIST, text.replace(VIDEO, video)).is_err() {
        return;
    }
    let strings = |texts: &[String]| (ArgumentValue::Strings(texts.to_vec()), ArgumentType::String, true);
    let string = |text: &str| (ArgumentValue::Strings(vec![text.to_owned()]), ArgumentType::String, false);
    let mut reader = called(if kind == 0 { "experimental__readers__Video" } else { "readers__File" }, &[]);
    match kind {
        0 => {
            let length = (ArgumentValue::Ints(vec![2]), ArgumentType::Int64, false);
            set_argument(&mut reader, "sequence_length", length);
            set_argument(&mut reader, "file_list", string(&list));
            set_argument(&mut reader, "file_list_format", string(if flag { "frames" } else { "timestamps" }));
            set_argument(&mut reader, "file_list_rounding", string(rounding.unwrap_or_default()));
        }
        1 => {
            set_argument(&mut reader, "file_list", string(&list));
            if flag {
                set_argument(&mut reader, "file_root", string(&folder));
            }
        }
        _ => {
            let patterns: Vec<String> = text.split(' ').map(str::to_owned).collect();
            set_argument(&mut reader, "file_root", string(&root));
            set_argument(&mut reader, "file_filters", strings(&patterns));
            set_argument(&mut reader, "dir_filters", strings(&patterns));
            let case = (ArgumentValue::Bools(vec![flag]), ArgumentType::Bool, false);
            set_argument(&mut reader, "case_sensitive_filter", case);
        }
    }
    let mut description = pipeline_of(reader, Vec::new());
    set_outputs(&mut description, 2);
    let Ok(file) = Pipeline::author(&description) else { return };
    if let Ok(dataset) = Dataset::open(&file) {
        let _ = dataset.count();
    }
}
