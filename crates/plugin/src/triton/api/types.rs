//! Element types as Triton numbers them.

use crate::config::DataType;
use crate::triton::sys::TRITONSERVER_DataType as Raw;
use gesso::error::{Error, Result};
use gesso::tensor::DType;

/// Triton's number, and ours.
const TYPES: [(Raw, DataType); 13] = [
    (Raw::TRITONSERVER_TYPE_BOOL, DataType::Dense(DType::Bool)),
    (Raw::TRITONSERVER_TYPE_UINT8, DataType::Dense(DType::U8)),
    (Raw::TRITONSERVER_TYPE_UINT16, DataType::Dense(DType::U16)),
    (Raw::TRITONSERVER_TYPE_UINT32, DataType::Dense(DType::U32)),
    (Raw::TRITONSERVER_TYPE_UINT64, DataType::Dense(DType::U64)),
    (Raw::TRITONSERVER_TYPE_INT8, DataType::Dense(DType::I8)),
    (Raw::TRITONSERVER_TYPE_INT16, DataType::Dense(DType::I16)),
    (Raw::TRITONSERVER_TYPE_INT32, DataType::Dense(DType::I32)),
    (Raw::TRITONSERVER_TYPE_INT64, DataType::Dense(DType::I64)),
    (Raw::TRITONSERVER_TYPE_FP16, DataType::Dense(DType::F16)),
    (Raw::TRITONSERVER_TYPE_FP32, DataType::Dense(DType::F32)),
    (Raw::TRITONSERVER_TYPE_FP64, DataType::Dense(DType::F64)),
    (Raw::TRITONSERVER_TYPE_BYTES, DataType::Bytes),
];

impl DataType {
    /// The type that Triton gives this number.
    pub(super) fn from_raw(raw: Raw) -> Result<Self> {
        if let Some((_, found)) = TYPES.iter().find(|(r, _)| *r == raw) {
            return Ok(*found);
        }
        Err(match raw {
            Raw::TRITONSERVER_TYPE_BF16 => {
                Error::unsupported("tensors of type `TYPE_BF16` are not supported")
            }
            Raw(number) => {
                Error::unsupported(format!("tensors of Triton's data type {number} are not supported"))
            }
        })
    }

    /// Triton's number.
    pub(super) fn raw(self) -> Raw {
        TYPES.iter().find(|(_, t)| *t == self).map_or(Raw::TRITONSERVER_TYPE_INVALID, |(raw, _)| *raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_number() {
        let all = DType::ALL.into_iter().map(DataType::Dense).chain([DataType::Bytes]);
        for each in all {
            assert_eq!(DataType::from_raw(each.raw()).unwrap(), each);
        }
    }

    #[test]
    fn what_we_cannot_hold_is_named() {
        let error = DataType::from_raw(Raw::TRITONSERVER_TYPE_BF16).unwrap_err();
        assert!(error.to_string().contains("TYPE_BF16"));
        assert!(DataType::from_raw(Raw(77)).unwrap_err().to_string().contains("77"));
    }
}
