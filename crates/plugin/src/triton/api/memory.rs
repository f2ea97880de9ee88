//! Where a buffer of Triton lies, and how the server is told what lies where.

use std::fmt;
use std::ptr::NonNull;

use super::server::{Server, not_null};
use crate::triton::sys::{self, TRITONSERVER_MemoryType as Raw};
use gesso::error::{Error, Result};

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

/// A description of memory that we own, as the server wants usage reported.
pub(super) struct BufferAttributes<'s> {
    server: &'s Server,
    pub(super) raw: NonNull<sys::TRITONSERVER_BufferAttributes>,
}

impl<'s> BufferAttributes<'s> {
    pub(super) fn new(server: &'s Server, memory: Memory, bytes: usize) -> Result<Self> {
        let (Ok(new), Ok(set_kind), Ok(set_device), Ok(set_bytes)) = (
            &server.newer.TRITONSERVER_BufferAttributesNew,
            &server.newer.TRITONSERVER_BufferAttributesSetMemoryType,
            &server.newer.TRITONSERVER_BufferAttributesSetMemoryTypeId,
            &server.newer.TRITONSERVER_BufferAttributesSetByteSize,
        ) else {
            return Err(Error::unsupported("this server cannot be told of memory usage"));
        };
        // SAFETY: the out pointer is valid for the call.
        let raw = server.out(std::ptr::null_mut(), |out| unsafe { new(out) })?;
        let made = Self { server, raw: not_null(raw, "buffer attributes")? };
        // SAFETY: the description was just made.
        server.check(unsafe { set_kind(raw, memory.kind.raw()) })?;
        // SAFETY: as above.
        server.check(unsafe { set_device(raw, memory.device) })?;
        // SAFETY: as above.
        server.check(unsafe { set_bytes(raw, bytes) })?;
        Ok(made)
    }
}

impl Drop for BufferAttributes<'_> {
    fn drop(&mut self) {
        let Ok(delete) = &self.server.newer.TRITONSERVER_BufferAttributesDelete else {
            return;
        };
        // SAFETY: we own the description, and nothing uses it after `drop`.
        let deleted = unsafe { delete(self.raw.as_ptr()) };
        if let Err(error) = self.server.check(deleted) {
            tracing::warn!("cannot delete buffer attributes: {error}");
        }
    }
}
