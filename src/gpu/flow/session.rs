//! Flow between frames of one size: the library's session and its memory. Belongs to one stream. It must not know where frames come from.

use std::sync::Arc;

use parking_lot::Mutex;

use super::settings::Settings;
use super::sys::{
    BufferDescriptor, ExecuteInput, ExecuteOutput, Format, Functions, InitParams, OPTICAL_FLOW, PLAIN_MEMORY,
    RawBuffer, RawSession, StrideInfo, Usage,
};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Stream};

/// Memory of a session that kernels write or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Address of the first row.
    pub address: u64,
    /// Bytes from a row to the next one.
    pub pitch: u32,
    /// Pixels or blocks of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// What the library made, which goes the other way round.
struct Made {
    functions: Arc<Functions>,
    gpu: Arc<Gpu>,
    raw: RawSession,
    buffers: Vec<RawBuffer>,
}

// SAFETY: the library ties its handles to a context, not to a thread; whoever uses them binds that, one thread at a time.
unsafe impl Send for Made {}

impl Drop for Made {
    fn drop(&mut self) {
        let _bound = self.gpu.bind();
        for buffer in self.buffers.drain(..) {
            // SAFETY: made by `buffer`, and nothing that uses it is under way: what is holds the session.
            let _ = unsafe { (self.functions.destroy_buffer)(buffer) };
        }
        // SAFETY: made by `Made::new`, and its buffers are gone.
        let _ = unsafe { (self.functions.destroy)(self.raw) };
    }
}

impl Made {
    fn new(functions: &Arc<Functions>, gpu: &Arc<Gpu>) -> Result<Self> {
        let _bound = gpu.bind()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the context is that of `gpu`, which `Made` keeps; the pointer is valid for the call.
        let status = unsafe { (functions.create)(gpu.context_handle(), &raw mut raw) };
        functions.check("nvCreateOpticalFlowCuda", status, std::ptr::null_mut())?;
        Ok(Self { functions: Arc::clone(functions), gpu: Arc::clone(gpu), raw, buffers: Vec::new() })
    }

    fn check(&self, function: &str, status: super::sys::Status) -> Result<()> {
        self.functions.check(function, status, self.raw)
    }

    /// Makes a buffer of `width` x `height` elements of `bytes` bytes.
    fn buffer(
        &mut self,
        usage: Usage,
        [width, height]: [u32; 2],
        (format, bytes): (Format, u32),
    ) -> Result<Place> {
        let descriptor = BufferDescriptor { width, height, usage: usage as i32, format: format as i32 };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the session is valid, and so are the pointers for the call.
        let status = unsafe {
            (self.functions.create_buffer)(self.raw, &raw const descriptor, PLAIN_MEMORY, &raw mut raw)
        };
        self.check("nvOFCreateGPUBufferCuda", status)?;
        self.buffers.push(raw);
        // SAFETY: the buffer was made above, and stays with the session.
        let address = unsafe { (self.functions.buffer_address)(raw) };
        let mut strides = StrideInfo::default();
        // SAFETY: as above; the pointer is valid for the call.
        let status = unsafe { (self.functions.buffer_stride)(raw, &raw mut strides) };
        self.check("nvOFGPUBufferGetStrideInfo", status)?;
        let [pitch, _] = strides.planes[0];
        // Kernels write whole elements.
        if address == 0
            || pitch < width * bytes
            || !pitch.is_multiple_of(bytes)
            || !address.is_multiple_of(u64::from(bytes))
        {
            return Err(Error::internal(format!(
                "the optical flow library gives rows of {pitch} bytes at {address:#x} for {width} elements of {bytes}"
            )));
        }
        Ok(Place { address, pitch, width, height })
    }

    fn raw_buffer(&self, number: usize) -> Result<RawBuffer> {
        self.buffers.get(number).copied().ok_or_else(|| Error::internal("a buffer that is not there"))
    }
}

/// Places in [`Made::buffers`] of the two frames, the field and the hints.
const FRAMES: [usize; 2] = [0, 1];
const FIELD: usize = 2;
const HINTS: usize = 3;

/// Computes flow between frames of one size.
pub struct Session {
    size: [u32; 2],
    frames: [Place; 2],
    field: Place,
    hints: Option<Place>,
    made: Mutex<Made>,
    /// The stream that it was made for. Last, so that it outlives what uses it.
    stream: Arc<Stream>,
}

impl Session {
    /// A session for frames of `size`, columns and rows, whose work goes into `stream`.
    pub(super) fn new(
        functions: &Arc<Functions>,
        settings: &Settings,
        size: [u32; 2],
        stream: &Arc<Stream>,
    ) -> Result<Self> {
        let gpu = stream.gpu();
        let mut made = Made::new(functions, gpu)?;
        let _bound = gpu.bind()?;
        let handle = stream.handle();
        // SAFETY: the session is valid, and the stream is kept as long as it.
        let status = unsafe { (functions.set_streams)(made.raw, handle, handle) };
        made.check("nvOFSetIOCudaStreams", status)?;
        let [width, height] = size;
        let params = InitParams {
            width,
            height,
            output_grid: settings.output_grid as i32,
            hint_grid: settings.hint_grid.unwrap_or_default() as i32,
            mode: OPTICAL_FLOW,
            speed: settings.speed as i32,
            takes_hints: settings.hint_grid.is_some().into(),
            gives_cost: 0,
            private: std::ptr::null_mut(),
            disparity_range: 0,
            has_regions: 0,
        };
        // SAFETY: the session is valid, and so is the pointer for the call.
        let status = unsafe { (functions.init)(made.raw, &raw const params) };
        made.check("nvOFInit", status)?;
        let pixel = if settings.is_gray { (Format::Gray, 1) } else { (Format::Color, 4) };
        let vector = (Format::Vectors, 4);
        let blocks = |grid: u32| size.map(|side| side.div_ceil(grid));
        let frames = [made.buffer(Usage::Input, size, pixel)?, made.buffer(Usage::Input, size, pixel)?];
        let field = made.buffer(Usage::Output, blocks(settings.output_grid), vector)?;
        let hints =
            settings.hint_grid.map(|grid| made.buffer(Usage::Hint, blocks(grid), vector)).transpose()?;
        Ok(Self { size, frames, field, hints, made: Mutex::new(made), stream: Arc::clone(stream) })
    }

    /// Whether it is for frames of `size` in `stream`.
    pub(super) fn is_for(&self, size: [u32; 2], stream: &Arc<Stream>) -> bool {
        self.size == size && Arc::ptr_eq(&self.stream, stream)
    }

    /// Where frame `number` of a sequence is written: two places take turns. Gray, or red, green, blue and 255 for each pixel.
    pub fn frame(&self, number: usize) -> Place {
        self.frames[number % self.frames.len()]
    }

    /// Where the field is read: int16 along x and along y for each block, in pixels / 32.
    pub fn field(&self) -> Place {
        self.field
    }

    /// Where hints are written, in the form of the field.
    pub fn hints(&self) -> Option<Place> {
        self.hints
    }

    /// Puts the flow of frame `number`, from 1 on, into the session's stream: for each of its blocks, how far away it is in the frame
    /// before. Both frames are where [`Session::frame`] says, and hints, if it takes some. `forgets`: the flow before this one says nothing
    /// of this.
    ///
    /// # Errors
    /// What the library says; internal for another stream.
    pub fn execute(&self, stream: &Stream, number: usize, forgets: bool) -> Result<()> {
        if !std::ptr::eq(stream, &raw const *self.stream) {
            return Err(Error::internal("optical flow in a stream that it was not made for"));
        }
        let made = self.made.lock();
        let [before, this] = [number + FRAMES.len() - 1, number].map(|frame| FRAMES[frame % FRAMES.len()]);
        let hints = self.hints.map(|_| made.raw_buffer(HINTS)).transpose()?.unwrap_or(std::ptr::null_mut());
        let input = ExecuteInput {
            input: made.raw_buffer(this)?,
            reference: made.raw_buffer(before)?,
            hints,
            forgets: forgets.into(),
            padding: 0,
            private: std::ptr::null_mut(),
            padding_too: 0,
            regions: 0,
            region_data: std::ptr::null_mut(),
        };
        let mut output = ExecuteOutput {
            field: made.raw_buffer(FIELD)?,
            cost: std::ptr::null_mut(),
            private: std::ptr::null_mut(),
        };
        let _bound = self.stream.gpu().bind()?;
        // SAFETY: session and buffers are valid, the lock keeps other threads out, and the pointers are valid for the call. What the engine
        // does is in the order of the stream, which whoever frees the session has waited for.
        let status = unsafe { (made.functions.execute)(made.raw, &raw const input, &raw mut output) };
        made.check("nvOFExecute", status)
    }
}
