//! Which samples of a request are addresses of files in place of the files. Only the first bytes of others are looked
//! at. It must not know what becomes of an address.

use std::collections::BTreeMap;

use super::api::{Chunk, DataType, Input, Request};
use super::model::ModelState;
use crate::fetch::{Address, Allowed, File, MAX_ADDRESS_BYTES};
use gesso::error::{Context, Error, Result};
use gesso::limits;
use gesso::memory::copy_once;
use gesso::tensor::DType;

/// Bytes in which the scheme of an address is.
const SCHEME_BYTES: usize = 8;
/// Bytes of the length in front of each element of a `TYPE_STRING` tensor.
const LENGTH_BYTES: usize = 4;

/// The files of a request, by the input and the sample that they stand in for.
pub(super) type Files = BTreeMap<String, BTreeMap<usize, File>>;

/// A sample that is to be fetched.
pub(super) struct Wanted {
    /// The input.
    pub(super) input: String,
    /// Its number in the request.
    pub(super) sample: usize,
    /// From where.
    pub(super) address: Address,
}

/// The addresses in a request, and how many samples it has. What is wrong with its tensors is told by who cuts them.
///
/// # Errors
/// Invalid for an address that is not allowed.
pub(super) fn named(allow: &Allowed, model: &ModelState, request: &Request) -> Result<(Vec<Wanted>, usize)> {
    let (mut wanted, mut samples) = (Vec::new(), 1);
    for input in request.inputs().unwrap_or_default() {
        let is_ours = model.tensors.inputs.iter().any(|configured| configured.name == input.name);
        let Some(&batch) = input.shape.first().filter(|batch| **batch <= limits::MAX_BATCH_SIZE) else {
            continue;
        };
        samples = batch.max(samples);
        if is_ours && !model.folders.contains_key(input.name) {
            let found = of_input(allow, &input, batch);
            wanted.extend(found.context(|| format!("input `{}`", input.name))?);
        }
    }
    Ok((wanted, samples))
}

fn of_input(allow: &Allowed, input: &Input<'_>, batch: usize) -> Result<Vec<Wanted>> {
    let encoded = match input.dtype {
        DataType::Bytes => true,
        DataType::Dense(DType::U8) => input.shape.len() == 2,
        DataType::Dense(_) => false,
    };
    if !encoded {
        return Ok(Vec::new());
    }
    let on_host = |chunk| match chunk {
        Chunk::Host(bytes) => Some(bytes),
        Chunk::Device { .. } => None,
    };
    let pieces: Option<Vec<&[u8]>> =
        input.chunks().ok().and_then(|chunks| chunks.into_iter().map(on_host).collect());
    let Some(pieces) = pieces.map(Pieces) else { return Ok(Vec::new()) };
    let mut wanted = Vec::new();
    let mut at = 0;
    for sample in 0..batch {
        let (start, length) = match input.dtype {
            DataType::Bytes => {
                let mut length = [0; LENGTH_BYTES];
                if pieces.copy(at, &mut length) < LENGTH_BYTES {
                    break;
                }
                (at + LENGTH_BYTES, u32::from_le_bytes(length) as usize)
            }
            DataType::Dense(_) => (at, input.shape.last().copied().unwrap_or_default()),
        };
        at = start.saturating_add(length);
        if let Some(text) = text(allow, &pieces, start, length) {
            let address = allow.check(&text).map_err(|failure| Error::from(&failure));
            let address = if batch > 1 { address.context(|| format!("sample {sample}")) } else { address };
            wanted.push(Wanted { input: input.name.to_owned(), sample, address: address? });
        }
    }
    Ok(wanted)
}

/// A copy of a sample that is an address, with a byte more than one may have, if it is longer.
fn text(allow: &Allowed, pieces: &Pieces<'_>, start: usize, length: usize) -> Option<Vec<u8>> {
    let mut scheme = [0; SCHEME_BYTES];
    let head = scheme.get_mut(..length.min(SCHEME_BYTES))?;
    let head = pieces.copy(start, head);
    if !allow.is_address(scheme.get(..head)?) {
        return None;
    }
    let mut text = vec![0; length.min(MAX_ADDRESS_BYTES + 1)];
    let found = pieces.copy(start, &mut text);
    text.truncate(found);
    // Several addresses in one tensor of bytes have one length.
    let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    text.truncate(end);
    Some(text)
}

/// Bytes that came in pieces, which their client may write to meanwhile.
struct Pieces<'r>(Vec<&'r [u8]>);

impl Pieces<'_> {
    /// Copies what is behind `at`; how much that was.
    fn copy(&self, at: usize, own: &mut [u8]) -> usize {
        let (mut skip, mut done) = (at, 0);
        for piece in &self.0 {
            let rest = piece.get(skip..).unwrap_or_default();
            skip = skip.saturating_sub(piece.len());
            let count = rest.len().min(own.len() - done);
            if let (Some(from), Some(to)) = (rest.get(..count), own.get_mut(done..done + count)) {
                copy_once(from, to);
                done += count;
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_copied_from_any_place() {
        let pieces = Pieces(vec![b"abc", b"", b"de", b"fghi"]);
        let copy = |at, length| {
            let mut own = vec![0; length];
            let done = pieces.copy(at, &mut own);
            own.truncate(done);
            String::from_utf8(own).unwrap()
        };
        assert_eq!(
            [copy(0, 9), copy(2, 3), copy(3, 2), copy(5, 99), copy(9, 1), copy(usize::MAX, 1)],
            ["abcdefghi", "cde", "de", "fghi", "", ""]
        );
    }

    #[test]
    fn addresses_are_told_from_files() {
        let allow = Allowed::parse("https://a.example.com/, s3://bucket/").unwrap();
        let of = |bytes: &[u8]| {
            let (first, second) = bytes.split_at(bytes.len() / 3);
            text(&allow, &Pieces(vec![b"--", first, second, b"--"]), 2, bytes.len())
        };
        assert_eq!(of(b"https://a.example.com/x\0\0\0").unwrap(), b"https://a.example.com/x");
        assert_eq!(of(b"s3://b").unwrap(), b"s3://b");
        for file in [&b"\xff\xd8\xff"[..], b"http://a.example.com/", b"https:/", b""] {
            assert_eq!(of(file), None);
        }
        let long = [b"https://".as_slice(), &[b'a'; 9_000]].concat();
        assert_eq!(of(&long).unwrap().len(), MAX_ADDRESS_BYTES + 1);
    }
}
