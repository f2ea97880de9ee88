//! A video that comes in pieces: frames are decoded as soon as their bytes are there, from the first to the last. No
//! more bytes are kept than those of the frame or table that is not there as a whole. It must not know who brings them.
//!
//! ```text
//! push(piece) --> waiting bytes --> Container --> packets --> VideoDecoder --> Picture --> write
//!                                   passes what it has read
//! ```
//!
//! What needs the end of a file first, such as an MP4 whose index stands behind its frames, does not come in pieces.

use std::collections::VecDeque;
use std::ops::Range;

use super::container::{Container, Found};
use super::decoder::{Picture, VideoDecoder};
use super::track::{Packet, Track};
use super::{Budget, Frame, avi, codec, matroska, mp4, mp4_pieces, raw, raw_pieces};
use crate::cpu::formats::Formats;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::limits;
use crate::memory::copy_once;

/// Bytes that are looked at to tell which container it is: an Annex B stream shows by its first unit.
const HEAD: usize = 64;

/// Packets whose pictures are not shown and did not come yet; some never do.
const MOST_HIDDEN: usize = 1_024;

/// Of looking at what comes next.
const LOOK: usize = 64;

/// Bytes that came and were not used.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// How many of them were used.
    used: usize,
    /// How many came before them.
    before: u64,
    /// How many of those to come are of no account.
    passed: usize,
    is_last: bool,
}

impl Waiting {
    fn push(&mut self, piece: &[u8]) -> Result<()> {
        let passed = self.passed.min(piece.len());
        self.passed -= passed;
        self.before = self.before.saturating_add(passed as u64);
        let piece = piece.get(passed..).unwrap_or_default();
        self.let_go();
        let end = self.bytes.len();
        self.bytes.try_reserve(piece.len()).map_err(|_| {
            let text = format!("no memory for {} bytes of a video, beside {end} that wait", piece.len());
            Error::new(ErrorKind::Unavailable, text)
        })?;
        self.bytes.resize(end + piece.len(), 0);
        // Somebody may write to the original while the copy is read.
        copy_once(piece, self.bytes.get_mut(end..).unwrap_or_default());
        Ok(())
    }

    /// Frees what was used.
    fn let_go(&mut self) {
        self.bytes.drain(..self.used);
        self.used = 0;
        // Room to grow: a frame may come in many pieces.
        self.bytes.shrink_to(2 * self.bytes.len());
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.used..).unwrap_or_default()
    }

    fn pass(&mut self, count: usize) {
        let here = count.min(self.rest().len());
        self.used += here;
        self.before = self.before.saturating_add(here as u64);
        self.passed = count - here;
    }
}

/// A decoder at work, from the first packet on.
struct Stage {
    decoder: Box<dyn VideoDecoder>,
    marks: codec::Marks,
    size: [usize; 2],
    timed: bool,
    edits: Vec<Range<i64>>,
    /// When the first frame is shown.
    first: i64,
    /// Key frames that came.
    keys: usize,
    /// Packets that came.
    packets: usize,
    /// Packets that an edit list does not show.
    hidden: VecDeque<usize>,
    is_finished: bool,
}

impl Stage {
    fn new(track: &Track, first: i64, packet: &[u8], budget: &Budget<'_>) -> Result<Self> {
        let size = codec::picture_size(track, packet).context(|| "video".to_owned())?;
        Ok(Self {
            decoder: codec::decoder(track, packet, budget)?,
            marks: codec::Marks::new(track)?,
            size,
            timed: track.timed,
            edits: track.edits.clone(),
            first,
            keys: 0,
            packets: 0,
            hidden: VecDeque::new(),
            is_finished: false,
        })
    }

    fn send(&mut self, mut packet: Packet, bytes: &[u8], budget: &Budget<'_>) -> Result<()> {
        let place = self.packets;
        self.packets += 1;
        self.marks.set(&mut packet, bytes);
        self.keys += usize::from(packet.key || place == 0);
        // It is shown before the first frame, and perhaps made of frames before that.
        if self.timed && self.keys == 1 && packet.time < self.first {
            return Ok(());
        }
        budget.look(size_of_val(&packet))?;
        if !self.is_shown(packet.time) {
            self.hidden.push_back(place);
            if self.hidden.len() > MOST_HIDDEN {
                self.hidden.pop_front();
            }
        }
        self.decoder.send(bytes, place, budget).context(|| format!("packet {place} of the video"))
    }

    /// Whether an edit shows what has this time. They are in order.
    fn is_shown(&self, time: i64) -> bool {
        let edit = self.edits.partition_point(|edit| edit.end <= time);
        self.edits.is_empty() || self.edits.get(edit).is_some_and(|edit| edit.contains(&time))
    }

    /// The next picture that is shown, if there is one yet.
    fn next(&mut self) -> Option<Box<dyn Picture>> {
        loop {
            let picture = self.decoder.next()?;
            match self.hidden.iter().position(|&hidden| self.timed && hidden == picture.place()) {
                Some(found) => drop(self.hidden.remove(found)),
                None => return Some(picture),
            }
        }
    }
}

/// A video of which not all came.
#[derive(Default)]
pub struct Growing {
    waiting: Waiting,
    container: Option<Box<dyn Container>>,
    stage: Option<Stage>,
    picture: Option<Box<dyn Picture>>,
    formats: Formats,
}

impl Growing {
    /// A video of one of `formats`.
    pub fn of(formats: Formats) -> Self {
        Self { formats, ..Self::default() }
    }

    /// Takes the next bytes, and copies them. Nothing follows the `is_last` ones.
    ///
    /// # Errors
    /// When something follows them after all; unavailable, when there is no memory.
    pub fn push(&mut self, piece: &[u8], is_last: bool) -> Result<()> {
        if self.waiting.is_last {
            return Err(Error::invalid("a piece of a video behind its last one"));
        }
        self.waiting.push(piece)?;
        self.waiting.is_last = is_last;
        Ok(())
    }

    /// Decodes until there is a frame to [write](Growing::write); `false` when more bytes are needed for one, or there
    /// are no more.
    ///
    /// # Errors
    /// Bytes that are damaged, of an unknown or unsupported kind, or do not come in pieces; more on the way than is
    /// left of `budget`. Nothing comes behind an error.
    pub fn prepare(&mut self, budget: &Budget<'_>) -> Result<bool> {
        while self.picture.is_none() {
            self.picture = self.stage.as_mut().and_then(Stage::next);
            if self.picture.is_some() || self.is_over() {
                break;
            }
            if self.advance(budget)? {
                continue;
            }
            if !self.waiting.is_last {
                break;
            }
            let stage =
                self.stage.as_mut().ok_or_else(|| Error::invalid("video: a video without a frame"))?;
            stage.is_finished = true;
            stage.decoder.finish()?;
        }
        if self.picture.is_none() {
            self.waiting.let_go();
        }
        Ok(self.picture.is_some())
    }

    /// Bytes of memory that it takes until more bytes come.
    pub fn held(&self) -> usize {
        let track = self.container.as_ref().and_then(|container| container.track());
        // The stage and its decoder have some of the track once more.
        let track = 2 * track.map_or(0, Track::held);
        self.waiting.bytes.capacity() + track + self.decoder_held()
    }

    /// Those of its decoder, which a budget counts while it is at work.
    pub fn decoder_held(&self) -> usize {
        self.stage.as_ref().map_or(0, |stage| stage.decoder.held())
    }

    /// Whether all bytes came, and no frame is to be had of them any more.
    pub fn is_over(&self) -> bool {
        self.picture.is_none() && self.stage.as_ref().is_some_and(|stage| stage.is_finished)
    }

    /// Columns and rows of every frame, once one was prepared.
    pub fn size(&self) -> [usize; 2] {
        self.stage.as_ref().map_or([0; 2], |stage| stage.size)
    }

    /// Writes the frame that was prepared: RGB, in rows without gaps.
    ///
    /// # Errors
    /// A frame that is damaged, or of another size.
    pub fn write(&mut self, budget: &Budget<'_>, out: &mut [u8]) -> Result<()> {
        let picture = self.picture.take().ok_or_else(|| Error::internal("no frame was prepared"))?;
        Frame::new(picture.as_ref(), self.size(), budget.watch()).write(out)
    }

    /// Looks at what comes next; `false` when that is not there as a whole.
    fn advance(&mut self, budget: &Budget<'_>) -> Result<bool> {
        budget.look(LOOK)?;
        let Self { waiting, container, stage, formats, .. } = self;
        if waiting.passed > 0 {
            return Ok(false);
        }
        let (rest, is_last) = (waiting.rest(), waiting.is_last);
        let container = match container {
            Some(container) => container,
            None if rest.len() < HEAD && !is_last => return Ok(false),
            None => container.insert(container_of(rest)?),
        };
        let found = container.look(rest, waiting.before, is_last).context(|| "video".to_owned())?;
        let passed = match found {
            Found::Cut if rest.len() > limits::MAX_VIDEO_PIECE => {
                return Err(Error::invalid(format!(
                    "video: a frame or table of more than {} bytes in a video that comes in pieces",
                    limits::MAX_VIDEO_PIECE
                )));
            }
            Found::Cut => return Ok(false),
            Found::Nothing(passed) => passed,
            Found::Packets(packets, passed) => {
                let track = container.track().ok_or_else(|| Error::internal("packets of no track"))?;
                formats.check(codec::format(track.codec)).context(|| "video".to_owned())?;
                for packet in packets {
                    let bytes = packet.of(rest);
                    let stage = match stage {
                        Some(stage) => stage,
                        None => stage.insert(Stage::new(track, packet.time, bytes, budget)?),
                    };
                    stage.send(packet, bytes, budget)?;
                }
                passed
            }
        };
        waiting.pass(passed);
        Ok(true)
    }
}

/// What takes a video apart that begins so.
fn container_of(head: &[u8]) -> Result<Box<dyn Container>> {
    if mp4::is_mp4(head) {
        return Ok(Box::new(mp4_pieces::Pieces::default()));
    }
    if matroska::is_matroska(head) {
        return Ok(Box::new(matroska::Pieces::default()));
    }
    if raw::is_ivf(head) {
        return Ok(Box::new(raw_pieces::Ivf::default()));
    }
    if let Some(codec) = raw::annex_b_codec(head) {
        return Ok(Box::new(raw_pieces::AnnexB::new(codec)));
    }
    if avi::is_avi(head) {
        return Err(Error::unsupported("AVI does not come in pieces: send the whole file in one request"));
    }
    if head.is_empty() {
        return Err(Error::invalid("a video of no bytes"));
    }
    Err(Error::invalid(
        "not a video of a kind that comes in pieces: expected Annex B, Matroska, WebM, IVF or MP4 with its index in front",
    ))
}
