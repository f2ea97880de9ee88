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

/// Bits from the front of bytes, the highest of each first.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    /// Those behind the first `at`.
    pub(super) fn behind(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The next `count` bits, at most 32.
    pub(super) fn read(&mut self, count: usize) -> Result<u32> {
        let mut value = 0;
        for _ in 0..count {
            let byte =
                self.bytes.get(self.at / 8).ok_or_else(|| Error::invalid("parameters that are cut off"))?;
            value = value << 1 | u32::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Ok(value)
    }

    pub(super) fn flag(&mut self) -> Result<bool> {
        self.read(1).map(|bit| bit != 0)
    }

    pub(super) fn skip(&mut self, count: usize) {
        self.at += count;
    }
}
