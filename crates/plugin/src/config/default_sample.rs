//! What an optional input is where a request leaves it out: zeros, or what parameter `default.NAME` says. It must not
//! know requests.

use std::str::FromStr;

use super::tensors::VARIABLE;
use gesso::error::{Error, Result};
use gesso::tensor::{DType, Shape};

/// A sample that stands in for one that a request does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultSample {
    /// Element type.
    pub dtype: DType,
    /// Shape of the sample.
    pub shape: Vec<usize>,
    /// Bytes of the whole sample.
    pub bytes: usize,
    /// The bytes of its elements, or of one that stands for all.
    elements: Vec<u8>,
}

impl DefaultSample {
    /// The default of an input whose samples have `dims`, of the elements in `text`: one for all or as many as there
    /// are, apart by commas or spaces. Without a text, zeros; `None` when the dims do not say how many.
    ///
    /// # Errors
    /// Invalid when the text holds something else, or another number of elements than the dims say.
    pub(super) fn new(dtype: DType, dims: &[i64], text: Option<&str>) -> Result<Option<Self>> {
        let words: Vec<&str> = text.map_or_else(|| vec!["0"], words);
        let fixed: Option<Vec<usize>> = dims.iter().map(|&extent| usize::try_from(extent).ok()).collect();
        let shape = match (fixed, text) {
            (Some(shape), _) => shape,
            (None, Some(_)) if dims == [VARIABLE] => vec![words.len()],
            (None, None) => return Ok(None),
            (None, Some(_)) => {
                return Err(Error::invalid(format!("dims {dims:?} are variable, so a default has no shape")));
            }
        };
        let bytes = Shape::new(shape.clone()).bytes(dtype.size())?;
        let count = bytes / dtype.size();
        if words.len() != count && words.len() != 1 {
            return Err(Error::invalid(format!(
                "{} elements, expected 1 or {count} for dims {dims:?}",
                words.len()
            )));
        }
        let mut elements = Vec::with_capacity(words.len() * dtype.size());
        for word in words {
            push(dtype, word, &mut elements)
                .ok_or_else(|| Error::invalid(format!("`{}` is no {dtype}", word.escape_debug())))?;
        }
        Ok(Some(Self { dtype, shape, bytes, elements }))
    }

    /// Writes the sample to the start of `target`, which has at least [`DefaultSample::bytes`] bytes.
    pub fn write(&self, target: &mut [u8]) {
        for part in target.chunks_mut(self.elements.len().max(1)) {
            for (byte, &from) in part.iter_mut().zip(&self.elements) {
                *byte = from;
            }
        }
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty()).collect()
}

fn push(dtype: DType, word: &str, out: &mut Vec<u8>) -> Option<()> {
    match dtype {
        DType::U8 => number::<u8>(word, out),
        DType::U16 => number::<u16>(word, out),
        DType::U32 => number::<u32>(word, out),
        DType::U64 => number::<u64>(word, out),
        DType::I8 => number::<i8>(word, out),
        DType::I16 => number::<i16>(word, out),
        DType::I32 => number::<i32>(word, out),
        DType::I64 => number::<i64>(word, out),
        DType::F16 => number::<half::f16>(word, out),
        DType::F32 => number::<f32>(word, out),
        DType::F64 => number::<f64>(word, out),
        DType::Bool => match word {
            "0" | "false" => number::<u8>("0", out),
            "1" | "true" => number::<u8>("1", out),
            _ => None,
        },
    }
}

fn number<T: FromStr + bytemuck::Pod>(word: &str, out: &mut Vec<u8>) -> Option<()> {
    let value: T = word.parse().ok()?;
    out.extend_from_slice(bytemuck::bytes_of(&value));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(dtype: DType, dims: &[i64], text: Option<&str>) -> Vec<u8> {
        let default = DefaultSample::new(dtype, dims, text).unwrap().unwrap();
        let mut bytes = vec![9; default.bytes];
        default.write(&mut bytes);
        bytes
    }

    #[test]
    fn one_element_stands_for_all() {
        assert_eq!(sample(DType::U8, &[2, 2], None), [0; 4]);
        assert_eq!(sample(DType::U8, &[2, 2], Some("7")), [7; 4]);
        assert_eq!(sample(DType::F32, &[2], Some(" 0.5,-1")), bytemuck::cast_slice::<f32, u8>(&[0.5, -1.0]));
        assert_eq!(sample(DType::Bool, &[2], Some("true 0")), [1, 0]);
        assert_eq!(sample(DType::I16, &[], Some("-2")), (-2i16).to_ne_bytes());
        assert_eq!(sample(DType::U8, &[-1], Some("1, 2, 3")), [1, 2, 3]);
        assert_eq!(sample(DType::U8, &[0, 3], None), [0u8; 0]);
    }

    #[test]
    fn every_type_has_its_own_bytes() {
        let one = |dtype| sample(dtype, &[1], Some("1"));
        assert_eq!((one(DType::U16), one(DType::I8)), (1_u16.to_ne_bytes().to_vec(), vec![1]));
        assert_eq!(
            (one(DType::U32), one(DType::I32)),
            (1_u32.to_ne_bytes().to_vec(), 1_i32.to_ne_bytes().to_vec())
        );
        assert_eq!(
            (one(DType::U64), one(DType::I64)),
            (1_u64.to_ne_bytes().to_vec(), 1_i64.to_ne_bytes().to_vec())
        );
        assert_eq!(one(DType::F16), half::f16::ONE.to_ne_bytes());
        assert_eq!(one(DType::F64), 1_f64.to_ne_bytes());
    }

    #[test]
    fn what_cannot_be_a_default_is_said() {
        assert_eq!(DefaultSample::new(DType::U8, &[-1, 3], None).unwrap(), None);
        let error =
            |dtype, dims: &[i64], text| DefaultSample::new(dtype, dims, Some(text)).unwrap_err().to_string();
        assert_eq!(error(DType::U8, &[2], "1 2 3"), "3 elements, expected 1 or 2 for dims [2]");
        assert_eq!(error(DType::U8, &[2], ""), "0 elements, expected 1 or 2 for dims [2]");
        assert_eq!(error(DType::U8, &[1], "256"), "`256` is no uint8");
        assert_eq!(error(DType::Bool, &[1], "maybe"), "`maybe` is no bool");
        assert!(error(DType::U8, &[-1, 3], "1").contains("are variable"));
        assert!(DefaultSample::new(DType::F64, &[i64::MAX, 2], None).is_err());
    }
}
