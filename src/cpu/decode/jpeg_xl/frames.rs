//! Frames of a JPEG XL that are not shown, and what decoding them takes: other frames are made of them, and the crate
//! decodes them without a word. Their headers are read here as the crate asks for them. It must not know the crate.
//!
//! A frame's header begins at a whole byte, behind what the frame before it told of; it is read as far as its size, and
//! where it is kept (ISO/IEC 18181-1, annex C.1).

use std::io::{Error, Result};

use crate::deadline::Watch;

/// Pixels of frames that are not shown which a small picture may have, too: what repeats in it lies in a frame of its
/// own.
pub(super) const SPARE_PIXELS: u64 = 1 << 18;

/// Of the picture's pixels, halves that may be kept of frames for others.
pub(super) const KEPT_HALVES: u64 = 3;

/// Of the picture's pixels, times that frames may have them before the first one that is shown: those that are layers
/// of it.
const LAYERS: u64 = 16;

/// Pixels that a frame counts as, at least.
const LEAST_PIXELS: u64 = 1 << 10;

/// Bytes of a frame's header that are looked at: the longest is shorter but for its name.
const HEADER_BYTES: usize = 1 << 10;

/// Frames that can be kept.
const PLACES: usize = 4;

/// What a picture's own header says of those of its frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Picture {
    pub(super) size: [u64; 2],
    /// Whether colours are those of the codec.
    pub(super) xyb: bool,
    pub(super) extra_channels: usize,
    pub(super) animated: bool,
    /// Whether frames have codes of the time.
    pub(super) timed: bool,
}

/// What a frame's header says.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Frame {
    pixels: u64,
    /// Where it is kept for others.
    kept: Option<usize>,
    /// Whether no frame follows.
    is_last: bool,
}

/// A codestream, handed out byte by byte where headers are, so that a frame's can be found.
pub(super) struct Input<'a> {
    rest: &'a [u8],
    watch: Option<&'a Watch<'a>>,
    picture: Option<Picture>,
    /// Bytes of the header at hand.
    header: Vec<u8>,
    /// Whether a header's bytes were handed out last; else sections of pixels.
    in_header: bool,
    /// Whether it was asked how many bytes of sections there are, which are read next.
    in_sections: bool,
    /// Whether a byte was handed out, and it is asked whether there are more.
    gave: bool,
    /// Whether the first frame is looked at, and not decoded; and what it is.
    looks: bool,
    first: Option<Frame>,
    pixels: u64,
    kept: [u64; PLACES],
    refused: Option<String>,
}

impl<'a> Input<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self {
            rest,
            watch: None,
            picture: None,
            header: Vec::new(),
            in_header: true,
            in_sections: false,
            gave: false,
            looks: false,
            first: None,
            pixels: 0,
            kept: [0; PLACES],
            refused: None,
        }
    }

    /// The picture's header was read: frames follow, which are looked at, for as long as somebody waits.
    pub(super) fn frames_follow(&mut self, picture: Picture, watch: &'a Watch<'a>) {
        self.picture = Some(picture);
        self.watch = Some(watch);
        self.header.clear();
        self.in_header = true;
    }

    /// The picture's header was read: the next frame's header is looked at, and what follows is an error.
    pub(super) fn look_at_frame(&mut self, picture: Picture) {
        self.picture = Some(picture);
        self.looks = true;
        self.header.clear();
    }

    /// Whether that frame is the only one.
    pub(super) fn is_alone(&self) -> bool {
        self.first.is_some_and(|frame| frame.is_last)
    }

    /// Bytes that were not handed out.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Why it does not go on, if frames are the reason.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// The next bytes of a header: one, and none when it is asked at once for more.
    pub(super) fn some(&mut self, to: &mut [u8]) -> Result<usize> {
        if !self.in_header {
            self.header.clear();
            self.in_header = true;
            self.gave = false;
        }
        self.go_on()?;
        self.gave = !self.gave;
        if !self.gave {
            return Ok(0);
        }
        let (Some((&byte, rest)), Some(to)) = (self.rest.split_first(), to.first_mut()) else {
            self.gave = false;
            return Ok(0);
        };
        *to = byte;
        self.rest = rest;
        if self.header.len() < HEADER_BYTES {
            self.header.push(byte);
        }
        Ok(1)
    }

    /// Sections of pixels are about to be read: the header in front of them was whole. Returns how many bytes there may
    /// be of them.
    pub(super) fn begin_sections(&mut self) -> Result<usize> {
        if std::mem::take(&mut self.in_header)
            && let Some(picture) = self.picture
        {
            self.add(picture, Frame::read(&self.header, picture));
        }
        if self.looks {
            return Err(Error::other("the frame was looked at"));
        }
        self.go_on()?;
        self.in_sections = true;
        Ok(self.rest.len())
    }

    /// Whether bytes of sections are read now, and no header.
    pub(super) fn reads_sections(&mut self) -> bool {
        std::mem::take(&mut self.in_sections)
    }

    /// Leaves out bytes of sections.
    pub(super) fn skip(&mut self, count: usize) -> usize {
        let count = count.min(self.rest.len());
        self.rest = &self.rest[count..];
        self.in_header = false;
        count
    }

    /// The next bytes of a section.
    pub(super) fn section(&mut self, to: &mut [u8]) -> Result<usize> {
        self.go_on()?;
        let count = to.len().min(self.rest.len());
        let (now, rest) = self.rest.split_at(count);
        to[..count].copy_from_slice(now);
        self.rest = rest;
        Ok(count)
    }

    fn go_on(&self) -> Result<()> {
        if let Some(why) = &self.refused {
            return Err(Error::other(why.clone()));
        }
        match self.watch {
            Some(watch) => watch.check().map_err(|error| Error::other(error.to_string())),
            None => Ok(()),
        }
    }

    fn add(&mut self, picture: Picture, frame: Option<Frame>) {
        let [width, height] = picture.size;
        let own = width.saturating_mul(height);
        // What is not understood may be as large as the picture.
        let frame = frame.unwrap_or(Frame { pixels: own, kept: None, is_last: false });
        self.first.get_or_insert(frame);
        let pixels = frame.pixels.max(LEAST_PIXELS);
        self.pixels = self.pixels.saturating_add(pixels);
        if let Some(place) = frame.kept.and_then(|place| self.kept.get_mut(place)) {
            *place = pixels;
        }
        let kept: u64 = self.kept.iter().fold(0, |all, &one| all.saturating_add(one));
        let most_kept = own.saturating_mul(KEPT_HALVES) / 2 + SPARE_PIXELS;
        let most = own.saturating_mul(LAYERS).saturating_add(SPARE_PIXELS);
        if kept > most_kept {
            self.refused = Some(format!(
                "{kept} pixels of frames are kept for others, more than the limit of {most_kept}"
            ));
        } else if self.pixels > most {
            self.refused = Some(format!(
                "frames up to the first that is shown have {} pixels, more than the limit of {most}",
                self.pixels
            ));
        }
    }
}

/// Bits of a header, the lowest of each byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn read(&mut self, count: usize) -> Option<u64> {
        let mut value = 0;
        for place in 0..count {
            let byte = self.bytes.get(self.at / 8)?;
            value |= u64::from(byte >> (self.at % 8) & 1) << place;
            self.at += 1;
        }
        Some(value)
    }

    fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count);
    }

    fn flag(&mut self) -> Option<bool> {
        self.read(1).map(|bit| bit == 1)
    }

    /// A number of one of four kinds: so many bits, above so much.
    fn kind(&mut self, kinds: [(usize, u64); 4]) -> Option<u64> {
        let (bits, above) = kinds[self.read(2)? as usize];
        Some(self.read(bits)? + above)
    }

    fn long(&mut self) -> Option<u64> {
        match self.read(2)? {
            0 => Some(0),
            1 => Some(1 + self.read(4)?),
            2 => Some(17 + self.read(8)?),
            _ => {
                let (mut value, mut shift) = (self.read(12)?, 12);
                while self.flag()? {
                    if shift == 60 {
                        return Some(value | self.read(4)? << shift);
                    }
                    value |= self.read(8)? << shift;
                    shift += 8;
                }
                Some(value)
            }
        }
    }
}

/// Kinds of frames.
const LOW: u64 = 1;
const ONLY_KEPT: u64 = 2;
/// Flag of a frame whose smallest image is another frame.
const HAS_LOW: u64 = 32;

const SIDE: [(usize, u64); 4] = [(8, 0), (11, 256), (14, 2_304), (30, 18_688)];
const SMALL: [(usize, u64); 4] = [(0, 0), (0, 1), (0, 2), (3, 0)];

impl Frame {
    /// Reads the header at the front of `bytes`; `None` where it is cut off.
    fn read(bytes: &[u8], picture: Picture) -> Option<Self> {
        let bits = &mut Bits { bytes, at: 0 };
        let [width, height] = picture.size;
        if bits.flag()? {
            return Some(Self { pixels: width.saturating_mul(height), kept: None, is_last: true });
        }
        let (kind, modular, flags) = (bits.read(2)?, bits.flag()?, bits.long()?);
        let transformed = !picture.xyb && bits.flag()?;
        if flags & HAS_LOW == 0 {
            bits.skip(if transformed { 6 } else { 0 });
            bits.skip(2 + 2 * picture.extra_channels);
        }
        let groups_or_scales = match (modular, picture.xyb) {
            (true, _) => 2,
            (false, true) => 6,
            (false, false) => 0,
        };
        bits.skip(groups_or_scales);
        if kind != ONLY_KEPT {
            skip_passes(bits)?;
        }
        let level = if kind == LOW { bits.read(2)? + 1 } else { 0 };
        let cut = kind != LOW && bits.flag()?;
        let mut corner = [0; 2];
        if cut && kind != ONLY_KEPT {
            corner = [bits.kind(SIDE)?, bits.kind(SIDE)?];
        }
        let mut size = if cut { [bits.kind(SIDE)?, bits.kind(SIDE)?] } else { [width, height] };
        for (side, whole) in size.iter_mut().zip(picture.size) {
            *side = if *side == 0 { whole } else { *side };
        }
        let is_whole = !cut || covers(corner, size, picture.size);
        let halved = size.map(|side| side.div_ceil(1 << (3 * level)));
        let pixels = halved[0].saturating_mul(halved[1]);
        let is_shown = kind != LOW && kind != ONLY_KEPT;
        let (mut duration, mut is_last) = (0, false);
        if is_shown {
            for _ in 0..=picture.extra_channels {
                skip_blending(bits, picture.extra_channels, is_whole)?;
            }
            if picture.animated {
                duration = bits.kind([(0, 0), (0, 1), (8, 0), (32, 0)])?;
                bits.skip(if picture.timed { 32 } else { 0 });
            }
            is_last = bits.flag()?;
        }
        let may_be_kept = kind != LOW && !is_last;
        let place = if may_be_kept { bits.read(2)? as usize } else { 0 };
        let kept = (may_be_kept && (duration == 0 || place != 0)).then_some(place);
        Some(Self { pixels, kept, is_last })
    }
}

/// Whether a frame covers the picture. Corners are numbers with a sign, which is their lowest bit.
fn covers(corner: [u64; 2], size: [u64; 2], whole: [u64; 2]) -> bool {
    let signed =
        |number: u64| if number & 1 == 0 { (number / 2) as i64 } else { -(number.div_ceil(2) as i64) };
    (0..2).all(|axis| {
        let corner = signed(corner[axis]);
        corner <= 0 && corner + size[axis] as i64 >= whole[axis] as i64
    })
}

fn skip_passes(bits: &mut Bits<'_>) -> Option<()> {
    let passes = bits.kind([(0, 1), (0, 2), (0, 3), (3, 4)])?;
    if passes == 1 {
        return Some(());
    }
    let reduced = bits.kind([(0, 0), (0, 1), (0, 2), (1, 3)])?;
    bits.skip(2 * (passes as usize - 1) + 2 * reduced as usize);
    for _ in 0..reduced {
        bits.kind(SMALL)?;
    }
    Some(())
}

fn skip_blending(bits: &mut Bits<'_>, extra_channels: usize, is_whole: bool) -> Option<()> {
    const REPLACE: u64 = 0;
    const BLEND: [u64; 2] = [2, 3];
    const MULTIPLY: u64 = 4;
    let mode = bits.kind([(0, 0), (0, 1), (0, 2), (2, 3)])?;
    let by_alpha = extra_channels > 0 && BLEND.contains(&mode);
    if by_alpha {
        bits.kind([(0, 0), (0, 1), (0, 2), (3, 3)])?;
    }
    if by_alpha || mode == MULTIPLY {
        bits.flag()?;
    }
    if !(is_whole && mode == REPLACE) {
        bits.read(2)?;
    }
    Some(())
}
