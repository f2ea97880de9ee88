//! What the packets of each codec say before FFmpeg decodes them: how large pictures are, which colours are meant,
//! whether what they are made of is there. It must not know FFmpeg.

use super::{COST, H264, MPEG4, VP9};
use crate::cpu::video::budget::Budget;
use crate::cpu::video::decoder::{check_size, damaged};
use crate::cpu::video::nal::{self, Framing, Key, Kind};
use crate::cpu::video::track::{Codec, Track};
use crate::cpu::video::{h264, h264_kept, mpeg4, vp9};
use crate::cpu::yuv::{Color, Matrix};
use crate::error::{Error, Result};

use rust_h264::nal::NalUnitType;

/// Of a unit, beside its bytes: finding it.
const UNIT: usize = 64;

/// Pictures of MPEG-4 that a decoder keeps: those on both sides, the one at work, and some that wait.
const MPEG4_PICTURES: usize = 6;
/// Bytes of a pixel with what is known of it.
const MPEG4_PIXEL: usize = 4;

/// What was learnt of a packet.
pub(super) struct Looked {
    /// What FFmpeg decodes of it, frame by frame, and whether that frame is shown.
    pub(super) frames: Vec<(Vec<u8>, bool)>,
    pub(super) color: Color,
    /// Columns and rows of a picture that takes more memory than the first ones: then nothing of it is decoded.
    pub(super) larger: Option<[usize; 2]>,
}

/// Packets of a codec, one after the other.
pub(super) trait Stream: Send {
    /// FFmpeg's name of the decoder.
    fn name(&self) -> &'static str;

    /// Columns and rows of the largest pictures, as they are decoded.
    fn coded(&self) -> [usize; 2];

    /// Bytes of memory that a decoder takes at most.
    fn needs(&self) -> usize;

    /// Looks at a packet, and pays for what is in it.
    ///
    /// # Errors
    /// One that is damaged, or made of pictures that are not there; more than is left of `budget`.
    fn look(&mut self, packet: &[u8], budget: &Budget<'_>) -> Result<Looked>;

    /// Whether nothing is made of the picture of a packet but itself.
    fn is_spare(&self, _packet: &[u8]) -> bool {
        false
    }
}

/// The stream of `track` with the first packet `first`; `None` where Gesso's own decoder should be used.
///
/// # Errors
/// Parameters that make no sense.
pub(super) fn of(track: &Track, first: &[u8]) -> Result<Option<Box<dyn Stream>>> {
    let config = track.config.clone();
    Ok(match track.codec {
        Codec::H264 => {
            let (_, framing) = h264::configuration(&config)?;
            let shape = h264::shape(&config, first)?;
            // FFmpeg does not tell of what is missing in fields, and leaves out what stands before a key frame.
            if shape.has_fields || !begins_with_key(first, framing) {
                return Ok(None);
            }
            let kept = h264_kept::Kept::default();
            Some(Box::new(OfH264 { kept, framing, color: BT601, first: shape, config }))
        }
        Codec::Vp9 => Some(Box::new(OfVp9 { follower: vp9::Follower::new(first)? })),
        Codec::Mpeg4 => {
            let size = check_size(mpeg4::size(&config, first)?)?;
            let matrix = mpeg4::matrix(&config).map_or(Matrix::BT601, Matrix::numbered);
            let color = Color { matrix, full_range: false };
            Some(Box::new(OfMpeg4 { first: size, config, color }))
        }
        Codec::H265 | Codec::Vp8 | Codec::Av1 | Codec::Mjpeg => None,
    })
}

/// Whether the first slice of a packet of H.264 is one of a picture behind which nothing needs what was before it.
fn begins_with_key(packet: &[u8], framing: Framing) -> bool {
    let key = nal::units(packet, framing).find_map(|unit| match nal::kind(Codec::H264, unit) {
        Kind::Slice { key, .. } => Some(key),
        _ => None,
    });
    key == Some(Key::Closed)
}

const BT601: Color = Color { matrix: Matrix::BT601, full_range: false };

/// Adds a unit behind a start code.
fn push(unit: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(&[0, 0, 1]);
    into.extend_from_slice(unit);
}

struct OfH264 {
    kept: h264_kept::Kept,
    framing: Framing,
    color: Color,
    first: h264_kept::Shape,
    /// What the container holds, until the first packet has come.
    config: Vec<u8>,
}

impl OfH264 {
    /// Looks at a unit, and adds it to what FFmpeg gets. Returns the size of a picture that is too large.
    fn unit(&mut self, bytes: &[u8], into: &mut Vec<u8>, budget: &Budget<'_>) -> Result<Option<[usize; 2]>> {
        budget.look(bytes.len() + UNIT)?;
        let Some(unit) = h264::parsed(bytes) else { return Ok(None) };
        match unit.nal_unit_type {
            NalUnitType::Sps => {
                let info = h264::info(&unit)?;
                let (matrix, full_range) = (Matrix::numbered(info.matrix), info.full_range);
                self.color = Color { matrix, full_range };
                if self.kept.parameters(&unit)?.is_some_and(|shape| shape.has_fields) {
                    return Err(Error::unsupported("H.264 whose pictures become interlaced"));
                }
            }
            NalUnitType::Pps => drop(self.kept.parameters(&unit)?),
            NalUnitType::Slice | NalUnitType::SliceIdr => {
                let Some(slice) = self.kept.look(&unit)? else { return Ok(None) };
                let shape = slice.shape;
                if shape.bytes() > self.first.bytes() {
                    return Ok(Some(shape.size));
                }
                if slice.begins {
                    budget.frame(shape.size, COST.of(shape.size, bytes.len()))?;
                    if self.kept.begin(slice)? > 0 && !shape.has_gaps {
                        return Err(damaged("H.264: a picture is missing before it"));
                    }
                }
            }
            // FFmpeg decodes without the others.
            _ => return Ok(None),
        }
        push(bytes, into);
        Ok(None)
    }
}

impl Stream for OfH264 {
    fn name(&self) -> &'static str {
        H264
    }

    fn coded(&self) -> [usize; 2] {
        self.first.coded
    }

    fn needs(&self) -> usize {
        // Those that others are made from, and as many that wait until their order is known.
        self.first.held(2 * self.first.references + 2, 4)
    }

    fn look(&mut self, packet: &[u8], budget: &Budget<'_>) -> Result<Looked> {
        let (config, mut bytes) = (std::mem::take(&mut self.config), Vec::with_capacity(packet.len() + UNIT));
        let (parameters, _) = h264::configuration(&config)?;
        for unit in parameters.into_iter().chain(nal::units(packet, self.framing)) {
            if let Some(size) = self.unit(unit, &mut bytes, budget)? {
                return Ok(Looked { frames: Vec::new(), color: self.color, larger: Some(size) });
            }
        }
        Ok(Looked { frames: vec![(bytes, true)], color: self.color, larger: None })
    }

    fn is_spare(&self, packet: &[u8]) -> bool {
        h264::is_spare(packet, self.framing)
    }
}

struct OfVp9 {
    follower: vp9::Follower,
}

impl Stream for OfVp9 {
    fn name(&self) -> &'static str {
        VP9
    }

    fn coded(&self) -> [usize; 2] {
        self.follower.first.size
    }

    fn needs(&self) -> usize {
        self.follower.first.held(vp9::SLOTS + vp9::BESIDE, 3)
    }

    fn look(&mut self, packet: &[u8], budget: &Budget<'_>) -> Result<Looked> {
        let (mut frames, mut larger) = (Vec::<(Vec<u8>, bool)>::new(), None);
        for frame in vp9::frames(packet)? {
            let header = self.follower.header(frame)?;
            let size = self.follower.larger(&header);
            if size.is_some() {
                larger = size;
                break;
            }
            self.follower.follow(frame, &header, COST, budget)?;
            if header.show_existing_frame || header.show_frame {
                // Of several layers the last one is meant.
                frames.iter_mut().for_each(|(_, is_shown)| *is_shown = false);
            }
            frames.push((frame.to_vec(), header.show_existing_frame || header.show_frame));
        }
        let full_range = self.follower.full_range;
        Ok(Looked { frames, color: Color { matrix: Matrix::BT601, full_range }, larger })
    }
}

struct OfMpeg4 {
    first: [usize; 2],
    /// What the container holds, until the first packet has come.
    config: Vec<u8>,
    color: Color,
}

impl Stream for OfMpeg4 {
    fn name(&self) -> &'static str {
        MPEG4
    }

    fn coded(&self) -> [usize; 2] {
        self.first
    }

    fn needs(&self) -> usize {
        let [width, height] = self.first.map(|side| side.next_multiple_of(16) + 64);
        width * height * MPEG4_PIXEL * MPEG4_PICTURES
    }

    fn look(&mut self, packet: &[u8], budget: &Budget<'_>) -> Result<Looked> {
        budget.look(packet.len())?;
        let mut bytes = std::mem::take(&mut self.config);
        bytes.extend_from_slice(packet);
        // Parameters may stand before any frame.
        let size = mpeg4::size(&bytes, &[]).unwrap_or(self.first);
        let pixels = |[width, height]: [usize; 2]| width.saturating_mul(height);
        if pixels(size) > pixels(self.first) {
            return Ok(Looked { frames: Vec::new(), color: self.color, larger: Some(size) });
        }
        budget.frame(self.first, COST.of(self.first, packet.len()))?;
        Ok(Looked { frames: vec![(bytes, true)], color: self.color, larger: None })
    }
}
