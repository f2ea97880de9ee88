//! Files that are made here, hostile ones among them.

use super::*;
use crate::cpu::audio::crc;
use crate::deadline::Deadline;

/// Bits, the lowest of a byte first.
#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn put(&mut self, value: u64, count: usize) {
        self.0.extend((0..count).map(|bit| value.checked_shr(bit as u32).unwrap_or(0) & 1 == 1));
    }

    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
        self.0.chunks(8).map(byte).collect()
    }
}

fn page(packets: &[&[u8]], position: i64, number: u32, flags: u8) -> Vec<u8> {
    let mut lengths = Vec::new();
    for packet in packets {
        lengths.extend(std::iter::repeat_n(255, packet.len() / 255));
        lengths.push((packet.len() % 255) as u8);
    }
    let mut page = [&b"OggS\0"[..], &[flags], &position.to_le_bytes(), &[1, 0, 0, 0]].concat();
    page.extend(number.to_le_bytes());
    page.extend([0; 4]);
    page.push(lengths.len() as u8);
    page.extend(lengths);
    page.extend(packets.concat());
    let sum = crc::ogg(&[&page]);
    page[22..26].copy_from_slice(&sum.to_le_bytes());
    page
}

/// An Ogg of some hundred bytes whose codebooks claim so many entries of so many dimensions, with vectors of kind
/// `kind`.
fn claims(books: &[(u64, u64, u64)]) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.put(books.len() as u64 - 1, 8);
    for &(entries, dimensions, kind) in books {
        bits.put(0x56_4342, 24);
        bits.put(dimensions, 16);
        bits.put(entries, 24);
        // Ordered: all codes have one length.
        bits.put(1, 1);
        bits.put(u64::from(entries.next_power_of_two().ilog2()).max(1) - 1, 5);
        bits.put(entries, entries.ilog2() as usize + 1);
        bits.put(kind, 4);
        if kind > 0 {
            let fits =
                |values: &u64| values.checked_pow(dimensions as u32).is_some_and(|cells| cells <= entries);
            let values = if kind == 1 { (1..=entries).take_while(fits).count() } else { 0 };
            bits.put(0, 32 + 32 + 4 + 1);
            (0..values).for_each(|_| bits.put(0, 1));
        }
    }
    let identification = [&b"\x01vorbis\0\0\0\0\x01\x80\x3e\0\0"[..], &[0; 12], &[0x88, 1]].concat();
    let setup = [&b"\x05vorbis"[..], &bits.bytes(), &[0; 60]].concat();
    [
        page(&[&identification], 0, 0, 2),
        page(&[b"\x03vorbis\x01\0\0\0x\0\0\0\0\x01", &setup], 0, 1, 0),
        page(&[&[0; 20]], 1_000, 2, 4),
    ]
    .concat()
}

#[test]
fn codebooks_ask_for_no_more_than_their_bounds() {
    for (books, message) in [
        (vec![(1 << 23, 65_024, 2)], "more than 524288 entries"),
        (vec![(1 << 19, 65_024, 2)], "more than 2097152 numbers"),
        (vec![(1 << 18, 1, 0); 3], "more than 524288 entries"),
        (vec![(1 << 16, 16, 1); 3], "more than 2097152 numbers"),
        (vec![((1 << 24) - 1, 31, 1); 8], "more than 524288 entries"),
    ] {
        let error = header(&claims(&books)).unwrap_err().to_string();
        assert!(error.contains(message), "{books:?}: {error}");
    }
}

fn wav(name: &[u8; 4], sizes: [u32; 2], format: &[u8], data: &[u8]) -> Vec<u8> {
    let mut file =
        [&name[..], &sizes[0].to_le_bytes(), b"WAVEfmt ", &(format.len() as u32).to_le_bytes()].concat();
    file.extend([format, b"data", &sizes[1].to_le_bytes(), data].concat());
    file
}

fn pcm(rate: u32) -> Vec<u8> {
    [&[1, 0, 1, 0][..], &rate.to_le_bytes(), &(2 * rate).to_le_bytes(), &[2, 0, 16, 0]].concat()
}

fn samples(file: &[u8]) -> Result<Vec<i32>> {
    let (found, mut samples) = (header(file)?, Vec::new());
    decode(file, &found, &Watch::forever(), &mut |block| {
        if let Block::Integers(block) = block {
            samples.extend_from_slice(block);
        }
        Ok(())
    })?;
    Ok(samples)
}

#[test]
fn a_wav_of_unknown_length_goes_to_its_end() {
    let data = [1, 2, 3, 4];
    let expected = [0x0201 << 16, 0x0403 << 16];
    for (name, sizes) in [
        (b"RIFF", [40, 4]),
        (b"RIFF", [u32::MAX, u32::MAX]),
        (b"RIFF", [0, 0]),
        (b"RIFF", [36, 0]),
        (b"RIFF", [1, 4]),
        (b"RIFF", [0x7fff_f024, 0x7fff_f000]),
        (b"RF64", [u32::MAX, u32::MAX]),
    ] {
        assert_eq!(samples(&wav(name, sizes, &pcm(8_000), &data)).unwrap(), expected, "{name:?} {sizes:?}");
    }
    let error = samples(&wav(b"RIFF", [44, 8], &pcm(8_000), &data)).unwrap_err().to_string();
    assert_eq!(error, "the audio ends after 2 of 4 samples of a channel");
    let tagged = [b"ID3\x04\0\0\0\0\0\x02xx", &wav(b"RIFF", [40, 4], &pcm(8_000), &data)[..]].concat();
    assert_eq!(samples(&tagged).unwrap(), expected);
}

#[test]
fn a_sampling_rate_of_zero_is_refused() {
    let file = wav(b"RIFF", [40, 4], &pcm(0), &[0; 4]);
    assert_eq!(header(&file).unwrap_err().to_string(), "the audio's sampling rate is 0");
    for length in 0..file.len() {
        assert!(header(&file[..length]).is_err(), "{length}");
    }
}

#[test]
fn what_is_no_audio_is_an_error() {
    for bytes in [
        &b""[..],
        b"RIFF",
        b"RIFF\x04\0\0\0WAVE",
        b"fLaC\0\0\0\0",
        b"OggS",
        b"\xff\xd8\xff",
        b"ID3",
        b"FORM",
        b"caff",
    ] {
        assert!(header(bytes).is_err(), "{bytes:?}");
    }
    let error = header(b"\xff\xfb\x90\0").unwrap_err().to_string();
    assert!(error.starts_with("MPEG audio that is no MP3"), "{error}");
}

/// FLAC of so many frames of 65,535 samples, all of them 0: 15 bytes each.
fn silence(frames: u8, claimed: u64) -> Vec<u8> {
    let rest = 44_100 << 44 | 15 << 36 | claimed;
    let mut file =
        [b"fLaC\x80\0\0\x22\xff\xff\xff\xff\0\0\0\0\0\0", &u64::to_be_bytes(rest)[..], &[0; 16]].concat();
    for i in 0..frames {
        let mut frame = vec![0xff, 0xf8, 0x70, 0x08, i, 0xff, 0xfe];
        frame.push(crc::flac_header(&frame));
        frame.extend([0, 0, 0]);
        frame.extend(crc::flac_frame(&frame).to_be_bytes());
        file.extend(frame);
    }
    file
}

#[test]
fn small_files_tell_how_much_they_become() {
    let file = silence(100, 100 * 65_535);
    let found = header(&file).unwrap();
    let Effort { time, scratch } = effort(&found);
    assert_eq!((found.frames, found.channels), (6_553_500, 1));
    assert!(time >= Duration::from_millis(20) && scratch < 1 << 20, "{time:?}, {scratch} bytes");
    let error = header(&silence(1, 1 << 35)).unwrap_err().to_string();
    assert!(error.starts_with("the audio ends after at most"), "{error}");
    assert_eq!(samples(&silence(2, 65_535 + 3)).unwrap().len(), 65_535 + 3);
    // A length of 0 is one that the encoder did not know.
    assert_eq!(samples(&silence(2, 0)).unwrap().len(), 2 * 65_535);
}

struct Nobody;

impl Deadline for Nobody {
    fn check(&self, _sample: Option<usize>) -> Result<()> {
        Err(Error::invalid("nobody waits"))
    }
}

#[test]
fn decoding_that_nobody_waits_for_ends() {
    let file = silence(100, 100 * 65_535);
    let mut given = 0;
    let done = decode(&file, &header(&file).unwrap(), &Watch::new(&Nobody, None), &mut |block| {
        given += block.len();
        Ok(())
    });
    assert_eq!((done.unwrap_err().to_string().as_str(), given), ("nobody waits", 0));
}

#[test]
fn damaged_pages_and_frames_are_errors() {
    let file = silence(3, 3 * 65_535);
    for place in [42, 45, 60, file.len() - 1] {
        let mut damaged = file.clone();
        damaged[place] ^= 1;
        assert!(samples(&damaged).is_err(), "{place}");
    }
    let ogg = claims(&[(2, 1, 0)]);
    let mut damaged = ogg.clone();
    damaged[100] ^= 1;
    assert_eq!(
        header(&damaged).unwrap_err().to_string(),
        "the audio is damaged: the sum of an Ogg page is wrong"
    );
    for length in 0..ogg.len() {
        assert!(header(&ogg[..length]).is_err(), "{length}");
    }
}
