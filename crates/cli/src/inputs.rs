//! What `--input` names, as samples of a pipeline's inputs: a `.npy` is an array, any other file its bytes. It must not
//! know what they are run for.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gesso::cpu::npy::Npy;
use gesso::error::{Context, Error, Result};
use gesso::limits;
use gesso::pipeline::Input;
use gesso::tensor::{Batch, BatchDesc, DType, Sample, Shape};

use crate::names::files;
use crate::terminal::read_file;

/// One sample of one input.
struct Value {
    /// Where it comes from.
    path: PathBuf,
    dtype: DType,
    shape: Shape,
    /// Eight bytes each, so that elements of any type may lie there.
    words: Vec<u64>,
    bytes: usize,
}

/// The files of every input of a pipeline, in its order. They are read when they are needed, so there may be more than
/// fit into memory.
pub(crate) struct Samples {
    columns: Vec<Column>,
    count: usize,
    /// Files of folders that are no samples.
    left_out: usize,
}

/// The files of one input.
struct Column {
    input: Input,
    files: Vec<PathBuf>,
    /// The only file, which stands for every sample.
    constant: OnceCell<Arc<Value>>,
}

/// Samples that were read.
pub(crate) struct Loaded {
    /// Their numbers among all samples.
    pub(crate) numbers: Vec<usize>,
    columns: Vec<(Input, Vec<Arc<Value>>)>,
}

impl Value {
    fn read(path: &Path, input: &Input) -> Result<Self> {
        let file = read_file(path, limits::MAX_SAMPLE_BYTES)?;
        let array = if path.extension().is_some_and(|extension| extension == "npy") {
            Npy::parse(&file).context(|| format!("`{}`", path.display()))?
        } else if input.dtype.is_none_or(|dtype| dtype == DType::U8)
            && input.ndim.is_none_or(|ndim| ndim == 1)
        {
            Npy { dtype: DType::U8, shape: Shape::from([file.len()]), is_fortran: false, bytes: &file }
        } else {
            return Err(Error::invalid(format!(
                "`{}` is a file of bytes, but input `{}` takes {}{}: give it an array of numpy (`.npy`)",
                path.display(),
                input.name,
                input.dtype.map_or("any type", DType::name),
                input.ndim.map_or(String::new(), |ndim| format!(" of {ndim} dimensions"))
            )));
        };
        let (dtype, bytes) = (array.dtype, array.bytes.len());
        let fits = input.dtype.is_none_or(|expected| expected == dtype)
            && input.ndim.is_none_or(|expected| expected == array.shape.len());
        if !fits {
            return Err(Error::invalid(format!(
                "`{}` is {dtype} of shape {}, but input `{}` takes {}{}",
                path.display(),
                array.shape,
                input.name,
                input.dtype.map_or("any type", DType::name),
                input.ndim.map_or(String::new(), |ndim| format!(" of {ndim} dimensions"))
            )));
        }
        let mut words = vec![0; bytes.div_ceil(8)];
        array.copy_to(&mut bytemuck::cast_slice_mut(&mut words)[..bytes]);
        Ok(Self { path: path.to_owned(), dtype, shape: array.shape, words, bytes })
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }
}

impl Samples {
    /// The files of `NAME=WORD,WORD...`, each of which adds to input `NAME`; [`files`] says what a word names. With one
    /// input the name may be left out. Words that are the name of one file are that file. One file for an input stands
    /// for every sample. No word names what is below `without`.
    ///
    /// # Errors
    /// Not found for an unknown input and for a word that names nothing; invalid when numbers of samples differ.
    pub(crate) fn named(inputs: &[Input], given: &[String], without: Option<&Path>) -> Result<Self> {
        let names = || inputs.iter().map(|input| format!("`{}`", input.name)).collect::<Vec<_>>().join(", ");
        let column =
            |input: &Input| Column { input: input.clone(), files: Vec::new(), constant: OnceCell::new() };
        let mut columns: Vec<Column> = inputs.iter().map(column).collect();
        let mut left_out = 0;
        for text in given {
            let of_input = text
                .split_once('=')
                .and_then(|(name, words)| Some((inputs.iter().position(|input| input.name == name)?, words)));
            let (at, words) = match (of_input, inputs) {
                (Some(named), _) => named,
                // A path may hold `=`.
                (None, [_]) if !text.contains('=') || Path::new(text).exists() => (0, text.as_str()),
                _ => {
                    return Err(Error::not_found(format!(
                        "`{text}` names no input of the pipeline, expected `NAME=FILE,...` with {}",
                        names()
                    )));
                }
            };
            let Some(column) = columns.get_mut(at) else { continue };
            if Path::new(words).is_file() {
                column.files.push(words.into());
                continue;
            }
            for word in words.split(',').filter(|word| !word.is_empty()) {
                let named = files(word, without)?;
                column.files.extend(named.files);
                left_out += named.left_out;
            }
        }
        let count = columns.iter().map(|column| column.files.len()).max().unwrap_or(1);
        for Column { input, files, .. } in &columns {
            match files.len() {
                0 => {
                    return Err(Error::invalid(format!(
                        "input `{}` has no files: give them with `--input {}=FILE,...`",
                        input.name, input.name
                    )));
                }
                many if many != 1 && many != count => {
                    return Err(Error::invalid(format!(
                        "input `{}` has {many} files, expected {count} as another input has, or one for all",
                        input.name
                    )));
                }
                _ => {}
            }
        }
        Ok(Self { columns, count, left_out })
    }

    /// One sample of one input, which is a file.
    pub(crate) fn of_file(input: &Input, file: &Path) -> Self {
        let column = Column { input: input.clone(), files: vec![file.to_owned()], constant: OnceCell::new() };
        Self { columns: vec![column], count: 1, left_out: 0 }
    }

    /// So many samples of a pipeline that reads them by itself.
    pub(crate) fn counted(count: usize) -> Self {
        Self { columns: Vec::new(), count, left_out: 0 }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// How many files of folders are no samples, as their names end like none of a known kind.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    /// What outputs of sample `i` are called after: its file's name without folders and ending. That of the first input
    /// whose files differ from sample to sample.
    pub(crate) fn name(&self, i: usize) -> Option<String> {
        let differs = |column: &&Column| column.files.len() > 1;
        let column = self.columns.iter().find(differs).or(self.columns.first())?;
        Some(column.file(i)?.file_stem()?.to_string_lossy().into_owned())
    }

    /// The files of sample `i`, one for each input, with its name.
    pub(crate) fn files(&self, i: usize) -> Vec<(&str, &Path)> {
        self.columns.iter().filter_map(|column| Some((column.input.name.as_str(), column.file(i)?))).collect()
    }

    /// Reads samples; those that cannot be read, or that differ from the first in type or number of dimensions, with
    /// their errors apart.
    pub(crate) fn load(&self, numbers: impl IntoIterator<Item = usize>) -> (Loaded, Vec<(usize, Error)>) {
        let columns = self.columns.iter().map(|column| (column.input.clone(), Vec::new())).collect();
        let (mut loaded, mut failed) = (Loaded { numbers: Vec::new(), columns }, Vec::new());
        for number in numbers {
            match self.row(number, &loaded) {
                Ok(row) => {
                    for ((_, values), value) in loaded.columns.iter_mut().zip(row) {
                        values.push(value);
                    }
                    loaded.numbers.push(number);
                }
                Err(error) => failed.push((number, error)),
            }
        }
        (loaded, failed)
    }

    /// The values of one sample, which fit those that are loaded.
    fn row(&self, number: usize, loaded: &Loaded) -> Result<Vec<Arc<Value>>> {
        let mut row = Vec::with_capacity(self.columns.len());
        for (column, (input, values)) in self.columns.iter().zip(&loaded.columns) {
            let value = column.value(number)?;
            if let Some(first) = values.first() {
                check_alike(input, first, &value)?;
            }
            row.push(value);
        }
        Ok(row)
    }

    /// All samples, in memory.
    ///
    /// # Errors
    /// Of the first one that cannot be read.
    pub(crate) fn load_all(&self) -> Result<Loaded> {
        let (loaded, failed) = self.load(0..self.count);
        failed.into_iter().next().map_or(Ok(loaded), |(_, error)| Err(error))
    }
}

impl Column {
    fn file(&self, number: usize) -> Option<&Path> {
        let number = if self.files.len() == 1 { 0 } else { number };
        self.files.get(number).map(PathBuf::as_path)
    }

    fn value(&self, number: usize) -> Result<Arc<Value>> {
        let read = || {
            let path = self.file(number).ok_or_else(|| Error::internal(format!("no sample {number}")))?;
            Value::read(path, &self.input).map(Arc::new)
        };
        if self.files.len() > 1 {
            return read();
        }
        if let Some(value) = self.constant.get() {
            return Ok(Arc::clone(value));
        }
        Ok(Arc::clone(self.constant.get_or_init({
            let value = read()?;
            || value
        })))
    }
}

impl Loaded {
    /// A batch of all of them for every input.
    ///
    /// # Errors
    /// What a batch fails with.
    pub(crate) fn batches(&self) -> Result<Vec<Batch<'_>>> {
        self.chosen(0, self.numbers.len())
    }

    /// A batch of `count` from place `first` on, counted around, for every input.
    ///
    /// # Errors
    /// What a batch fails with.
    pub(crate) fn chosen(&self, first: usize, count: usize) -> Result<Vec<Batch<'_>>> {
        let mut batches = Vec::with_capacity(self.columns.len());
        for (input, values) in &self.columns {
            let chosen: Vec<&Arc<Value>> = (first..first.saturating_add(count))
                .filter_map(|i| values.get(i.checked_rem(values.len()).unwrap_or_default()))
                .collect();
            let dtype = chosen.first().map_or(DType::U8, |value| value.dtype);
            let shapes = chosen.iter().map(|value| value.shape.clone()).collect();
            let samples = chosen.iter().map(|value| Sample::Borrowed(value.bytes())).collect();
            batches.push(Batch::new(BatchDesc::new(dtype, input.layout, shapes), samples)?);
        }
        Ok(batches)
    }
}

fn check_alike(input: &Input, first: &Value, other: &Value) -> Result<()> {
    if other.dtype == first.dtype && other.shape.len() == first.shape.len() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the samples of input `{}` differ: `{}` is {} of shape {}, `{}` is {} of shape {}",
        input.name,
        first.path.display(),
        first.dtype,
        first.shape,
        other.path.display(),
        other.dtype,
        other.shape
    )))
}
