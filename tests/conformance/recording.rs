//! Recorded pipelines with their inputs and DALI's outputs, as `record.py` and `fuzz.py` write them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use gesso::tensor::DType;
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Index {
    pub(crate) cases: Vec<Case>,
}

#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) tol: f64,
    pub(crate) mean: Option<f64>,
    pub(crate) pipeline: Array,
    pub(crate) inputs: BTreeMap<String, Vec<Array>>,
    pub(crate) outputs: Vec<Vec<Array>>,
}

#[derive(Deserialize)]
pub(crate) struct Array {
    pub(crate) key: String,
    pub(crate) dtype: String,
    pub(crate) shape: Vec<usize>,
}

/// One recorded file: raw arrays by name.
pub(crate) struct Recording {
    pub(crate) index: Index,
    pub(crate) arrays: BTreeMap<String, Vec<u8>>,
}

impl Recording {
    pub(crate) fn open(path: &Path) -> Recording {
        let mut archive = zip::ZipArchive::new(File::open(path).unwrap()).unwrap();
        let mut arrays = BTreeMap::new();
        for i in 0..archive.len() {
            let mut entry = archive.by_index(i).unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            arrays.insert(entry.name().unwrap().into_owned(), bytes);
        }
        let index = serde_json::from_slice(&arrays.remove("index.json").unwrap()).unwrap();
        Recording { index, arrays }
    }

    pub(crate) fn bytes(&self, array: &Array) -> &[u8] {
        &self.arrays[&array.key]
    }
}

pub(crate) fn dtype(array: &Array) -> DType {
    DType::ALL.into_iter().find(|dtype| dtype.name() == array.dtype).unwrap()
}

/// A folder of `tests`.
pub(crate) fn folder(name: &str) -> PathBuf {
    // Cargo sets it for the run, and so does whoever runs this binary where the sources are elsewhere.
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&root).join("tests").join(name)
}

/// Before the names of recordings whose answers DALI gave on a device.
pub(crate) const ANSWERED_THERE: &str = "gpu/";

pub(crate) fn recordings() -> Vec<PathBuf> {
    // The generator of random pipelines brings its own.
    let folder =
        std::env::var_os("GESSO_RECORDINGS").map_or_else(|| folder("conformance/data"), PathBuf::from);
    recordings_in(&folder)
}

pub(crate) fn recordings_in(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "zip"));
    paths.sort();
    paths
}
