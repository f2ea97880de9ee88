//! `readers.Caffe`: images and labels in databases of Caffe, each a message `Datum`. And [`Records`], which are those
//! of Caffe2, too.

use std::ops::Range;
use std::sync::Arc;

use super::file::strings;
use super::pieces::Pieces;
use super::wire::{Fields, Value};
use super::{Dataset, ReaderDef, Tensor, lmdb, tensors};
use crate::error::{Context, Error, Result};
use crate::memory::{HostBuffer, HostPool};
use crate::operator::{ArgSpec, Args};
use crate::tensor::{DType, Shape, ValueType};

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers__Caffe",
    aliases: &["CaffeReader"],
    doc: "Images and labels of Caffe's LMDB databases",
    args: &[
        PATH,
        ArgSpec::bool("image_available", "whether the images are an output").or_bool(true),
        ArgSpec::bool("label_available", "whether the labels are an output").or_bool(true),
    ],
    outputs,
    open,
    undecoded: None,
    behind: None,
    shuffles_list: false,
};

/// What names the databases.
pub(super) const PATH: ArgSpec =
    ArgSpec::strings("path", "folders of databases, or their files, one behind the other").required();

// The fields of a `Datum`.
const CHANNELS: u64 = 1;
const HEIGHT: u64 = 2;
const WIDTH: u64 = 3;
const DATA: u64 = 4;
const LABEL: u64 = 5;
const ENCODED: u64 = 7;

/// An output, of any rank if none is given.
pub(super) fn known(dtype: Option<DType>, dims: Option<Vec<Option<usize>>>) -> ValueType {
    ValueType { dtype, dims, layout: Some(Default::default()) }
}

fn outputs(args: &Args) -> Result<Vec<ValueType>> {
    let [has_image, has_label] = available(args)?;
    // An image that is not encoded has three dimensions.
    let image = has_image.then(|| known(Some(DType::U8), None));
    let label = has_label.then(|| known(Some(DType::I32), Some(vec![Some(1)])));
    Ok(image.into_iter().chain(label).collect())
}

fn available(args: &Args) -> Result<[bool; 2]> {
    Ok([args.bool("image_available")?, args.bool("label_available")?])
}

fn open(args: &Args) -> Result<Box<dyn Dataset>> {
    Ok(Box::new(Datums { records: Records::open(args)?, available: available(args)? }))
}

/// The values of databases, one behind the other.
pub(super) struct Records {
    files: Pieces,
    /// What the databases are called.
    names: Vec<String>,
    /// The number of its file, and where it is.
    places: Vec<(usize, lmdb::Value)>,
}

impl Records {
    /// Those of the databases that are given as `path`.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub(super) fn open(args: &Args) -> Result<Self> {
        let (mut files, mut places) = (Vec::new(), Vec::new());
        let names = strings(args, "path").unwrap_or_default();
        for (number, path) in names.iter().enumerate() {
            let (file, values) = lmdb::values(path)?;
            places.extend(values.into_iter().map(|value| (number, value)));
            files.push(file);
        }
        Ok(Self { files: Pieces::new(files), names, places })
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// What `made` makes of the bytes of record `index`. The first output is said to be from it.
    ///
    /// # Errors
    /// A record that is not in its file, and what `made` says.
    pub(super) fn read(
        &self,
        index: usize,
        memory: &Arc<HostPool>,
        made: impl FnOnce(&Arc<HostBuffer>, Range<usize>) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        let &(number, lmdb::Value { at, length, key_length, key }) =
            self.places.get(index).ok_or_else(|| Error::internal("a sample that is not there"))?;
        let buffer = self.files.read(number, key, key_length.into(), memory)?;
        let key = buffer.bytes().get(..usize::from(key_length)).unwrap_or_default();
        // In DALI's words.
        let name = self.names.get(number).map_or("", String::as_str);
        let source = format!("{name} at key {}", String::from_utf8_lossy(key));
        let buffer = self.files.read(number, at, length.into(), memory)?;
        // What was read is no longer than a sample may be.
        let made = made(&buffer, 0..length as usize);
        let mut tensors = made.context(|| format!("the record {source}"))?;
        if let Some(first) = tensors.first_mut() {
            first.source = source;
        }
        Ok(tensors)
    }
}

struct Datums {
    records: Records,
    available: [bool; 2],
}

impl Dataset for Datums {
    fn count(&self) -> usize {
        self.records.count()
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let [has_image, has_label] = self.available;
        self.records.read(index, memory, |buffer, range| {
            let datum = Datum::new(buffer.bytes(), range)?;
            let image = has_image.then(|| datum.image(buffer));
            let label = has_label.then(|| datum.label(memory)).transpose()?;
            Ok(image.into_iter().chain(label).collect())
        })
    }
}

/// What is known of one image.
struct Datum {
    data: Range<usize>,
    label: i64,
    /// Rows, columns, channels.
    shape: [u64; 3],
    is_encoded: bool,
}

impl Datum {
    fn new(bytes: &[u8], range: Range<usize>) -> Result<Self> {
        let mut found = Self { data: 0..0, label: 0, shape: [1; 3], is_encoded: false };
        let [height, width, channels] = &mut found.shape;
        for field in Fields::new(bytes, range) {
            match field? {
                (DATA, Value::Bytes(range)) => found.data = range,
                (LABEL, Value::Number(label)) => found.label = label as i64,
                (HEIGHT, Value::Number(number)) => *height = number,
                (WIDTH, Value::Number(number)) => *width = number,
                (CHANNELS, Value::Number(number)) => *channels = number,
                (ENCODED, Value::Number(number)) => found.is_encoded = number != 0,
                (number @ (CHANNELS..=LABEL | ENCODED), _) => {
                    return Err(Error::invalid(format!(
                        "field {number} of a `Datum` has another type: 4 is bytes, the others are numbers"
                    )));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// The image: a file, or pixels. Those that are fewer or more than its size says are a list.
    fn image(&self, buffer: &Arc<HostBuffer>) -> Tensor {
        let list = tensors::part(buffer, self.data.clone(), DType::U8);
        let shape = Shape::from(self.shape.map(|extent| usize::try_from(extent).unwrap_or(usize::MAX)));
        let is_whole = shape.bytes_of_input(1).is_ok_and(|length| length == self.data.len());
        if self.is_encoded || !is_whole { list } else { Tensor { shape, ..list } }
    }

    fn label(&self, memory: &Arc<HostPool>) -> Result<Tensor> {
        let label = i32::try_from(self.label);
        let label =
            label.map_err(|_| Error::invalid(format!("the label {}, expected 32 bits", self.label)))?;
        tensors::list(&[label], memory)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::lmdb::tests::database;
    use super::*;
    use crate::operator::args;

    /// A reader of a database of such records, in a folder of the test's own.
    fn opened(name: &str, records: &[&[u8]], given: &[(&str, bool)]) -> Result<Box<dyn Dataset>> {
        let folder = std::env::temp_dir().join(format!("gesso-caffe-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("data.mdb"), database(records)).unwrap();
        let paths = vec![folder.display().to_string(), folder.join("data.mdb").display().to_string()];
        let mut values: BTreeMap<_, _> = [("path".to_owned(), args::Value::Strings(paths))].into();
        values.extend(given.iter().map(|&(name, flag)| (name.to_owned(), args::Value::Bools(vec![flag]))));
        let args = DEF.arguments(values);
        assert_eq!(outputs(&args).unwrap().len(), 2 - given.len());
        open(&args)
    }

    #[test]
    fn records_are_images_and_labels() {
        let encoded = b"\x22\x04file\x28\x07\x38\x01\x08\x02";
        let pixels = b"\x08\x03\x10\x01\x18\x02\x22\x06abcdef\x28\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01";
        let list = b"\x10\x03\x22\x02xy\x4A\x01?";
        let dataset = opened("whole", &[encoded, pixels, list, b""], &[]).unwrap();
        assert_eq!(dataset.count(), 8);
        for (index, (image, shape, label)) in
            [(&b"file"[..], &[4][..], 7), (b"abcdef", &[1, 2, 3], -1), (b"xy", &[2], 0), (b"", &[0], 0)]
                .into_iter()
                .enumerate()
                .flat_map(|(i, wanted)| [(i, wanted), (i + 4, wanted)])
        {
            let tensors = dataset.read(index, &Arc::default()).unwrap();
            assert_eq!((tensors[0].bytes.bytes(), &tensors[0].shape[..]), (image, shape));
            assert_eq!(bytemuck::cast_slice::<u8, i32>(tensors[1].bytes.bytes()), [label]);
            let name = if index < 4 { "" } else { "/data.mdb" };
            assert!(tensors[0].source.ends_with(&format!("{}{name} at key k", std::process::id())));
            assert!(tensors[1].source.is_empty());
        }
        assert!(dataset.read(8, &Arc::default()).is_err());
        for (name, dtype) in [("image_available", DType::I32), ("label_available", DType::U8)] {
            let tensors =
                opened("part", &[encoded], &[(name, false)]).unwrap().read(0, &Arc::default()).unwrap();
            assert!(tensors.len() == 1 && tensors[0].dtype == dtype && !tensors[0].source.is_empty());
        }
    }

    #[test]
    fn messages_that_are_wrong_are_errors() {
        for (record, wanted) in [
            (&b"\x22\x05file"[..], "ends within a field of 5 bytes"),
            (b"\x20\x01", "field 4 of a `Datum` has another type"),
            (b"\x2A\x01x", "field 5 of a `Datum`"),
            (b"\x0D\x01\x02\x03\x04", "field 1 of a `Datum`"),
            (b"\x28\x80\x80\x80\x80\x08", "the label 2147483648"),
            (b"\x0B", "unknown kind 3"),
        ] {
            let dataset = opened("wrong", &[record], &[]).unwrap();
            let error = dataset.read(0, &Arc::default()).err().unwrap().to_string();
            assert!(error.contains(wanted) && error.contains("gesso-caffe-wrong"), "{error}");
        }
        // A size that overflows when it is counted.
        let huge = [&b"\x08\x02\x10"[..], &[0xFF; 9], b"\x01\x22\x02xy"].concat();
        let tensors = opened("wrong", &[&huge], &[]).unwrap().read(0, &Arc::default()).unwrap();
        assert_eq!(tensors[0].shape[..], [2]);
    }
}
