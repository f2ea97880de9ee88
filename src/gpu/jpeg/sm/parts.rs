//! The data of one long segment, by several threads: they count what was stuffed into their parts, and then know where
//! each part goes. It must not know what the bits mean.

use memchr::memchr_iter;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::coded::Coded;
use super::scan::{Layout, Scan};
use crate::gpu::jpeg::header::EOI;
use crate::memory::{Unstuffed, copied_once, unstuff, unstuffs_by_blocks};

/// Bytes of a part: so few that the threads are busy, so many that they are worth their while.
const PART_BYTES: usize = 32 << 10;

/// Data of fewer parts is for one thread.
const FEWEST_PARTS: usize = 4;

/// The same where a thread takes zeros out by blocks of 64 bytes: it copies half a megabyte before another thread is
/// awake, which takes 20 to 60 us.
const FEWEST_PARTS_BY_BLOCKS: usize = 32;

/// The bytes of a marker.
const MARKER_BYTES: usize = 2;

/// The data of a scan, in a file.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// What follows the scan's header.
    pub bytes: &'a [u8],
    /// Whether somebody else may write there meanwhile: then each byte is copied before it is looked at.
    pub may_change: bool,
}

/// The data of a file: of a sequential one as [`read`] does it. `None`: it is damaged, or may change where it must not.
pub fn read_file(
    coded: &Coded<'_>,
    may_change: bool,
    to: &mut [u8],
    idle: Option<&ThreadPool>,
) -> Option<Scan> {
    if coded.is_progressive() {
        let scans = coded.scans.iter().map(|scan| (scan.data, coded.scan_layout(scan)));
        return if may_change { None } else { Scan::read_all(&scans.collect::<Vec<_>>(), to) };
    }
    read(Data { bytes: coded.data, may_change }, &coded.layout(), to, idle)
}

/// As [`Scan::read`], by threads of a pool that are `idle`.
pub fn read(data: Data<'_>, layout: &Layout, to: &mut [u8], idle: Option<&ThreadPool>) -> Option<Scan> {
    let fewest = if unstuffs_by_blocks() { FEWEST_PARTS_BY_BLOCKS } else { FEWEST_PARTS };
    let is_long = layout.segments() == 1 && data.bytes.len() >= fewest * PART_BYTES;
    let idle = idle.filter(|_| is_long);
    let parts = idle.and_then(|pool| pool.install(|| in_parts(data, layout, to, PART_BYTES)));
    parts.or_else(|| match data.may_change {
        true => Scan::read_once(data.bytes, layout, to),
        false => Scan::read(data.bytes, layout, to),
    })
}

/// `None`: the data is short, or not one segment with nothing but stuffed zeros before a marker at its end.
fn in_parts(
    Data { bytes: data, may_change }: Data<'_>,
    layout: &Layout,
    to: &mut [u8],
    part_bytes: usize,
) -> Option<Scan> {
    if layout.segments() != 1 || !layout.fits(data.len()) || data.len() <= MARKER_BYTES {
        return None;
    }
    let (data, marker) = data.split_at_checked(data.len() - MARKER_BYTES)?;
    if marker != [0xFF, EOI] {
        return None;
    }
    let mut parts = split(data, part_bytes)?;
    let copies: Vec<Vec<u8>>;
    if may_change {
        copies = parts.par_iter().map(|part| copied_once(part)).collect();
        parts = copies.iter().map(Vec::as_slice).collect();
    }
    let lengths: Vec<usize> =
        parts.par_iter().map(|part| part.len() - memchr_iter(0xFF, part).count()).collect();
    let mut places = Vec::with_capacity(parts.len());
    let (mut rest, total) = (&mut *to, lengths.iter().sum());
    for length in lengths {
        let (place, behind) = rest.split_at_mut_checked(length)?;
        places.push(place);
        rest = behind;
    }
    let whole = parts.into_par_iter().zip(places).all(|(part, place)| copy(part, place).is_some());
    if whole { Scan::of_one(total, layout, to) } else { None }
}

/// Parts of about `bytes` bytes, none of which ends between an FF and what follows it.
fn split(mut data: &[u8], bytes: usize) -> Option<Vec<&[u8]>> {
    let mut parts = Vec::with_capacity(data.len() / bytes + 1);
    while !data.is_empty() {
        let end = bytes.min(data.len());
        let end = end + usize::from(data.get(end - 1) == Some(&0xFF));
        let (part, rest) = data.split_at_checked(end)?;
        parts.push(part);
        data = rest;
    }
    Some(parts)
}

/// Copies a part without the zero behind each FF. `None`: something else is behind one.
fn copy(part: &[u8], to: &mut [u8]) -> Option<()> {
    let whole = Unstuffed { read: part.len(), written: to.len() };
    (unstuff(part, to)? == whole).then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gpu::jpeg::sm::scan::room;

    /// What both make of `data`.
    fn both(data: &[u8], part_bytes: usize) -> [Option<(Scan, Vec<u8>)>; 2] {
        let layout = Layout { mcus: 1, blocks: 1, block_bits: 2, interval: None };
        let given = |may_change| Data { bytes: data, may_change };
        let read = |read: &dyn Fn(&mut [u8]) -> Option<Scan>| {
            let mut to = vec![0x5A; room(data.len(), 1)];
            let scan = read(&mut to)?;
            to.truncate(scan.bytes());
            Some((scan, to))
        };
        let parts =
            [false, true].map(|may_change| read(&|to| in_parts(given(may_change), &layout, to, part_bytes)));
        let [stable, once] = parts;
        assert_eq!(stable, once);
        [stable, read(&|to| Scan::read(data, &layout, to))]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn parts_are_the_whole(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xFF), Just(0)], 40..200),
            part_bytes in 1..10_usize,
        ) {
            let stuffed = bytes.iter().flat_map(|&byte| if byte == 0xFF { vec![0xFF, 0] } else { vec![byte] });
            let data: Vec<u8> = stuffed.chain([0xFF, EOI]).collect();
            let [parts, whole] = both(&data, part_bytes);
            prop_assert!(whole.is_some());
            prop_assert_eq!(parts, whole);
        }

        #[test]
        fn anything_else_is_for_one_thread(
            data in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xFF), Just(0), Just(EOI)], 2..200),
            part_bytes in 1..10_usize,
        ) {
            let [parts, whole] = both(&data, part_bytes);
            prop_assert!(parts.is_none() || parts == whole);
        }
    }
}
