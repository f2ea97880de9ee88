//! Element types and kinds of instances as model configurations spell them. It must not know the numbers that Triton's
//! C API gives them.

use std::fmt;

use gesso::tensor::DType;

/// The element type of a tensor on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    /// Elements of one size.
    Dense(DType),
    /// `TYPE_STRING`: each element is a little-endian 4-byte length and that many bytes.
    Bytes,
}

/// The name in a model configuration, and ours.
const TYPES: [(&str, DataType); 13] = [
    ("TYPE_BOOL", DataType::Dense(DType::Bool)),
    ("TYPE_UINT8", DataType::Dense(DType::U8)),
    ("TYPE_UINT16", DataType::Dense(DType::U16)),
    ("TYPE_UINT32", DataType::Dense(DType::U32)),
    ("TYPE_UINT64", DataType::Dense(DType::U64)),
    ("TYPE_INT8", DataType::Dense(DType::I8)),
    ("TYPE_INT16", DataType::Dense(DType::I16)),
    ("TYPE_INT32", DataType::Dense(DType::I32)),
    ("TYPE_INT64", DataType::Dense(DType::I64)),
    ("TYPE_FP16", DataType::Dense(DType::F16)),
    ("TYPE_FP32", DataType::Dense(DType::F32)),
    ("TYPE_FP64", DataType::Dense(DType::F64)),
    ("TYPE_STRING", DataType::Bytes),
];

impl DataType {
    /// The type that a model configuration spells `name`, like `TYPE_FP32`; `None` for `TYPE_INVALID`, `TYPE_BF16` and
    /// what is no type.
    pub fn from_config_name(name: &str) -> Option<Self> {
        TYPES.iter().find(|(n, _)| *n == name).map(|(_, found)| *found)
    }

    /// How a model configuration spells the type.
    pub fn config_name(self) -> &'static str {
        TYPES.iter().find(|(_, t)| *t == self).map_or("TYPE_INVALID", |(name, _)| *name)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.config_name())
    }
}

/// What an instance runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceKind {
    /// The server chooses; an instance that runs has been given another kind.
    Auto,
    /// Host threads only.
    Cpu,
    /// One GPU.
    Gpu,
    /// The model chooses.
    Model,
}

impl fmt::Display for InstanceKind {
    /// As a model configuration spells it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InstanceKind::Auto => "KIND_AUTO",
            InstanceKind::Cpu => "KIND_CPU",
            InstanceKind::Gpu => "KIND_GPU",
            InstanceKind::Model => "KIND_MODEL",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_name() {
        let all = DType::ALL.into_iter().map(DataType::Dense).chain([DataType::Bytes]);
        for each in all {
            assert_eq!(DataType::from_config_name(each.config_name()), Some(each));
        }
        assert_eq!(DataType::from_config_name("TYPE_BF16"), None);
    }

    #[test]
    fn kinds_of_instances_are_spelled_as_in_a_configuration() {
        let kinds = [InstanceKind::Auto, InstanceKind::Cpu, InstanceKind::Gpu, InstanceKind::Model];
        assert_eq!(kinds.map(|kind| kind.to_string()), ["KIND_AUTO", "KIND_CPU", "KIND_GPU", "KIND_MODEL"]);
    }
}
