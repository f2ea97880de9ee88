//! What `--input` names, as samples of a pipeline's inputs: a `.npy` is an array, any other file its bytes. It must not know
//! what they are run for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gesso::error::{Context, Error, Result};
use gesso::limits;
use gesso::pipeline::Input;
use gesso::tensor::{Batch, BatchDesc, DType, Sample, Shape};

use crate::npy;
use crate::terminal::read_file;

/// One sample of one input.
pub(crate) struct Value {
    /// Where it comes from.
    pub(crate) path: PathBuf,
    dtype: DType,
    shape: Shape,
    /// Eight bytes each, so that elements of any type may lie there.
    words: Vec<u64>,
    bytes: usize,
}

/// Samples for every input of a pipeline, in its order.
pub(crate) struct Samples {
    columns: Vec<(Input, Vec<Arc<Value>>)>,
    count: usize,
}

impl Value {
    fn read(path: &Path, input: &Input) -> Result<Self> {
        let file = read_file(path, limits::MAX_SAMPLE_BYTES)?;
        let (dtype, shape, start) = if path.extension().is_some_and(|extension| extension == "npy") {
            npy::parse(&file).context(|| format!("`{}`", path.display()))?
        } else if input.dtype.is_none_or(|dtype| dtype == DType::U8)
            && input.ndim.is_none_or(|ndim| ndim == 1)
        {
            (DType::U8, Shape::from([file.len()]), 0)
        } else {
            return Err(Error::invalid(format!(
                "`{}` is a file of bytes, but input `{}` takes {}{}: give it an array of numpy (`.npy`)",
                path.display(),
                input.name,
                input.dtype.map_or("any type", DType::name),
                input.ndim.map_or(String::new(), |ndim| format!(" of {ndim} dimensions"))
            )));
        };
        let elements = file.get(start..).unwrap_or_default();
        let mut words = vec![0; elements.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..elements.len()].copy_from_slice(elements);
        Ok(Self { path: path.to_owned(), dtype, shape, words, bytes: elements.len() })
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.bytes]
    }
}

impl Samples {
    /// Reads `NAME=FILE,FILE...`, each of which adds to input `NAME`. With one input the name may be left out. One file for an
    /// input stands for every sample.
    ///
    /// # Errors
    /// Not found for an unknown input; invalid when numbers of samples differ, or for files that are no samples.
    pub(crate) fn read(inputs: &[Input], given: &[String]) -> Result<Self> {
        let names = || inputs.iter().map(|input| format!("`{}`", input.name)).collect::<Vec<_>>().join(", ");
        let mut columns: Vec<(Input, Vec<Arc<Value>>)> =
            inputs.iter().map(|input| (input.clone(), vec![])).collect();
        for text in given {
            let (name, files) = match (text.split_once('='), columns.as_slice()) {
                (Some((name, files)), _) if inputs.iter().any(|input| input.name == name) => (name, files),
                // A path may hold `=`.
                (_, [(only, _)]) if Path::new(text.split(',').next().unwrap_or_default()).exists() => {
                    (only.name.as_str(), text.as_str())
                }
                _ => {
                    return Err(Error::not_found(format!(
                        "`{text}` names no input of the pipeline, expected `NAME=FILE,...` with {}",
                        names()
                    )));
                }
            };
            let name = name.to_owned();
            for (input, values) in columns.iter_mut().filter(|(input, _)| input.name == name) {
                for file in files.split(',').filter(|file| !file.is_empty()) {
                    values.push(Arc::new(Value::read(Path::new(file), input)?));
                }
            }
        }
        let count = columns.iter().map(|(_, values)| values.len()).max().unwrap_or(1);
        for (input, values) in &mut columns {
            match values.as_slice() {
                [] => {
                    return Err(Error::invalid(format!(
                        "input `{}` has no files: give them with `--input {}=FILE,...`",
                        input.name, input.name
                    )));
                }
                [only] => *values = vec![Arc::clone(only); count],
                many if many.len() != count => {
                    return Err(Error::invalid(format!(
                        "input `{}` has {} files, expected {count} as another input has, or one for all",
                        input.name,
                        many.len()
                    )));
                }
                _ => {}
            }
            check_alike(input, values)?;
        }
        Ok(Self { columns, count })
    }

    /// So many samples of a pipeline that reads them by itself.
    pub(crate) fn counted(count: usize) -> Self {
        Self { columns: Vec::new(), count }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The files of sample `i`, one for each input, with its name.
    pub(crate) fn files(&self, i: usize) -> Vec<(&str, &Path)> {
        self.columns
            .iter()
            .filter_map(|(input, values)| Some((input.name.as_str(), values.get(i)?.path.as_path())))
            .collect()
    }

    /// A batch of `count` samples from number `first` on, counted around, for every input.
    ///
    /// # Errors
    /// What a batch fails with.
    pub(crate) fn batches(&self, first: usize, count: usize) -> Result<Vec<Batch<'_>>> {
        let mut batches = Vec::with_capacity(self.columns.len());
        for (input, values) in &self.columns {
            let chosen: Vec<&Arc<Value>> = (first..first.saturating_add(count))
                .filter_map(|i| values.get(i.checked_rem(self.count).unwrap_or_default()))
                .collect();
            let dtype = chosen.first().map_or(DType::U8, |value| value.dtype);
            let shapes = chosen.iter().map(|value| value.shape.clone()).collect();
            let samples = chosen.iter().map(|value| Sample::Borrowed(value.bytes())).collect();
            batches.push(Batch::new(BatchDesc::new(dtype, input.layout, shapes), samples)?);
        }
        Ok(batches)
    }
}

fn check_alike(input: &Input, values: &[Arc<Value>]) -> Result<()> {
    let Some(first) = values.first() else { return Ok(()) };
    let differs = |value: &&Arc<Value>| value.dtype != first.dtype || value.shape.len() != first.shape.len();
    values.iter().find(differs).map_or(Ok(()), |other| {
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
    })
}
