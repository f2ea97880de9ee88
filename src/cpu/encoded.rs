//! Whether an encoded file may be decoded. The one place that decides it: by what the first bytes or the container say,
//! before a decoder sees the file. It must not know who asks.

use crate::cpu::formats::{Format, Formats};
use crate::cpu::{audio, decode, video};
use crate::error::Result;

/// What a file is expected to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoded {
    /// A picture.
    Picture,
    /// Sound.
    Sound,
    /// A video.
    Video,
}

impl Formats {
    /// Whether the file `bytes` may be decoded. What is of no known format passes: it is decoded by nothing, and its
    /// error says more.
    ///
    /// # Errors
    /// Unsupported when it is of a format that may not.
    pub fn check_file(self, encoded: Encoded, bytes: &[u8]) -> Result<()> {
        if self.is_all() {
            return Ok(());
        }
        let found = match encoded {
            Encoded::Picture => decode::file_format(bytes).map(Format::Image),
            Encoded::Sound => audio::decode::file_format(bytes),
            Encoded::Video => video::file_format(bytes),
        };
        found.map_or(Ok(()), |format| self.check(format))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_bytes() {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
        let files = [(Encoded::Video, "video/h264.mp4", "h264"), (Encoded::Video, "video/vp9.webm", "vp9")];
        for (encoded, path, name) in files {
            let bytes = std::fs::read(format!("{data}/{path}")).unwrap();
            let error = Formats::parse(&format!("-{name}")).unwrap().check_file(encoded, &bytes).unwrap_err();
            assert_eq!(error.to_string(), format!("format `{name}` is switched off by parameter `formats`"));
            Formats::parse(name).unwrap().check_file(encoded, &bytes).unwrap();
            Formats::parse("-png").unwrap().check_file(encoded, &bytes).unwrap();
        }
        let beginnings: [(Encoded, &[u8], &str); 7] = [
            (Encoded::Picture, b"\xff\xd8\xff\xe0", "jpeg"),
            (Encoded::Picture, b"\0\0\0\x14ftypavif\0\0\0\0avif", "avif"),
            (Encoded::Picture, b"\0\0\0\x14ftypheic\0\0\0\0mif1", "heic"),
            (Encoded::Picture, b"\xff\x0a", "jpegxl"),
            (Encoded::Sound, b"fLaC", "flac"),
            (Encoded::Sound, b"RIFF\x24\0\0\0WAVEfmt ", "wav"),
            (Encoded::Sound, b"ID3\x04\0\0\0\0\0\0fLaC", "flac"),
        ];
        for (encoded, bytes, name) in beginnings {
            assert!(
                Formats::parse(&format!("-{name}")).unwrap().check_file(encoded, bytes).is_err(),
                "{name}"
            );
        }
        Formats::parse("png").unwrap().check_file(Encoded::Picture, b"no picture").unwrap();
    }
}
