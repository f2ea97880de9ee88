//! Arrays as numpy's files: version 1.0 to 3.0, dense, in C's order, little-endian.

use gesso::error::{Error, Result};
use gesso::limits;
use gesso::tensor::{DType, Shape};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Bytes of a header that is read; numpy's own have less than 200.
const MAX_HEADER: usize = 1 << 16;

/// How numpy spells an element type.
fn spelled(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::Bool => "|b1",
    }
}

/// What stands before the elements of an array; its length is a multiple of 64.
pub(crate) fn header(dtype: DType, shape: &[usize]) -> Vec<u8> {
    let dims: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let dims = if shape.len() == 1 { dims.trim_end() } else { dims.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({dims}), }}", spelled(dtype));
    let prefix = MAGIC.len() + 4;
    text += &" ".repeat((prefix + text.len() + 1).next_multiple_of(64) - prefix - text.len() - 1);
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

/// Element type, shape and where the elements begin in `file`.
///
/// # Errors
/// Invalid for what is no such array, or has another number of bytes than its shape; unsupported for another order.
pub(crate) fn parse(file: &[u8]) -> Result<(DType, Shape, usize)> {
    let broken = || Error::invalid("not an array of numpy (`.npy`)");
    let rest = file.strip_prefix(MAGIC).ok_or_else(broken)?;
    let (length, start) = match rest {
        [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([*a, *b])), MAGIC.len() + 4),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, MAGIC.len() + 6),
        _ => return Err(broken()),
    };
    let end = start.checked_add(length).filter(|_| length <= MAX_HEADER).ok_or_else(broken)?;
    let text = file.get(start..end).and_then(|text| std::str::from_utf8(text).ok()).ok_or_else(broken)?;
    let value = |key: &str| text.split_once(key)?.1.split_once(':').map(|(_, value)| value.trim_start());
    let descr = value("'descr'").and_then(|value| value.split('\'').nth(1)).ok_or_else(broken)?;
    let dtype = DType::ALL.into_iter().find(|&dtype| spelled(dtype)[1..] == descr[descr.len().min(1)..]);
    let dtype = dtype.filter(|dtype| dtype.size() == 1 || descr.starts_with('<')).ok_or_else(|| {
        Error::unsupported(format!("an array of `{}`, expected little-endian numbers", descr.escape_debug()))
    })?;
    if value("'fortran_order'").is_some_and(|value| value.starts_with("True")) {
        return Err(Error::unsupported(
            "an array in Fortran's order, expected C's: save `numpy.ascontiguousarray(array)`",
        ));
    }
    let dims =
        value("'shape'").and_then(|value| value.strip_prefix('(')).and_then(|value| value.split_once(')'));
    let dims = dims.ok_or_else(broken)?.0.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let dims = dims.map(|extent| extent.parse().map_err(|_| broken())).collect::<Result<Vec<usize>>>()?;
    if dims.len() > limits::MAX_NDIM {
        return Err(Error::invalid(format!(
            "{} dimensions, more than the limit of {}",
            dims.len(),
            limits::MAX_NDIM
        )));
    }
    let shape = Shape::new(dims);
    let (expected, found) = (shape.bytes(dtype.size())?, file.len() - end);
    if expected != found {
        return Err(Error::invalid(format!(
            "an array of shape {shape} with {found} bytes, expected {expected}"
        )));
    }
    Ok((dtype, shape, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        for shape in [&[][..], &[3], &[2, 3], &[0, 4, 1]] {
            for dtype in DType::ALL {
                let mut file = header(dtype, shape);
                assert_eq!(file.len() % 64, 0);
                let start = file.len();
                file.resize(start + shape.iter().product::<usize>() * dtype.size(), 1);
                assert_eq!(parse(&file).unwrap(), (dtype, Shape::new(shape), start));
            }
        }
        assert!(
            String::from_utf8(header(DType::F32, &[3])[10..].to_vec()).unwrap().contains("'shape': (3,), ")
        );
    }

    #[test]
    fn what_is_no_array_is_an_error() {
        let with = |dict: &str| {
            let mut file = b"\x93NUMPY\x01\x00".to_vec();
            file.extend((dict.len() as u16).to_le_bytes());
            file.extend(dict.as_bytes());
            parse(&file)
        };
        for wrong in [
            "",
            "{}",
            "{'descr': '', 'shape': (), }",
            "{'descr': '<f4', 'shape': (-1,)}",
            "{'descr': '<f4', 'shape': (2",
        ] {
            assert!(with(wrong).is_err(), "{wrong}");
        }
        let error =
            with("{'descr': '>f4', 'fortran_order': False, 'shape': (0,), }").unwrap_err().to_string();
        assert!(error.contains("`>f4`"), "{error}");
        let error = with("{'descr': '<f4', 'fortran_order': True, 'shape': (0,), }").unwrap_err().to_string();
        assert!(error.contains("Fortran"), "{error}");
        let error =
            with("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999, 9999999999999), }")
                .unwrap_err();
        assert!(error.to_string().contains("limit"), "{error}");
        let whole = header(DType::U8, &[2]);
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).is_err());
        }
    }
}
