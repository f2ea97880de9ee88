//! What a JPEG has behind the header of its first scan, as libjpeg walks over it: more scans, and its end. It must not
//! know what is in scans.

use super::header::{EOI, SOS, Segment, Segments, is_frame};
use crate::error::{Error, Result};

/// Bytes of a component in the header of a frame, which begins with six others.
const DESCRIBED: usize = 3;
const FRAME: usize = 6;

/// Which components scans have, by their names, and whether an end marker follows the scans; tables between them are
/// skipped.
struct Scans {
    first: usize,
    seen: [bool; 256],
    is_ended: bool,
}

impl Scans {
    /// The scans of a file from its first one on.
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut segments = Segments::new(bytes);
        let mut scans = Self { first: 0, seen: [false; 256], is_ended: false };
        loop {
            if let Segment { marker: SOS, payload, .. } = segments.next()? {
                scans.note(payload);
                scans.first = scans.seen.iter().filter(|&&seen| seen).count();
                break;
            }
        }
        let mut rest = bytes.get(segments.at..).unwrap_or_default();
        while let Some(at) = memchr::memchr(0xFF, rest) {
            rest = &rest[at + 1..];
            match *rest {
                [EOI, ..] => {
                    scans.is_ended = true;
                    break;
                }
                // Data, fill bytes, restarts, and markers that nobody uses.
                [0..=0xBF | 0xD0..=0xD7 | 0xFF, ..] => {}
                [marker, high, low, ..] => {
                    let length = usize::from(u16::from_be_bytes([high, low]));
                    if marker == SOS {
                        scans.note(rest.get(3..1 + length).unwrap_or_default());
                    }
                    rest = rest.get(1 + length..).unwrap_or_default();
                }
                _ => break,
            }
        }
        Ok(scans)
    }

    /// Notes the components of a scan's header.
    fn note(&mut self, header: &[u8]) {
        let Some((&count, components)) = header.split_first() else { return };
        for &[name, _] in components.as_chunks::<2>().0.iter().take(usize::from(count)) {
            self.seen[usize::from(name)] = true;
        }
    }
}

/// Whether an end marker follows the scans.
pub(super) fn reaches_its_end(bytes: &[u8]) -> Result<bool> {
    Ok(Scans::read(bytes)?.is_ended)
}

/// Fails where a lossless file has no scan of one of its components: libjpeg would show memory as it found it.
pub(super) fn check_components(bytes: &[u8]) -> Result<()> {
    let mut segments = Segments::new(bytes);
    let frame = loop {
        let Segment { marker, payload } = segments.next()?;
        if is_frame(marker) {
            break payload.get(FRAME..).unwrap_or_default();
        }
    };
    let names = || frame.as_chunks::<DESCRIBED>().0.iter().map(|&[name, ..]| name);
    let scans = Scans::read(bytes)?;
    let mut known = [false; 256];
    for name in names() {
        // Of two with the same name libjpeg takes the first one for each scan.
        if std::mem::replace(&mut known[usize::from(name)], true) {
            return Err(Error::invalid(format!("damaged header: two components with the name {name}")));
        }
    }
    if scans.first < names().count()
        && let Some(name) = names().find(|&name| !scans.seen[usize::from(name)])
    {
        return Err(Error::invalid(format!("damaged: no scan of the component with the name {name}")));
    }
    Ok(())
}
