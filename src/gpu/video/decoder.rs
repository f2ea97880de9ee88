//! A decoder of the engines: surfaces that pictures are decoded to, and those of them that can be read. Belongs to one
//! thread at a time. It must not know streams of bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use super::parser::DISPLAY_DELAY;
use super::sys::{
    self, CreateInfo, DAMAGED, DecodeStatus, DisplayInfo, Functions, PREFER_ENGINES, PictureParams,
    ProcessParams, RawDecoder, ReconfigureInfo, ShortRect,
};
use crate::error::{Error, Result};
use crate::gpu::in_flight::Timeline;
use crate::gpu::{Event, Gpu, Stream};

/// Pictures that are readable at the same time: while one is converted, the next ones are made so.
const OUTPUT_SURFACES: usize = 4;

/// Surfaces that a decoder may have, if its stream does not need more.
const MOST_SURFACES: u32 = 32;

/// `cudaVideoChromaFormat`: 4:2:0 and 4:4:4.
pub(super) const HALVED_CHROMA: i32 = 1;
pub(super) const WHOLE_CHROMA: i32 = 3;

/// What a decoder is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// `cudaVideoCodec`.
    pub(super) codec: i32,
    /// `cudaVideoChromaFormat`.
    pub(super) chroma: i32,
    /// Bits of a sample.
    pub(super) depth: u32,
    /// Columns and rows as they are coded, up to an even number.
    pub(super) width: u32,
    pub(super) height: u32,
    /// Surfaces that the stream needs at least.
    pub(super) surfaces: u32,
}

impl Shape {
    /// Whether each channel has a plane of its own; else blue and red share one.
    pub(super) fn is_planar(&self) -> bool {
        self.chroma == WHOLE_CHROMA
    }

    /// `cudaVideoSurfaceFormat`: NV12, P016, YUV444, or that of 16 bits.
    pub(super) fn output_format(&self) -> i32 {
        2 * i32::from(self.is_planar()) + i32::from(self.depth > 8)
    }

    /// With those for pictures that wait to be shown.
    fn all_surfaces(&self) -> u32 {
        (self.surfaces + DISPLAY_DELAY).min(MOST_SURFACES).max(self.surfaces)
    }

    fn area(&self) -> ShortRect {
        ShortRect { left: 0, top: 0, right: self.width as i16, bottom: self.height as i16 }
    }
}

/// A picture that can be read on the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surface {
    pub(super) address: u64,
    /// Bytes from a row to the next one.
    pub(super) pitch: u32,
}

pub(super) struct Decoder {
    raw: RawDecoder,
    functions: Arc<Functions>,
    shape: Shape,
    /// The largest picture that it can be made to decode.
    most: [u32; 2],
    /// Surfaces that it has.
    surfaces: u32,
    /// Pictures whose outcome nobody has asked for.
    unchecked: Vec<i32>,
    /// Pictures that are readable, the oldest first.
    mapped: VecDeque<u64>,
    /// How many were readable before those.
    unmapped: usize,
    /// Behind the work on each of them.
    read: Vec<Event>,
    stream: Arc<Stream>,
}

// SAFETY: the documentation lets any thread use a decoder, one at a time.
unsafe impl Send for Decoder {}

impl Decoder {
    /// A decoder of `shape` on `gpu`.
    ///
    /// # Errors
    /// What the library says: for one, that there is no memory.
    pub(super) fn new(functions: &Arc<Functions>, gpu: &Arc<Gpu>, shape: Shape) -> Result<Self> {
        let stream = gpu.stream()?;
        let read = (0..OUTPUT_SURFACES).map(|_| Event::new(gpu)).collect::<Result<Vec<_>>>()?;
        let surfaces = shape.all_surfaces();
        let [width, height] = [u64::from(shape.width), u64::from(shape.height)];
        let mut info = CreateInfo {
            width,
            height,
            decode_surfaces: surfaces.into(),
            codec: shape.codec,
            chroma: shape.chroma,
            flags: PREFER_ENGINES,
            depth_minus_8: u64::from(shape.depth.saturating_sub(8)),
            intra_only: 0,
            max_width: width,
            max_height: height,
            reserved: 0,
            // All that is coded, so that nothing is scaled; the window is taken when it is converted.
            display_area: shape.area(),
            output_format: shape.output_format(),
            // Fields are woven, as the host's decoders do.
            deinterlace: 0,
            target_width: width,
            target_height: height,
            output_surfaces: OUTPUT_SURFACES as u64,
            lock: std::ptr::null_mut(),
            target_rect: shape.area(),
            histogram: 0,
            reserved_too: [0; 4],
        };
        let mut raw = std::ptr::null_mut();
        let _bound = gpu.bind()?;
        // SAFETY: both pointers are valid for the call, and the device's context is bound.
        let status = unsafe { (functions.create_decoder)(&raw mut raw, &raw mut info) };
        sys::check("cuvidCreateDecoder", status)?;
        let functions = Arc::clone(functions);
        let (unchecked, mapped) = (Vec::new(), VecDeque::new());
        let most = [shape.width, shape.height];
        Ok(Self { raw, functions, shape, most, surfaces, unchecked, mapped, unmapped: 0, read, stream })
    }

    /// Whether it decodes pictures of `shape` as it is.
    pub(super) fn fits(&self, shape: &Shape) -> bool {
        Shape { surfaces: shape.surfaces, ..self.shape } == *shape && shape.all_surfaces() <= self.surfaces
    }

    /// Whether it can be made to decode pictures of `shape`.
    pub(super) fn may_fit(&self, shape: &Shape) -> bool {
        let Shape { codec, chroma, depth, .. } = self.shape;
        Shape { codec, chroma, depth, ..*shape } == *shape
            && shape.width <= self.most[0]
            && shape.height <= self.most[1]
            && shape.all_surfaces() <= self.surfaces
    }

    /// Makes it decode pictures of `shape`, which [may fit](Decoder::may_fit).
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn fit(&mut self, shape: Shape) -> Result<()> {
        let mut info = ReconfigureInfo {
            width: shape.width,
            height: shape.height,
            target_width: shape.width,
            target_height: shape.height,
            decode_surfaces: self.surfaces,
            display_area: shape.area(),
            target_rect: shape.area(),
            ..ReconfigureInfo::default()
        };
        let _bound = self.stream.gpu().bind()?;
        // SAFETY: the decoder is valid and idle, and so is the pointer for the call.
        let status = unsafe { (self.functions.reconfigure)(self.raw, &raw mut info) };
        sys::check("cuvidReconfigureDecoder", status)?;
        self.shape = shape;
        Ok(())
    }

    /// How many surfaces pictures may be decoded to.
    pub(super) fn surfaces(&self) -> u32 {
        self.surfaces
    }

    /// What it decodes.
    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Where readable pictures are made and read.
    pub(super) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// Starts decoding a picture.
    ///
    /// # Errors
    /// What the library says; that the picture whose surface it takes was damaged.
    ///
    /// # Safety
    /// `params` is what the parser hands over, during that call, for a stream of this decoder's shape.
    pub(super) unsafe fn decode(&mut self, params: *mut PictureParams) -> Result<()> {
        // SAFETY: the parser's structure begins like this.
        let picture = unsafe { (*params).picture };
        self.check(picture)?;
        // SAFETY: the decoder is valid; the caller vouches for the parameters.
        let status = unsafe { (self.functions.decode)(self.raw, params) };
        sys::check("cuvidDecodePicture", status)?;
        self.unchecked.push(picture);
        Ok(())
    }

    /// Decodes one picture that refers to no other to every surface.
    ///
    /// # Errors
    /// What the library says.
    ///
    /// # Safety
    /// As for [`Decoder::decode`].
    pub(super) unsafe fn decode_to_all(&mut self, params: *mut PictureParams) -> Result<()> {
        for picture in 0..self.surfaces {
            // SAFETY: the parser's structure begins like this, and nobody else uses it during the call.
            unsafe { (*params).picture = picture as i32 };
            // SAFETY: the decoder is valid; the caller vouches for the parameters.
            let status = unsafe { (self.functions.decode)(self.raw, params) };
            sys::check("cuvidDecodePicture", status)?;
        }
        Ok(())
    }

    /// Makes a decoded picture readable in the order of the stream, and calls `read`, which puts what reads it there.
    ///
    /// # Errors
    /// What the library says; that the picture is damaged; those of `read`.
    pub(super) fn show(
        &mut self,
        display: &DisplayInfo,
        read: impl FnOnce(&Self, Surface) -> Result<()>,
    ) -> Result<()> {
        if self.mapped.len() == OUTPUT_SURFACES {
            self.unmap_oldest()?;
        }
        let mut params = ProcessParams::new(display, self.stream.handle());
        let (mut address, mut pitch) = (0, 0);
        // SAFETY: the decoder is valid, and so are the pointers for the call.
        let status = unsafe {
            (self.functions.map)(self.raw, display.picture, &raw mut address, &raw mut pitch, &raw mut params)
        };
        sys::check("cuvidMapVideoFrame64", status)?;
        self.mapped.push_back(address);
        self.check(display.picture)?;
        read(self, Surface { address, pitch })?;
        let place = (self.unmapped + self.mapped.len() - 1) % OUTPUT_SURFACES;
        self.read.get(place).map_or(Ok(()), |event| event.record(&self.stream))
    }

    fn unmap_oldest(&mut self) -> Result<()> {
        let Some(&address) = self.mapped.front() else { return Ok(()) };
        if let Some(event) = self.read.get(self.unmapped % OUTPUT_SURFACES) {
            event.settle()?;
        }
        self.mapped.pop_front();
        self.unmapped += 1;
        // SAFETY: mapped by `show`, and what read it is done.
        let status = unsafe { (self.functions.unmap)(self.raw, address) };
        sys::check("cuvidUnmapVideoFrame64", status)
    }

    /// Fails when a picture that was decoded since the last check was damaged.
    fn check(&mut self, picture: i32) -> Result<()> {
        let Some(place) = self.unchecked.iter().position(|&other| other == picture) else { return Ok(()) };
        self.unchecked.swap_remove(place);
        self.outcome(picture)
    }

    fn outcome(&self, picture: i32) -> Result<()> {
        let Some(ask) = self.functions.status else { return Ok(()) };
        let mut found = DecodeStatus::new();
        let _bound = self.stream.gpu().bind()?;
        // SAFETY: the decoder is valid, and so is the pointer for the call. That nothing is known of a codec is a
        // status, too.
        let status = unsafe { ask(self.raw, picture, &raw mut found) };
        if status == 0 && DAMAGED.contains(&found.status) {
            return Err(Error::invalid("a damaged frame"));
        }
        Ok(())
    }

    /// Ends the work on a stream: waits until all pictures are read.
    ///
    /// # Errors
    /// What failed on the device; that a picture was damaged.
    pub(super) fn finish(&mut self) -> Result<()> {
        let bound = self.stream.gpu().bind()?;
        let settled = self.stream.synchronize();
        while let Some(address) = self.mapped.pop_front() {
            self.unmapped += 1;
            // SAFETY: mapped by `show`, and what read it is done or has failed.
            let _ = unsafe { (self.functions.unmap)(self.raw, address) };
        }
        drop(bound);
        settled?;
        std::mem::take(&mut self.unchecked).into_iter().try_for_each(|picture| self.outcome(picture))
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // Readable pictures must not go before what reads them.
        let _ = self.finish();
        let _bound = self.stream.gpu().bind();
        // SAFETY: created by `new`; nothing of it is in use.
        let _ = unsafe { (self.functions.destroy_decoder)(self.raw) };
    }
}
