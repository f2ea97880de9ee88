//! Features of examples, and files that nobody would write.

use std::collections::BTreeMap;

use super::*;
use crate::operator::args::Value;

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len();
    let [low, high] = [length as u8 & 127, (length >> 7) as u8];
    let length = if high == 0 { vec![low] } else { vec![low | 128, high] };
    [&[number << 3 | 2], length.as_slice(), bytes].concat()
}

/// An entry of the features: its name, the kind of its values, and they.
fn entry(name: &str, kind: u8, values: &[u8]) -> Vec<u8> {
    field(1, &[field(1, name.as_bytes()), field(2, &field(kind, values))].concat())
}

fn framed(data: &[u8]) -> Vec<u8> {
    [&(data.len() as u64).to_le_bytes(), &[0xEE; 4][..], data, &[0xEE; 4]].concat()
}

fn example(entries: &[Vec<u8>]) -> Vec<u8> {
    framed(&field(1, &entries.concat()))
}

fn opened(name: &str, file: &[u8], index: &str, features: &[(&str, &str)]) -> Result<Box<dyn Dataset>> {
    let folder = std::env::temp_dir().join(format!("gesso-tfrecord-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        vec![path.display().to_string()]
    };
    let texts = |which: fn(&(&str, &str)) -> String| features.iter().map(which).collect::<Vec<_>>();
    let values = [
        ("path", write("a", file)),
        ("index_path", write("a.idx", index.as_bytes())),
        ("feature_names", texts(|feature| feature.0.to_owned())),
        ("features", texts(|feature| feature.1.to_owned())),
    ];
    let values: BTreeMap<_, _> =
        values.into_iter().map(|(name, texts)| (name.to_owned(), Value::Strings(texts))).collect();
    open(&DEF.arguments(values))
}

fn read(dataset: &dyn Dataset) -> Result<Vec<(Vec<usize>, Vec<u8>)>> {
    let tensors = dataset.read(0, &Arc::default())?;
    assert!(tensors.iter().all(|tensor| tensor.source.ends_with("/a at index 0")));
    Ok(tensors.into_iter().map(|tensor| (tensor.shape.to_vec(), tensor.bytes.bytes().to_vec())).collect())
}

fn bytes_of<T: bytemuck::NoUninit>(numbers: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(numbers).to_vec()
}

#[test]
fn features_are_tensors() {
    let floats: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    let loose = [&[0x0D][..], &floats[..4], &[0x0D], &floats[4..]].concat();
    let file = example(&[
        entry("text", 1, &[field(1, b"first"), field(1, b"second")].concat()),
        entry("packed", 3, &field(1, &[5, 0x96, 1, 7, 8])),
        entry("loose", 3, &[8, 5, 8, 6]),
        entry("floats", 2, &field(1, &floats)),
        entry("loose floats", 2, &loose),
        entry("twice", 3, &[8, 1]),
        entry("twice", 3, &[8, 2]),
        field(1, &field(1, b"none")),
    ]);
    let index = format!("0 {}\n", file.len());
    let features = [
        ("text", r#"{"type": [1], "has_shape": [true], "shape": [9]}"#),
        ("packed", r#"{"type": [0], "has_shape": [true], "shape": [2, 2]}"#),
        ("loose", r#"{"type": [0], "has_shape": [false], "shape": []}"#),
        ("floats", r#"{"type": [2], "partial_shape": [1]}"#),
        ("loose floats", r#"{"type": [2]}"#),
        ("twice", r#"{"type": [0], "has_shape": [true], "shape": []}"#),
        ("none", r#"{"type": [0], "default_value": [-7]}"#),
        ("missing", r#"{"type": [2], "default_value": ["NaN"]}"#),
        ("no text", r#"{"type": [1], "default_value": ["ab"]}"#),
    ];
    let found = read(&*opened("all", &file, &index, &features).unwrap()).unwrap();
    let wanted = [
        (vec![5], b"first".to_vec()),
        (vec![2, 2], bytes_of(&[5_i64, 150, 7, 8])),
        (vec![2], bytes_of(&[5_i64, 6])),
        (vec![2, 1], floats.clone()),
        (vec![2], floats),
        (vec![], bytes_of(&[2_i64])),
        (vec![], bytes_of(&[-7_i64])),
        (vec![], bytes_of(&[f32::NAN])),
        (vec![2], b"ab".to_vec()),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn what_is_wrong_is_an_error() {
    let text = example(&[entry("a", 1, &field(1, b"x"))]);
    let int = r#"{"type": [0], "has_shape": [true], "shape": [2]}"#;
    let whole = |file: &[u8]| format!("0 {}", file.len());
    for (file, index, wanted) in [
        (text.clone(), whole(&text), "kind 1, expected those of Int(0)"),
        (text.clone(), "0 9223372036854775808".to_owned(), "expected 9223372036854775808 from byte 0 on"),
        (text.clone(), "9223372036854775807 20".to_owned(), "from byte 9223372036854775807 on"),
        (text.clone(), "0 20".to_owned(), "no record of 20 bytes"),
        (text.clone(), "0 3".to_owned(), "no record of 3 bytes"),
        (example(&[entry("a", 3, &[8])]), String::new(), "ends within an integer"),
        (example(&[entry("a", 3, &[8, 1])]), String::new(), "1 values, expected a shape of Fixed([2])"),
        (example(&[entry("a", 3, &field(1, &[0x80]))]), String::new(), "ends within an integer"),
        (example(&[field(1, &[])]), String::new(), "no name"),
        (example(&[field(1, &[0x0A, 1, b'a', 0x12, 2, 8, 1])]), String::new(), "a number as its field 1"),
        (framed(&[0x0A, 0x7F, 1]), String::new(), "within a field of 127 bytes"),
    ] {
        let index = if index.is_empty() { whole(&file) } else { index };
        let error =
            opened("wrong", &file, &index, &[("a", int)]).and_then(|dataset| read(&*dataset)).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}, not {wanted}");
    }
    for feature in [
        r#"{"type": [3]}"#,
        r#"{"type": []}"#,
        "{}",
        "",
        r#"{"type": [0], "has_shape": [true], "shape": [-1]}"#,
        r#"{"type": [0], "other": 1}"#,
        r#"{"type": [0], "partial_shape": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}"#,
    ] {
        assert!(opened("features", b"", "", &[("a", feature)]).is_err(), "{feature}");
    }
    assert!(opened("none", b"", "", &[]).is_err());
    let rows = r#"{"type": [0], "partial_shape": [0, 9223372036854775807]}"#;
    let file = example(&[entry("a", 3, &[8, 1])]);
    let error = opened("rows", &file, &whole(&file), &[("a", rows)]).and_then(|dataset| read(&*dataset));
    assert!(error.unwrap_err().to_string().contains("1 values, expected a shape of Rows"));
}
