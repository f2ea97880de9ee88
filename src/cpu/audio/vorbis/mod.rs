//! Vorbis in Ogg and Matroska. Audio packets become frames here; the files beside it have a header's parts each. It
//! must not know operators.
//!
//! A header decides how large tables are, and a file of some hundred bytes could ask for terabytes: [`Budget`] bounds
//! them all together.

mod block;
mod codebook;
mod floor0;
mod floor1;
mod imdct;
mod residue;
mod setup;

use super::ogg::{self, Packet};
use super::packets::Packets;
use super::sound::{Block, Coding, Header, Stream};
use crate::error::{Error, Result};
use block::Blocks;
pub(crate) use setup::is_vorbis;
use setup::{Identification, Setup};

/// Entries of all codebooks of a stream (encoders make some 20,000). Stops a header of some bytes from making tables of
/// gigabytes.
const MAX_ENTRIES: usize = 1 << 19;
/// Numbers of all their vectors (encoders make some 100,000).
const MAX_VALUES: usize = 1 << 21;

fn damaged(what: &str) -> Error {
    Error::invalid(format!("the Vorbis audio is damaged: {what}"))
}

fn no_memory() -> Error {
    Error::invalid("no memory for the Vorbis audio")
}

/// What the codebooks of a stream may hold yet.
#[derive(Debug)]
struct Budget {
    entries: usize,
    values: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { entries: MAX_ENTRIES, values: MAX_VALUES }
    }
}

impl Budget {
    fn take_entries(&mut self, entries: usize) -> Result<()> {
        let left = self.entries.checked_sub(entries);
        self.entries = left.ok_or_else(|| {
            Error::unsupported(format!("Vorbis audio whose codebooks have more than {MAX_ENTRIES} entries"))
        })?;
        Ok(())
    }

    fn take_values(&mut self, entries: usize, dimensions: usize) -> Result<usize> {
        let values = entries.checked_mul(dimensions);
        let left = values.and_then(|values| self.values.checked_sub(values));
        let (Some(values), Some(left)) = (values, left) else {
            return Err(Error::unsupported(format!(
                "Vorbis audio whose codebooks have more than {MAX_VALUES} numbers"
            )));
        };
        self.values = left;
        Ok(values)
    }

    /// Bytes of what was taken, of which so many codebooks are made.
    fn bytes(&self, books: usize) -> usize {
        let (entries, values) = (MAX_ENTRIES - self.entries, MAX_VALUES - self.values);
        // Codes and their lengths; numbers as they are read beside vectors; tables of short codes.
        entries * 16 + values * 2 * size_of::<f32>() + books * 4096
    }
}

fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| no_memory())?;
    values.resize(len, value);
    Ok(values)
}

fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>> {
    filled(len, T::default())
}

/// Makes `values` so many zeros.
fn reset<T: Clone + Default>(values: &mut Vec<T>, len: usize) -> Result<()> {
    values.clear();
    values.try_reserve_exact(len).map_err(|_| no_memory())?;
    values.resize(len, T::default());
    Ok(())
}

/// The headers of a stream, and the packets behind them.
fn begin(mut packets: ogg::Packets<'_>) -> Result<(ogg::Packets<'_>, Identification, Setup)> {
    let cut = || damaged("its headers are cut off");
    let identification = Identification::read(packets.next()?.ok_or_else(cut)?.bytes)?;
    // Comments, which decide nothing.
    packets.next()?;
    let setup = Setup::read(packets.next()?.ok_or_else(cut)?.bytes, &identification)?;
    Ok((packets, identification, setup))
}

/// Frames of a stream behind its headers, from its positions and the sizes of its blocks.
fn frames(mut packets: ogg::Packets<'_>, identification: &Identification, setup: &Setup) -> Result<usize> {
    let (mut last_size, mut frames, mut start, mut end) = (None, 0i64, None, 0);
    while let Some(Packet { bytes, position }) = packets.next()? {
        if let Some((mode, _)) = setup.mode(bytes)? {
            let size = identification.sizes[usize::from(mode.is_long)] as i64;
            frames += last_size.map_or(0, |last: i64| (last + size) / 4);
            last_size = Some(size);
        }
        if let Some(position) = position {
            // As in libsndfile, a stream that was cut from another one may begin elsewhere than at 0, but nothing is
            // left out in front.
            start.get_or_insert(position.saturating_sub(frames).max(0));
            end = position;
        }
    }
    let claimed = end - start.ok_or_else(|| damaged("it has no audio"))?;
    match usize::try_from(claimed) {
        Ok(found) if claimed <= frames => Ok(found),
        _ => Err(Error::invalid(format!("the audio ends after {frames} of {claimed} samples of a channel"))),
    }
}

/// What stream `serial` of a file says of itself.
///
/// # Errors
/// Invalid, for a damaged file; unsupported, for tables beyond [`MAX_ENTRIES`] and [`MAX_VALUES`].
pub(crate) fn header(bytes: &[u8], serial: u32) -> Result<Header> {
    let (packets, identification, setup) = begin(ogg::Packets::new(bytes, serial))?;
    let frames = frames(packets, &identification, &setup)?;
    let Identification { channels, rate, .. } = identification;
    Ok(Header { frames, channels, rate, coding: Coding::Vorbis, scratch: setup.bytes })
}

/// What the first and the third packet of a stream say of the packets behind them, and how many frames the last of
/// these becomes.
///
/// # Errors
/// As [`header`].
pub(crate) fn header_of(heads: [&[u8]; 2], packets: &[&[u8]]) -> Result<(Header, usize)> {
    let identification = Identification::read(heads[0])?;
    let setup = Setup::read(heads[1], &identification)?;
    let (mut last_size, mut frames, mut last_frames) = (None, 0_usize, 0);
    for packet in packets {
        if let Some((mode, _)) = setup.mode(packet)? {
            let size = identification.sizes[usize::from(mode.is_long)];
            last_frames = last_size.map_or(0, |last: usize| (last + size) / 4);
            frames += last_frames;
            last_size = Some(size);
        }
    }
    let Identification { channels, rate, .. } = identification;
    let header = Header { frames, channels, rate, coding: Coding::Vorbis, scratch: setup.bytes };
    Ok((header, last_frames))
}

/// A stream that is decoded.
pub(crate) struct Vorbis<'a> {
    packets: Packets<'a>,
    setup: Setup,
    blocks: Blocks,
}

impl<'a> Vorbis<'a> {
    /// Stream `serial` of a file whose header was read, so that sums of pages need no second look.
    ///
    /// # Errors
    /// As [`header`].
    pub(crate) fn open(bytes: &'a [u8], serial: u32) -> Result<Self> {
        let (packets, identification, setup) = begin(ogg::Packets::unchecked(bytes, serial))?;
        let blocks = Blocks::new(&identification)?;
        Ok(Self { packets: Packets::Ogg(packets), setup, blocks })
    }

    /// The packets behind the first and the third one, which are `heads`.
    ///
    /// # Errors
    /// As [`header_of`].
    pub(crate) fn of(heads: [&[u8]; 2], packets: Vec<&'a [u8]>) -> Result<Self> {
        let identification = Identification::read(heads[0])?;
        let setup = Setup::read(heads[1], &identification)?;
        let blocks = Blocks::new(&identification)?;
        Ok(Self { packets: Packets::told(packets), setup, blocks })
    }
}

impl Stream for Vorbis<'_> {
    fn next(&mut self) -> Result<Option<(Block<'_>, usize)>> {
        let Some(Packet { bytes, .. }) = self.packets.next()? else { return Ok(None) };
        let frames = match self.setup.mode(bytes)? {
            Some((mode, mut bits)) => self.blocks.decode(&self.setup, mode, &mut bits)?,
            None => &[],
        };
        Ok(Some((Block::Floats(frames), bytes.len())))
    }
}
