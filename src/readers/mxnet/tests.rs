//! Records of RecordIO files, and files that nobody would write.

use std::collections::BTreeMap;

use super::*;
use crate::operator::args::Value;

fn part(kind: u32, data: &[u8]) -> Vec<u8> {
    let word = kind << KIND_BITS | data.len() as u32;
    let mut bytes = [MAGIC.to_le_bytes(), word.to_le_bytes()].concat();
    bytes.extend_from_slice(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn record(label: f32, labels: &[f32], image: &[u8]) -> Vec<u8> {
    let mut bytes = (labels.len() as u32).to_le_bytes().to_vec();
    bytes.extend(label.to_le_bytes());
    bytes.resize(HEADER, 0);
    bytes.extend(labels.iter().flat_map(|label| label.to_le_bytes()));
    bytes.extend_from_slice(image);
    bytes
}

/// Files and an index in a folder of the test's own.
fn opened(name: &str, files: &[Vec<u8>], index: &str) -> Result<Box<dyn Dataset>> {
    let folder = std::env::temp_dir().join(format!("gesso-mxnet-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let paths = files.iter().enumerate().map(|(i, bytes)| write(&format!("{i}.rec"), bytes)).collect();
    let values = [("path", paths), ("index_path", vec![write("a.idx", index.as_bytes())])];
    let values: BTreeMap<_, _> =
        values.into_iter().map(|(name, texts)| (name.to_owned(), Value::Strings(texts))).collect();
    open(&DEF.arguments(values))
}

fn read(dataset: &dyn Dataset, index: usize) -> Result<(Vec<u8>, Vec<f32>)> {
    let tensors = dataset.read(index, &Arc::default())?;
    assert!(tensors[0].source.contains(" at index ") && tensors[1].source.is_empty());
    let labels = tensors[1].bytes.bytes().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
    Ok((tensors[0].bytes.bytes().to_vec(), labels.collect()))
}

#[test]
fn records_are_images_and_labels() {
    let cut = record(3.0, &[], b"ab");
    let first =
        [part(WHOLE, &record(1.5, &[], b"one")), part(WHOLE, &record(0.0, &[2.0, 4.0], b""))].concat();
    let second = [part(1, &cut[..8]), part(2, &cut[8..12]), part(LAST, &cut[12..])].concat();
    let (begin, middle) = (first.len(), part(WHOLE, &record(1.5, &[], b"one")).len());
    let index = format!("2\t{begin}\n0\t0\n1\t{middle}\n");
    let dataset = opened("whole", &[first, Vec::new(), second], &index).unwrap();
    assert_eq!(dataset.groups().unwrap(), [0..2, 2..2, 2..3]);
    assert_eq!(read(&*dataset, 0).unwrap(), (b"one".to_vec(), vec![1.5]));
    assert_eq!(read(&*dataset, 1).unwrap(), (Vec::new(), vec![2.0, 4.0]));
    let whole = [&cut[..8], &cut[8..12], &cut[12..]].join(&MAGIC.to_le_bytes()[..]);
    let (image, labels) = read(&*dataset, 2).unwrap();
    assert_eq!((image.as_slice(), labels), (&whole[HEADER..], vec![3.0]));
    assert!(read(&*dataset, 3).is_err());
}

#[test]
fn what_is_wrong_is_an_error() {
    let whole = part(WHOLE, &record(1.0, &[], b"one"));
    for (bytes, index, wanted) in [
        (whole.clone(), "0 36\n", "names byte 36, but its files have 36"),
        (whole.clone(), "0 9223372036854775808\n", "names byte 9223372036854775808"),
        (whole.clone(), "0 1\n", "no part begins at byte 0"),
        (whole.clone(), "0 x\n", "expected two whole numbers"),
        (whole[..20].to_vec(), "0 0\n", "a part at byte 0 of 27 bytes in a record of 20"),
        (whole[..6].to_vec(), "0 0\n", "ends within a part, at byte 6"),
        (part(1, b"abcd"), "0 0\n", "ends within a part"),
        (part(WHOLE, b"abcd"), "0 0\n", "a record of 4 bytes, expected labels"),
        (part(WHOLE, &[0xFF; 40]), "0 0\n", "a record of 40 bytes, expected labels"),
        (part(7, &[0; 24]), "0 0\n", "ends within a part"),
    ] {
        let error = opened("wrong", &[bytes], index).and_then(|dataset| read(&*dataset, 0)).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}, not {wanted}");
    }
    assert_eq!(opened("empty", &[Vec::new()], "").unwrap().count(), 0);
}
