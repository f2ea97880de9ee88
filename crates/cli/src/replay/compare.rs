//! How far one tensor is from another. It must not know where they come from.

use gesso::error::Result;
use gesso::tensor::DType;
use half::f16;
use serde_json::{Value, json};
use triton_gesso::config::DataType;
use triton_gesso::record::Tensor;

/// An output as it is now.
pub(super) struct Now<'t> {
    pub(super) datatype: &'t str,
    pub(super) shape: &'t [usize],
    pub(super) bytes: &'t [u8],
}

/// What became of an output.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Difference {
    /// To the bit, or a NaN in the same places.
    Equal,
    /// This far at most, in so many elements.
    Values {
        most: f64,
        differ: usize,
        elements: usize,
    },
    /// Bytes that are no numbers.
    Bytes,
    Shape(Vec<usize>, Vec<usize>),
    Type(String, String),
    /// There is none any more.
    Missing,
    /// Its bytes were not recorded; type and shape are equal.
    NotKept,
}

impl Difference {
    /// Compares an output with the recorded one, whose shape was `shape`.
    ///
    /// # Errors
    /// Invalid for a type that is none.
    pub(super) fn between(recorded: &Tensor, shape: &[usize], now: &Now<'_>) -> Result<Self> {
        let dtype = recorded.data_type()?;
        if recorded.datatype != now.datatype {
            return Ok(Self::Type(recorded.datatype.clone(), now.datatype.to_owned()));
        }
        if shape != now.shape {
            return Ok(Self::Shape(shape.to_vec(), now.shape.to_vec()));
        }
        let Some(bytes) = &recorded.bytes else { return Ok(Self::NotKept) };
        if bytes == now.bytes {
            return Ok(Self::Equal);
        }
        let DataType::Dense(dtype) = dtype else { return Ok(Self::Bytes) };
        if bytes.len() != now.bytes.len() {
            return Ok(Self::Bytes);
        }
        let (mut most, mut differ) = (0_f64, 0);
        let pairs = bytes.chunks_exact(dtype.size()).zip(now.bytes.chunks_exact(dtype.size()));
        let elements = pairs.len();
        for (before, now) in pairs.filter(|(before, now)| before != now) {
            let distance = distance(dtype, before, now);
            differ += usize::from(distance > 0.0);
            most = most.max(distance);
        }
        Ok(if differ == 0 { Self::Equal } else { Self::Values { most, differ, elements } })
    }

    /// Whether it is more than `tolerance` allows.
    pub(super) fn is_beyond(&self, tolerance: f64) -> bool {
        match self {
            Self::Equal | Self::NotKept => false,
            Self::Values { most, .. } => *most > tolerance,
            Self::Bytes | Self::Shape(..) | Self::Type(..) | Self::Missing => true,
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Equal => "equal".to_owned(),
            Self::Values { most, differ, elements } => {
                format!("differs by at most {most} in {differ} of {elements} elements")
            }
            Self::Bytes => "other bytes".to_owned(),
            Self::Shape(before, now) => format!("shape {before:?} became {now:?}"),
            Self::Type(before, now) => format!("type {before} became {now}"),
            Self::Missing => "is missing".to_owned(),
            Self::NotKept => "not recorded; type and shape are equal".to_owned(),
        }
    }

    pub(super) fn as_json(&self) -> Value {
        match self {
            Self::Equal => json!({ "result": "equal" }),
            Self::Values { most, differ, elements } => {
                // What JSON has no number for is null.
                json!({ "result": "values", "most": most, "differ": differ, "elements": elements })
            }
            Self::Bytes => json!({ "result": "bytes" }),
            Self::Shape(before, now) => json!({ "result": "shape", "before": before, "now": now }),
            Self::Type(before, now) => json!({ "result": "type", "before": before, "now": now }),
            Self::Missing => json!({ "result": "missing" }),
            Self::NotKept => json!({ "result": "not recorded" }),
        }
    }
}

/// How far one number is from another; infinite where one of them is none.
fn distance(dtype: DType, before: &[u8], now: &[u8]) -> f64 {
    let whole = |bytes: &[u8]| -> i128 {
        let mut wide = [0; 8];
        wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        let value = u64::from_le_bytes(wide);
        let unused = 64 - 8 * bytes.len() as u32;
        match dtype {
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
                i128::from((value << unused).cast_signed() >> unused)
            }
            _ => i128::from(value),
        }
    };
    let real = |bytes: &[u8]| match (dtype, bytes) {
        (DType::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
        (DType::F32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        (_, bytes) => bytes.try_into().map_or(f64::NAN, f64::from_le_bytes),
    };
    if !matches!(dtype, DType::F16 | DType::F32 | DType::F64) {
        return (whole(before) - whole(now)).unsigned_abs() as f64;
    }
    let (before, now) = (real(before), real(now));
    if before == now || (before.is_nan() && now.is_nan()) {
        return 0.0;
    }
    let distance = (before - now).abs();
    if distance.is_nan() { f64::INFINITY } else { distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(datatype: &str, shape: &[usize], bytes: Option<Vec<u8>>) -> Tensor {
        Tensor {
            name: "O".to_owned(),
            datatype: datatype.to_owned(),
            shape: shape.to_vec(),
            sent: None,
            index: None,
            bytes,
        }
    }

    fn between(datatype: &str, before: &[u8], now: &[u8]) -> Difference {
        let recorded = tensor(datatype, &[1], Some(before.to_vec()));
        Difference::between(&recorded, &[1], &Now { datatype, shape: &[1], bytes: now }).unwrap()
    }

    #[test]
    fn numbers_are_as_far_as_they_are() {
        let values = |most, differ, elements| Difference::Values { most, differ, elements };
        assert_eq!(between("UINT8", &[1, 200, 3], &[1, 100, 4]), values(100.0, 2, 3));
        assert_eq!(between("INT8", &[255], &[1]), values(2.0, 1, 1));
        assert_eq!(between("INT16", &(-300_i16).to_le_bytes(), &300_i16.to_le_bytes()), values(600.0, 1, 1));
        assert_eq!(
            between("UINT64", &u64::MAX.to_le_bytes(), &0_u64.to_le_bytes()),
            values(u64::MAX as f64, 1, 1)
        );
        assert_eq!(between("FP64", &1.5_f64.to_le_bytes(), &1.25_f64.to_le_bytes()), values(0.25, 1, 1));
        let half = |value: f32| f16::from_f32(value).to_le_bytes();
        assert_eq!(between("FP16", &half(2.0), &half(1.0)), values(1.0, 1, 1));
        let single = |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
        let same = between("FP32", &single(&[0.0, f32::NAN]), &single(&[-0.0, -f32::NAN]));
        assert_eq!(same, Difference::Equal);
        let lost = between("FP32", &single(&[1.0, f32::INFINITY]), &single(&[f32::NAN, f32::INFINITY]));
        assert_eq!(lost, values(f64::INFINITY, 1, 2));
        assert!(
            lost.is_beyond(1e300) && !values(0.5, 1, 2).is_beyond(0.5) && values(0.5, 1, 2).is_beyond(0.4)
        );
    }

    #[test]
    fn type_and_shape_come_first() {
        let recorded = tensor("UINT8", &[1, 2], None);
        let now = |datatype, shape| {
            Difference::between(&recorded, &[1, 2], &Now { datatype, shape, bytes: &[1, 2] })
        };
        assert_eq!(now("UINT8", &[1, 2]).unwrap(), Difference::NotKept);
        assert_eq!(now("UINT8", &[2]).unwrap(), Difference::Shape(vec![1, 2], vec![2]));
        assert_eq!(now("INT8", &[1, 2]).unwrap().text(), "type UINT8 became INT8");
        assert!(Difference::Missing.is_beyond(1e9) && !Difference::NotKept.is_beyond(0.0));
    }
}
