//! A file in memory as a stream that ends with an error when nobody waits any more: libraries that decode as they read
//! stop there. It must not know formats.

use std::io::{BufRead, Cursor, Error, Read, Result, Seek, SeekFrom};

use crate::deadline::Watch;

/// Bytes that are given at once.
const PORTION: usize = 16 << 10;

/// What a byte of a file counts as: compressed, it may become hundreds of bytes of pixels.
const WORK_OF_A_BYTE: usize = 8;

/// Reads a file for as long as somebody waits.
pub(super) struct Watched<'a> {
    file: Cursor<&'a [u8]>,
    watch: &'a Watch<'a>,
    /// Bytes that were read since the watch was told.
    read: usize,
}

impl<'a> Watched<'a> {
    pub(super) fn new(bytes: &'a [u8], watch: &'a Watch<'a>) -> Self {
        Self { file: Cursor::new(bytes), watch, read: 0 }
    }

    /// Fails when nobody waits. Why is asked for again behind the library, whose errors have no room for it.
    fn go_on(&mut self) -> Result<()> {
        let work = std::mem::take(&mut self.read).saturating_mul(WORK_OF_A_BYTE);
        self.watch.charge(work).map_err(|error| Error::other(error.to_string()))
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        self.go_on()?;
        let portion = to.len().min(PORTION);
        let read = self.file.read(&mut to[..portion])?;
        self.read += read;
        Ok(read)
    }
}

impl BufRead for Watched<'_> {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        self.go_on()?;
        let rest = self.file.fill_buf()?;
        Ok(&rest[..rest.len().min(PORTION)])
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount;
        self.file.consume(amount);
    }
}

impl Seek for Watched<'_> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        self.file.seek(to)
    }
}
