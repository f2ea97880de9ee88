//! The video engines of a device, as one instance of an operator uses them: decoders that are kept. It must
//! not know operators.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;

use parking_lot::Mutex;

use super::coded_video::Codec;
use super::convert;
use super::decoder::{Decoder, HALVED_CHROMA, Shape};
use super::sys::{self, Caps, Functions};
use super::wash::wash;
use crate::error::{Error, ErrorKind, Result};
use crate::gpu::Gpu;
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

    /// Whether the engines decode pictures of `codec` of so many columns and rows, of the most usual kind. What they do
    /// not is seen when it is tried.
    pub fn takes(&self, codec: Codec, [width, height]: [usize; 2]) -> bool {
        let caps = self.caps((codec as c_int, HALVED_CHROMA, 8));
        let [width, height] = [width, height].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
        caps.and_then(|caps| check_caps(&caps, 0, [width, height])).is_ok()
    }

    /// Fails unless the engines decode pictures of `shape`.
    ///
    /// # Errors
    /// Unsupported, saying what they decode.
    pub(super) fn check(&self, shape: &Shape) -> Result<()> {
        let caps = self.caps((shape.codec, shape.chroma, shape.depth))?;
        check_caps(&caps, shape.output_format(), [shape.width, shape.height])
    }

    /// Their device.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    pub(super) fn functions(&self) -> &Arc<Functions> {
        &self.functions
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

    /// A decoder of `shape`: one that is there, or else a new one. Its surfaces show nothing of the videos before.
    pub(super) fn lend(self: &Arc<Self>, shape: Shape) -> Result<Loan> {
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
        let mut loan = Loan { engines: Arc::clone(self), decoder: None };
        if let Some(mut decoder) = found {
            let fitted = if decoder.fits(&shape) { Ok(()) } else { decoder.fit(shape) };
            match fitted {
                Ok(()) => loan.decoder = Some(wash(&self.functions, decoder)?),
                Err(error) => tracing::debug!("a decoder is made anew: {error}"),
            }
        }
        if loan.decoder.is_none() {
            let made = Decoder::new(&self.functions, &self.gpu, shape)?;
            loan.decoder = Some(wash(&self.functions, made)?);
        }
        Ok(loan)
    }
}

/// A decoder in use. It goes when it is not given back: after an error nobody knows what it does.
pub(super) struct Loan {
    engines: Arc<Engines>,
    decoder: Option<Decoder>,
}

impl Loan {
    /// The decoder.
    ///
    /// # Errors
    /// Internal: it is there until it is given back.
    pub(super) fn decoder(&mut self) -> Result<&mut Decoder> {
        self.decoder.as_mut().ok_or_else(|| Error::internal("a decoder that was given back"))
    }

    /// Gives the decoder back, when its work on the stream is done.
    ///
    /// # Errors
    /// Those of [`Decoder::finish`]; then the decoder goes.
    pub(super) fn give_back(mut self) -> Result<()> {
        self.decoder()?.finish()?;
        if let Some(decoder) = self.decoder.take() {
            self.engines.kept.lock().idle.push(decoder);
        }
        Ok(())
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.engines.kept.lock().lent -= 1;
    }
}

/// Whether engines of these abilities decode pictures of so many columns and rows to surfaces of `output`, a
/// `cudaVideoSurfaceFormat`.
fn check_caps(caps: &Caps, output: c_int, [width, height]: [u32; 2]) -> Result<()> {
    if caps.codec == Codec::Av1 as c_int {
        return Err(Error::unsupported(
            "AV1 is decoded on the host: no engine was there to show that it tells of damage",
        ));
    }
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
