//! Samples of archives, and archives and indices that nobody would write.

use super::*;
use crate::operator::args::Value;

/// A folder of a test, which is gone behind it.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gesso-webdataset-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, data) in files {
        let mut header = [0; BLOCK as usize];
        header[..name.len()].copy_from_slice(name.as_bytes());
        let size = format!("{:011o}", data.len());
        header[124..124 + size.len()].copy_from_slice(size.as_bytes());
        header[156] = b'0';
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(BLOCK as usize), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn opened(given: &[(&str, &[&str])], others: &[(&str, Value)]) -> Result<Box<dyn Dataset>> {
    let texts = |(name, texts): &(&str, &[&str])| {
        ((*name).to_owned(), Value::Strings(texts.iter().map(|&text| text.to_owned()).collect()))
    };
    let mut values: BTreeMap<String, Value> = given.iter().map(texts).collect();
    values.extend(others.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    open(&DEF.arguments(values))
}

fn read(dataset: &dyn Dataset, index: usize) -> Result<Vec<(Vec<u8>, String)>> {
    let tensors = dataset.read(index, &Arc::default())?;
    Ok(tensors.into_iter().map(|tensor| (tensor.bytes.bytes().to_vec(), tensor.source)).collect())
}

#[test]
fn outputs_are_the_files_of_a_sample() {
    let folder = Folder::new("samples");
    let first =
        folder.write("a.tar", &archive(&[("d/0.jpg", b"zero"), ("d/0.CLS", b"0000"), ("../1.cls", b"1111")]));
    let second = folder.write("b.tar", &archive(&[]));
    let third = folder.write("c.tar", &archive(&[(".x", b"x"), ("2.png", b""), ("2.jpg", b"two!")]));
    let paths = [first.as_str(), &second, &third];
    let given = [("paths", &paths[..]), ("ext", &["jpg;png", "cls"])];
    let folded = ("case_sensitive_extensions", Value::Bools(vec![false]));
    let dataset = opened(&given, std::slice::from_ref(&folded)).unwrap();
    assert_eq!(dataset.groups().unwrap(), [0..2, 2..2, 2..3]);
    let source = |path: &str, at: u64, name: &str| format!("{path}:{at}:{name}");
    let part = |data: &[u8], source: String| (data.to_vec(), source);
    let none = || part(b"", String::new());
    assert_eq!(
        read(&*dataset, 0).unwrap(),
        [part(b"zero", source(&first, 512, "d/0.jpg")), part(b"0000", source(&first, 1536, "d/0.CLS"))]
    );
    assert_eq!(read(&*dataset, 1).unwrap(), [none(), part(b"1111", source(&first, 2560, "../1.cls"))]);
    assert_eq!(read(&*dataset, 2).unwrap(), [part(b"", source(&third, 1536, "2.png")), none()]);
    assert!(read(&*dataset, 3).is_err());

    let behavior = |text: &str| ("missing_component_behavior", Value::Strings(vec![text.to_owned()]));
    assert_eq!(opened(&given, &[folded, behavior("skip")]).unwrap().count(), 1);
    assert_eq!(opened(&given, &[behavior("skip")]).unwrap().count(), 0);
    let error = opened(&given, &[behavior("error")]).err().unwrap().to_string();
    assert!(error.contains("Underful sample detected at byte 512: it has no file for output 1"), "{error}");
    assert!(opened(&given, &[behavior("x")]).is_err());
}

#[test]
fn files_are_lists_of_numbers() {
    let folder = Folder::new("numbers");
    let path = folder.write("a.tar", &archive(&[("0.n", &[1, 0, 0, 0, 2, 0, 0, 0]), ("1.n", b"three")]));
    let given = [("paths", &[path.as_str()][..]), ("ext", &["n"])];
    let dataset = opened(&given, &[("dtypes", Value::Ints(vec![6]))]).unwrap();
    let tensor = dataset.read(0, &Arc::default()).unwrap().remove(0);
    assert_eq!((tensor.dtype, &tensor.shape[..]), (DType::I32, &[2][..]));
    let error = read(&*dataset, 1).unwrap_err().to_string();
    assert!(error.contains("5 bytes, expected a multiple of the 4 of int32"), "{error}");
    assert!(opened(&given, &[("dtypes", Value::Ints(vec![6, 6]))]).is_err());
    assert!(opened(&given, &[("dtypes", Value::Ints(vec![99]))]).is_err());
}

#[test]
fn an_index_of_another_archive_is_an_error() {
    let folder = Folder::new("index");
    let path = folder.write("a.tar", &archive(&[("0.jpg", b"zero")]));
    let reading = |line: &str| {
        let index = folder.write("a.idx", format!("v1.1 1\n{line}\n").as_bytes());
        opened(&[("paths", &[path.as_str()]), ("index_paths", &[index.as_str()]), ("ext", &["jpg"])], &[])
            .and_then(|dataset| read(&*dataset, 0))
    };
    assert_eq!(reading("jpg 512 4").unwrap()[0].0, b"zero");
    for (line, wanted) in [
        ("jpg 512 5", "no file of 5 bytes begins at byte 512"),
        ("jpg 1024 4", "no file of 4 bytes"),
        ("jpg 1024000 4", "2048 bytes, expected 516 from byte 1023488 on"),
        ("jpg 512 9223372036854775808", "expected 9223372036854776320 from byte 0 on"),
        ("jpg 512 18446744073709551615", "expected 18446744073709551615 from"),
        ("jpg 9223372036854775808 4", "from byte 9223372036854775296 on"),
    ] {
        let error = reading(line).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}, not {wanted}");
    }
    let indices = opened(&[("paths", &["a", "b"]), ("index_paths", &["c"]), ("ext", &["jpg"])], &[]);
    assert!(
        indices
            .err()
            .unwrap()
            .to_string()
            .contains("must match the number of archives in the dataset: 1 and 2")
    );
}

#[test]
fn an_archive_that_is_cut_is_an_error() {
    let folder = Folder::new("cut");
    let whole = archive(&[("0.jpg", b"zero"), ("1.jpg", &[7; 700])]);
    for length in 0..whole.len() {
        let path = folder.write("a.tar", &whole[..length]);
        if let Ok(dataset) = opened(&[("paths", &[path.as_str()]), ("ext", &["jpg"])], &[]) {
            (0..dataset.count()).for_each(|index| assert!(read(&*dataset, index).is_ok()));
        }
    }
    let path = folder.write("a.tar", &whole);
    let dataset = opened(&[("paths", &[path.as_str()]), ("ext", &["jpg"])], &[]).unwrap();
    folder.write("a.tar", &whole[..1800]);
    assert!(read(&*dataset, 0).is_ok() && read(&*dataset, 1).is_err());
}
