//! `readers.Csv`: files that a table of comma-separated values names, with numbers of its other columns as labels. DALI
//! does not have it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use csv_core::{ReadFieldResult, ReaderBuilder};

use super::file::{read_file, strings};
use super::list::check_count;
use super::pieces::text;
use super::stored::joined;
use super::{Dataset, ReaderDef, Tensor, tensors};
use crate::error::{Context, Error, Result};
use crate::limits;
use crate::memory::HostPool;
use crate::operator::{ArgSpec, Args};
use crate::tensor::{DType, ValueType};

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers__Csv",
    aliases: &[],
    doc: "Files that a CSV file names, with numbers of its columns as labels",
    args: &[
        ArgSpec::string("file_list", "the CSV file; its first line names the columns").required(),
        ArgSpec::string("file_root", "where its paths begin").or_computed("the folder of the CSV file"),
        ArgSpec::string("path_column", "the column of paths").or_computed("the first"),
        ArgSpec::strings("label_columns", "columns of numbers, in this order").or_computed("all others"),
        ArgSpec::string("delimiter", "what is between columns, one byte").or_string(","),
        ArgSpec::dtype("dtype", "type of the labels, int32 or float32")
            .or_computed("int32 where all of them are whole numbers, else float32"),
    ],
    outputs,
    open,
    undecoded: None,
    behind: None,
    shuffles_list: true,
};

fn outputs(args: &Args) -> Result<Vec<ValueType>> {
    let count = strings(args, "label_columns").map(|names| names.len());
    let known =
        |dtype, extent| ValueType { dtype, dims: Some(vec![extent]), layout: Some(Default::default()) };
    Ok(vec![known(Some(DType::U8), None), known(dtype(args)?, count)])
}

fn dtype(args: &Args) -> Result<Option<DType>> {
    let dtype = args.given_dtype("dtype")?;
    match dtype {
        Some(other) if !matches!(other, DType::I32 | DType::F32) => {
            Err(Error::unsupported(format!("argument `dtype` is {other}, expected int32 or float32")))
        }
        _ => Ok(dtype),
    }
}

fn open(args: &Args) -> Result<Box<dyn Dataset>> {
    let listed = args.string("file_list")?;
    let delimiter = args.string("delimiter")?;
    let &[delimiter] = delimiter.as_bytes() else {
        return Err(Error::invalid(format!(
            "`delimiter` is `{}`, expected one byte",
            delimiter.escape_debug()
        )));
    };
    let root = args.given_string("file_root")?.map(Path::new).or(Path::new(listed).parent());
    let text = text(listed)?;
    let mut rows = Rows::new(&text, delimiter);
    let found = Columns::new(&mut rows, args).and_then(|columns| columns.read(&mut rows, dtype(args)?));
    let (paths, labels, of_each) =
        found.context(|| format!("line {} of the table `{listed}`", rows.line()))?;
    Ok(Box::new(Table { root: root.unwrap_or(Path::new("")).to_owned(), paths, labels, of_each }))
}

/// The column of paths where none is named.
const FIRST: usize = 0;

/// The records of a text, field by field.
struct Rows<'t> {
    text: &'t str,
    reader: csv_core::Reader,
    /// Bytes that were read.
    taken: usize,
    field: Vec<u8>,
}

impl<'t> Rows<'t> {
    fn new(text: &'t str, delimiter: u8) -> Self {
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        Self { text, reader, taken: 0, field: vec![0; 256] }
    }

    /// The line in which the last record ends.
    fn line(&self) -> usize {
        let read = self.text.as_bytes().get(..self.taken).unwrap_or_default();
        let is_break = |&byte: &u8| byte == b'\r' || byte == b'\n';
        let end = read.iter().rposition(|byte| !is_break(byte)).unwrap_or_default();
        1 + read.iter().take(end).filter(|&&byte| byte == b'\n').count()
    }

    /// Reads the next record to `fields`, without spaces around them; false at the end.
    fn next(&mut self, fields: &mut Vec<String>) -> Result<bool> {
        fields.clear();
        let mut length = 0;
        loop {
            let rest = self.text.as_bytes().get(self.taken..).unwrap_or_default();
            let room = self.field.get_mut(length..).unwrap_or_default();
            let (found, taken, written) = self.reader.read_field(rest, room);
            self.taken += taken;
            length += written;
            let record_end = match found {
                // That nothing is left is told once more.
                ReadFieldResult::InputEmpty => continue,
                ReadFieldResult::OutputFull => {
                    self.field.resize(2 * self.field.len(), 0);
                    continue;
                }
                ReadFieldResult::Field { record_end } => record_end,
                ReadFieldResult::End => return Ok(false),
            };
            let field = std::str::from_utf8(self.field.get(..length).unwrap_or_default());
            fields.push(field.map_err(|error| Error::invalid(error.to_string()))?.trim().to_owned());
            length = 0;
            if record_end {
                return Ok(true);
            }
            if fields.len() >= limits::MAX_CSV_COLUMNS {
                let most = limits::MAX_CSV_COLUMNS;
                return Err(Error::invalid(format!("more than {most} columns")));
            }
        }
    }
}

/// Which columns are read.
struct Columns {
    names: Vec<String>,
    path: usize,
    labels: Vec<usize>,
}

impl Columns {
    fn new(rows: &mut Rows<'_>, args: &Args) -> Result<Self> {
        let mut names = Vec::new();
        if !rows.next(&mut names)? {
            return Err(Error::invalid("it is empty, expected the names of columns in the first line"));
        }
        let place = |wanted: &str| {
            let mut places = names.iter().enumerate().filter(|(_, name)| *name == wanted).map(|(i, _)| i);
            match (places.next(), places.next()) {
                (Some(place), None) => Ok(place),
                (Some(_), Some(_)) => Err(Error::invalid(format!("two columns are called `{wanted}`"))),
                _ => {
                    let names: Vec<_> = names.iter().take(20).map(|name| shortened(name)).collect();
                    Err(Error::invalid(format!("there is no column `{wanted}`, expected one of {names:?}")))
                }
            }
        };
        let path = args.given_string("path_column")?.map_or(Ok(FIRST), place)?;
        let labels = match strings(args, "label_columns") {
            Some(wanted) => wanted.iter().map(|name| place(name)).collect::<Result<_>>()?,
            None => (0..names.len()).filter(|&column| column != path).collect::<Vec<_>>(),
        };
        if labels.is_empty() {
            return Err(Error::invalid("no column of labels, expected one or more beside the paths"));
        }
        Ok(Self { names, path, labels })
    }

    /// The paths, the labels and how many each path has.
    fn read(&self, rows: &mut Rows<'_>, dtype: Option<DType>) -> Result<(Vec<String>, Labels, usize)> {
        let (mut paths, mut fields) = (Vec::new(), Vec::new());
        let mut labels =
            if dtype == Some(DType::F32) { Labels::Real(Vec::new()) } else { Labels::Whole(Vec::new()) };
        while rows.next(&mut fields)? {
            if fields.len() != self.names.len() {
                let (found, wanted) = (fields.len(), self.names.len());
                return Err(Error::invalid(format!(
                    "{found} fields, expected {wanted} as in the first line"
                )));
            }
            let path = fields.get(self.path).filter(|path| !path.is_empty());
            paths.push(path.ok_or_else(|| Error::invalid("an empty path"))?.clone());
            for &column in &self.labels {
                let (field, name) = (fields.get(column).map_or("", String::as_str), self.names.get(column));
                let added = labels.add(field, dtype.is_none());
                added.context(|| format!("column `{}`", name.map_or("", |name| shortened(name))))?;
            }
            check_count(paths.len())?;
        }
        Ok((paths, labels, self.labels.len()))
    }
}

/// The start of a text of a file, for an error.
fn shortened(text: &str) -> &str {
    text.char_indices().nth(40).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

enum Labels {
    Whole(Vec<i32>),
    Real(Vec<f32>),
}

impl Labels {
    /// Adds a number. The first one that is not whole makes all of them float32 if they may be.
    fn add(&mut self, field: &str, may_change: bool) -> Result<()> {
        let is_whole = field.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit());
        let wanted = match (&mut *self, field.parse::<i32>(), field.parse::<f32>()) {
            (Self::Whole(numbers), Ok(number), _) => {
                numbers.push(number);
                return Ok(());
            }
            (Self::Real(numbers), _, Ok(number)) => {
                numbers.push(number);
                return Ok(());
            }
            (Self::Whole(numbers), Err(_), Ok(number)) if may_change && !is_whole => {
                let numbers = numbers.iter().map(|&number| number as f32).chain([number]);
                *self = Self::Real(numbers.collect());
                return Ok(());
            }
            (Self::Whole(_), _, Ok(_)) => "a whole number of 32 bits; for others there is `dtype`",
            _ => {
                "a number: classes that have names need numbers, and columns of text are left out by `label_columns`"
            }
        };
        Err(Error::invalid(format!("`{}`, expected {wanted}", shortened(field).escape_debug())))
    }
}

struct Table {
    root: PathBuf,
    /// As they are written there.
    paths: Vec<String>,
    labels: Labels,
    of_each: usize,
}

impl Dataset for Table {
    fn count(&self) -> usize {
        self.paths.len()
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let path = self.paths.get(index).ok_or_else(|| Error::internal("a sample that is not there"))?;
        let file = read_file(&joined(&self.root, Path::new(path)), memory)?;
        let range = index * self.of_each..(index + 1) * self.of_each;
        let labels = match &self.labels {
            Labels::Whole(numbers) => tensors::list(numbers.get(range).unwrap_or_default(), memory)?,
            Labels::Real(numbers) => tensors::list(numbers.get(range).unwrap_or_default(), memory)?,
        };
        Ok(vec![Tensor { source: path.clone(), ..file }, labels])
    }
}

#[cfg(test)]
mod tests;
