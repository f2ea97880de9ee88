//! Requests that a server recorded, as `gesso replay` reads them.

use triton_gesso::record::{MAX_HEADER_BYTES, Recorded};

pub(crate) fn run(input: &[u8]) {
    let Ok(recorded) = Recorded::parse(input) else { return };
    let header = recorded.header();
    if header.len() > MAX_HEADER_BYTES {
        return;
    }
    let mut file = header.into_bytes();
    recorded.pieces().for_each(|piece| file.extend(piece));
    assert_eq!(Recorded::parse(&file).ok(), Some(recorded), "a record is read as it was written");
}
