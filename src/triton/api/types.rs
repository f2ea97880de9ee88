//! Element types as Triton numbers them and as model configurations spell them.

use std::fmt;

use crate::error::{Error, Result};
use crate::tensor::DType;
use crate::triton::sys::TRITONSERVER_DataType as Raw;

/// The element type of a tensor on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    /// Elements of one size.
    Dense(DType),
    /// `TYPE_STRING`: each element is a little-endian 4-byte length and that many bytes.
    Bytes,
}

/// The name in a model configuration, Triton's number, and ours.
const TYPES: [(&str, Raw, DataType); 13] = [
    ("TYPE_BOOL", Raw::TRITONSERVER_TYPE_BOOL, DataType::Dense(DType::Bool)),
    ("TYPE_UINT8", Raw::TRITONSERVER_TYPE_UINT8, DataType::Dense(DType::U8)),
    ("TYPE_UINT16", Raw::TRITONSERVER_TYPE_UINT16, DataType::Dense(DType::U16)),
    ("TYPE_UINT32", Raw::TRITONSERVER_TYPE_UINT32, DataType::Dense(DType::U32)),
    ("TYPE_UINT64", Raw::TRITONSERVER_TYPE_UINT64, DataType::Dense(DType::U64)),
    ("TYPE_INT8", Raw::TRITONSERVER_TYPE_INT8, DataType::Dense(DType::I8)),
    ("TYPE_INT16", Raw::TRITONSERVER_TYPE_INT16, DataType::Dense(DType::I16)),
    ("TYPE_INT32", Raw::TRITONSERVER_TYPE_INT32, DataType::Dense(DType::I32)),
    ("TYPE_INT64", Raw::TRITONSERVER_TYPE_INT64, DataType::Dense(DType::I64)),
    ("TYPE_FP16", Raw::TRITONSERVER_TYPE_FP16, DataType::Dense(DType::F16)),
    ("TYPE_FP32", Raw::TRITONSERVER_TYPE_FP32, DataType::Dense(DType::F32)),
    ("TYPE_FP64", Raw::TRITONSERVER_TYPE_FP64, DataType::Dense(DType::F64)),
    ("TYPE_STRING", Raw::TRITONSERVER_TYPE_BYTES, DataType::Bytes),
];

impl DataType {
    /// The type that Triton gives this number.
    pub(super) fn from_raw(raw: Raw) -> Result<Self> {
        if let Some((_, _, found)) = TYPES.iter().find(|(_, r, _)| *r == raw) {
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
        TYPES.iter().find(|(_, _, t)| *t == self).map_or(Raw::TRITONSERVER_TYPE_INVALID, |(_, raw, _)| *raw)
    }

    /// The type that a model configuration spells `name`, like `TYPE_FP32`; `None` for `TYPE_INVALID`, `TYPE_BF16` and
    /// what is no type.
    pub fn from_config_name(name: &str) -> Option<Self> {
        TYPES.iter().find(|(n, _, _)| *n == name).map(|(_, _, found)| *found)
    }

    /// How a model configuration spells the type.
    pub fn config_name(self) -> &'static str {
        TYPES.iter().find(|(_, _, t)| *t == self).map_or("TYPE_INVALID", |(name, _, _)| *name)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.config_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_number_and_a_name() {
        let all = DType::ALL.into_iter().map(DataType::Dense).chain([DataType::Bytes]);
        for each in all {
            assert_eq!(DataType::from_raw(each.raw()).unwrap(), each);
            assert_eq!(DataType::from_config_name(each.config_name()), Some(each));
        }
    }

    #[test]
    fn what_we_cannot_hold_is_named() {
        let error = DataType::from_raw(Raw::TRITONSERVER_TYPE_BF16).unwrap_err();
        assert!(error.to_string().contains("TYPE_BF16"));
        assert!(DataType::from_raw(Raw(77)).unwrap_err().to_string().contains("77"));
        assert_eq!(DataType::from_config_name("TYPE_BF16"), None);
    }
}
