//! MP4: the tables and fragments that say where each sample (a frame) is and when it is shown. Which of the tracks is
//! meant, `mp4` knows.

use std::ops::Range;

use crate::cpu::atoms::{Atom, atoms, find};
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

/// What takes the samples of a track.
pub(in crate::cpu) trait Samples {
    /// The next one: where it is in a file of `len` bytes, when it is shown, and whether decoding may begin there.
    ///
    /// # Errors
    /// When there are more than the limit.
    fn push(&mut self, len: usize, range: Range<usize>, time: i64, key: bool) -> Result<()>;
}

/// Runs of equal values, one after the other: `(how many, value)` each.
struct Runs<'a> {
    rest: Bytes<'a>,
    left: u32,
    value: u32,
}

impl<'a> Runs<'a> {
    /// Those of a table of pairs behind version, flags and count.
    fn new(table: Option<&'a [u8]>) -> Self {
        Self { rest: Bytes(table.and_then(|table| table.get(8..)).unwrap_or_default()), left: 0, value: 0 }
    }

    /// The next value; the last one again behind the end.
    fn next(&mut self) -> u32 {
        while self.left == 0 {
            let (Ok(left), Ok(value)) = (self.rest.u32(), self.rest.u32()) else { return self.value };
            (self.left, self.value) = (left, value);
        }
        self.left -= 1;
        self.value
    }
}

/// How many samples lie in each chunk: runs that name the first chunk of each.
struct Chunks<'a> {
    rest: Bytes<'a>,
    samples: u32,
}

impl Chunks<'_> {
    /// Samples of chunk `chunk`, counted from 1. Asked in order.
    fn samples(&mut self, chunk: u32) -> u32 {
        let mut ahead = self.rest;
        while let (Ok(first), Ok(samples), Ok(_)) = (ahead.u32(), ahead.u32(), ahead.u32()) {
            if first > chunk {
                break;
            }
            (self.samples, self.rest) = (samples, ahead);
        }
        self.samples
    }
}

/// Adds the samples of a track's table `stbl`, as far as they lie in a file of `len` bytes; none for a file in
/// fragments.
///
/// # Errors
/// Tables that are missing or too short; more samples than the limit.
pub(in crate::cpu) fn read(len: usize, stbl: &[u8], track: &mut impl Samples) -> Result<()> {
    let Some(mut sizes) = find(stbl, b"stsz").map(Bytes) else {
        return Err(Error::unsupported("a track without a table of sizes (`stsz`)"));
    };
    sizes.skip(4)?;
    let (one_size, mut left) = (sizes.u32()?, sizes.u32()?);
    let (mut offsets, wide) = match (find(stbl, b"stco"), find(stbl, b"co64")) {
        (Some(offsets), _) => (Bytes(offsets), false),
        (None, Some(offsets)) => (Bytes(offsets), true),
        (None, None) => return Err(Error::invalid("a track without a table of chunks")),
    };
    offsets.skip(8)?;
    let mut chunks =
        Chunks { rest: Bytes(find(stbl, b"stsc").and_then(|t| t.get(8..)).unwrap_or_default()), samples: 0 };
    let (mut deltas, mut shifts) = (Runs::new(find(stbl, b"stts")), Runs::new(find(stbl, b"ctts")));
    let keys = find(stbl, b"stss").and_then(|table| table.get(8..));
    let mut keys =
        keys.map(|keys| keys.as_chunks::<4>().0.iter().map(|key| u32::from_be_bytes(*key)).peekable());
    let (mut time, mut sample, mut chunk) = (0_i64, 0_u32, 0_u32);
    while left > 0 && !offsets.is_empty() {
        chunk = chunk.saturating_add(1);
        let offset = if wide { offsets.u64()? } else { u64::from(offsets.u32()?) };
        let mut at = usize::try_from(offset).unwrap_or(usize::MAX);
        for _ in 0..chunks.samples(chunk).min(left) {
            (left, sample) = (left - 1, sample.saturating_add(1));
            let size = if one_size == 0 { sizes.u32()? } else { one_size } as usize;
            let key = keys.as_mut().is_none_or(|keys| keys.next_if(|&key| key <= sample) == Some(sample));
            let shown = time.saturating_add(i64::from(shifts.next().cast_signed()));
            let end = at.saturating_add(size);
            // A size that is the same for all samples may be told of billions that are not there.
            if end > len && one_size != 0 {
                return Ok(());
            }
            track.push(len, at..end, shown, key)?;
            time = time.saturating_add(i64::from(deltas.next()));
            at = end;
        }
    }
    Ok(())
}

/// What fragments leave out, from `mvex`.
pub(in crate::cpu) struct Fragments {
    track: u32,
    defaults: Defaults,
    /// When the next sample is decoded.
    time: i64,
}

/// Of samples that say nothing themselves.
#[derive(Clone, Copy, Default)]
struct Defaults {
    duration: u32,
    size: u32,
    flags: u32,
}

/// In a sample's flags: others are needed to decode it.
const NOT_A_KEY: u32 = 0x1_0000;

impl Fragments {
    pub(in crate::cpu) fn new(mvex: &[u8], track: u32) -> Self {
        let defaults = atoms(mvex).filter(|atom| atom.name == *b"trex").find_map(|atom| {
            let mut fields = Bytes(atom.body.get(4..)?);
            let id = fields.u32().ok()?;
            fields.skip(4).ok()?;
            let (duration, size, flags) = (fields.u32().ok()?, fields.u32().ok()?, fields.u32().ok()?);
            (id == track).then_some(Defaults { duration, size, flags })
        });
        Self { track, defaults: defaults.unwrap_or_default(), time: 0 }
    }

    /// Adds the samples of the fragment `moof`, as far as they lie in a file of `len` bytes.
    ///
    /// # Errors
    /// Tables that are too short; more samples than the limit.
    pub(in crate::cpu) fn read(
        &mut self,
        len: usize,
        moof: Atom<'_>,
        track: &mut impl Samples,
    ) -> Result<()> {
        for traf in atoms(moof.body).filter(|atom| atom.name == *b"traf") {
            self.fragment(len, moof.at, traf.body, track)?;
        }
        Ok(())
    }

    fn fragment(&mut self, len: usize, moof: usize, traf: &[u8], track: &mut impl Samples) -> Result<()> {
        let mut header = Bytes(find(traf, b"tfhd").unwrap_or_default());
        let flags = header.u32()?;
        if header.u32()? != self.track {
            return Ok(());
        }
        let base = if flags & 1 == 0 { moof } else { usize::try_from(header.u64()?).unwrap_or(usize::MAX) };
        header.skip(if flags & 2 == 0 { 0 } else { 4 })?;
        let mut defaults = self.defaults;
        let given = [(8, &mut defaults.duration), (16, &mut defaults.size), (32, &mut defaults.flags)];
        for (flag, value) in given {
            if flags & flag != 0 {
                *value = header.u32()?;
            }
        }
        if let Some(mut time) = find(traf, b"tfdt").map(Bytes) {
            let version = time.u8()?;
            time.skip(3)?;
            let start = if version == 1 { time.u64()? } else { u64::from(time.u32()?) };
            self.time = i64::try_from(start).unwrap_or(i64::MAX);
        }
        let mut at = base;
        for run in atoms(traf).filter(|atom| atom.name == *b"trun") {
            at = self.run(len, base, at, run.body, defaults, track)?;
        }
        Ok(())
    }

    /// Adds the samples of one run, the first of which lies `at` if it does not say where. Returns where the last one
    /// ends.
    fn run(
        &mut self,
        len: usize,
        base: usize,
        mut at: usize,
        run: &[u8],
        defaults: Defaults,
        track: &mut impl Samples,
    ) -> Result<usize> {
        let mut run = Bytes(run);
        let (flags, count) = (run.u32()?, run.u32()?);
        if flags & 1 != 0 {
            at = base.saturating_add_signed(run.u32()?.cast_signed() as isize);
        }
        let first = if flags & 4 == 0 { None } else { Some(run.u32()?) };
        for sample in 0..count {
            let mut given = |flag: u32, default: u32| if flags & flag == 0 { Ok(default) } else { run.u32() };
            let (duration, size) = (given(0x100, defaults.duration)?, given(0x200, defaults.size)?);
            let own = given(0x400, first.filter(|_| sample == 0).unwrap_or(defaults.flags))?;
            let shift = given(0x800, 0)?.cast_signed();
            let end = at.saturating_add(size as usize);
            if end > len || size == 0 {
                break;
            }
            track.push(len, at..end, self.time.saturating_add(i64::from(shift)), own & NOT_A_KEY == 0)?;
            (at, self.time) = (end, self.time.saturating_add(i64::from(duration)));
        }
        Ok(at)
    }
}
