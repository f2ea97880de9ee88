//! PNG files of the usual kind: 8 bits, without a palette, not interlaced, not animated. They are inflated strip by
//! strip, and rows are unfiltered straight to where pixels go, which is faster than the library. All else, and all that
//! is not as it should be, is the library's: it has the last word on what a file is.

use flate2::Crc;
use image::codecs::png::PngDecoder;
use image::{ColorType, ImageDecoder, ImageResult};

use super::SIGNATURE_BYTES;
use super::unfilter::unfilter;
use crate::cpu::decode::watched::Watched;
use crate::deadline::Watch;
use crate::error::Result;
use crate::memory::zeroed;

/// Bytes that were inflated last and may come again.
const WINDOW: usize = 32 << 10;

/// Bytes that a file is inflated to at a time, with the window in front: they stay in a core's second cache.
const SCRATCH: usize = 256 << 10;

/// The longest rows, of which some are in the scratch at a time.
const MAX_STRIDE: usize = (SCRATCH - WINDOW) / 4;

/// Rows go on to the output in multiples of this, but for the last ones.
const TOGETHER: usize = 8;

/// Compressed bytes after which the watch is asked.
const PORTION: usize = 64 << 10;

/// The library's decoder, and the way around it.
pub(super) struct Decoder<'a> {
    pub(super) library: PngDecoder<Watched<'a>>,
    pub(super) bytes: &'a [u8],
    pub(super) watch: &'a Watch<'a>,
    pub(super) scratch: Scratch,
}

/// Memory for a file of the usual kind; none for others.
pub(super) struct Scratch {
    /// What is inflated.
    inflated: Vec<u8>,
    /// Zeros, and the first row.
    first: Vec<u8>,
}

impl Scratch {
    /// # Errors
    /// When there is no memory.
    pub(super) fn new(bytes: &[u8]) -> Result<Self> {
        let [inflated, first] = usual(bytes).and_then(|header| header.scratch()).unwrap_or_default();
        Ok(Self { inflated: zeroed(inflated)?, first: zeroed(first)? })
    }
}

impl ImageDecoder for Decoder<'_> {
    fn dimensions(&self) -> (u32, u32) {
        self.library.dimensions()
    }

    fn color_type(&self) -> ColorType {
        self.library.color_type()
    }

    fn read_image(self, out: &mut [u8]) -> ImageResult<()> {
        let color = self.color_type();
        match decode(self.bytes, color, self.watch, self.scratch, out) {
            Some(()) => Ok(()),
            None => self.library.read_image(out),
        }
    }

    fn read_image_boxed(self: Box<Self>, out: &mut [u8]) -> ImageResult<()> {
        (*self).read_image(out)
    }
}

/// What the first chunk says.
pub(super) struct Header {
    width: usize,
    height: usize,
    /// The type of colour, by its number in files.
    coded: u8,
}

impl Header {
    /// Bytes of a row; `None` of rows that are too long, or have none.
    fn stride(&self) -> Option<usize> {
        let channels = match self.coded {
            0 => 1,
            4 => 2,
            2 => 3,
            _ => 4,
        };
        self.width.checked_mul(channels).filter(|stride| (1..=MAX_STRIDE).contains(stride))
    }

    /// Bytes that the members of [`Scratch`] have.
    fn scratch(&self) -> Option<[usize; 2]> {
        let stride = self.stride()?;
        // Room behind the last byte lets the inflater see that it was the last one.
        let all = self.height.checked_mul(stride + 1)?.checked_add(TOGETHER)?;
        Some([SCRATCH.min(all), 2 * stride])
    }
}

/// The header of a file that may be of the usual kind.
pub(super) fn usual(bytes: &[u8]) -> Option<Header> {
    match bytes.get(SIGNATURE_BYTES + 8..)?.first_chunk()? {
        &[w3, w2, w1, w0, h3, h2, h1, h0, 8, coded @ (0 | 2 | 4 | 6), 0, 0, 0] => Some(Header {
            width: u32::from_be_bytes([w3, w2, w1, w0]) as usize,
            height: u32::from_be_bytes([h3, h2, h1, h0]) as usize,
            coded,
        }),
        _ => None,
    }
}

/// Decodes a file whose chunks in front of the pixels the library has read; `color` is what it found there. `None` when
/// the file is not of the usual kind, something is wrong with it, or nobody waits: `out` holds anything then.
fn decode(bytes: &[u8], color: ColorType, watch: &Watch<'_>, scratch: Scratch, out: &mut [u8]) -> Option<()> {
    let header = usual(bytes)?;
    let Scratch { inflated: mut scratch, first } = scratch;
    // With chunk `tRNS` the library has another type of colour than the file.
    let unfilter = match (header.coded, color) {
        (0, ColorType::L8) => unfilter::<1> as fn(&[u8], &mut [u8], usize) -> bool,
        (4, ColorType::La8) => unfilter::<2>,
        (2, ColorType::Rgb8) => unfilter::<3>,
        (6, ColorType::Rgba8) => unfilter::<4>,
        _ => return None,
    };
    let stride = header.stride()?;
    if stride.checked_mul(header.height) != Some(out.len()) || first.len() != 2 * stride {
        return None;
    }
    let mut rows = Rows { out, first, stride, made: 0, unfilter };
    let mut data = Data::new(bytes)?;
    let mut inflater = fdeflate::Decompressor::new();
    inflater.ignore_adler32(); // as the library
    // What lies between the two was inflated, and is in no row yet.
    let (mut used, mut filled) = (0, 0);
    while !inflater.is_done() {
        if filled == scratch.len() {
            used += rows.take(&scratch[used..], false)?;
            let kept = used.min(filled.saturating_sub(WINDOW));
            scratch.copy_within(kept.., 0);
            (used, filled) = (used - kept, filled - kept);
        }
        let portion = data.portion()?;
        let (read, made) = inflater.read(portion, &mut scratch, filled, false).ok()?;
        if read == 0 && made == 0 && !inflater.is_done() {
            return None;
        }
        watch.charge(read + made).ok()?;
        data.part = &data.part[read..];
        filled += made;
    }
    (data.is_over()? && rows.take(&scratch[used..filled], true)? == filled - used && rows.are_made())
        .then_some(())
}

/// The rows of the output.
struct Rows<'a> {
    out: &'a mut [u8],
    /// Zeros, and room for the first row.
    first: Vec<u8>,
    stride: usize,
    /// How many were made.
    made: usize,
    unfilter: fn(&[u8], &mut [u8], usize) -> bool,
}

impl Rows<'_> {
    /// Makes as many rows as `filtered` has whole, or but for the last time a handy number of them. Says how many bytes
    /// they were; `None` when there are more than rows, or a filter is unknown.
    fn take(&mut self, filtered: &[u8], last: bool) -> Option<usize> {
        let whole = filtered.len() / (self.stride + 1);
        let count = if last || whole < TOGETHER { whole } else { whole - whole % TOGETHER };
        let taken = count * (self.stride + 1);
        let mut filtered = filtered.get(..taken)?;
        let end = self.stride * (self.made + count);
        if end > self.out.len() {
            return None;
        }
        if self.made == 0 && count > 0 {
            // Above the first row are zeros.
            let (first, others) = filtered.split_at(self.stride + 1);
            if !(self.unfilter)(first, &mut self.first, self.stride) {
                return None;
            }
            self.out[..self.stride].copy_from_slice(&self.first[self.stride..]);
            (filtered, self.made) = (others, 1);
        }
        if !filtered.is_empty() {
            let rows = &mut self.out[self.stride * (self.made - 1)..end];
            if !(self.unfilter)(filtered, rows, self.stride) {
                return None;
            }
        }
        self.made = end / self.stride;
        Some(taken)
    }

    fn are_made(&self) -> bool {
        self.made * self.stride == self.out.len()
    }
}

/// The chunks `IDAT`, which stand one behind the other.
struct Data<'a> {
    /// What is left of one of them.
    part: &'a [u8],
    /// The file behind it.
    rest: &'a [u8],
    /// Whether it was the last one.
    last: bool,
}

impl<'a> Data<'a> {
    /// The first one; `None` where there is none.
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes.get(SIGNATURE_BYTES..)?;
        while kind(rest)? != *b"IDAT" {
            (_, rest) = chunk(rest)?;
        }
        Some(Self { part: &[], rest, last: false })
    }

    /// Goes on to the next one when nothing is left of this one. `None` where its sum is wrong.
    fn go_on(&mut self) -> Option<()> {
        while self.part.is_empty() && !self.last {
            if kind(self.rest)? != *b"IDAT" {
                self.last = true;
                break;
            }
            let (checked, rest) = chunk(self.rest)?;
            let (name_and_data, sum) = checked.split_last_chunk::<4>()?;
            let mut crc = Crc::new();
            crc.update(name_and_data);
            if crc.sum() != u32::from_be_bytes(*sum) {
                return None;
            }
            (self.part, self.rest) = (name_and_data.get(4..)?, rest);
        }
        Some(())
    }

    /// What is to be inflated next; nothing, when there is no more. `None` when a sum is wrong.
    fn portion(&mut self) -> Option<&'a [u8]> {
        self.go_on()?;
        self.part.get(..self.part.len().min(PORTION))
    }

    /// Whether nothing is left, of the others either.
    fn is_over(&mut self) -> Option<bool> {
        self.go_on()?;
        Some(self.part.is_empty())
    }
}

/// The name of the chunk that `rest` begins with.
fn kind(rest: &[u8]) -> Option<[u8; 4]> {
    rest.get(4..)?.first_chunk().copied()
}

/// The chunk that `rest` begins with, from its name to its sum, and what is behind it.
fn chunk(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, behind) = rest.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(length) as usize;
    behind.split_at_checked(length.checked_add(8)?)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;
    use crate::cpu::decode::raster::scratch_limits;

    type Outcome = Result<Vec<u8>, String>;

    /// Numbers below a bound.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) as usize) % bound
        }
    }

    /// A file whose rows have any filters. Samples are below `values` before they are unfiltered.
    fn file(random: &mut Random, coded: u8, (width, height): (usize, usize), values: usize) -> Vec<u8> {
        let channels = [1, 0, 3, 0, 2, 0, 4][usize::from(coded)];
        let mut rows = ZlibEncoder::new(Vec::new(), Compression::new(random.below(10) as u32));
        for _ in 0..height {
            let mut row: Vec<u8> = (0..width * channels + 1).map(|_| random.below(values) as u8).collect();
            row[0] = random.below(5) as u8;
            rows.write_all(&row).unwrap();
        }
        let data = rows.finish().unwrap();
        let mut header =
            [[width as u32, height as u32].map(u32::to_be_bytes).concat(), vec![8, coded, 0, 0, 0]];
        let mut bytes = b"\x89PNG\r\n\x1A\n".to_vec();
        let mut put = |name: &[u8; 4], body: &[u8]| {
            bytes.extend((body.len() as u32).to_be_bytes());
            bytes.extend(name);
            bytes.extend(body);
            bytes.extend([0; 4]);
        };
        put(b"IHDR", &std::mem::take(&mut header).concat());
        put(b"tEXt", b"Title\0any");
        let part = 1 + random.below(data.len());
        data.chunks(part).for_each(|part| put(b"IDAT", part));
        put(b"IEND", b"");
        mend_sums(&mut bytes);
        bytes
    }

    /// Makes the sums of all chunks right.
    fn mend_sums(bytes: &mut [u8]) {
        let mut at = SIGNATURE_BYTES;
        while let Some(&length) = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>) {
            let end = at + 8 + u32::from_be_bytes(length) as usize;
            if bytes.len() < end + 4 {
                break;
            }
            let mut crc = Crc::new();
            crc.update(&bytes[at + 4..end]);
            bytes[end..end + 4].copy_from_slice(&crc.sum().to_be_bytes());
            at = end + 4;
        }
    }

    fn library<'a>(bytes: &'a [u8], watch: &'a Watch<'a>) -> ImageResult<PngDecoder<Watched<'a>>> {
        PngDecoder::with_limits(Watched::new(bytes, watch), scratch_limits())
    }

    fn pixels(decoder: impl ImageDecoder) -> Outcome {
        let mut out = vec![0x5A; usize::try_from(decoder.total_bytes()).unwrap().min(1 << 24)];
        decoder.read_image(&mut out).map_err(|error| error.to_string()).map(|()| out)
    }

    /// What the library says, what we say, and whether it was decoded here.
    fn outcomes(bytes: &[u8]) -> Option<(Outcome, Outcome, bool)> {
        let watch = Watch::forever();
        let [alone, another] = [library(bytes, &watch), library(bytes, &watch)];
        let (alone, library) = (alone.ok()?, another.ok()?);
        if alone.total_bytes() > 1 << 24 {
            return None;
        }
        let mut out = vec![0; usize::try_from(alone.total_bytes()).unwrap()];
        let here =
            decode(bytes, alone.color_type(), &watch, Scratch::new(bytes).unwrap(), &mut out).is_some();
        Some((
            pixels(alone),
            pixels(Decoder { library, bytes, watch: &watch, scratch: Scratch::new(bytes).unwrap() }),
            here,
        ))
    }

    #[test]
    fn pixels_are_those_of_the_library() {
        let random = &mut Random(2);
        let sizes = [(1, 1), (3, 1), (1, 9), (40, 9), (300, 33), (1000, 21), (5000, 25), (14_000, 40)];
        for coded in [0, 2, 4, 6] {
            for size in sizes {
                for values in [2, 20, 256] {
                    let (expected, found, here) = outcomes(&file(random, coded, size, values)).unwrap();
                    assert!(here, "{size:?} of type {coded}");
                    assert!(found.unwrap() == expected.unwrap(), "{size:?} of type {coded}");
                }
            }
        }
        let (expected, found, here) = outcomes(&file(random, 6, (MAX_STRIDE / 4 + 1, 9), 256)).unwrap();
        assert!(!here && found == expected && found.is_ok(), "rows that are too long");
    }

    #[test]
    fn damaged_files_have_the_librarys_outcome() {
        let random = &mut Random(3);
        let mut counts = [0; 3];
        for case in 0..3000 {
            let coded = [0, 2, 4, 6][random.below(4)];
            let size = (1 + random.below(150), 1 + random.below(30));
            let mut bytes = file(random, coded, size, [3, 256][case % 2]);
            for _ in 0..1 + random.below(3) {
                let at = SIGNATURE_BYTES + random.below(bytes.len() - SIGNATURE_BYTES);
                match random.below(4) {
                    0 => bytes[at] = random.below(256) as u8,
                    1 => bytes[at] ^= 1 << random.below(8),
                    2 => drop(bytes.drain(at..bytes.len().min(at + random.below(9)))),
                    _ => bytes.insert(at, random.below(256) as u8),
                }
            }
            if case % 4 > 0 {
                mend_sums(&mut bytes);
            }
            let Some((expected, found, here)) = outcomes(&bytes) else { continue };
            assert!(found == expected, "case {case}: {:?}, expected {:?}", found.err(), expected.err());
            counts[if here { 0 } else { 1 + usize::from(found.is_err()) }] += 1;
        }
        assert!(counts.iter().all(|&count| count > 50), "{counts:?}");
    }

    #[test]
    fn nobody_waits() {
        let bytes = file(&mut Random(4), 2, (300, 300), 256);
        let late = || false;
        let (watch, forever) = (Watch::new(&late, None), Watch::forever());
        assert_eq!(
            decode(&bytes, ColorType::Rgb8, &watch, Scratch::new(&bytes).unwrap(), &mut vec![0; 270_000]),
            None
        );
        let library = library(&bytes, &watch).unwrap();
        let error =
            pixels(Decoder { library, bytes: &bytes, watch: &watch, scratch: Scratch::new(&bytes).unwrap() })
                .unwrap_err();
        assert!(error.contains("nobody waits"), "{error}");
        let library = self::library(&bytes, &forever).unwrap();
        assert!(
            pixels(Decoder {
                library,
                bytes: &bytes,
                watch: &forever,
                scratch: Scratch::new(&bytes).unwrap()
            })
            .is_ok()
        );
    }
}
