//! Numbers of a file's headers, in either order of bytes, and its chunks. It must not know formats.

/// The order of a number's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The lowest first.
    Little,
    /// The highest first.
    Big,
}

/// Bytes that are read from their start on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    /// What is left.
    pub(crate) bytes: &'a [u8],
    /// Of numbers.
    pub(crate) order: Order,
}

impl<'a> Fields<'a> {
    /// Of `bytes`.
    pub(crate) fn new(bytes: &'a [u8], order: Order) -> Self {
        Self { bytes, order }
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*taken)
    }

    /// A number of two bytes.
    pub(crate) fn u16(&mut self) -> Option<u16> {
        let bytes = self.array()?;
        Some(if self.order == Order::Big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    /// A number of four bytes.
    pub(crate) fn u32(&mut self) -> Option<u32> {
        let bytes = self.array()?;
        Some(if self.order == Order::Big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// A number of eight bytes.
    pub(crate) fn u64(&mut self) -> Option<u64> {
        let bytes = self.array()?;
        Some(if self.order == Order::Big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// The next chunk: a name of four bytes, a length, and what follows, all that is left where the length is more. It
    /// is filled up to an even number of bytes.
    pub(crate) fn chunk(&mut self) -> Option<Chunk<'a>> {
        let (name, length) = (self.array()?, self.u32()?);
        let rest = self.bytes;
        let size = length as usize;
        self.bytes = rest.get(size.saturating_add(size % 2)..).unwrap_or_default();
        Some(Chunk { name, length: u64::from(length), body: rest.get(..size).unwrap_or(rest), rest })
    }
}

/// A chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk<'a> {
    /// Its name.
    pub(crate) name: [u8; 4],
    /// The length that it says.
    pub(crate) length: u64,
    /// What there is of that.
    pub(crate) body: &'a [u8],
    /// From there to the file's end.
    pub(crate) rest: &'a [u8],
}
