//! What the tags of a TIFF say of its first image: samples, colours, and where strips or tiles lie. It must not read
//! pixels.

use super::directory::{Directory, Order, Values};
use crate::error::{Error, Result};
use crate::limits;

/// Tags that are read here and elsewhere.
pub(super) mod tag {
    pub(in super::super) const WIDTH: u16 = 256;
    pub(in super::super) const HEIGHT: u16 = 257;
    pub(in super::super) const BITS: u16 = 258;
    pub(in super::super) const COMPRESSION: u16 = 259;
    pub(in super::super) const COLORS: u16 = 262;
    pub(in super::super) const FILL_ORDER: u16 = 266;
    pub(in super::super) const STRIP_OFFSETS: u16 = 273;
    pub(in super::super) const ORIENTATION: u16 = 274;
    pub(in super::super) const SAMPLES: u16 = 277;
    pub(in super::super) const ROWS_PER_STRIP: u16 = 278;
    pub(in super::super) const STRIP_LENGTHS: u16 = 279;
    pub(in super::super) const PLANES: u16 = 284;
    pub(in super::super) const GROUP_3: u16 = 292;
    pub(in super::super) const PREDICTOR: u16 = 317;
    pub(in super::super) const WHITE_POINT: u16 = 318;
    pub(in super::super) const PALETTE: u16 = 320;
    pub(in super::super) const TILE_WIDTH: u16 = 322;
    pub(in super::super) const TILE_HEIGHT: u16 = 323;
    pub(in super::super) const TILE_OFFSETS: u16 = 324;
    pub(in super::super) const TILE_LENGTHS: u16 = 325;
    pub(in super::super) const INK_SET: u16 = 332;
    pub(in super::super) const FORMAT: u16 = 339;
    pub(in super::super) const JPEG_TABLES: u16 = 347;
    pub(in super::super) const PROFILE: u16 = 34_675;
    pub(in super::super) const LUMA: u16 = 529;
    pub(in super::super) const SUBSAMPLING: u16 = 530;
    pub(in super::super) const BLACK_AND_WHITE: u16 = 532;
}

/// Values of [`tag::COMPRESSION`].
pub(super) mod compression {
    pub(in super::super) const NONE: u16 = 1;
    pub(in super::super) const RUNS: u16 = 2;
    pub(in super::super) const GROUP_3: u16 = 3;
    pub(in super::super) const GROUP_4: u16 = 4;
    pub(in super::super) const LZW: u16 = 5;
    pub(in super::super) const OLD_JPEG: u16 = 6;
    pub(in super::super) const JPEG: u16 = 7;
    pub(in super::super) const DEFLATE: u16 = 8;
    pub(in super::super) const RUNS_OF_WORDS: u16 = 32_771;
    pub(in super::super) const PACK_BITS: u16 = 32_773;
    pub(in super::super) const OLD_DEFLATE: u16 = 32_946;
    pub(in super::super) const JPEG_2000: u16 = 34_712;
    pub(in super::super) const APERIO_JPEG_2000: u16 = 33_005;
    pub(in super::super) const PNG: u16 = 34_933;
    pub(in super::super) const ZSTD: u16 = 50_000;
    pub(in super::super) const WEBP: u16 = 50_001;
    pub(in super::super) const JPEG_XL: u16 = 50_002;
    pub(in super::super) const DNG_JPEG_XL: u16 = 52_546;
}

/// The most samples of a pixel. Stops a header from making rows of gigabytes.
const MAX_SAMPLES: usize = 64;

/// What samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Unsigned,
    Float,
}

/// What the samples of a pixel mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colors {
    WhiteIsZero,
    Gray,
    Rgb,
    Palette,
    Inks,
    YCbCr,
    CieLab,
    IccLab,
}

impl Colors {
    /// How many samples of a pixel have its colour.
    fn needed(self) -> usize {
        match self {
            Colors::WhiteIsZero | Colors::Gray | Colors::Palette => 1,
            Colors::Rgb | Colors::YCbCr | Colors::CieLab | Colors::IccLab => 3,
            Colors::Inks => 4,
        }
    }
}

/// The first image of a file.
pub(super) struct Layout<'a> {
    pub(super) directory: Directory<'a>,
    pub(super) width: usize,
    pub(super) height: usize,
    /// Samples of a pixel, and bits of each.
    pub(super) samples: usize,
    pub(super) bits: usize,
    pub(super) format: Format,
    pub(super) colors: Colors,
    /// Whether each sample has a plane of its own.
    pub(super) planar: bool,
    pub(super) compression: u16,
    /// Pixels that share a sample of chroma, across and down.
    pub(super) subsampling: [usize; 2],
}

impl<'a> Layout<'a> {
    /// # Errors
    /// Tags that are missing, damaged, or say what is not known.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        let directory = Directory::read(bytes)?;
        let number = |tag: u16, usual: u16| {
            let found = directory.number(tag)?.unwrap_or(usual.into());
            usize::try_from(found).map_err(|_| Error::invalid(format!("damaged: {found} for tag {tag}")))
        };
        let side = |tag: u16| {
            let found = directory.number(tag)?;
            found.and_then(|found| usize::try_from(found).ok()).ok_or_else(|| {
                Error::invalid(format!("damaged header: no number for tag {tag}, a side of the image"))
            })
        };
        let (width, height) = (side(tag::WIDTH)?, side(tag::HEIGHT)?);
        let compression = number(tag::COMPRESSION, 1)?.try_into().unwrap_or(u16::MAX);
        // As libtiff does: old-style JPEGs are of luma and chroma of 8 bits where nothing else is said.
        let (usual_samples, usual_bits) = match (compression, directory.number(tag::COLORS)?) {
            (compression::OLD_JPEG, Some(0 | 1)) => (1, 8),
            (compression::OLD_JPEG, _) => (3, 8),
            _ => (1, 1),
        };
        let samples = number(tag::SAMPLES, usual_samples)?;
        if !(1..=MAX_SAMPLES).contains(&samples) {
            let text = format!("{samples} samples a pixel, expected 1 to {MAX_SAMPLES}");
            return Err(Error::unsupported(text));
        }
        let bits = same(&directory, tag::BITS, samples, usual_bits)?;
        let format = match same(&directory, tag::FORMAT, samples, 1)? {
            1 | 4 => Format::Unsigned,
            3 => Format::Float,
            other => {
                let kind = match other {
                    2 => "signed",
                    5 | 6 => "complex",
                    _ => "unknown",
                };
                let text = format!("samples of format {other} ({kind}), expected unsigned or floating point");
                return Err(Error::unsupported(text));
            }
        };
        let fits = match format {
            Format::Unsigned => (1..=16).contains(&bits),
            Format::Float => matches!(bits, 16 | 32 | 64),
        };
        if !fits {
            return Err(Error::unsupported(format!(
                "samples of {bits} bits in this format, expected unsigned 1 to 16 bits or floating point of 16, 32 or 64"
            )));
        }
        let colors = colors(&directory, samples, compression)?;
        if samples < colors.needed() {
            let text = format!("damaged: {samples} samples for colours of {}, {colors:?}", colors.needed());
            return Err(Error::invalid(text));
        }
        let planar = match number(tag::PLANES, 1)? {
            1 => false,
            2 => samples > 1,
            other => return Err(Error::invalid(format!("damaged: planar configuration {other}"))),
        };
        let subsampling = match directory.values(tag::SUBSAMPLING)? {
            _ if colors != Colors::YCbCr => [1, 1],
            // Where nothing is said it is 2.
            found => [0, 1].map(|i| {
                let number = found.as_ref().map_or(Some(2), |found| found.number(i)).unwrap_or(0);
                usize::try_from(number).unwrap_or(0)
            }),
        };
        if subsampling.iter().any(|side| !matches!(side, 1 | 2 | 4)) {
            return Err(Error::invalid(format!("damaged: chroma for {subsampling:?} pixels")));
        }
        Ok(Self { directory, width, height, samples, bits, format, colors, planar, compression, subsampling })
    }

    /// Channels of the file, as [`super::super::ImageInfo`] has them.
    pub(super) fn channels(&self) -> usize {
        match self.colors {
            Colors::Palette | Colors::YCbCr | Colors::CieLab | Colors::IccLab => 3,
            Colors::Inks => 4,
            Colors::WhiteIsZero | Colors::Gray | Colors::Rgb => self.samples,
        }
    }

    /// How many samples of a pixel are decoded: pictures have four at most.
    pub(super) fn kept(&self) -> usize {
        match self.colors {
            Colors::Palette => 1,
            _ => self.samples.min(4),
        }
    }

    /// Strips or tiles.
    ///
    /// # Errors
    /// When it is not told where they lie, or they have no size.
    pub(super) fn chunks(&self) -> Result<Chunks<'a>> {
        let values = |tag: u16| self.directory.values(tag);
        let number = |tag: u16| self.directory.number(tag);
        let side = |number: u64| usize::try_from(number).ok().filter(|&side| side > 0);
        let is_tiled = number(tag::TILE_WIDTH)?.is_some() || number(tag::TILE_HEIGHT)?.is_some();
        let (width, height) = if is_tiled {
            let side = |number: Option<u64>| number.and_then(side);
            match (side(number(tag::TILE_WIDTH)?), side(number(tag::TILE_HEIGHT)?)) {
                (Some(width), Some(height)) => (width, height),
                _ => return Err(Error::invalid("damaged: tiles without a size")),
            }
        } else {
            let rows = number(tag::ROWS_PER_STRIP)?.and_then(side).unwrap_or(usize::MAX);
            (self.width, rows.min(self.height))
        };
        // Some writers use the tags of strips for tiles.
        let either = |tiles: u16, strips: u16| {
            let [first, second] = if is_tiled { [tiles, strips] } else { [strips, tiles] };
            Ok::<_, Error>(values(first)?.or(values(second)?))
        };
        let kind = if is_tiled { "tile" } else { "strip" };
        let offsets = either(tag::TILE_OFFSETS, tag::STRIP_OFFSETS)?
            .ok_or_else(|| Error::invalid(format!("damaged: it is not told where a {kind} lies")))?;
        let lengths = either(tag::TILE_LENGTHS, tag::STRIP_LENGTHS)?;
        let counts = [self.width.div_ceil(width), self.height.div_ceil(height)];
        Ok(Chunks { file: self.directory.bytes, is_tiled, width, height, counts, offsets, lengths })
    }
}

/// The one number that each of the first `samples` values of a tag has.
fn same(directory: &Directory<'_>, tag: u16, samples: usize, usual: u64) -> Result<usize> {
    let Some(values) = directory.values(tag)? else { return Ok(usual as usize) };
    let all: Vec<_> = (0..values.len().min(samples)).map_while(|i| values.number(i)).collect();
    match all[..] {
        [first, ref rest @ ..] if rest.iter().all(|other| *other == first) => {
            Ok(usize::try_from(first).unwrap_or(usize::MAX))
        }
        _ => Err(Error::unsupported(format!("samples that differ: {all:?} for tag {tag}"))),
    }
}

fn colors(directory: &Directory<'_>, samples: usize, by: u16) -> Result<Colors> {
    use compression::{GROUP_3, GROUP_4, OLD_JPEG, RUNS, RUNS_OF_WORDS};
    Ok(match directory.number(tag::COLORS)? {
        Some(0) => Colors::WhiteIsZero,
        Some(1) => Colors::Gray,
        // As libtiff has it: old-style JPEGs are never of red, green and blue, whatever they say.
        Some(2) | None if by == OLD_JPEG && samples == 3 => Colors::YCbCr,
        Some(2) => Colors::Rgb,
        Some(3) => Colors::Palette,
        Some(5) => match directory.number(tag::INK_SET)?.unwrap_or(1) {
            1 => Colors::Inks,
            _ => return Err(Error::unsupported("inks other than cyan, magenta, yellow and black")),
        },
        Some(6) => Colors::YCbCr,
        Some(8) => Colors::CieLab,
        Some(9) => Colors::IccLab,
        // As libtiff does: a file that does not say it.
        None if matches!(by, RUNS | GROUP_3 | GROUP_4 | RUNS_OF_WORDS) => Colors::WhiteIsZero,
        None if samples < 3 => Colors::Gray,
        None => Colors::Rgb,
        Some(other) => {
            return Err(Error::unsupported(format!(
                "colours of photometric interpretation {other}, expected one of 0, 1, 2, 3, 5, 6, 8, 9"
            )));
        }
    })
}

/// Where strips or tiles lie.
pub(super) struct Chunks<'a> {
    file: &'a [u8],
    pub(super) is_tiled: bool,
    /// Columns and rows of each.
    pub(super) width: usize,
    pub(super) height: usize,
    /// How many there are in a plane, across and down.
    pub(super) counts: [usize; 2],
    offsets: Values<'a>,
    lengths: Option<Values<'a>>,
}

impl<'a> Chunks<'a> {
    /// Where number `index` begins, if that is told.
    pub(super) fn start(&self, index: usize) -> Option<usize> {
        self.offsets.number(index).and_then(|start| usize::try_from(start).ok())
    }

    /// The bytes of number `index`, of which uncompressed ones are so many. Where their length is not told, or cannot
    /// be, compressed ones go on to the end of the file.
    ///
    /// # Errors
    /// When it lies outside.
    pub(super) fn bytes(&self, index: usize, uncompressed: Option<usize>) -> Result<&'a [u8]> {
        let kind = if self.is_tiled { "tile" } else { "strip" };
        let rest = self.start(index).filter(|&start| start > 0).and_then(|start| self.file.get(start..));
        let rest = rest.ok_or_else(|| {
            Error::invalid(format!("truncated: the input ends before {kind} {index} of the image does"))
        })?;
        let told = self.lengths.and_then(|lengths| lengths.number(index)).unwrap_or(0);
        let told = usize::try_from(told).unwrap_or(usize::MAX);
        let length = match uncompressed {
            // What a single strip needs is known better than what it says.
            Some(needed) if told == 0 || self.offsets.len() == 1 => needed,
            None if told == 0 => rest.len(),
            _ => told,
        };
        Ok(&rest[..length.min(rest.len())])
    }

    /// # Errors
    /// When a chunk is larger than memory for it may be, and than the image.
    pub(super) fn check_size(&self, layout: &Layout<'_>, bytes_of_sample: usize) -> Result<()> {
        let of = |width: usize, height: usize| {
            width.saturating_mul(height).saturating_mul(layout.samples).saturating_mul(bytes_of_sample)
        };
        let allowed = of(layout.width, layout.height).max(limits::MAX_DECODER_SCRATCH_BYTES);
        if of(self.width, self.height.min(layout.height)) > allowed {
            return Err(Error::invalid(format!(
                "tiles of {} x {} pixels take more memory than the limit of {} bytes",
                self.width,
                self.height,
                limits::MAX_DECODER_SCRATCH_BYTES
            )));
        }
        Ok(())
    }
}

/// The order of bits in a byte, and how samples were made differences, for the codecs that know of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coding {
    /// Whether the first bit of a byte is its lowest.
    pub(super) reversed: bool,
    pub(super) predictor: u64,
    pub(super) order: Order,
}

impl Coding {
    /// # Errors
    /// Tags that are damaged.
    pub(super) fn read(layout: &Layout<'_>) -> Result<Self> {
        let directory = &layout.directory;
        // libtiff takes the tag for nothing where codes have no differences.
        let differs = matches!(
            layout.compression,
            compression::LZW | compression::DEFLATE | compression::OLD_DEFLATE | compression::ZSTD
        );
        let predictor = if differs { directory.number(tag::PREDICTOR)?.unwrap_or(1) } else { 1 };
        let reversed = match directory.number(tag::FILL_ORDER)? {
            None | Some(1) => false,
            Some(2) => true,
            Some(other) => {
                return Err(Error::invalid(format!("damaged: fill order {other}, expected 1 or 2")));
            }
        };
        Ok(Self { reversed, predictor, order: directory.order })
    }
}
