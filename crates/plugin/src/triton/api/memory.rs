//! Where a buffer of Triton lies.

use std::fmt;

use crate::triton::sys::TRITONSERVER_MemoryType as Raw;

/// Kinds of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Pageable host memory.
    Cpu,
    /// Host memory that is locked for transfers to a GPU.
    Pinned,
    /// Memory of a GPU.
    Gpu,
    /// A kind that a later server added.
    Other(u32),
}

/// A kind of memory and the device that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The kind.
    pub kind: MemoryKind,
    /// Number of the GPU; 0 for host memory.
    pub device: i64,
}

impl Memory {
    /// Pageable host memory.
    pub const HOST: Self = Self { kind: MemoryKind::Cpu, device: 0 };
    /// Host memory that is locked for transfers.
    pub const PINNED: Self = Self { kind: MemoryKind::Pinned, device: 0 };

    /// Memory of GPU `ordinal`.
    pub fn gpu(ordinal: usize) -> Self {
        Self { kind: MemoryKind::Gpu, device: i64::try_from(ordinal).unwrap_or(i64::MAX) }
    }
}

impl MemoryKind {
    pub(super) fn from_raw(raw: Raw) -> Self {
        match raw {
            Raw::TRITONSERVER_MEMORY_CPU => MemoryKind::Cpu,
            Raw::TRITONSERVER_MEMORY_CPU_PINNED => MemoryKind::Pinned,
            Raw::TRITONSERVER_MEMORY_GPU => MemoryKind::Gpu,
            Raw(number) => MemoryKind::Other(number),
        }
    }

    pub(super) fn raw(self) -> Raw {
        match self {
            MemoryKind::Cpu => Raw::TRITONSERVER_MEMORY_CPU,
            MemoryKind::Pinned => Raw::TRITONSERVER_MEMORY_CPU_PINNED,
            MemoryKind::Gpu => Raw::TRITONSERVER_MEMORY_GPU,
            MemoryKind::Other(number) => Raw(number),
        }
    }

    /// Whether the CPU reads and writes it.
    pub fn is_host(self) -> bool {
        matches!(self, MemoryKind::Cpu | MemoryKind::Pinned)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            MemoryKind::Cpu => f.write_str("cpu"),
            MemoryKind::Pinned => f.write_str("pinned"),
            MemoryKind::Gpu => write!(f, "gpu {}", self.device),
            MemoryKind::Other(number) => write!(f, "type {number} of device {}", self.device),
        }
    }
}
