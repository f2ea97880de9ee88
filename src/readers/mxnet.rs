//! `readers.MXNet`: images and labels of RecordIO files.

use std::ops::Range;
use std::sync::Arc;

use super::file::strings;
use super::pieces::Opened;
use super::records::{Records, Span, index};
use super::{Dataset, ReaderDef, Tensor, tensors};
use crate::error::{Error, Result};
use crate::memory::{HostBuffer, HostPool};
use crate::operator::{ArgSpec, Args};
use crate::tensor::{DType, ValueType};

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers__MXNet",
    aliases: &["MXNetReader"],
    doc: "Images and labels of RecordIO files",
    args: &[
        ArgSpec::strings("path", "RecordIO files").required(),
        ArgSpec::strings("index_path", "one index for all of them, which counts on from file to file")
            .required(),
        ArgSpec::bool("use_o_direct", "a hint for the system").or_bool(false).no_effect(),
    ],
    outputs,
    open,
    undecoded: None,
    behind: None,
    shuffles_list: false,
};

const MAGIC: u32 = 0xCED7_230A;
/// Of the word behind it the bits that are the length; those above say which part of a record it is.
const KIND_BITS: u32 = 29;
const WHOLE: u32 = 0;
const LAST: u32 = 3;
/// Bytes of the magic number and of that word.
const FRONT: usize = 8;
/// Bytes in front of labels and image: how many labels there are, the label if there are none, two numbers.
const HEADER: usize = 24;

fn outputs(_: &Args) -> Result<Vec<ValueType>> {
    let known =
        |dtype| ValueType { dtype: Some(dtype), dims: Some(vec![None]), layout: Some(Default::default()) };
    Ok(vec![known(DType::U8), known(DType::F32)])
}

fn open(args: &Args) -> Result<Box<dyn Dataset>> {
    let paths = strings(args, "path").unwrap_or_default();
    let indices = strings(args, "index_path").unwrap_or_default();
    let [listed] = indices.as_slice() else {
        return Err(Error::invalid(format!("{} `index_path`, expected one for all files", indices.len())));
    };
    let (mut ends, mut end) = (Vec::with_capacity(paths.len()), 0_u64);
    for path in &paths {
        end = end
            .checked_add(Opened::new(path)?.size)
            .ok_or_else(|| Error::invalid("the files have more bytes than can be counted"))?;
        ends.push(end);
    }
    let mut offsets: Vec<u64> = index(listed)?.into_iter().map(|(_, at)| at).collect();
    offsets.sort_unstable();
    if let Some(last) = offsets.last().filter(|&&last| last >= end) {
        return Err(Error::invalid(format!(
            "the index `{listed}` names byte {last}, but its files have {end}: it does not belong to them"
        )));
    }
    let behind = offsets.iter().copied().skip(1).chain([end]);
    let places = offsets.iter().zip(behind).filter(|&(&at, behind)| behind > at);
    let place = |(&at, behind): (&u64, u64)| -> Span {
        let number = ends.partition_point(|&end| end <= at);
        let begin = number.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or_default();
        (number, at - begin, behind - at)
    };
    let places = places.map(place).collect();
    Ok(Box::new(Recorded(Records::new(paths, places))))
}

struct Recorded(Records);

impl Dataset for Recorded {
    fn count(&self) -> usize {
        self.0.count()
    }

    fn groups(&self) -> Option<Vec<Range<usize>>> {
        Some(self.0.groups())
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let (mut tensors, source) = self.0.read(index, memory, |buffer, length| {
            let parts = parts(buffer.bytes().get(..length).unwrap_or_default())?;
            let (buffer, range) = match parts.as_slice() {
                [one] => (Arc::clone(buffer), one.clone()),
                _ => joined(buffer.bytes(), &parts, memory)?,
            };
            tensors(&buffer, range, memory)
        })?;
        if let Some(first) = tensors.first_mut() {
            first.source = source;
        }
        Ok(tensors)
    }
}

/// Where the parts of a record are. One that has the magic number inside is cut there.
fn parts(bytes: &[u8]) -> Result<Vec<Range<usize>>> {
    let (mut found, mut at) = (Vec::new(), 0_usize);
    loop {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let (magic, word) = word(at)
            .zip(word(at + 4))
            .ok_or_else(|| Error::invalid(format!("it ends within a part, at byte {}", bytes.len())))?;
        if magic != MAGIC {
            return Err(Error::invalid(format!(
                "no part begins at byte {at}: {magic:#x}, expected {MAGIC:#x}"
            )));
        }
        let (kind, length) = (word >> KIND_BITS, (word & ((1 << KIND_BITS) - 1)) as usize);
        let range = at + FRONT..at + FRONT + length;
        if range.end > bytes.len() {
            let found = bytes.len();
            return Err(Error::invalid(format!(
                "a part at byte {at} of {length} bytes in a record of {found}"
            )));
        }
        at = range.end.next_multiple_of(4);
        found.push(range);
        if matches!(kind, WHOLE | LAST) {
            return Ok(found);
        }
    }
}

/// Parts with the magic number between them.
fn joined(
    bytes: &[u8],
    parts: &[Range<usize>],
    memory: &Arc<HostPool>,
) -> Result<(Arc<HostBuffer>, Range<usize>)> {
    let parts: Vec<&[u8]> = parts.iter().filter_map(|range| bytes.get(range.clone())).collect();
    let whole = parts.join(MAGIC.to_le_bytes().as_slice());
    let mut buffer = memory.take(whole.len())?;
    buffer.bytes_mut().get_mut(..whole.len()).unwrap_or_default().copy_from_slice(&whole);
    Ok((Arc::new(buffer), 0..whole.len()))
}

/// Image and labels of a record.
fn tensors(buffer: &Arc<HostBuffer>, record: Range<usize>, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
    let bytes = buffer.bytes().get(record.clone()).unwrap_or_default();
    let short = || Error::invalid(format!("a record of {} bytes, expected labels and an image", bytes.len()));
    let (header, rest) = bytes.split_at_checked(HEADER).ok_or_else(short)?;
    let count = header.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
    let labels = count.checked_mul(4).and_then(|length| rest.get(..length)).ok_or_else(short)?;
    // Without a list the only label stands behind the count.
    let given = if count == 0 { header.get(4..8).unwrap_or_default() } else { labels };
    let (words, _) = given.as_chunks::<4>();
    let numbers: Vec<f32> = words.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    let image = record.start + HEADER + labels.len()..record.end;
    Ok(vec![tensors::part(buffer, image, DType::U8), tensors::list(&numbers, memory)?])
}

#[cfg(test)]
mod tests;
