//! The codestream of a JPEG XL, which a file with boxes may have in parts. It must not know what is in it.

use std::borrow::Cow;

use crate::cpu::atoms::atoms;
use crate::error::{Error, Result};

/// What a bare codestream begins with.
const BARE: [u8; 2] = [0xFF, 0x0A];

/// Bit of a part's number that says that it is the last.
const LAST: u32 = 1 << 31;

/// The codestream of a file, as far as it is there.
///
/// # Errors
/// A file without one, or whose parts are not numbered from 0 on.
pub(super) fn codestream(bytes: &[u8]) -> Result<Cow<'_, [u8]>> {
    if bytes.starts_with(&BARE) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut parts: Vec<(u32, &[u8])> = Vec::new();
    for part in atoms(bytes) {
        match (&part.name, part.body.split_first_chunk()) {
            (b"jxlc", _) if parts.is_empty() => return Ok(Cow::Borrowed(part.body)),
            (b"jxlp", Some((number, body))) => parts.push((u32::from_be_bytes(*number), body)),
            _ => {}
        }
    }
    parts.sort_by_key(|(number, _)| number & !LAST);
    let end = parts.iter().position(|(number, _)| number & LAST != 0).map_or(parts.len(), |last| last + 1);
    parts.truncate(end);
    if parts.is_empty() || (0..).zip(&parts).any(|(at, (number, _))| number & !LAST != at) {
        return Err(Error::invalid(
            "damaged or truncated header: no codestream, or parts of one that is not whole",
        ));
    }
    match parts[..] {
        [(_, only)] => Ok(Cow::Borrowed(only)),
        _ => Ok(Cow::Owned(parts.iter().flat_map(|(_, part)| *part).copied().collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(parts: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
        let mut made = b"\0\0\0\x0cJXL \r\n\x87\n".to_vec();
        for (name, body) in parts {
            made.extend((8 + body.len() as u32).to_be_bytes());
            made.extend(*name);
            made.extend(*body);
        }
        made
    }

    #[test]
    fn parts_are_put_together_in_their_order() {
        let of = |parts: &[(&[u8; 4], &[u8])]| codestream(&file(parts)).map(Cow::into_owned);
        assert_eq!(of(&[(b"ftyp", b"jxl "), (b"jxlc", &[0xFF, 0x0A, 7])]).unwrap(), [0xFF, 0x0A, 7]);
        let parts: [(&[u8; 4], &[u8]); 2] =
            [(b"jxlp", &[0x80, 0, 0, 1, 3, 4]), (b"jxlp", &[0, 0, 0, 0, 1, 2])];
        assert_eq!(of(&parts).unwrap(), [1, 2, 3, 4]);
        assert_eq!(codestream(&[0xFF, 0x0A, 1]).unwrap(), [0xFF, 0x0A, 1].as_slice());
        assert!(of(&parts[..1]).is_err() && of(&[]).is_err());
    }
}
