//! Reads numbers from the front of bytes that nobody has checked. It must not know what they mean.

use crate::error::{Error, Result};

/// What is left to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| {
            Error::invalid(format!("the file ends too early: {count} bytes expected, {} left", self.0.len()))
        })?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<()> {
        self.take(count).map(drop)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Error::internal("bytes of another number"))
    }

    pub(super) fn u8(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Big-endian, as all of these but those called `le`.
    pub(super) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn u16_le(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32_le(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Four letters that name something.
    pub(super) fn name(&mut self) -> Result<[u8; 4]> {
        self.array()
    }
}
