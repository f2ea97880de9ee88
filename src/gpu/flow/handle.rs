//! What the library makes for frames of one size: a session and its buffers, which go the other way round. Used by one
//! thread at a time. It must not know streams of frames.

use std::sync::Arc;

use super::settings::{Settings, Speed};
use super::sys::{
    BufferDescriptor, Cap, ExecuteInput, ExecuteOutput, Format, Functions, InitParams, OPTICAL_FLOW,
    PLAIN_MEMORY, RawBuffer, RawSession, Status, StrideInfo, Usage,
};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Stream};

/// Values that a list of the library's has at most.
const MOST_VALUES: u32 = 64;

/// Memory of a session that kernels write or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plane {
    /// Address of the first row.
    pub address: u64,
    /// Bytes from a row to the next one.
    pub pitch: u32,
    /// Pixels or blocks of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// A session of the library's. Whoever calls it has the device's context bound.
pub(super) struct Handle {
    functions: Arc<Functions>,
    gpu: Arc<Gpu>,
    raw: RawSession,
    is_begun: bool,
    buffers: Vec<RawBuffer>,
}

// SAFETY: the library ties its handles to a context, not to a thread; whoever uses them binds that, one thread at a
// time.
unsafe impl Send for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        let gpu = Arc::clone(&self.gpu);
        let _bound = gpu.bind();
        for buffer in self.buffers.drain(..) {
            // SAFETY: made by `Handle::buffer`, and nothing that uses it is under way: what is holds the session.
            let _ = unsafe { (self.functions.destroy_buffer)(buffer) };
        }
        if !self.is_begun {
            // The driver frees only what was begun.
            let _ = self.begin_smallest();
        }
        // SAFETY: made by `Handle::new`, and its buffers are gone.
        let _ = unsafe { (self.functions.destroy)(self.raw) };
    }
}

impl Handle {
    /// A session on `gpu`, which is to be [begun](Handle::begin).
    ///
    /// # Errors
    /// What the library says: for one, that the device has no engine.
    pub(super) fn new(functions: &Arc<Functions>, gpu: &Arc<Gpu>) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the context is that of `gpu`, which the handle keeps; the pointer is valid for the call.
        let status = unsafe { (functions.create)(gpu.context_handle(), &raw mut raw) };
        functions.check("nvCreateOpticalFlowCuda", status, std::ptr::null_mut())?;
        let (functions, gpu) = (Arc::clone(functions), Arc::clone(gpu));
        Ok(Self { functions, gpu, raw, is_begun: false, buffers: Vec::new() })
    }

    fn check(&self, function: &str, status: Status) -> Result<()> {
        self.functions.check(function, status, self.raw)
    }

    /// What the library says of `cap`.
    ///
    /// # Errors
    /// What it says when it does not.
    pub(super) fn caps(&self, cap: Cap) -> Result<Vec<u32>> {
        let mut count = 0;
        let none = std::ptr::null_mut();
        // SAFETY: the session is valid, and so is the pointer for the call; without a list the number of values is
        // told.
        let status = unsafe { (self.functions.caps)(self.raw, cap as i32, none, &raw mut count) };
        self.check("nvOFGetCaps", status)?;
        if count > MOST_VALUES {
            return Err(Error::internal(format!("the optical flow library has {count} values of {cap:?}")));
        }
        let mut values = vec![0; count as usize];
        // SAFETY: as above, and the list has as many places as the library has values.
        let status =
            unsafe { (self.functions.caps)(self.raw, cap as i32, values.as_mut_ptr(), &raw mut count) };
        self.check("nvOFGetCaps", status)?;
        values.truncate(count as usize);
        Ok(values)
    }

    /// The first value of `cap`.
    ///
    /// # Errors
    /// As for [`Handle::caps`]; that there is none.
    pub(super) fn cap(&self, cap: Cap) -> Result<u32> {
        let values = self.caps(cap)?;
        values
            .first()
            .copied()
            .ok_or_else(|| Error::internal(format!("the library does not say its {cap:?}")))
    }

    /// Lets all of its work be in the order of `stream`, which is kept as long as the handle.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn work_in(&mut self, stream: &Stream) -> Result<()> {
        // SAFETY: session and stream are valid.
        let status = unsafe { (self.functions.set_streams)(self.raw, stream.handle(), stream.handle()) };
        self.check("nvOFSetIOCudaStreams", status)
    }

    /// Makes it ready for frames of `size`, columns and rows.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn begin(&mut self, settings: &Settings, [width, height]: [u32; 2]) -> Result<()> {
        let params = InitParams {
            width,
            height,
            output_grid: settings.output_grid as i32,
            // Nothing but 0 is taken where there are no hints.
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
        let status = unsafe { (self.functions.init)(self.raw, &raw const params) };
        self.check("nvOFInit", status)?;
        self.is_begun = true;
        Ok(())
    }

    /// Makes it ready for what every device does.
    fn begin_smallest(&mut self) -> Result<()> {
        let output_grid = self.cap(Cap::OutputGrids)?;
        let size = [self.cap(Cap::LeastWidth)?, self.cap(Cap::LeastHeight)?];
        self.begin(&Settings { speed: Speed::Slow, output_grid, hint_grid: None, is_gray: false }, size)
    }

    /// Makes a buffer of `width` x `height` elements of `bytes` bytes.
    ///
    /// # Errors
    /// What the library says; internal for memory that kernels cannot use.
    pub(super) fn buffer(
        &mut self,
        usage: Usage,
        [width, height]: [u32; 2],
        (format, bytes): (Format, u32),
    ) -> Result<Plane> {
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
        Ok(Plane { address, pitch, width, height })
    }

    fn raw_buffer(&self, number: usize) -> Result<RawBuffer> {
        self.buffers.get(number).copied().ok_or_else(|| Error::internal("a buffer that is not there"))
    }

    /// Puts the flow between two buffers for frames, from `input` to `reference`, into the stream, to the buffer
    /// `field`: each a number in the order in which they were made. `forgets`: the flow before this one says nothing of
    /// this.
    ///
    /// # Errors
    /// What the library says; internal for a buffer that there is not.
    pub(super) fn execute(
        &self,
        [input, reference]: [usize; 2],
        hints: Option<usize>,
        field: usize,
        forgets: bool,
    ) -> Result<()> {
        let none = std::ptr::null_mut();
        let input = ExecuteInput {
            input: self.raw_buffer(input)?,
            reference: self.raw_buffer(reference)?,
            hints: hints.map_or(Ok(none), |hints| self.raw_buffer(hints))?,
            forgets: forgets.into(),
            padding: 0,
            private: none,
            padding_too: 0,
            regions: 0,
            region_data: none,
        };
        let mut output = ExecuteOutput { field: self.raw_buffer(field)?, cost: none, private: none };
        // SAFETY: session and buffers are valid, and the pointers are for the call. What the engine does is in the
        // order of the stream, which whoever frees the handle has waited for.
        let status = unsafe { (self.functions.execute)(self.raw, &raw const input, &raw mut output) };
        self.check("nvOFExecute", status)
    }
}
