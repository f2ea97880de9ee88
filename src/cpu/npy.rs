//! Arrays as numpy saves them (`.npy`): a header in Python's syntax, then the elements. It must not know
//! tensors' devices or operators.

use crate::error::{Error, Result};
use crate::limits;
use crate::tensor::{DType, Shape};

const MAGIC: &[u8] = b"\x93NUMPY";

/// An array whose elements are still in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Npy<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Shape,
    /// Whether the first dimension, not the last, is that of neighbours.
    pub is_fortran: bool,
    /// The elements, little-endian, at any address.
    pub bytes: &'a [u8],
}

impl<'a> Npy<'a> {
    /// Reads the header of a file of version 1 that ends with its elements.
    ///
    /// # Errors
    /// When it is none, of another version or byte order, of a type that tensors do not have, or not as long as it
    /// says.
    pub fn parse(file: &'a [u8]) -> Result<Self> {
        let array = Self::begin(file, 1)?;
        let (expected, found) = (array.shape.bytes(array.dtype.size())?, array.bytes.len());
        if expected != found {
            return Err(array.wrong_length(expected));
        }
        Ok(array)
    }

    /// Reads the header of a file of version 1 or 2, behind whose elements there may be more.
    ///
    /// # Errors
    /// As there.
    pub fn parse_front(file: &'a [u8]) -> Result<Self> {
        let array = Self::begin(file, 2)?;
        let expected = array.shape.bytes(array.dtype.size())?;
        let bytes = array.bytes.get(..expected).ok_or_else(|| array.wrong_length(expected))?;
        Ok(Self { bytes, ..array })
    }

    fn wrong_length(&self, expected: usize) -> Error {
        let Self { dtype, shape, bytes, .. } = self;
        let found = bytes.len();
        Error::invalid(format!(
            "a numpy file of shape {shape} and type {dtype} has {found} bytes of data, expected {expected}"
        ))
    }

    /// What the header says, and all that follows it.
    fn begin(file: &'a [u8], newest: u8) -> Result<Self> {
        let version =
            file.strip_prefix(MAGIC).ok_or_else(|| Error::invalid("not a file of numpy (`.npy`)"))?;
        let (major, rest) = match version {
            [major, _, rest @ ..] => (*major, rest),
            _ => return Err(truncated()),
        };
        if major == 0 || major > newest {
            return Err(Error::unsupported(format!("a numpy file of version {major}, expected {newest}")));
        }
        let (length, rest) = match major {
            1 => {
                rest.split_first_chunk().map(|(length, rest)| (u32::from(u16::from_le_bytes(*length)), rest))
            }
            _ => rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length), rest)),
        }
        .ok_or_else(truncated)?;
        let (header, bytes) = rest.split_at_checked(length as usize).ok_or_else(truncated)?;
        let header = std::str::from_utf8(header).map_err(|_| Error::invalid("a numpy header is not text"))?;
        let dtype = dtype(text(field(header, "descr")?)?)?;
        let fortran = field(header, "fortran_order")?;
        let is_fortran = fortran.starts_with("True");
        if !is_fortran && !fortran.starts_with("False") {
            return Err(Error::invalid("`fortran_order` of a numpy header is neither `True` nor `False`"));
        }
        let shape = shape(field(header, "shape")?)?;
        Ok(Self { dtype, shape, is_fortran, bytes })
    }

    /// Where each element of the array, row by row, is among those of the file.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        // Distances in the file, of dimensions from the outermost on; extents of nothing may be huge.
        let strides = if self.bytes.is_empty() {
            Vec::new()
        } else if self.is_fortran {
            let walk = self
                .shape
                .iter()
                .scan(1, |stride, &extent| Some(std::mem::replace(stride, *stride * extent)));
            walk.collect()
        } else {
            self.shape.strides()
        };
        let shape = self.shape.to_vec();
        (0..self.bytes.len() / self.dtype.size()).map(move |mut element: usize| {
            let mut place = 0;
            for (&extent, &stride) in shape.iter().zip(&strides).rev() {
                place += element % extent * stride;
                element /= extent;
            }
            place
        })
    }
}

fn truncated() -> Error {
    Error::invalid("a numpy file ends within its header")
}

/// What follows `'name':`.
fn field<'h>(header: &'h str, name: &str) -> Result<&'h str> {
    let missing = || Error::invalid(format!("a numpy header without `{name}`"));
    let (_, rest) = header.split_once(&format!("'{name}'")).ok_or_else(missing)?;
    Ok(rest.trim_start().strip_prefix(':').ok_or_else(missing)?.trim_start())
}

/// The text in single quotes at the start of `value`.
fn text(value: &str) -> Result<&str> {
    let text = value.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
    text.map(|(text, _)| text)
        .ok_or_else(|| Error::unsupported("a numpy file of structures, expected elements of one type"))
}

fn dtype(name: &str) -> Result<DType> {
    let unknown = || Error::unsupported(format!("a numpy file of type `{}`", name.escape_debug()));
    let (order, kind) = name.split_at_checked(1).ok_or_else(unknown)?;
    if order == ">" {
        return Err(Error::unsupported("a numpy file in big-endian byte order, expected little-endian"));
    }
    if !matches!(order, "<" | "|" | "=") {
        return Err(unknown());
    }
    Ok(match kind {
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "b1" => DType::Bool,
        _ => return Err(unknown()),
    })
}

fn shape(value: &str) -> Result<Shape> {
    let wrong = || Error::invalid("the shape of a numpy header is not a tuple of extents");
    let (inside, _) = value.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or_else(wrong)?;
    let numbers = inside.split(',').map(str::trim).filter(|number| !number.is_empty());
    let dims: Vec<usize> =
        numbers.map(|number| number.parse().map_err(|_| wrong())).collect::<Result<_>>()?;
    if dims.len() > limits::MAX_NDIM {
        let (found, most) = (dims.len(), limits::MAX_NDIM);
        return Err(Error::invalid(format!("a numpy file of {found} dimensions, expected at most {most}")));
    }
    Ok(Shape::from(dims))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let length = (header.len() as u16).to_le_bytes();
        [MAGIC, &[1, 0], &length, header.as_bytes(), data].concat()
    }

    #[test]
    fn elements_are_found_in_either_order() {
        let data: Vec<u8> = (0..6).collect();
        let c = file("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n", &data);
        assert_eq!(Npy::parse(&c).unwrap().places().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
        let f = file("{'shape': (2, 3), 'fortran_order': True, 'descr': '|u1'}", &data);
        let array = Npy::parse(&f).unwrap();
        assert_eq!((array.dtype, &array.shape[..]), (DType::U8, &[2, 3][..]));
        assert_eq!(array.places().collect::<Vec<_>>(), [0, 2, 4, 1, 3, 5]);
        let scalar = file("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", &[0; 8]);
        assert_eq!(Npy::parse(&scalar).unwrap().places().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn what_is_wrong_is_an_error() {
        let header = |text: &str| file(text, &[0; 4]);
        let second = [
            MAGIC,
            &[2, 0, 55, 0, 0, 0],
            b"{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}",
            &[7, 8, 9],
        ]
        .concat();
        assert_eq!(Npy::parse_front(&second).unwrap().bytes, [7, 8]);
        assert!(Npy::parse_front(&second[..second.len() - 2]).unwrap_err().to_string().contains("1 bytes"));
        assert!(
            Npy::parse_front(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").unwrap_err().to_string().contains("ends")
        );
        assert!(Npy::parse_front(b"\x93NUMPY\x03\x00").unwrap_err().to_string().contains("version 3"));
        for (file, expected) in [
            (b"\x93NUMP".to_vec(), "not a file"),
            (b"\x93NUMPY\x01".to_vec(), "ends"),
            (b"\x93NUMPY\x02\x00".to_vec(), "version 2"),
            (b"\x93NUMPY\x01\x00\xff\xff".to_vec(), "ends"),
            (header("{'descr': '>i4', 'fortran_order': False, 'shape': (1,)}"), "big-endian"),
            (header("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}"), "structures"),
            (header("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}"), "`<c8`"),
            (header("{'descr': '<i4', 'fortran_order': 0, 'shape': (1,)}"), "fortran_order"),
            (header("{'descr': '<i4', 'fortran_order': False}"), "without `shape`"),
            (header("{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}"), "tuple"),
            (header("{'descr': '<i4', 'fortran_order': False, 'shape': (1,"), "tuple"),
            (header("{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}"), "4 bytes"),
            (
                header("{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}"),
                "limit",
            ),
        ] {
            let error = Npy::parse(&file).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
