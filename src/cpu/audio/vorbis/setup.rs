//! The headers of a Vorbis stream. It must not know audio packets.

use super::codebook::Codebook;
use super::floor0::Floor0;
use super::floor1::Floor1;
use super::imdct::Imdct;
use super::residue::Residue;
use super::{Budget, damaged};
use crate::cpu::audio::bits::LowFirst;
use crate::error::Result;

/// What the packets of the three headers begin with, behind their number.
const NAME: &[u8] = b"vorbis";
/// Sizes of blocks, as powers of two.
const SIZES: std::ops::RangeInclusive<u32> = 6..=13;

/// The first header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identification {
    pub(crate) channels: usize,
    pub(crate) rate: u32,
    /// Samples of a short and of a long block.
    pub(crate) sizes: [usize; 2],
}

/// A floor.
#[derive(Debug)]
pub(crate) enum Floor {
    Pairs(Floor0),
    Lines(Floor1),
}

/// How channels are coded.
#[derive(Debug)]
pub(crate) struct Mapping {
    /// Pairs of channels, of which the second is an angle.
    pub(crate) couplings: Vec<[usize; 2]>,
    /// The submap of each channel.
    pub(crate) submaps: Vec<usize>,
    /// Floor and residue of each submap.
    pub(crate) parts: Vec<[usize; 2]>,
}

/// A kind of block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode {
    pub(crate) is_long: bool,
    pub(crate) mapping: usize,
}

/// The third header.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) books: Vec<Codebook>,
    pub(crate) floors: Vec<Floor>,
    pub(crate) residues: Vec<Residue>,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) modes: Vec<Mode>,
    /// Bytes of all of it.
    pub(crate) bytes: usize,
}

/// What follows the name of header `number`.
fn header(packet: &[u8], number: u8) -> Option<&[u8]> {
    packet.strip_prefix(&[number])?.strip_prefix(NAME)
}

/// Whether a packet is the first header of a stream.
pub(crate) fn is_vorbis(packet: &[u8]) -> bool {
    header(packet, 1).is_some()
}

impl Identification {
    pub(crate) fn read(packet: &[u8]) -> Result<Self> {
        let cut = || damaged("its first header is cut off");
        let mut bits = LowFirst::new(header(packet, 1).ok_or_else(cut)?);
        let mut read = |count| bits.read(count).ok_or_else(cut);
        let (version, channels, rate) = (read(32)?, read(8)? as usize, read(32)?);
        // Rates of bits, which decide nothing.
        let _: [u32; 3] = [read(32)?, read(32)?, read(32)?];
        let sizes = [read(4)?, read(4)?];
        let is_right = version == 0 && channels > 0 && rate > 0 && sizes.is_sorted();
        if !is_right || sizes.iter().any(|size| !SIZES.contains(size)) {
            return Err(damaged(
                "its first header has no channels, no rate, or sizes that blocks cannot have",
            ));
        }
        Ok(Self { channels, rate, sizes: sizes.map(|size| 1 << size) })
    }
}

impl Setup {
    pub(crate) fn read(packet: &[u8], identification: &Identification) -> Result<Self> {
        let cut = || damaged("its setup is cut off");
        let bits = &mut LowFirst::new(header(packet, 5).ok_or_else(|| damaged("it has no setup"))?);
        let Identification { channels, sizes, .. } = *identification;
        let mut budget = Budget::default();
        let count = bits.read(8).ok_or_else(cut)? + 1;
        let books =
            (0..count).map(|_| Codebook::read(bits, &mut budget)).collect::<Result<Vec<Codebook>>>()?;
        // Transforms of time, of which there are none.
        for _ in 0..=bits.read(6).ok_or_else(cut)? {
            bits.read(16).ok_or_else(cut)?;
        }
        let mut floors = Vec::new();
        for _ in 0..=bits.read(6).ok_or_else(cut)? {
            floors.push(match bits.read(16).ok_or_else(cut)? {
                0 => Floor::Pairs(Floor0::read(bits, &books, sizes)?),
                1 => Floor::Lines(Floor1::read(bits, books.len())?),
                _ => return Err(damaged("a floor is of an unknown kind")),
            });
        }
        let mut residues = Vec::new();
        for _ in 0..=bits.read(6).ok_or_else(cut)? {
            let kind = bits.read(16).ok_or_else(cut)?;
            residues.push(Residue::read(bits, kind, &books)?);
        }
        let mut mappings = Vec::new();
        for _ in 0..=bits.read(6).ok_or_else(cut)? {
            mappings.push(Mapping::read(bits, channels, [floors.len(), residues.len()])?);
        }
        let mut modes = Vec::new();
        for _ in 0..=bits.read(6).ok_or_else(cut)? {
            let mut read = |count| bits.read(count).ok_or_else(cut);
            let (is_long, kinds, mapping) = (read(1)? == 1, read(32)?, read(8)? as usize);
            if kinds != 0 || mapping >= mappings.len() {
                return Err(damaged("a mode is of an unknown kind"));
            }
            modes.push(Mode { is_long, mapping });
        }
        if bits.flag() != Some(true) {
            return Err(cut());
        }
        let pairs = floors.iter().filter(|floor| matches!(floor, Floor::Pairs(_))).count();
        let floats = pairs * (sizes[0] + sizes[1]) / 2 + channels * sizes[1] * 3;
        let bytes = budget.bytes(books.len())
            + floats * size_of::<f32>()
            + sizes.iter().map(|&size| Imdct::bytes(size)).sum::<usize>();
        Ok(Self { books, floors, residues, mappings, modes, bytes })
    }

    /// The mode of an audio packet, with the bits behind it. `None` for a packet that is none.
    pub(crate) fn mode<'p>(&self, packet: &'p [u8]) -> Result<Option<(Mode, LowFirst<'p>)>> {
        let mut bits = LowFirst::new(packet);
        if bits.flag() != Some(false) {
            return Ok(None);
        }
        let width = (self.modes.len() as u32 - 1).checked_ilog2().map_or(0, |log| log + 1);
        let mode = bits.read(width).and_then(|mode| self.modes.get(mode as usize));
        mode.map(|&mode| Some((mode, bits))).ok_or_else(|| damaged("a packet has a mode that there is not"))
    }
}

impl Mapping {
    fn read(bits: &mut LowFirst<'_>, channels: usize, [floors, residues]: [usize; 2]) -> Result<Self> {
        let mut read = |count| bits.read(count).ok_or_else(|| damaged("a mapping is cut off"));
        let wrong = || damaged("a mapping names what there is not");
        if read(16)? != 0 {
            return Err(damaged("a mapping is of an unknown kind"));
        }
        let count = if read(1)? == 1 { read(4)? as usize + 1 } else { 1 };
        let mut couplings = Vec::new();
        if read(1)? == 1 {
            let width = (channels as u32 - 1).checked_ilog2().map_or(0, |log| log + 1);
            for _ in 0..=read(8)? {
                let pair = [read(width)? as usize, read(width)? as usize];
                let [magnitude, angle] = pair;
                if magnitude == angle || magnitude.max(angle) >= channels {
                    return Err(wrong());
                }
                couplings.push(pair);
            }
        }
        if read(2)? != 0 {
            return Err(damaged("a mapping is of an unknown kind"));
        }
        let mut submaps = vec![0; channels];
        if count > 1 {
            for to in &mut submaps {
                *to = read(4)? as usize;
            }
        }
        let mut parts = Vec::new();
        for _ in 0..count {
            read(8)?;
            parts.push([read(8)? as usize, read(8)? as usize]);
        }
        let names_some = |&[floor, residue]: &[usize; 2]| floor < floors && residue < residues;
        if !parts.iter().all(names_some) || submaps.iter().any(|&submap| submap >= count) {
            return Err(wrong());
        }
        Ok(Self { couplings, submaps, parts })
    }
}
