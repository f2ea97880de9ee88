//! The video engines of a device, as one instance of an operator uses them: decoders that are kept, and footage decoded with them. It must
//! not know operators.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;

use parking_lot::Mutex;

use super::convert::{self, Window};
use super::decoder::{Decoder, HALVED_CHROMA, Shape, WHOLE_CHROMA};
use super::footage::{Codec, Factors, Footage, Signal};
use super::parser::{Events, Listener, Parser};
use super::sys::{self, Caps, DisplayInfo, Functions, PictureParams, Rect, VideoFormat};
use crate::error::{Error, ErrorKind, Result};
use crate::gpu::{Event, Gpu};
use crate::limits;

/// Codec, chroma format and depth.
type Kind = (c_int, c_int, u32);

/// The video engines of a device.
pub struct Engines {
    functions: Arc<Functions>,
    gpu: Arc<Gpu>,
    caps: Mutex<HashMap<Kind, Caps>>,
    kept: Mutex<Kept>,
}

/// Decoders that are there.
#[derive(Default)]
struct Kept {
    /// Those that nobody uses, the one that was used last at the end.
    idle: Vec<Decoder>,
    /// How many are in use.
    lent: usize,
}

impl Engines {
    /// Opens the engines of `gpu` and compiles what converts their pictures.
    ///
    /// # Errors
    /// Unavailable, when the library is not there, or the device has no engines: the text says which.
    pub fn open(gpu: &Arc<Gpu>) -> Result<Self> {
        let functions = Arc::new(Functions::open()?);
        let engines =
            Self { functions, gpu: Arc::clone(gpu), caps: Mutex::default(), kept: Mutex::default() };
        if engines.count()? == 0 {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("no video engines on device {} (`{}`)", gpu.ordinal(), gpu.name()),
            ));
        }
        for spec in convert::kernels() {
            gpu.kernel(&spec)?;
        }
        Ok(engines)
    }

    /// How many engines there are.
    ///
    /// # Errors
    /// What the library says.
    pub fn count(&self) -> Result<usize> {
        let caps = self.caps((Codec::H264 as c_int, HALVED_CHROMA, 8))?;
        // Older libraries do not say how many.
        Ok(if caps.is_supported == 0 { 0 } else { usize::from(caps.engines).max(1) })
    }

    /// Whether the engines decode pictures of `codec` of so many columns and rows, of the most usual kind. What they do not is seen when
    /// it is tried.
    pub fn takes(&self, codec: Codec, [width, height]: [usize; 2]) -> bool {
        let caps = self.caps((codec as c_int, HALVED_CHROMA, 8));
        let [width, height] = [width, height].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
        caps.and_then(|caps| check_caps(&caps, 0, [width, height])).is_ok()
    }

    fn caps(&self, kind: Kind) -> Result<Caps> {
        if let Some(caps) = self.caps.lock().get(&kind) {
            return Ok(*caps);
        }
        let (codec, chroma, depth) = kind;
        let mut caps = Caps::of(codec, chroma, depth);
        let _bound = self.gpu.bind()?;
        // SAFETY: the pointer is valid for the call, and the device's context is bound.
        sys::check("cuvidGetDecoderCaps", unsafe { (self.functions.caps)(&raw mut caps) })?;
        self.caps.lock().insert(kind, caps);
        Ok(caps)
    }

    /// Decodes `footage` and writes what it wants of it, after `ready`. All is written when this returns, and nothing is under way.
    ///
    /// # Errors
    /// What the engines do not decode, and what is damaged; those of the footage. What was written until then is of no account.
    pub fn decode(&self, footage: &mut dyn Footage, ready: &Event) -> Result<()> {
        let _bound = self.gpu.bind()?;
        let codec = footage.codec();
        let running = Running { engines: self, footage, ready, loan: None, window: None };
        let listener = Listener::new(running);
        let mut parser = Parser::new(&self.functions, codec as c_int, &listener)?;
        let mut packet = Vec::new();
        loop {
            let next = listener.borrow_mut().events.footage.packet(&mut packet)?;
            let Some(time) = next else { break };
            parser.send(&packet, time)?;
        }
        parser.finish()?;
        drop(parser);
        let mut listener = listener.borrow_mut();
        if !listener.events.footage.is_done() {
            return Err(Error::invalid("frames that do not come out of the engines"));
        }
        listener.events.give_back()
    }

    /// A decoder of `shape`: one that is there, or else a new one.
    fn lend(&self, shape: Shape) -> Result<Loan<'_>> {
        let mut found = None;
        {
            let mut kept = self.kept.lock();
            let idle = &mut kept.idle;
            let place = idle.iter().position(|decoder| decoder.fits(&shape));
            if let Some(place) = place.or_else(|| idle.iter().position(|decoder| decoder.may_fit(&shape))) {
                found = Some(idle.remove(place));
            } else if idle.len() + kept.lent >= limits::MAX_VIDEO_DECODERS && !kept.idle.is_empty() {
                kept.idle.remove(0);
            }
            kept.lent += 1;
        }
        let mut loan = Loan { engines: self, decoder: None };
        if let Some(mut decoder) = found {
            let fitted = if decoder.fits(&shape) { Ok(()) } else { decoder.fit(shape) };
            match fitted {
                Ok(()) => loan.decoder = Some(decoder),
                Err(error) => tracing::debug!("a decoder is made anew: {error}"),
            }
        }
        if loan.decoder.is_none() {
            loan.decoder = Some(Decoder::new(&self.functions, &self.gpu, shape)?);
        }
        Ok(loan)
    }
}

/// A decoder in use. It goes when it is not given back: after an error nobody knows what it does.
struct Loan<'e> {
    engines: &'e Engines,
    decoder: Option<Decoder>,
}

impl Loan<'_> {
    fn give_back(mut self) {
        if let Some(decoder) = self.decoder.take() {
            self.engines.kept.lock().idle.push(decoder);
        }
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.engines.kept.lock().lent -= 1;
    }
}

/// Footage that is decoded.
struct Running<'r> {
    engines: &'r Engines,
    footage: &'r mut dyn Footage,
    ready: &'r Event,
    loan: Option<Loan<'r>>,
    /// What is shown of a picture, and how its samples become colours.
    window: Option<(Window, Factors)>,
}

impl Running<'_> {
    fn decoder(&mut self) -> Result<&mut Decoder> {
        let decoder = self.loan.as_mut().and_then(|loan| loan.decoder.as_mut());
        decoder.ok_or_else(|| Error::invalid("a frame before the parameters that it needs"))
    }

    fn give_back(&mut self) -> Result<()> {
        if let Some(mut loan) = self.loan.take() {
            loan.decoder.as_mut().map_or(Ok(()), Decoder::finish)?;
            loan.give_back();
        }
        Ok(())
    }
}

impl Events for Running<'_> {
    fn begin(&mut self, format: &VideoFormat) -> Result<c_int> {
        let (shape, window) = shape_of(format)?;
        if [window.width, window.height] != self.footage.size() {
            let [width, height] = self.footage.size();
            return Err(Error::unsupported(format!(
                "a frame of {} x {} pixels in a video of {width} x {height}",
                window.width, window.height
            )));
        }
        let caps = self.engines.caps((shape.codec, shape.chroma, shape.depth))?;
        check_caps(&caps, shape.output_format(), [shape.width, shape.height])?;
        // Another format in the middle of the footage.
        self.give_back()?;
        let signal = Signal { matrix: format.matrix, full_range: format.signal & 8 != 0 };
        self.window = Some((window, self.footage.factors(signal)));
        self.loan = Some(self.engines.lend(shape)?);
        let ready = self.ready;
        let decoder = self.decoder()?;
        decoder.stream().wait(ready)?;
        Ok(decoder.surfaces() as c_int)
    }

    unsafe fn decode(&mut self, params: *mut PictureParams) -> Result<()> {
        // SAFETY: the caller vouches for the parameters; the decoder was lent for the format that was told last.
        unsafe { self.decoder()?.decode(params) }
    }

    fn show(&mut self, display: &DisplayInfo) -> Result<()> {
        let Self { footage, loan, window, .. } = self;
        let targets = footage.targets(display.timestamp)?;
        if targets.is_empty() {
            return Ok(());
        }
        let (Some(Loan { decoder: Some(decoder), .. }), Some((window, factors))) = (loan, *window) else {
            return Err(Error::invalid("a frame before the parameters that it needs"));
        };
        decoder.show(display, |decoder, surface| {
            let stored = (decoder.shape(), surface);
            // SAFETY: the decoder keeps the surface until its stream has read it; `shape_of` has seen that the window lies within. The
            // targets outlive this footage, which is not left before the stream is done.
            targets.iter().try_for_each(|target| unsafe {
                convert::convert(decoder.stream(), stored, window, factors, target)
            })
        })
    }
}

/// What decodes pictures of a format, and the part of them that is shown.
fn shape_of(format: &VideoFormat) -> Result<(Shape, Window)> {
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

/// Whether engines of these abilities decode pictures of so many columns and rows to surfaces of `output`, a `cudaVideoSurfaceFormat`.
fn check_caps(caps: &Caps, output: c_int, [width, height]: [u32; 2]) -> Result<()> {
    if caps.is_supported == 0 || caps.output_formats >> output & 1 == 0 {
        return Err(Error::unsupported(format!(
            "the engines do not decode codec {} with chroma format {} and {} bits",
            caps.codec,
            caps.chroma,
            caps.depth_minus_8 + 8
        )));
    }
    let Caps { min_width, min_height, max_width, max_height, max_macroblocks, .. } = *caps;
    let macroblocks = u64::from(width.div_ceil(16)) * u64::from(height.div_ceil(16));
    if width < min_width.into()
        || height < min_height.into()
        || width > max_width
        || height > max_height
        || macroblocks > max_macroblocks.into()
    {
        return Err(Error::unsupported(format!(
            "the engines decode frames of {min_width} x {min_height} to {max_width} x {max_height} pixels and {max_macroblocks} \
             macroblocks, found {width} x {height}"
        )));
    }
    Ok(())
}
