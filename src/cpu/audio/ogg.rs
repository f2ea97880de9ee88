//! Ogg: pages, and packets of one stream. It must not know what packets hold.

use super::crc;
use crate::error::{Error, Result};

/// What each page begins with.
pub(crate) const MARK: &[u8] = b"OggS";
/// Bytes of a page's header in front of its table of lengths.
const HEADER: usize = 27;
/// Where in it the sum is.
const SUM: usize = 22;
/// Bits of a page's flags: it begins within a packet; it is its stream's first; it is the last.
const CONTINUES: u8 = 1;
const FIRST: u8 = 2;
const LAST: u8 = 4;
/// The length in the table that another follows, for the same packet.
const GOES_ON: u8 = 255;

/// A page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page<'a> {
    flags: u8,
    /// What its last whole packet ends at; below 0: none ends here.
    position: i64,
    /// Of the stream that it belongs to.
    pub(crate) serial: u32,
    number: u32,
    lengths: &'a [u8],
    body: &'a [u8],
}

impl<'a> Page<'a> {
    /// The page at the start of `bytes`, and the length of it, whether its sum is right or not.
    fn read(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let [b'O', b'g', b'g', b'S', 0, flags, head @ ..] = header else { return None };
        let (lengths, rest) = rest.split_at_checked(usize::from(header[HEADER - 1]))?;
        let body = rest.get(..lengths.iter().map(|&length| usize::from(length)).sum())?;
        let page = Self {
            flags: *flags,
            position: i64::from_le_bytes(*head.first_chunk()?),
            serial: u32::from_le_bytes(*head.get(8..)?.first_chunk()?),
            number: u32::from_le_bytes(*head.get(12..)?.first_chunk()?),
            lengths,
            body,
        };
        Some((page, HEADER + lengths.len() + body.len()))
    }

    /// Whether it is the first of its stream.
    pub(crate) fn is_first(&self) -> bool {
        self.flags & FIRST != 0
    }

    /// Whether it is the last of its stream.
    fn is_last(&self) -> bool {
        self.flags & LAST != 0
    }

    /// What of its first packet lies on it.
    pub(crate) fn start(&self) -> &'a [u8] {
        let whole = self.lengths.iter().position(|&length| length != GOES_ON).unwrap_or(self.lengths.len());
        let length = self.lengths.iter().take(whole + 1).map(|&length| usize::from(length)).sum();
        self.body.get(..length).unwrap_or_default()
    }
}

/// The pages of a file, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Pages<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether a page began that the file's end cuts off.
    is_cut: bool,
}

impl<'a> Pages<'a> {
    /// Of a whole file.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, is_cut: false }
    }

    /// The next page and its bytes. What lies between two is left out: numbers of pages tell whether one is missing.
    fn next_with_bytes(&mut self) -> Option<(Page<'a>, &'a [u8])> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            self.at += memchr::memmem::find(rest, MARK)?;
            let bytes = self.bytes.get(self.at..)?;
            if let Some((page, length)) = Page::read(bytes) {
                self.at += length;
                self.is_cut = false;
                return Some((page, bytes.get(..length)?));
            }
            self.at += MARK.len();
            self.is_cut = true;
        }
    }
}

impl<'a> Iterator for Pages<'a> {
    type Item = Page<'a>;

    fn next(&mut self) -> Option<Page<'a>> {
        self.next_with_bytes().map(|(page, _)| page)
    }
}

/// Fails when the sum of a page is not that of its bytes.
fn check(bytes: &[u8]) -> Result<()> {
    let (Some(head), Some(sum), Some(rest)) =
        (bytes.get(..SUM), bytes.get(SUM..).and_then(<[u8]>::first_chunk), bytes.get(SUM + 4..))
    else {
        return Err(Error::internal("a page without a header"));
    };
    if crc::ogg(&[head, &[0; 4], rest]) == u32::from_le_bytes(*sum) {
        return Ok(());
    }
    Err(Error::invalid("the audio is damaged: the sum of an Ogg page is wrong"))
}

/// The packets of one stream.
#[derive(Debug)]
pub(crate) struct Packets<'a> {
    pages: Pages<'a>,
    serial: u32,
    checks: bool,
    page: Option<Page<'a>>,
    /// The number of the next page.
    number: Option<u32>,
    /// What of the page's table and body is not taken.
    lengths: &'a [u8],
    body: &'a [u8],
    /// A packet that lies on several pages.
    joined: Vec<u8>,
}

/// A packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet<'p> {
    /// Its bytes.
    pub(crate) bytes: &'p [u8],
    /// What it ends at, where it is the last that ends on its page.
    pub(crate) position: Option<i64>,
}

impl<'a> Packets<'a> {
    /// Of stream `serial` of a file.
    pub(crate) fn new(bytes: &'a [u8], serial: u32) -> Self {
        Self {
            pages: Pages::new(bytes),
            serial,
            checks: true,
            page: None,
            number: None,
            lengths: &[],
            body: &[],
            joined: Vec::new(),
        }
    }

    /// The same, of a stream whose pages' sums were found right.
    pub(crate) fn unchecked(bytes: &'a [u8], serial: u32) -> Self {
        Self { checks: false, ..Self::new(bytes, serial) }
    }

    /// Goes to the next page of the stream, which goes on with a packet if `continues` says so; false at its end.
    fn turn(&mut self, continues: u8) -> Result<bool> {
        if self.page.is_some_and(|page| page.is_last()) {
            return Ok(false);
        }
        while let Some((page, bytes)) = self.pages.next_with_bytes() {
            if page.serial != self.serial {
                continue;
            }
            // Another stream, behind this one.
            if page.is_first() && self.number.is_some() {
                return Ok(false);
            }
            if self.checks {
                check(bytes)?;
            }
            let goes_on = page.lengths.is_empty() || page.flags & CONTINUES == continues;
            if self.number.is_some_and(|number| number != page.number) || !goes_on {
                return Err(Error::invalid("the audio is damaged: an Ogg page is missing"));
            }
            self.number = Some(page.number.wrapping_add(1));
            (self.lengths, self.body, self.page) = (page.lengths, page.body, Some(page));
            return Ok(true);
        }
        if self.pages.is_cut {
            return Err(Error::invalid("the audio ends within an Ogg page"));
        }
        Ok(false)
    }

    /// What of a packet lies on the page, and whether it ends there. It is taken.
    fn part(&mut self) -> (&'a [u8], bool) {
        let whole = self.lengths.iter().position(|&length| length != GOES_ON);
        let count = whole.map_or(self.lengths.len(), |whole| whole + 1);
        let (lengths, rest) = self.lengths.split_at(count);
        let length: usize = lengths.iter().map(|&length| usize::from(length)).sum();
        // The page's body is as long as its table says.
        let (part, body) = self.body.split_at(length.min(self.body.len()));
        (self.lengths, self.body) = (rest, body);
        (part, whole.is_some())
    }

    /// The next packet; `None` at the stream's end, where one that is not whole is left out.
    ///
    /// # Errors
    /// Invalid, for a damaged page and one that is missing.
    pub(crate) fn next(&mut self) -> Result<Option<Packet<'_>>> {
        while self.lengths.is_empty() {
            if !self.turn(0)? {
                return Ok(None);
            }
        }
        let (part, mut is_whole) = self.part();
        if is_whole {
            return Ok(Some(self.packet(part)));
        }
        self.joined.clear();
        self.join(part)?;
        while !is_whole {
            if !self.turn(CONTINUES)? {
                return Ok(None);
            }
            let (part, ends) = self.part();
            self.join(part)?;
            is_whole = ends;
        }
        Ok(Some(self.packet(&self.joined)))
    }

    fn packet<'p>(&self, bytes: &'p [u8]) -> Packet<'p> {
        let page = self.page.filter(|_| !self.lengths.iter().any(|&length| length != GOES_ON));
        Packet { bytes, position: page.map(|page| page.position).filter(|&position| position >= 0) }
    }

    fn join(&mut self, part: &[u8]) -> Result<()> {
        self.joined
            .try_reserve(part.len())
            .map_err(|_| Error::invalid("no memory for a packet of the audio"))?;
        self.joined.extend_from_slice(part);
        Ok(())
    }
}
