//! Tables, and those that nobody would write.

use std::collections::BTreeMap;

use super::*;
use crate::operator::args::Value;

fn opened(name: &str, table: &[u8], given: &[(&str, Value)]) -> Result<Box<dyn Dataset>> {
    let folder = std::env::temp_dir().join(format!("gesso-csv-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("labels.csv"), table).unwrap();
    for name in ["a.jpg", "b, \"c\".jpg"] {
        std::fs::write(folder.join(name), name).unwrap();
    }
    let path = folder.join("labels.csv").display().to_string();
    let mut values: BTreeMap<_, _> = [("file_list".to_owned(), Value::Strings(vec![path]))].into();
    values.extend(given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let args = DEF.arguments(values);
    assert_eq!(outputs(&args)?.len(), 2);
    open(&args)
}

fn texts(texts: &[&str]) -> Value {
    Value::Strings(texts.iter().map(|&text| text.to_owned()).collect())
}

/// The path, the bytes and the labels of a sample.
fn sample<T: crate::tensor::Element>(dataset: &dyn Dataset, index: usize) -> (String, Vec<u8>, Vec<T>) {
    let tensors = dataset.read(index, &Arc::default()).unwrap();
    assert!(tensors[1].dtype == T::DTYPE && tensors[1].source.is_empty());
    let labels = bytemuck::cast_slice(tensors[1].bytes.bytes()).to_vec();
    (tensors[0].source.clone(), tensors[0].bytes.bytes().to_vec(), labels)
}

#[test]
fn rows_are_files_and_labels() {
    let table = "\u{feff}image, class,rest\r\n\r\na.jpg, 3,-1\r\n\"b, \"\"c\"\".jpg\",2,0";
    let dataset = opened("rows", table.as_bytes(), &[]).unwrap();
    assert_eq!(dataset.count(), 2);
    assert_eq!(sample::<i32>(&*dataset, 0), ("a.jpg".to_owned(), b"a.jpg".to_vec(), vec![3, -1]));
    assert_eq!(sample::<i32>(&*dataset, 1).0, "b, \"c\".jpg");
    assert!(dataset.read(2, &Arc::default()).is_err());
    // Columns by name, in another order; a number that is not whole.
    let table = b"x\ty\tname\tfile\n1\t.5\tcat\ta.jpg\n2\tnan\tdog\ta.jpg\n";
    let given = [
        ("path_column", texts(&["file"])),
        ("label_columns", texts(&["y", "x"])),
        ("delimiter", texts(&["\t"])),
    ];
    let dataset = opened("rows", table, &given).unwrap();
    assert_eq!(sample::<f32>(&*dataset, 0).2, [0.5, 1.0]);
    assert!(sample::<f32>(&*dataset, 1).2[0].is_nan());
    let dataset = opened("rows", b"a,b\na.jpg,3000000000\n", &[("dtype", Value::Ints(vec![9]))]).unwrap();
    assert_eq!(sample::<f32>(&*dataset, 0).2, [3e9]);
    // Absolute paths, a root, a long field, and no rows.
    let long = "x".repeat(5_000);
    let table = format!("a,b\n/dev/null,1\n{long},2\n");
    let dataset = opened("rows", table.as_bytes(), &[("file_root", texts(&["/nowhere"]))]).unwrap();
    let errors = [0, 1].map(|index| dataset.read(index, &Arc::default()).err().unwrap().to_string());
    assert!(errors[0].contains("`/dev/null`") && errors[1].contains("`/nowhere/xxx"), "{errors:?}");
    assert_eq!(opened("rows", b"a,b\n", &[]).unwrap().count(), 0);
}

#[test]
fn tables_that_are_wrong_are_errors() {
    let none = || vec![];
    for (table, given, wanted) in [
        (&b""[..], none(), "line 1 of the table"),
        (b"\n\n", none(), "it is empty"),
        (b"a\nx\n", none(), "no column of labels"),
        (
            b"a,b\nx,1\n",
            vec![("path_column", texts(&["c"]))],
            "there is no column `c`, expected one of [\"a\", \"b\"]",
        ),
        (b"a,b,b\nx,1,1\n", vec![("label_columns", texts(&["b"]))], "two columns are called `b`"),
        (b"a,b\nx,1\n", vec![("label_columns", texts(&[]))], "no column of labels"),
        (b"a,b\n\nx,1\ny\n", none(), "line 4 of the table"),
        (b"a,b\r\nx,1\r\ny,1,2\r\n", none(), "line 3 of the table"),
        (b"a,b\nx,\"1\ny,2\n", none(), "expected a number"),
        (b"a,b\n,1\n", none(), "an empty path"),
        (b"a,b\nx,1\ny,cat\n", none(), "column `b`: `cat`, expected a number: classes that have names"),
        (b"a,b\nx,\n", none(), "column `b`: ``, expected a number"),
        (b"a,b\nx,2147483648\n", none(), "expected a whole number of 32 bits"),
        (b"a,b\nx,0.5\n", vec![("dtype", Value::Ints(vec![6]))], "expected a whole number of 32 bits"),
        (b"a,b\nx,1\n", vec![("delimiter", texts(&[""]))], "`delimiter` is ``"),
        (b"a,b\nx,1\n", vec![("delimiter", texts(&["\u{e9}"]))], "expected one byte"),
        (b"a,b\nx,1\n", vec![("dtype", Value::Ints(vec![5]))], "expected int32 or float32"),
        (b"a,\xFF\nx,1\n", none(), "labels.csv"),
        (&b",".repeat(limits::MAX_CSV_COLUMNS + 1), none(), "more than 65536 columns"),
    ] {
        let error = opened("wrong", table, &given).err().unwrap().to_string();
        assert!(error.contains(wanted), "{wanted}: {error}");
    }
    let list = Value::Strings(vec!["/nowhere/a.csv".to_owned()]);
    assert!(opened("wrong", b"", &[("file_list", list)]).is_err());
}
