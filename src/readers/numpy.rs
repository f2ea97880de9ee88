//! `readers.Numpy`: arrays in `.npy` files, whole or a region of each.

use std::path::Path;
use std::sync::Arc;

use super::file::{read_file, strings};
use super::list;
use super::pattern::Filter;
use super::pieces::{Opened, text};
use super::region::{ARGS, Region};
use super::stored::joined;
use super::{Dataset, Fed, ReaderDef, Tensor};
use crate::cpu::npy::Npy;
use crate::error::{Context, Error, Layer, Result};
use crate::limits;
use crate::memory::{ALIGNMENT, HostPool};
use crate::operator::{ArgSpec, Args};
use crate::tensor::{Sample, ValueType};

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers__Numpy",
    aliases: &["NumpyReader"],
    doc: "Arrays in `.npy` files",
    args: &[
        ArgSpec::string("file_root", "folder that is searched, or where other paths begin"),
        ArgSpec::string("file_filter", "which files of the folder").or_string("*.npy"),
        ArgSpec::string("file_list", "text file with a path in each line"),
        ArgSpec::strings("files", "paths"),
        ArgSpec::bool("cache_header_information", "headers are read with the arrays")
            .or_bool(false)
            .no_effect(),
        ArgSpec::bool("register_buffers", "a hint for DALI's memory").or_bool(true).no_effect(),
        ArgSpec::bool("use_o_direct", "a hint for the system").or_bool(false).no_effect(),
        ARGS[0],
        ARGS[1],
        ARGS[2],
        ARGS[3],
        ARGS[4],
        ARGS[5],
        ARGS[6],
        ARGS[7],
        ARGS[8],
    ],
    outputs,
    open,
    undecoded: None,
    behind: None,
    shuffles_list: true,
};

/// Bytes at the beginning of a file that have its header: the magic, the version and the header's length go before it.
const MAX_HEAD_BYTES: u64 = 12 + limits::MAX_NUMPY_HEADER_BYTES as u64;

/// The first file says which type and rank all have.
fn outputs(_: &Args) -> Result<Vec<ValueType>> {
    Ok(vec![ValueType { dtype: None, dims: None, layout: Some(Default::default()) }])
}

fn open(args: &Args) -> Result<Box<dyn Dataset>> {
    let root = args.given_string("file_root")?;
    let joined = |base: &str, path: &str| joined(Path::new(base), Path::new(path)).display().to_string();
    let (paths, names) = match (args.given_string("file_list")?, strings(args, "files"), root) {
        (Some(_), Some(_), _) => {
            return Err(Error::invalid(
                "File paths can be provided through `files` or `file_list` but not both",
            ));
        }
        (None, Some(files), _) => {
            let base = root.unwrap_or_default();
            (files.iter().map(|path| joined(base, path)).collect(), files)
        }
        (Some(listed), None, _) => {
            let folder = Path::new(listed).parent().map(|folder| folder.display().to_string());
            let base = root.map(str::to_owned).or(folder).unwrap_or_default();
            let text = text(listed)?;
            let lines = text.split('\n').map(str::trim).filter(|line| !line.is_empty());
            let names: Vec<String> = lines.map(str::to_owned).collect();
            (names.iter().map(|path| joined(&base, path)).collect(), names)
        }
        (None, None, Some(root)) => {
            let pattern = args.string("file_filter")?.to_owned();
            let filter = Filter::new([pattern], true)?;
            let paths = list::below(Path::new(root), &filter)?;
            let names = paths.iter().map(|path| found(root, path)).collect();
            (paths, names)
        }
        (None, None, None) => {
            return Err(Error::invalid("Either `file_root`, `files` or `file_list` must be specified"));
        }
    };
    Ok(Box::new(Arrays { paths, names, region: Region::new(args)? }))
}

/// A path as DALI names it that was found below `root`: what is in the folder itself is `./` and its name.
fn found(root: &str, path: &str) -> String {
    let below = path.strip_prefix(root.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'));
    let name = below.unwrap_or(path);
    if name.contains('/') { name.to_owned() } else { format!("./{name}") }
}

struct Arrays {
    paths: Vec<String>,
    /// As they were given, or found.
    names: Vec<String>,
    region: Region,
}

impl Arrays {
    fn sample(&self, index: usize, fed: Fed<'_>, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let path = self.paths.get(index).ok_or_else(|| Error::internal("a sample that is not there"))?;
        let array = match self.region.is_whole(fed) {
            true => {
                let file = read_file(Path::new(path), memory)?;
                array(&file, memory).context(|| Layer::File(path.clone()))?
            }
            false => {
                let opened = Opened::new(path)?;
                let part = part(&opened, &self.region, fed, memory);
                part.map_err(|error| {
                    if error.file().is_some() { error } else { error.context(Layer::File(path.clone())) }
                })?
            }
        };
        let source = self.names.get(index).cloned().unwrap_or_default();
        Ok(vec![Tensor { source, ..array }])
    }
}

/// The wanted part of the array in a file, of which the rows are read that it is in.
fn part(file: &Opened, region: &Region, fed: Fed<'_>, memory: &Arc<HostPool>) -> Result<Tensor> {
    let mut head = vec![0; file.size.min(MAX_HEAD_BYTES) as usize];
    file.read(0, &mut head)?;
    let Npy { dtype, shape, is_fortran, bytes } = Npy::begin(&head)?;
    let begin = (head.len() - bytes.len()) as u64;
    let (length, found) = (shape.bytes(dtype.size())?, file.size.saturating_sub(begin));
    if (length as u64) > found {
        return Err(Error::invalid(format!(
            "a numpy file of shape {shape} and type {dtype} has {found} bytes of data, expected {length}"
        )));
    }
    let Some(part) = region.of(&shape, fed)? else { return Err(Error::internal("a region that is none")) };
    // Rows of the dimension that is outermost in the file.
    let outermost = if is_fortran { part.inside.last() } else { part.inside.first() };
    let extent = if is_fortran { shape.last() } else { shape.first() };
    let row = extent.map_or(length, |&extent| length.checked_div(extent).unwrap_or_default());
    let rows = outermost.cloned().unwrap_or(0..1);
    let (at, length) = (rows.start * row, rows.len() * row);
    if length > limits::MAX_SAMPLE_BYTES {
        let most = limits::MAX_SAMPLE_BYTES;
        return Err(Error::invalid(format!("rows of {length} bytes, more than the limit of {most}")));
    }
    let mut buffer = memory.take(length)?;
    let elements = buffer.bytes_mut().get_mut(..length).unwrap_or_default();
    file.read(begin + at as u64, elements)?;
    part.cut(dtype, &shape, is_fortran, (elements, at / dtype.size()), memory)
}

impl Dataset for Arrays {
    fn count(&self) -> usize {
        self.paths.len()
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        self.sample(index, &[], memory)
    }

    fn read_fed(&self, index: usize, fed: Fed<'_>, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        self.sample(index, fed, memory)
    }
}

/// The array in a file: where it was read, or in order.
fn array(file: &Tensor, memory: &Arc<HostPool>) -> Result<Tensor> {
    let length = file.bytes.bytes().len();
    let Npy { dtype, shape, is_fortran, bytes } = Npy::parse_front(file.bytes.bytes())?;
    // The elements are the end of what was parsed, but for what is behind them.
    let begin = bytes.as_ptr().addr() - file.bytes.bytes().as_ptr().addr();
    let range = begin..begin + bytes.len();
    let bytes = match &file.bytes {
        Sample::Pooled(buffer, _)
            if !is_fortran && begin.is_multiple_of(ALIGNMENT) && range.end <= length =>
        {
            Sample::Pooled(Arc::clone(buffer), range)
        }
        _ => {
            let mut buffer = memory.take(bytes.len())?;
            let to = buffer.bytes_mut().get_mut(..bytes.len()).unwrap_or_default();
            let array = Npy { dtype, shape: shape.clone(), is_fortran, bytes };
            array.copy_to(to);
            Sample::Pooled(Arc::new(buffer), 0..array.bytes.len())
        }
    };
    Ok(Tensor { dtype, shape, bytes, source: String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::tensor::DType;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY", &[1, 0][..], &length, header.as_bytes(), data].concat()
    }

    fn opened(values: &[(&str, &[&str])]) -> Result<Box<dyn Dataset>> {
        let value = |texts: &[&str]| Value::Strings(texts.iter().map(|&text| text.to_owned()).collect());
        let values = values.iter().map(|(name, texts)| ((*name).to_owned(), value(texts)));
        open(&DEF.arguments(values.collect()))
    }

    #[test]
    fn arrays_are_found_and_read_in_order() {
        let root = std::env::temp_dir().join(format!("gesso-numpy-{}", std::process::id()));
        std::fs::create_dir_all(root.join("b")).unwrap();
        let header =
            |order: &str| format!("{{'descr': '<i2', 'fortran_order': {order}, 'shape': (2, 3), }}\n");
        let data: Vec<u8> = [0_i16, 1, 2, 3, 4, 5].iter().flat_map(|number| number.to_le_bytes()).collect();
        std::fs::write(root.join("a.npy"), npy(&header("True"), &data)).unwrap();
        // A header that ends at a multiple of 64, as numpy writes it, with more behind the elements.
        let aligned = format!("{:118}", header("False"));
        std::fs::write(root.join("b/b.npy"), npy(&aligned, &[&data[..], &[9; 5]].concat())).unwrap();
        std::fs::write(root.join("cut.npy"), &npy(&aligned, &data)[..130]).unwrap();
        std::fs::write(root.join("list.txt"), "b/b.npy\n\n  ../a.npy \n").unwrap();
        let path = root.display().to_string();
        let dataset = opened(&[("file_root", &[&path])]).unwrap();
        assert_eq!(dataset.count(), 3);
        let memory = Arc::default();
        let read = |dataset: &dyn Dataset, index| {
            let tensor = dataset.read(index, &memory).unwrap().remove(0);
            assert_eq!((tensor.dtype, &tensor.shape[..]), (DType::I16, &[2, 3][..]));
            let words = tensor.bytes.bytes().as_chunks::<2>().0;
            (words.iter().map(|&bytes| i16::from_le_bytes(bytes)).collect::<Vec<_>>(), tensor.source)
        };
        assert_eq!(read(&*dataset, 0), (vec![0, 2, 4, 1, 3, 5], "./a.npy".to_owned()));
        assert_eq!(read(&*dataset, 1), (vec![0, 1, 2, 3, 4, 5], "b/b.npy".to_owned()));
        let error = dataset.read(2, &memory).err().unwrap().to_string();
        assert!(error.contains("cut.npy") && error.contains("2 bytes of data, expected 12"), "{error}");
        assert!(dataset.read(3, &memory).is_err());

        let list = root.join("list.txt").display().to_string();
        let listed = opened(&[("file_list", &[&list])]).unwrap();
        assert_eq!((listed.count(), read(&*listed, 0).1), (2, "b/b.npy".to_owned()));
        let error = listed.read(1, &memory).err().unwrap().to_string();
        assert!(error.contains("../a.npy"), "{error}");
        let given = opened(&[("file_root", &[&path]), ("files", &["a.npy", "/nowhere"])]).unwrap();
        assert_eq!(read(&*given, 0).1, "a.npy");
        assert!(given.read(1, &memory).is_err());
        assert!(opened(&[]).is_err() && opened(&[("files", &["a"]), ("file_list", &["b"])]).is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
