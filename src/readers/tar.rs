//! Where files are in a tar archive: headers of the kinds ustar, GNU and pax, read where they are. It must not know
//! what the files are for.

use super::pieces::Opened;
use crate::error::{Error, Result};
use crate::limits;

/// Bytes of a header; files begin at multiples of it.
pub(super) const BLOCK: u64 = 512;

/// Regular files by the kinds of their headers: of ustar, of before it, and one that lies in one piece.
const FILES: [u8; 3] = [b'0', 0, b'7'];
const LONG_NAME: u8 = b'L';
const EXTENDED: u8 = b'x';

/// Digits of the length of a record in a header of the pax kind.
const MAX_DIGITS: usize = 8;

/// A regular file in an archive.
#[derive(Debug, PartialEq)]
pub(super) struct Member {
    pub(super) name: Vec<u8>,
    /// Where its bytes begin, and how many there are.
    pub(super) at: u64,
    pub(super) size: u64,
}

/// What a header before the file's own says of it.
#[derive(Debug, Default, PartialEq)]
struct Given {
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

/// The regular files of an archive, in their order.
///
/// # Errors
/// An archive that ends within a header or its last file, a header that is none, a name that is too long.
pub(super) fn members(archive: &Opened) -> Result<Vec<Member>> {
    let (mut found, mut given, mut at) = (Vec::<Member>::new(), Given::default(), 0_u64);
    while let Some(header) = header(archive, at)? {
        let wrong = || Error::invalid(format!("there is no header of a tar archive at byte {at}"));
        let size = number(&header[124..136]).ok_or_else(wrong)?;
        let kind = header[156];
        let mut length = size;
        if matches!(kind, LONG_NAME | EXTENDED) {
            let content = content(archive, at, size)?;
            given = match kind {
                LONG_NAME => Given { name: Some(until_zero(&content).to_vec()), ..given },
                _ => extended(&content),
            };
        } else {
            let Given { name, size: told } = std::mem::take(&mut given);
            length = told.unwrap_or(size);
            if FILES.contains(&kind) {
                if found.len() >= limits::MAX_DATASET_SAMPLES {
                    return Err(Error::invalid(format!("more than {} files", limits::MAX_DATASET_SAMPLES)));
                }
                found.push(Member {
                    name: name.unwrap_or_else(|| self::name(&header)),
                    at: at + BLOCK,
                    size: length,
                });
            }
        }
        let behind =
            length.checked_next_multiple_of(BLOCK).and_then(|blocks| (at + BLOCK).checked_add(blocks));
        at = behind.ok_or_else(wrong)?;
    }
    if let Some(last) = found.last()
        && last.at.checked_add(last.size).is_none_or(|end| end > archive.size)
    {
        return Err(Error::invalid(format!(
            "the archive ends within `{}`, which has {} bytes from byte {} on",
            String::from_utf8_lossy(&last.name),
            last.size,
            last.at
        )));
    }
    Ok(found)
}

/// The header at byte `at`; `None` at the end.
fn header(archive: &Opened, at: u64) -> Result<Option<[u8; BLOCK as usize]>> {
    if at >= archive.size {
        return Ok(None);
    }
    if archive.size - at < BLOCK {
        return Err(Error::invalid(format!("the archive ends within a header, at byte {}", archive.size)));
    }
    let mut header = [0; BLOCK as usize];
    archive.read_near(at, &mut header)?;
    Ok(header.iter().any(|&byte| byte != 0).then_some(header))
}

/// What stands behind a header that tells of the next one.
fn content(archive: &Opened, at: u64, size: u64) -> Result<Vec<u8>> {
    if size > limits::MAX_TAR_NAME_BYTES {
        let most = limits::MAX_TAR_NAME_BYTES;
        return Err(Error::invalid(format!(
            "a header at byte {at} has {size} bytes, expected at most {most}"
        )));
    }
    let mut content = vec![0; size.min(archive.size.saturating_sub(at + BLOCK)) as usize];
    archive.read_near(at + BLOCK, &mut content)?;
    Ok(content)
}

/// The path and the size in a header of the pax kind. Each record begins with its own length.
fn extended(content: &[u8]) -> Given {
    let (mut given, mut rest) = (Given::default(), content);
    while let Some(blank) = rest.iter().take(MAX_DIGITS + 1).position(|&byte| byte == b' ') {
        // What is shorter than its length and the blank would be read again for ever.
        let length = decimal(&rest[..blank]).and_then(|length| usize::try_from(length).ok());
        let Some(length) = length.filter(|&length| length > blank + 1) else { break };
        let record = &rest[blank + 1..length.min(rest.len())];
        let mut parts = record.strip_suffix(b"\n").unwrap_or(record).splitn(2, |&byte| byte == b'=');
        match (parts.next(), parts.next()) {
            (Some(b"path"), Some(value)) => given.name = Some(value.to_vec()),
            (Some(b"size"), Some(value)) => given.size = decimal(value),
            _ => {}
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    given
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A number of a header: digits of base 8, or bytes where the highest bit is set. `None`: it is none, or not in 63
/// bits.
pub(super) fn number(field: &[u8]) -> Option<u64> {
    let (&first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        // The second bit is the sign.
        let start = (first & 0x40 == 0).then_some(u64::from(first & 0x3F))?;
        let value =
            rest.iter().try_fold(start, |value, &byte| value.checked_mul(256)?.checked_add(byte.into()));
        return value.filter(|&value| i64::try_from(value).is_ok());
    }
    let text = std::str::from_utf8(until_zero(field)).ok()?.trim();
    text.bytes().try_fold(0_u64, |value, byte| match byte {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// The name that a file's own header has.
pub(super) fn name(header: &[u8]) -> Vec<u8> {
    let text = |from: usize, to: usize| until_zero(header.get(from..to).unwrap_or_default());
    let (name, prefix) = (text(0, 100), text(345, 500));
    match header.get(257..262) == Some(b"ustar") && !prefix.is_empty() {
        true => [prefix, b"/", name].concat(),
        false => name.to_vec(),
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, and what follows it up to the next one.
    fn entry(name: &str, kind: u8, size: &[u8], data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; BLOCK as usize];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        bytes[124..124 + size.len()].copy_from_slice(size);
        bytes[156] = kind;
        bytes[257..262].copy_from_slice(b"ustar");
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(BLOCK as usize), 0);
        bytes
    }

    fn found(parts: &[Vec<u8>]) -> Result<Vec<(String, u64, u64)>> {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("gesso-tar-{}-{number}", std::process::id()));
        std::fs::write(&path, parts.concat()).unwrap();
        let found = Opened::new(&path.display().to_string()).and_then(|archive| members(&archive));
        std::fs::remove_file(&path).unwrap();
        let named = |one: Member| (String::from_utf8_lossy(&one.name).into_owned(), one.at, one.size);
        found.map(|found| found.into_iter().map(named).collect())
    }

    #[test]
    fn files_are_found_by_every_kind_of_header() {
        let long = "x".repeat(150);
        let record = format!("{} path={long}\n", long.len() + 10);
        assert_eq!(record.len(), long.len() + 10);
        let mut prefixed = entry("b", b'0', b"2", b"bb");
        prefixed[345..348].copy_from_slice(b"d/e");
        let parts = [
            entry("../a", 0, b"0000003\0", b"aaa"),
            entry("folder/", b'5', b"0", b""),
            prefixed,
            entry("././@LongLink", b'L', b"226", &[long.as_bytes(), b"\0"].concat()),
            entry("cut", b'0', &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], b"c"),
            entry("pax", b'x', format!("{:o}", record.len()).as_bytes(), record.as_bytes()),
            entry("cut", b'7', b"", b""),
            entry("pax", b'x', b"12", b"10 size=3\n"),
            entry("sized", b'0', b"0", b"sss"),
            vec![0; 1024],
        ];
        let wanted = [
            ("../a", 512, 3),
            ("d/e/b", 2048, 2),
            (long.as_str(), 4096, 1),
            (long.as_str(), 6144, 0),
            ("sized", 7680, 3),
        ];
        let wanted = wanted.map(|(name, at, size)| (name.to_owned(), at, size));
        assert_eq!(found(&parts).unwrap(), wanted);
        assert_eq!(found(&[]).unwrap(), []);
        assert_eq!(found(&[vec![0; 512], vec![1; 3]]).unwrap(), []);
    }

    #[test]
    fn what_is_no_archive_is_an_error() {
        let huge = [0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0];
        let most = [0x80, 0, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        for (parts, wanted) in [
            (vec![vec![b'x'; 512]], "no header"),
            (vec![vec![b'x'; 100]], "within a header, at byte 100"),
            (vec![entry("a", b'0', b"12", b"")], "within `a`, which has 10 bytes"),
            (vec![entry("a", b'0', &most, b"")], "within `a`"),
            (vec![entry("a", b'0', &huge, b"")], "no header"),
            (vec![entry("a", b'0', &[0xFF; 12], b"")], "no header"),
            (vec![entry("a", b'5', b"777777777777", b"")], ""),
            (vec![entry("a", b'L', b"77777777777", b"")], "expected at most 1048576"),
            (vec![entry("a", b'x', b"777", b"0 x"), entry("b", b'0', b"9", b"")], "no header"),
        ] {
            match found(&parts) {
                Ok(found) => assert!(wanted.is_empty() && found.is_empty(), "{found:?}"),
                Err(error) => assert!(error.to_string().contains(wanted), "{error}, not {wanted}"),
            }
        }
    }

    #[test]
    fn records_of_pax_that_are_wrong_end() {
        for text in ["0 path=a\n", "2 path=a\n", "x path=a\n", "99999999999 path=a\n", " ", "", "-1 path=a\n"]
        {
            assert_eq!(extended(text.as_bytes()), Given::default(), "{text}");
        }
        // One that is longer than all is cut.
        assert_eq!(extended(b"99999999 path=a").name.as_deref(), Some(&b"a"[..]));
        let size = |text: &str| extended(text.as_bytes()).size;
        assert_eq!([size("11 size=12\n"), size("11 size=-2\n")], [Some(12), None]);
    }
}
