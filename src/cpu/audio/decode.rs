//! Audio files to samples: WAV, FLAC, Ogg Vorbis. It must not know tensors.

use std::io::Cursor;

use symphonia::core::audio::{AudioBufferRef, Signal};
use symphonia::core::codecs::{CODEC_TYPE_NULL, Decoder, DecoderOptions};
use symphonia::core::conv::IntoSample;
use symphonia::core::errors::Error as AudioError;
use symphonia::core::formats::{FormatOptions, FormatReader};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::probe::Hint;

use crate::error::{Error, Result};

/// What the header of a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Samples of each channel.
    pub frames: usize,
    /// Channels.
    pub channels: usize,
    /// Frames a second.
    pub rate: u32,
}

/// Samples with interleaved channels.
#[derive(Debug, Clone, PartialEq)]
pub enum Samples {
    /// Of a file of integers, scaled to 32 bits.
    Integers(Vec<i32>),
    /// Of a file of floats.
    Floats(Vec<f32>),
}

struct File {
    header: Header,
    reader: Box<dyn FormatReader>,
    decoder: Box<dyn Decoder>,
    track: u32,
}

fn failed(error: &AudioError) -> Error {
    Error::invalid(format!("the audio cannot be decoded: {error}"))
}

impl File {
    fn open(bytes: &[u8]) -> Result<Self> {
        let is_known = bytes.starts_with(b"RIFF") || bytes.starts_with(b"fLaC") || bytes.starts_with(b"OggS");
        if !is_known {
            return Err(Error::invalid("not an audio file, expected WAV, FLAC or Ogg Vorbis"));
        }
        refuse_rate_of_zero(bytes)?;
        let source = Box::new(Cursor::new(bytes.to_vec()));
        let stream = MediaSourceStream::new(source, MediaSourceStreamOptions::default());
        let reader = symphonia::default::get_probe()
            .format(&Hint::new(), stream, &FormatOptions::default(), &MetadataOptions::default())
            .map_err(|error| failed(&error))?
            .format;
        let track = reader.tracks().iter().find(|track| track.codec_params.codec != CODEC_TYPE_NULL);
        let track = track.ok_or_else(|| Error::invalid("the file has no audio that can be decoded"))?;
        let parameters = &track.codec_params;
        let missing = |what: &str| Error::invalid(format!("the audio's header does not say its {what}"));
        // The last page of an Ogg file says where it ends, which may be within its last packet.
        let frames = last_page(bytes).or(parameters.n_frames).ok_or_else(|| missing("length"))?;
        let header = Header {
            frames: usize::try_from(frames).map_err(|_| missing("length"))?,
            channels: parameters.channels.ok_or_else(|| missing("channels"))?.count(),
            rate: parameters.sample_rate.filter(|&rate| rate > 0).ok_or_else(|| missing("sampling rate"))?,
        };
        let decoder = symphonia::default::get_codecs()
            .make(parameters, &DecoderOptions::default())
            .map_err(|error| failed(&error))?;
        let track = track.id;
        Ok(Self { header, reader, decoder, track })
    }
}

/// A WAV file of 0 frames a second, over which symphonia panics.
fn refuse_rate_of_zero(bytes: &[u8]) -> Result<()> {
    // Behind the length and the form of the file: chunks of a name, a length and that many bytes, filled up to an even number.
    let mut chunks = bytes.strip_prefix(b"RIFF").and_then(|rest| rest.get(8..)).unwrap_or_default();
    while let Some(([a, b, c, d, length @ ..], rest)) = chunks.split_first_chunk::<8>() {
        match &[*a, *b, *c, *d] {
            b"data" => break,
            // Behind the encoding and the number of channels.
            b"fmt " if rest.get(4..8) == Some(&[0; 4]) => {
                return Err(Error::invalid("the audio's sampling rate is 0"));
            }
            _ => {}
        }
        let length = u32::from_le_bytes(*length) as usize;
        chunks = rest.get(length.saturating_add(length % 2)..).unwrap_or_default();
    }
    Ok(())
}

/// The position of the last page of an Ogg file.
fn last_page(bytes: &[u8]) -> Option<u64> {
    const MARK: &[u8] = b"OggS";
    const POSITION: usize = 6;
    if !bytes.starts_with(MARK) {
        return None;
    }
    let page = memchr::memmem::rfind(bytes, MARK)?;
    let position = bytes.get(page + POSITION..)?.first_chunk::<8>()?;
    u64::try_from(i64::from_le_bytes(*position)).ok()
}

/// Reads the header of a file.
///
/// # Errors
/// Invalid, for what is no audio file of a known format.
pub fn header(bytes: &[u8]) -> Result<Header> {
    File::open(bytes).map(|file| file.header)
}

/// Decodes all of a file whose header is `header`.
///
/// # Errors
/// Invalid, for a damaged file and one that is not as long as it says.
pub fn decode(bytes: &[u8], header: Header) -> Result<Samples> {
    let File { header: found, mut reader, mut decoder, track } = File::open(bytes)?;
    let total = header.frames.checked_mul(header.channels).filter(|_| found == header);
    let total = total.ok_or_else(|| Error::internal("an audio file changed its header"))?;
    let (mut integers, mut floats) = (Vec::new(), Vec::new());
    while integers.len().max(floats.len()) < total {
        let packet = match reader.next_packet() {
            Ok(packet) if packet.track_id() == track => packet,
            Ok(_) => continue,
            Err(AudioError::IoError(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(failed(&error)),
        };
        match decoder.decode(&packet).map_err(|error| failed(&error))? {
            AudioBufferRef::F32(buffer) => append(buffer.as_ref(), header.channels, &mut floats)?,
            AudioBufferRef::F64(buffer) => append(buffer.as_ref(), header.channels, &mut floats)?,
            AudioBufferRef::U8(buffer) => append(buffer.as_ref(), header.channels, &mut integers)?,
            AudioBufferRef::U16(buffer) => append(buffer.as_ref(), header.channels, &mut integers)?,
            AudioBufferRef::U24(buffer) => append(buffer.as_ref(), header.channels, &mut integers)?,
            AudioBufferRef::U32(buffer) => append(buffer.as_ref(), header.channels, &mut integers)?,
            AudioBufferRef::S8(buffer) => append(buffer.as_ref(), header.channels, &mut integers)?,
            AudioBufferRef::S16(buffer) => append(buffer.as_ref(), header.channels, &mut integers)?,
            AudioBufferRef::S24(buffer) => append(buffer.as_ref(), header.channels, &mut integers)?,
            AudioBufferRef::S32(buffer) => append(buffer.as_ref(), header.channels, &mut integers)?,
        }
    }
    let decoded = integers.len().max(floats.len());
    if decoded < total {
        let frames = decoded / header.channels.max(1);
        return Err(Error::invalid(format!(
            "the audio ends after {frames} of {} samples of a channel",
            header.frames
        )));
    }
    integers.truncate(total);
    floats.truncate(total);
    Ok(if floats.is_empty() { Samples::Integers(integers) } else { Samples::Floats(floats) })
}

/// Adds the frames of a packet to `samples`, as another type.
fn append<S, T>(
    buffer: &symphonia::core::audio::AudioBuffer<S>,
    channels: usize,
    samples: &mut Vec<T>,
) -> Result<()>
where
    S: symphonia::core::sample::Sample + IntoSample<T>,
{
    if buffer.spec().channels.count() != channels {
        return Err(Error::invalid("the audio changes its number of channels"));
    }
    let planes = buffer.planes();
    for frame in 0..buffer.frames() {
        samples.extend(planes.planes().iter().map(|plane| -> T { plane[frame].into_sample() }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampling_rate_of_zero_is_refused() {
        let wav = |rate: u32| {
            let mut file = b"RIFF\x2e\0\0\0WAVELIST\x01\0\0\0x\0fmt \x10\0\0\0\x01\0\x01\0".to_vec();
            for value in [rate, 2 * rate] {
                file.extend(value.to_le_bytes());
            }
            file.extend(b"\x02\0\x10\0data\x04\0\0\0\x01\x02\x03\x04");
            file
        };
        assert!(refuse_rate_of_zero(&wav(8_000)).is_ok());
        assert_eq!(header(&wav(0)).unwrap_err().to_string(), "the audio's sampling rate is 0");
        for length in 0..wav(0).len() {
            let _ = refuse_rate_of_zero(&wav(0)[..length]);
        }
    }

    #[test]
    fn what_is_no_audio_is_an_error() {
        for bytes in [&b""[..], b"RIFF", b"RIFF\x04\0\0\0WAVE", b"fLaC\0\0\0\0", b"OggS", b"\xff\xd8\xff"] {
            assert!(header(bytes).is_err(), "{bytes:?}");
        }
    }
}
