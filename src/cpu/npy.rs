//! Arrays as numpy saves them (`.npy`), of versions 1 to 3: a header in Python's syntax, then the elements. It must not
//! know tensors' devices or operators.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::limits;
use crate::tensor::{DType, Shape};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Those that can be read. From the second on a header may be longer, in the third its names are UTF-8.
const VERSIONS: RangeInclusive<u8> = 1..=3;

/// numpy lets elements begin at a multiple of this.
const ALIGNMENT: usize = 64;

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
    /// Reads the header of a file that ends with its elements.
    ///
    /// # Errors
    /// When it is none, of another version or byte order, of a type that tensors do not have, or not as long as it
    /// says.
    pub fn parse(file: &'a [u8]) -> Result<Self> {
        let array = Self::begin(file)?;
        let (expected, found) = (array.shape.bytes(array.dtype.size())?, array.bytes.len());
        if expected != found {
            return Err(array.wrong_length(expected));
        }
        Ok(array)
    }

    /// Reads the header of a file behind whose elements there may be more.
    ///
    /// # Errors
    /// As there.
    pub fn parse_front(file: &'a [u8]) -> Result<Self> {
        let array = Self::begin(file)?;
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

    /// What the header says, and all that follows it: as much as there is.
    ///
    /// # Errors
    /// As there, but for the length.
    pub fn begin(file: &'a [u8]) -> Result<Self> {
        let version =
            file.strip_prefix(MAGIC).ok_or_else(|| Error::invalid("not a file of numpy (`.npy`)"))?;
        let (major, rest) = match version {
            [major, _, rest @ ..] => (*major, rest),
            _ => return Err(truncated()),
        };
        if !VERSIONS.contains(&major) {
            let (first, last) = VERSIONS.into_inner();
            return Err(Error::unsupported(format!(
                "a numpy file of version {major}, expected {first} to {last}"
            )));
        }
        let (length, rest) = match major {
            1 => {
                rest.split_first_chunk().map(|(length, rest)| (u32::from(u16::from_le_bytes(*length)), rest))
            }
            _ => rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length), rest)),
        }
        .ok_or_else(truncated)?;
        let length = length as usize;
        if length > limits::MAX_NUMPY_HEADER_BYTES {
            let most = limits::MAX_NUMPY_HEADER_BYTES;
            return Err(Error::invalid(format!(
                "a numpy header of {length} bytes, more than the limit of {most}"
            )));
        }
        let (header, bytes) = rest.split_at_checked(length).ok_or_else(truncated)?;
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

    /// Copies the elements row by row to `to`, which has as many bytes.
    pub fn copy_to(&self, to: &mut [u8]) {
        if !self.is_fortran {
            to.copy_from_slice(self.bytes);
            return;
        }
        let size = self.dtype.size();
        for (to, place) in to.chunks_exact_mut(size).zip(self.places()) {
            to.copy_from_slice(self.bytes.get(place * size..(place + 1) * size).unwrap_or_default());
        }
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

/// What stands before the elements of an array in a file, row by row.
pub fn header(dtype: DType, shape: &[usize]) -> Vec<u8> {
    let dims: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let dims = if shape.len() == 1 { dims.trim_end() } else { dims.trim_end_matches(", ") };
    let order = if dtype.size() == 1 { '|' } else { '<' };
    let mut text =
        format!("{{'descr': '{order}{}', 'fortran_order': False, 'shape': ({dims}), }}", kind_of(dtype));
    // Magic number, version, and the length of the text.
    let before = MAGIC.len() + 4;
    let end = (before + text.len() + 1).next_multiple_of(ALIGNMENT);
    text += &" ".repeat(end - before - text.len() - 1);
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
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
    let unknown = || Error::unsupported(format!("Unknown Numpy type string `{}`", name.escape_debug()));
    let (order, kind) = name.split_at_checked(1).ok_or_else(unknown)?;
    if order == ">" {
        return Err(Error::unsupported("a numpy file in big-endian byte order, expected little-endian"));
    }
    if !matches!(order, "<" | "|" | "=") {
        return Err(unknown());
    }
    DType::ALL.into_iter().find(|&dtype| kind_of(dtype) == kind).ok_or_else(unknown)
}

/// How numpy spells an element type, without its byte order.
fn kind_of(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "u1",
        DType::U16 => "u2",
        DType::U32 => "u4",
        DType::U64 => "u8",
        DType::I8 => "i1",
        DType::I16 => "i2",
        DType::I32 => "i4",
        DType::I64 => "i8",
        DType::F16 => "f2",
        DType::F32 => "f4",
        DType::F64 => "f8",
        DType::Bool => "b1",
    }
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
        let mut rows = [9; 6];
        array.copy_to(&mut rows);
        assert_eq!(rows, [0, 2, 4, 1, 3, 5]);
        let scalar = file("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", &[0; 8]);
        assert_eq!(Npy::parse(&scalar).unwrap().places().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn what_is_written_can_be_read() {
        for shape in [&[][..], &[3], &[2, 3], &[0, 4, 1]] {
            for dtype in DType::ALL {
                let mut file = header(dtype, shape);
                assert_eq!(file.len() % ALIGNMENT, 0);
                let bytes = shape.iter().product::<usize>() * dtype.size();
                file.extend(vec![1; bytes]);
                let array = Npy::parse(&file).unwrap();
                assert_eq!((array.dtype, array.shape, array.is_fortran), (dtype, Shape::new(shape), false));
                assert_eq!(array.bytes, vec![1; bytes]);
            }
        }
        let text = String::from_utf8(header(DType::F32, &[3])[10..].to_vec()).unwrap();
        assert!(text.contains("'descr': '<f4'") && text.contains("'shape': (3,), "), "{text}");
        let whole = header(DType::U8, &[2]);
        assert!((0..whole.len()).all(|end| Npy::parse(&whole[..end]).is_err()));
    }

    /// As `numpy.lib.format.write_array` makes them.
    #[test]
    fn all_versions_are_read() {
        let first = file("{'descr': '<i2', 'fortran_order': False, 'shape': (1,), }\n", &[5, 1]);
        for major in [2, 3] {
            let length = u32::from(u16::from_le_bytes([first[8], first[9]])).to_le_bytes();
            let later = [MAGIC, &[major, 0], &length, &first[10..]].concat();
            assert_eq!(Npy::parse(&later).unwrap(), Npy::parse(&first).unwrap());
        }
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
        for (file, expected) in [
            (b"\x93NUMP".to_vec(), "not a file"),
            (b"\x93NUMPY\x01".to_vec(), "ends"),
            (b"\x93NUMPY\x00\x00".to_vec(), "version 0"),
            (b"\x93NUMPY\x04\x00".to_vec(), "version 4, expected 1 to 3"),
            (b"\x93NUMPY\x02\x00\xff\x00".to_vec(), "ends"),
            (b"\x93NUMPY\x03\x00\xff\xff\x00\x00{".to_vec(), "ends"),
            (b"\x93NUMPY\x03\x00\x01\x00\x01\x00{".to_vec(), "65537 bytes, more than the limit"),
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
