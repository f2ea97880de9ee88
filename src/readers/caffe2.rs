//! `readers.Caffe2`: images, labels and other tensors in databases of Caffe2, each a message `TensorProtos`.

use std::ops::Range;
use std::sync::Arc;

use super::caffe::{PATH, Records, known};
use super::wire::{Fields, Value, packed};
use super::{Dataset, ReaderDef, Tensor, count, tensors};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::{HostBuffer, HostPool};
use crate::operator::{ArgSpec, Args};
use crate::tensor::{DType, Element, Shape, ValueType};

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers__Caffe2",
    aliases: &["Caffe2Reader"],
    doc: "Images and labels of Caffe2's LMDB databases",
    args: &[
        PATH,
        ArgSpec::bool("image_available", "whether a record begins with an image").or_bool(true),
        ArgSpec::int("label_type", "0: one label; 1: the classes that are there; 2: a label for each class; 3: the classes that are there, and their weights; 4: none").or_int(0),
        ArgSpec::int("num_labels", "classes, where labels are sparse").or_int(1),
        ArgSpec::int("additional_inputs", "tensors behind the labels").or_int(0),
        ArgSpec::bool("bbox", "whether a record ends with a box").or_bool(false),
    ],
    outputs: |args| Options::new(args)?.outputs(),
    open: |args| Ok(Box::new(Tensors { options: Options::new(args)?, records: Records::open(args)? })),
    undecoded: None,
    behind: None,
    shuffles_list: false,
};

/// What is known of labels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Labels {
    None,
    /// A tensor as it is.
    Whole,
    /// The classes that are there, which become a label for each class.
    Sparse,
    /// The same with a weight for each.
    Weighted,
}

struct Options {
    has_image: bool,
    labels: Labels,
    /// Classes.
    count: usize,
    /// Tensors behind image and labels.
    others: usize,
}

impl Options {
    fn new(args: &Args) -> Result<Self> {
        let labels = match count(args, "label_type", 0, 4)? {
            1 => Labels::Sparse,
            3 => Labels::Weighted,
            4 => Labels::None,
            _ => Labels::Whole,
        };
        let others = count(args, "additional_inputs", 0, limits::MAX_PIPELINE_TENSORS)?;
        Ok(Self {
            has_image: args.bool("image_available")?,
            labels,
            count: count(args, "num_labels", 0, limits::MAX_SAMPLE_BYTES / size_of::<i32>())?,
            others: others + usize::from(args.bool("bbox")?),
        })
    }

    fn outputs(&self) -> Result<Vec<ValueType>> {
        let whole = || known(None, None);
        let image = self.has_image.then(whole);
        let spread = || known(None, Some(vec![Some(self.count)]));
        let labels = match self.labels {
            Labels::None => Vec::new(),
            Labels::Whole => vec![whole()],
            Labels::Sparse | Labels::Weighted => vec![spread(), whole()],
        };
        Ok(image.into_iter().chain(labels).chain((0..self.others).map(|_| whole())).collect())
    }

    /// The outputs for the tensors of a record.
    fn made(&self, found: Vec<Tensor>, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let (count, wanted) = (found.len(), self.outputs()?.len());
        let short = || Error::invalid(format!("a record of {count} tensors, too few for {wanted} outputs"));
        let mut rest = found.into_iter();
        let mut made: Vec<_> = rest.by_ref().take(usize::from(self.has_image)).collect();
        if matches!(self.labels, Labels::Sparse | Labels::Weighted) {
            let classes = rest.next().ok_or_else(short)?;
            let weights = match self.labels {
                Labels::Weighted => Some(rest.next().ok_or_else(short)?),
                _ => None,
            };
            made.push(self.spread(&classes, weights.as_ref(), memory)?);
            made.push(classes);
        }
        made.extend(rest);
        if made.len() < wanted {
            return Err(short());
        }
        made.truncate(wanted);
        Ok(made)
    }

    /// A label for each class, of the classes that are there.
    fn spread(&self, classes: &Tensor, weights: Option<&Tensor>, memory: &Arc<HostPool>) -> Result<Tensor> {
        let places: Vec<i64> = match classes.dtype {
            DType::I32 => values::<i32>(classes).map(i64::from).collect(),
            DType::U8 => classes.bytes.bytes().iter().copied().map(i64::from).collect(),
            dtype => return Err(Error::invalid(format!("classes of type {dtype}, expected whole numbers"))),
        };
        let place = |&place: &i64| usize::try_from(place).ok().filter(|&place| place < self.count);
        let wrong = |place: &i64| {
            let count = self.count;
            Error::invalid(format!("the class {place}, expected one below `num_labels`, {count}"))
        };
        let places = places.iter().map(|class| place(class).ok_or_else(|| wrong(class)));
        let places: Vec<usize> = places.collect::<Result<_>>()?;
        match weights.map(|weights| (weights.dtype, weights)) {
            None => spread(self.count, &places, [1_i32].into_iter(), memory),
            Some((DType::I32, weights)) => spread(self.count, &places, values::<i32>(weights), memory),
            Some((DType::F32, weights)) => spread(self.count, &places, values::<f32>(weights), memory),
            Some((_, weights)) => spread(self.count, &places, weights.bytes.bytes().iter().copied(), memory),
        }
    }
}

/// The elements of a tensor.
fn values<T: Element>(tensor: &Tensor) -> impl Iterator<Item = T> {
    tensor.bytes.bytes().chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned)
}

/// One weight alone is that of all.
fn spread<T: Element>(
    count: usize,
    places: &[usize],
    weights: impl Iterator<Item = T>,
    memory: &Arc<HostPool>,
) -> Result<Tensor> {
    let weights: Vec<T> = weights.collect();
    if weights.len() != places.len() && weights.len() != 1 {
        let (weights, places) = (weights.len(), places.len());
        return Err(Error::invalid(format!("{weights} weights of {places} classes, expected as many")));
    }
    let mut labels = vec![T::default(); count];
    for (&place, &weight) in places.iter().zip(weights.iter().cycle()) {
        if let Some(label) = labels.get_mut(place) {
            *label = weight;
        }
    }
    tensors::list(&labels, memory)
}

struct Tensors {
    options: Options,
    records: Records,
}

impl Dataset for Tensors {
    fn count(&self) -> usize {
        self.records.count()
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        self.records.read(index, memory, |buffer, range| {
            let mut found = Vec::new();
            for field in Fields::new(buffer.bytes(), range) {
                match field? {
                    (1, Value::Bytes(range)) => found.push(tensor(buffer, range, memory)?),
                    (1, Value::Number(_)) => return Err(Error::invalid("a number, expected a tensor")),
                    _ => {}
                }
                if found.len() > limits::MAX_PIPELINE_TENSORS {
                    let most = limits::MAX_PIPELINE_TENSORS;
                    return Err(Error::invalid(format!("more than {most} tensors in a record")));
                }
            }
            self.options.made(found, memory)
        })
    }
}

// Kinds of elements.
const INT32: u64 = 2;
const BYTE: u64 = 3;
const STRING: u64 = 4;

/// A message `TensorProto`.
fn tensor(buffer: &Arc<HostBuffer>, message: Range<usize>, memory: &Arc<HostPool>) -> Result<Tensor> {
    let (bytes, mut dims, mut kind) = (buffer.bytes(), Vec::new(), 1);
    let (mut numbers, mut data, mut text) = (Vec::<f64>::new(), 0..0, None);
    for field in Fields::new(bytes, message) {
        match field? {
            (1, Value::Bytes(range)) => dims.extend(packed(bytes, range)?),
            (1, Value::Number(dim)) => dims.push(dim as i64),
            (2, Value::Number(number)) => kind = number,
            (3, Value::Bytes(range)) if range.len().is_multiple_of(4) => {
                let (floats, _) = bytes.get(range).unwrap_or_default().as_chunks::<4>();
                numbers.extend(floats.iter().map(|&float| f64::from(f32::from_le_bytes(float))));
            }
            (4, Value::Bytes(range)) => numbers.extend(packed(bytes, range)?.iter().map(|&n| n as f64)),
            (4, Value::Number(number)) => numbers.push(number as i64 as f64),
            (5, Value::Bytes(range)) => data = range,
            (6, Value::Bytes(range)) => text = text.or(Some(range)),
            (number @ 2..=6, _) => {
                return Err(Error::invalid(format!("field {number} of a tensor has another type")));
            }
            _ => {}
        }
    }
    let shape = shape(&dims);
    let list = match kind {
        // An encoded image: one text, whatever its dimensions say.
        STRING => return Ok(tensors::part(buffer, text.unwrap_or_default(), DType::U8)),
        BYTE if shape.as_ref().is_none_or(|shape| shape.volume().ok() != Some(data.len())) => {
            let length = data.len();
            return Err(Error::invalid(format!("{length} bytes in a tensor of shape {dims:?}")));
        }
        BYTE => tensors::part(buffer, data, DType::U8),
        INT32 => tensors::list(&numbers.iter().map(|&n| whole(n)).collect::<Result<Vec<_>>>()?, memory)?,
        _ => tensors::list(&numbers.iter().map(|&number| number as f32).collect::<Vec<_>>(), memory)?,
    };
    // Elements that are fewer or more than the dimensions say are a list.
    match shape.filter(|shape| kind == BYTE || shape.volume().ok() == Some(numbers.len())) {
        Some(shape) => Ok(Tensor { shape, ..list }),
        None => Ok(list),
    }
}

/// Dimensions, if a tensor can have them.
fn shape(dims: &[i64]) -> Option<Shape> {
    let dims: Vec<usize> = dims.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<_>>()?;
    let shape = Some(dims).filter(|dims| dims.len() <= limits::MAX_NDIM).map(Shape::new);
    shape.filter(|shape| shape.bytes_of_input(1).is_ok())
}

/// A whole number of 32 bits, without what is behind its point.
fn whole(number: f64) -> Result<i32> {
    let is_in = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number.trunc());
    is_in.then_some(number as i32).ok_or_else(|| Error::invalid(format!("{number}, expected 32 bits")))
}

#[cfg(test)]
mod tests;
