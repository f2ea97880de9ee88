//! Video at work: its packets go to the engines when somebody asks for more, and what they show goes where the
//! video wants it. What was begun stays between two questions. It must not know where packets come from.

use std::ffi::c_int;
use std::sync::Arc;

use super::coded_video::{CodedVideo, Factors, Signal};
use super::convert::{self, Window};
use super::decoder::{HALVED_CHROMA, Shape, WHOLE_CHROMA};
use super::engines::{Engines, Loan};
use super::padded;
use super::parser::{Events, Parser};
use super::sys::{DisplayInfo, PictureParams, Rect, VideoFormat};
use crate::error::{Error, Result};
use crate::gpu::Event;
use crate::limits;
use crate::memory::DeviceBytes;

/// Video that is decoded packet after packet. Dropped, it frees its decoder.
pub struct Playback<F: CodedVideo> {
    parser: Parser<Running<F>>,
    engines: Arc<Engines>,
    packet: Vec<u8>,
    /// Columns and rows.
    size: [usize; 2],
    has_ended: bool,
}

impl<F: CodedVideo> Playback<F> {
    /// Playback of `coded_video`, of which nothing is decoded yet. Its targets are written as soon as they are told:
    /// nobody uses them any more.
    ///
    /// # Errors
    /// What the library says.
    pub fn new(engines: &Arc<Engines>, coded_video: F) -> Result<Self> {
        Self::after(engines, coded_video, None)
    }

    /// [`Playback::new`] of video whose targets are written after `ready`.
    fn after(engines: &Arc<Engines>, coded_video: F, ready: Option<&Arc<Event>>) -> Result<Self> {
        let (codec, size) = (coded_video.codec(), coded_video.size());
        let (engines, ready) = (Arc::clone(engines), ready.cloned());
        let running = Running {
            loan: None,
            written: Vec::new(),
            coded_video,
            engines: Arc::clone(&engines),
            ready,
            window: None,
        };
        let _bound = engines.gpu().bind()?;
        let parser = Parser::new(engines.functions(), codec as c_int, running)?;
        Ok(Self { parser, engines: Arc::clone(&engines), packet: Vec::new(), size, has_ended: false })
    }

    /// Gives the engines the next packet: pictures come, or none. Returns whether there is more to do.
    ///
    /// # Errors
    /// What the engines do not decode, and what is damaged; those of the video. Nothing comes behind one.
    pub fn step(&mut self) -> Result<bool> {
        if self.has_ended {
            return Ok(false);
        }
        let _bound = self.engines.gpu().bind()?;
        let next = self.parser.events().coded_video.packet(&mut self.packet)?;
        match next {
            Some(time) => {
                let codec = self.parser.events().coded_video.codec();
                for frame in padded::frames(codec, &self.packet, self.size) {
                    self.parser.send(&frame, time)?;
                }
            }
            None => {
                self.has_ended = true;
                self.parser.finish()?;
            }
        }
        Ok(!self.has_ended)
    }

    /// Looks at the video, or changes it.
    pub fn coded_video<R>(&self, look: impl FnOnce(&mut F) -> R) -> R {
        look(&mut self.parser.events().coded_video)
    }

    /// Waits until everything that was shown is written.
    ///
    /// # Errors
    /// What failed on the device.
    pub fn settle(&mut self) -> Result<()> {
        let mut events = self.parser.events();
        let Some(loan) = &mut events.loan else { return Ok(()) };
        loan.decoder()?.stream().synchronize()?;
        events.written.clear();
        Ok(())
    }

    /// Ends it: everything that was shown is written, and the decoder serves the next video.
    ///
    /// # Errors
    /// When not all of it came; what failed on the device.
    pub fn end(self) -> Result<F> {
        let gpu = Arc::clone(self.engines.gpu());
        let _bound = gpu.bind()?;
        let running = self.parser.into_events();
        let mut running = running.ok_or_else(|| Error::internal("somebody else keeps the coded_video"))?;
        if !running.coded_video.is_done() {
            return Err(Error::invalid("frames that do not come out of the engines"));
        }
        running.give_back()?;
        Ok(running.coded_video)
    }
}

/// Decodes `coded_video` from beginning to end and writes what it wants of it, after `ready`. All is written when this
/// returns, and nothing is under way.
///
/// # Errors
/// What the engines do not decode, and what is damaged; those of the video. What was written until then is of no
/// account.
pub fn decode<F: CodedVideo>(engines: &Arc<Engines>, coded_video: F, ready: &Arc<Event>) -> Result<F> {
    let mut playback = Playback::after(engines, coded_video, Some(ready))?;
    while playback.step()? {}
    playback.end()
}

/// Video that is decoded.
struct Running<F> {
    // First, as it waits for its stream when it goes: what is written there outlives it.
    loan: Option<Loan>,
    /// What its stream writes, whatever becomes of the video.
    written: Vec<DeviceBytes<'static>>,
    coded_video: F,
    engines: Arc<Engines>,
    /// When targets may be written.
    ready: Option<Arc<Event>>,
    /// What is shown of a picture, and how its samples become colours.
    window: Option<(Window, Factors)>,
}

impl<F: CodedVideo> Running<F> {
    fn loan(&mut self) -> Result<&mut Loan> {
        self.loan.as_mut().ok_or_else(|| Error::invalid("a frame before the parameters that it needs"))
    }

    fn give_back(&mut self) -> Result<()> {
        self.loan.take().map_or(Ok(()), Loan::give_back)?;
        self.written.clear();
        Ok(())
    }
}

impl<F: CodedVideo> Events for Running<F> {
    fn begin(&mut self, format: &VideoFormat) -> Result<c_int> {
        let (shape, window) = shape_of(format)?;
        if [window.width, window.height] != self.coded_video.size() {
            let [width, height] = self.coded_video.size();
            return Err(Error::unsupported(format!(
                "a frame of {} x {} pixels in a video of {width} x {height}",
                window.width, window.height
            )));
        }
        self.engines.check(&shape)?;
        // Another format in the middle of the video.
        self.give_back()?;
        let signal = Signal { matrix: format.matrix, full_range: format.signal & 8 != 0 };
        self.window = Some((window, self.coded_video.factors(signal)));
        self.loan = Some(self.engines.lend(shape)?);
        let ready = self.ready.clone();
        let decoder = self.loan()?.decoder()?;
        if let Some(ready) = ready {
            decoder.stream().wait(&ready)?;
        }
        Ok(decoder.surfaces() as c_int)
    }

    unsafe fn decode(&mut self, params: *mut PictureParams) -> Result<()> {
        // SAFETY: the caller vouches for the parameters; the decoder was lent for the format that was told last.
        unsafe { self.loan()?.decoder()?.decode(params) }
    }

    fn show(&mut self, display: &DisplayInfo) -> Result<()> {
        let Self { loan, written, coded_video, window, .. } = self;
        let targets = coded_video.targets(display.timestamp)?;
        if targets.is_empty() {
            return Ok(());
        }
        let (Some(loan), Some((window, factors))) = (loan, *window) else {
            return Err(Error::invalid("a frame before the parameters that it needs"));
        };
        written.extend(targets.iter().filter_map(DeviceBytes::owned));
        loan.decoder()?.show(display, |decoder, surface| {
            let stored = (decoder.shape(), surface);
            // SAFETY: the decoder keeps the surface until its stream has read it; `shape_of` has seen that the window
            // lies within. Targets of ours are kept until the stream is done, and others outlive the video: a decoder
            // waits for its stream before it goes.
            targets.iter().try_for_each(|target| unsafe {
                convert::convert(decoder.stream(), stored, window, factors, target)
            })
        })
    }
}

/// What decodes pictures of a format, and the part of them that is shown.
pub(super) fn shape_of(format: &VideoFormat) -> Result<(Shape, Window)> {
    let VideoFormat { coded_width, coded_height, chroma, display_area, .. } = *format;
    let [luma, other] = [format.luma_depth_minus_8, format.chroma_depth_minus_8];
    if luma != other || luma > 4 || ![HALVED_CHROMA, WHOLE_CHROMA].contains(&chroma) {
        return Err(Error::unsupported(format!(
            "samples of {} and {} bits in chroma format {chroma}, expected 8 to 12 of both, in 4:2:0 or 4:4:4",
            u32::from(luma) + 8,
            u32::from(other) + 8
        )));
    }
    let pixels = u64::from(coded_width) * u64::from(coded_height);
    if pixels == 0 || pixels > limits::MAX_VIDEO_PIXELS as u64 || coded_width.max(coded_height) > MAX_SIDE {
        return Err(Error::unsupported(format!("frames of {coded_width} x {coded_height} pixels")));
    }
    let Rect { left, top, right, bottom } = display_area;
    let is_within = 0 <= left && left < right && right as u32 <= coded_width;
    let is_within = is_within && 0 <= top && top < bottom && bottom as u32 <= coded_height;
    if !is_within || chroma == HALVED_CHROMA && (left | top) & 1 != 0 {
        return Err(Error::unsupported(format!(
            "columns {left} to {right} and rows {top} to {bottom} of {coded_width} x {coded_height}"
        )));
    }
    let window = Window {
        left: left as usize,
        top: top as usize,
        width: (right - left) as usize,
        height: (bottom - top) as usize,
    };
    let shape = Shape {
        codec: format.codec,
        chroma,
        depth: u32::from(luma) + 8,
        width: coded_width.next_multiple_of(2),
        height: coded_height.next_multiple_of(2),
        surfaces: u32::from(format.min_decode_surfaces).max(1),
    };
    Ok((shape, window))
}

/// Columns or rows that 16 bits hold, and that the kernel computes with.
const MAX_SIDE: u32 = 16_384;
