//! Tensors of records, and records that nobody would write.

use std::collections::BTreeMap;

use super::super::lmdb::tests::database;
use super::*;
use crate::operator::args;

/// A field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

/// A tensor of such dimensions, below 128, of a kind, with one more field.
fn message(dims: &[u8], kind: u8, values: &[u8]) -> Vec<u8> {
    field(1, &[&field(1, dims), &[0x10, kind][..], values].concat())
}

fn floats(values: &[f32]) -> Vec<u8> {
    field(3, bytemuck::cast_slice(values))
}

fn read(name: &str, record: &[Vec<u8>], given: &[(&str, i64)]) -> Result<Vec<Tensor>> {
    let path = std::env::temp_dir().join(format!("gesso-caffe2-{name}-{}", std::process::id()));
    std::fs::write(&path, database(&[b"", &record.concat()])).unwrap();
    let path = args::Value::Strings(vec![path.display().to_string()]);
    let mut values: BTreeMap<_, _> = [("path".to_owned(), path)].into();
    for &(name, value) in given {
        let is_flag = matches!(name, "bbox" | "image_available");
        let value =
            if is_flag { args::Value::Bools(vec![value != 0]) } else { args::Value::Ints(vec![value]) };
        values.insert(name.to_owned(), value);
    }
    let args = DEF.arguments(values);
    let types = (DEF.outputs)(&args)?;
    let dataset = (DEF.open)(&args)?;
    assert_eq!(dataset.count(), 2);
    assert!(types.is_empty() || dataset.read(0, &Arc::default()).is_err());
    let tensors = dataset.read(1, &Arc::default())?;
    assert_eq!(tensors.len(), types.len());
    assert!(tensors.iter().enumerate().all(|(i, tensor)| tensor.source.is_empty() == (i > 0)));
    Ok(tensors)
}

fn integers(tensor: &Tensor) -> Vec<i32> {
    assert_eq!(tensor.dtype, DType::I32);
    bytemuck::cast_slice(tensor.bytes.bytes()).to_vec()
}

#[test]
fn records_are_images_and_labels() {
    let file = message(&[1], 4, &[field(6, b"file"), field(6, b"other")].concat());
    let pixels = message(&[1, 2, 3], 3, &field(5, b"abcdef"));
    let label = message(&[1], 2, &[0x20, 7]);
    for (image, bytes, shape) in [(&file, &b"file"[..], &[4][..]), (&pixels, b"abcdef", &[1, 2, 3])] {
        let tensors = read("whole", &[image.clone(), label.clone()], &[]).unwrap();
        assert_eq!((tensors[0].bytes.bytes(), &tensors[0].shape[..]), (bytes, shape));
        assert_eq!((integers(&tensors[1]), &tensors[1].shape[..]), (vec![7], &[1][..]));
    }
    let dense = message(&[3], 2, &field(4, &[0, 1, 1]));
    let tensors = read("whole", &[file.clone(), dense], &[("label_type", 2)]).unwrap();
    assert_eq!(integers(&tensors[1]), [0, 1, 1]);
    let box_ = message(&[2, 2], 1, &floats(&[0.5, 1.0, 1.5, 2.0]));
    let given = [("bbox", 1), ("additional_inputs", 1), ("label_type", 4)];
    let tensors = read("whole", &[file.clone(), label.clone(), box_.clone()], &given).unwrap();
    assert_eq!((tensors[2].dtype, &tensors[2].shape[..]), (DType::F32, &[2, 2][..]));
    // Dimensions that do not fit, and none.
    let odd = message(&[3], 2, &field(4, &[1, 2]));
    let tensors = read("whole", &[odd, message(&[], 1, &floats(&[2.0]))], &[]).unwrap();
    assert_eq!((&tensors[0].shape[..], &tensors[1].shape[..]), (&[2][..], &[][..]));
    assert!(read("whole", &[label], &[("image_available", 0)]).is_ok());
}

#[test]
fn sparse_labels_are_spread_over_the_classes() {
    let classes = message(&[2], 2, &field(4, &[3, 1]));
    let given = [("image_available", 0), ("num_labels", 4)];
    let tensors =
        read("sparse", std::slice::from_ref(&classes), &[&given[..], &[("label_type", 1)]].concat()).unwrap();
    assert_eq!((integers(&tensors[0]), integers(&tensors[1])), (vec![0, 1, 0, 1], vec![3, 1]));
    let given = [&given[..], &[("label_type", 3)]].concat();
    let weights = |values: &[f32]| message(&[values.len() as u8], 1, &floats(values));
    let tensors = read("sparse", &[classes.clone(), weights(&[0.5, 2.0])], &given).unwrap();
    assert_eq!(bytemuck::cast_slice::<u8, f32>(tensors[0].bytes.bytes()), [0.0, 2.0, 0.0, 0.5]);
    let whole = message(&[2], 2, &field(4, &[5, 6]));
    let tensors = read("sparse", &[classes.clone(), whole], &given).unwrap();
    assert_eq!(integers(&tensors[0]), [0, 6, 0, 5]);
    let wrong = |record: &[Vec<u8>]| read("sparse", record, &given).err().unwrap().to_string();
    assert!(wrong(&[classes.clone(), weights(&[1.0, 2.0, 3.0])]).contains("3 weights of 2 classes"));
    assert!(wrong(&[classes]).contains("a record of 1 tensors, too few for 2 outputs"));
    assert!(wrong(&[message(&[1], 2, &[0x20, 4]), weights(&[1.0])]).contains("the class 4"));
    assert!(wrong(&[weights(&[1.0]), weights(&[1.0])]).contains("classes of type float32"));
}

#[test]
fn records_that_are_wrong_are_errors() {
    for (tensor, wanted) in [
        (b"\x08\x01".to_vec(), "a number, expected a tensor"),
        (message(&[2], 3, &field(5, b"abc")), "3 bytes in a tensor of shape [2]"),
        (message(&[1], 1, &field(3, b"abc")), "field 3 of a tensor has another type"),
        (message(&[1], 2, b"\x20\x80\x80\x80\x80\x08"), "2147483648, expected 32 bits"),
        (message(&[1], 2, &floats(&[f32::NAN])), "expected 32 bits"),
        (message(&[1], 2, b"\x30\x01"), "field 6 of a tensor"),
        (message(&[1], 2, b"\x22\x05\x01"), "ends within a field of 5 bytes"),
        (
            field(1, b"\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01\x10\x03"),
            "0 bytes in a tensor of shape [-1]",
        ),
        (vec![0x0A, 0], "a record of 1 tensors"),
        (b"\x0A\x00".repeat(limits::MAX_PIPELINE_TENSORS + 1), "more than 1024 tensors"),
    ] {
        let error = read("wrong", &[tensor], &[]).err().unwrap().to_string();
        assert!(error.contains(wanted) && error.contains("gesso-caffe2-wrong"), "{wanted}: {error}");
    }
    for (name, value) in [("label_type", 5), ("num_labels", -1), ("additional_inputs", 1 << 20)] {
        assert!(read("wrong", &[], &[(name, value)]).err().unwrap().to_string().contains("expected 0 to"));
    }
    assert!(read("none", &[], &[("label_type", 4), ("image_available", 0)]).unwrap().is_empty());
}
