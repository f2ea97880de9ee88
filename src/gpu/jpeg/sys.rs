//! The part of nvJPEG's C interface that is called, loaded at run time, and owners of its handles. Written from the
//! public documentation; versions 12 and 13 agree on all of it. It must not know batches.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::gpu::{Found, Gpu, Library, Stream};

type Status = c_int;
type RawHandle = *mut c_void;
type RawState = *mut c_void;

const SUCCESS: Status = 0;

/// `nvjpegBackend_t`: the engines.
const BACKEND_HARDWARE: c_int = 3;

/// Planes that an image may have.
const MAX_COMPONENTS: usize = 4;

/// `libraryPropertyType`.
const MAJOR_VERSION: c_int = 0;
const MINOR_VERSION: c_int = 1;

/// The first version that interpolates chroma.
const INTERPOLATES_SINCE: (c_int, c_int) = (12, 1);

/// `nvjpegOutputFormat_t`: what the engines write, dense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Format {
    /// Luma alone.
    Gray = 2,
    /// Red, green, blue, interleaved.
    Rgb = 5,
    /// Blue, green, red, interleaved.
    Bgr = 6,
}

impl Format {
    /// Bytes of a pixel.
    pub fn channels(self) -> usize {
        if self == Self::Gray { 1 } else { 3 }
    }
}

/// Bits of `nvjpegCreateEx`'s flags.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    /// Upsample chroma smoothly; else the nearest sample is taken.
    pub(super) interpolate: bool,
    /// Do not keep further images on the way to the engines.
    pub(super) no_pipeline: bool,
}

impl Flags {
    const NO_PIPELINE: c_uint = 1;
    const UPSAMPLING_WITH_INTERPOLATION: c_uint = 1 << 5;

    fn bits(self) -> c_uint {
        let bit = |set: bool, bit: c_uint| if set { bit } else { 0 };
        bit(self.interpolate, Self::UPSAMPLING_WITH_INTERPOLATION) | bit(self.no_pipeline, Self::NO_PIPELINE)
    }
}

/// `nvjpegImage_t`: where the planes of an image go; interleaved formats use the first.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Image {
    channel: [*mut u8; MAX_COMPONENTS],
    pitch: [usize; MAX_COMPONENTS],
}

impl Image {
    /// One plane at `address` on the device, rows `pitch` bytes apart.
    pub(super) fn new(address: u64, pitch: usize) -> Self {
        let mut image = Self { channel: [ptr::null_mut(); MAX_COMPONENTS], pitch: [0; MAX_COMPONENTS] };
        image.channel[0] = address as *mut u8;
        image.pitch[0] = pitch;
        image
    }
}

/// The library, loaded.
struct Functions {
    create: unsafe extern "C" fn(c_int, *mut c_void, *mut c_void, c_uint, *mut RawHandle) -> Status,
    destroy: unsafe extern "C" fn(RawHandle) -> Status,
    hardware_info: unsafe extern "C" fn(RawHandle, *mut c_uint, *mut c_uint) -> Status,
    state_create: unsafe extern "C" fn(RawHandle, *mut RawState) -> Status,
    state_destroy: unsafe extern "C" fn(RawState) -> Status,
    initialize: unsafe extern "C" fn(RawHandle, RawState, c_int, c_int, c_int) -> Status,
    decode: unsafe extern "C" fn(
        RawHandle,
        RawState,
        *const *const u8,
        *const usize,
        *mut Image,
        *mut c_void,
    ) -> Status,
    /// For measurements; a library may lack it.
    preallocate: Option<Preallocate>,
    /// Keeps the functions above loaded. Never closed: the CUDA runtime inside of the library is not made for that, and
    /// all that open it share one copy.
    _library: ManuallyDrop<Found>,
}

type Preallocate = unsafe extern "C" fn(RawHandle, RawState, c_int, c_int, c_int, c_int, c_int) -> Status;

/// `nvjpegChromaSubsampling_t`: 4:4:4.
const SUBSAMPLING_444: c_int = 0;

/// A handle of the library for the engines of one device.
pub(super) struct Handle {
    raw: RawHandle,
    functions: Functions,
    gpu: Arc<Gpu>,
}

// SAFETY: the documentation calls the handle thread safe.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Opens the engines of `gpu`, and says how many there are.
    ///
    /// # Errors
    /// Unavailable, when the library is not there or too old, or when there are no engines; the text says which.
    pub(super) fn open(gpu: &Arc<Gpu>, flags: Flags) -> Result<(Arc<Self>, usize)> {
        let library = Library::NVJPEG.open()?;
        // SAFETY: the types of all functions here are those of nvJPEG's documentation.
        let property: unsafe extern "C" fn(c_int, *mut c_int) -> Status =
            unsafe { library.function("nvjpegGetProperty") }?;
        let version = |which| {
            let mut value = 0;
            // SAFETY: the pointer is valid for the call.
            let status = unsafe { property(which, &raw mut value) };
            check("nvjpegGetProperty", status).map(|()| value)
        };
        let found = (version(MAJOR_VERSION)?, version(MINOR_VERSION)?);
        if flags.interpolate && found < INTERPOLATES_SINCE {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("nvJPEG {}.{} does not interpolate chroma, expected 12.1 or newer", found.0, found.1),
            ));
        }
        let functions = Functions {
            // SAFETY: as above.
            create: unsafe { library.function("nvjpegCreateEx") }?,
            // SAFETY: as above.
            destroy: unsafe { library.function("nvjpegDestroy") }?,
            // SAFETY: as above.
            hardware_info: unsafe { library.function("nvjpegGetHardwareDecoderInfo") }?,
            // SAFETY: as above.
            state_create: unsafe { library.function("nvjpegJpegStateCreate") }?,
            // SAFETY: as above.
            state_destroy: unsafe { library.function("nvjpegJpegStateDestroy") }?,
            // SAFETY: as above.
            initialize: unsafe { library.function("nvjpegDecodeBatchedInitialize") }?,
            // SAFETY: as above.
            decode: unsafe { library.function("nvjpegDecodeBatched") }?,
            // SAFETY: as above.
            preallocate: unsafe { library.function("nvjpegDecodeBatchedPreAllocate") }.ok(),
            _library: ManuallyDrop::new(library),
        };
        let _bound = gpu.bind()?;
        let mut raw = ptr::null_mut();
        let (null, bits) = (ptr::null_mut(), flags.bits());
        // SAFETY: without allocators of ours the library takes CUDA's; the pointer is valid for the call.
        let status = unsafe { (functions.create)(BACKEND_HARDWARE, null, null, bits, &raw mut raw) };
        check("nvjpegCreateEx", status).map_err(|error| missing(gpu, &error.to_string()))?;
        let handle = Arc::new(Self { raw, functions, gpu: Arc::clone(gpu) });
        let (mut engines, mut sms) = (0, 0);
        // SAFETY: the handle is valid, and so are the pointers for the call.
        let status = unsafe { (handle.functions.hardware_info)(raw, &raw mut engines, &raw mut sms) };
        check("nvjpegGetHardwareDecoderInfo", status).map_err(|error| missing(gpu, &error.to_string()))?;
        match engines.saturating_mul(sms) as usize {
            0 => Err(missing(gpu, "the library finds none")),
            count => Ok((handle, count)),
        }
    }
}

fn missing(gpu: &Gpu, why: &str) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "no JPEG engines on device {} (`{}`): {why}; in a container they need `video` in \
             `NVIDIA_DRIVER_CAPABILITIES`",
            gpu.ordinal(),
            gpu.name()
        ),
    )
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _bound = self.gpu.bind();
        // SAFETY: created by `open`; every state holds the handle, so none is left.
        let _ = unsafe { (self.functions.destroy)(self.raw) };
    }
}

/// What the library needs to decode one batch at a time. Belongs to one thread at a time, and so does its stream.
pub(super) struct State {
    raw: RawState,
    handle: Arc<Handle>,
    format: Format,
    /// The batch size that it is initialised for.
    size: Option<usize>,
}

// SAFETY: the documentation ties a state to one thread at a time, not to the one that made it.
unsafe impl Send for State {}

impl State {
    /// A state that decodes to `format`, and may `preallocate` for one picture of one pixel: not for its size, but
    /// because the library then takes memory from a pool.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn new(handle: &Arc<Handle>, format: Format, preallocate: bool) -> Result<Self> {
        let _bound = handle.gpu.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the handle is valid, and so is the pointer for the call.
        let status = unsafe { (handle.functions.state_create)(handle.raw, &raw mut raw) };
        check("nvjpegJpegStateCreate", status)?;
        let state = Self { raw, handle: Arc::clone(handle), format, size: None };
        if let Some(allocate) = handle.functions.preallocate.filter(|_| preallocate) {
            // SAFETY: handle and state are valid, the numbers are documented ones.
            let status = unsafe { allocate(handle.raw, raw, 1, 1, 1, SUBSAMPLING_444, format as c_int) };
            check("nvjpegDecodeBatchedPreAllocate", status)?;
        }
        Ok(state)
    }

    /// Puts the decoding of a batch into `stream`: `data` and `lengths` are the files, `images` where each goes.
    ///
    /// # Errors
    /// What the library says; at least one of the files could not be decoded, and nothing is known of the others.
    ///
    /// # Safety
    /// Every file can be read, and every image written on the device, until the stream is done with this call. The last
    /// call's work is done.
    pub(super) unsafe fn decode(
        &mut self,
        data: &[*const u8],
        lengths: &[usize],
        images: &mut [Image],
        stream: &Stream,
    ) -> Result<()> {
        let size = data.len();
        if lengths.len() != size || images.len() != size {
            return Err(Error::internal("a batch of files with other numbers of lengths or images"));
        }
        let functions = &self.handle.functions;
        let _bound = self.handle.gpu.bind()?;
        if self.size != Some(size) {
            let batch =
                c_int::try_from(size).map_err(|_| Error::internal("too many files for the engines"))?;
            // SAFETY: handle and state are valid, the format is one of the documented numbers. The number of threads is
            // documented as unused.
            let status =
                unsafe { (functions.initialize)(self.handle.raw, self.raw, batch, 1, self.format as c_int) };
            self.size = None;
            check("nvjpegDecodeBatchedInitialize", status)?;
            self.size = Some(size);
        }
        // SAFETY: the state is initialised for as many files as the arrays hold; the caller vouches for what they point
        // to.
        let status = unsafe {
            (functions.decode)(
                self.handle.raw,
                self.raw,
                data.as_ptr(),
                lengths.as_ptr(),
                images.as_mut_ptr(),
                stream.handle(),
            )
        };
        check("nvjpegDecodeBatched", status).inspect_err(|_| self.size = None)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _bound = self.handle.gpu.bind();
        // SAFETY: created by `new`; the lane waits for its stream first.
        let _ = unsafe { (self.handle.functions.state_destroy)(self.raw) };
    }
}

/// What the library answers, or nvJPEG2000, whose numbers are the same. Without memory it is unavailable: no file is to
/// blame.
pub(in crate::gpu) fn check(function: &str, status: Status) -> Result<()> {
    const ALLOCATION_FAILED: Status = 5;
    let text = match status {
        SUCCESS => return Ok(()),
        1 => "not initialised",
        2 => "invalid parameter",
        3 => "bad JPEG",
        4 => "JPEG not supported",
        ALLOCATION_FAILED => "allocation failed",
        6 => "execution failed",
        7 => "no such hardware",
        8 => "internal error",
        9 => "not implemented",
        10 => "incomplete file",
        _ => "unknown status",
    };
    let kind = if status == ALLOCATION_FAILED { ErrorKind::Unavailable } else { ErrorKind::Internal };
    Err(Error::new(kind, format!("`{function}`: {text} (status {status})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_four_pointers_and_four_sizes() {
        assert_eq!(size_of::<Image>(), 64);
        assert_eq!(std::mem::offset_of!(Image, pitch), 32);
        let image = Image::new(4096, 300);
        assert_eq!((image.channel[0] as u64, image.pitch[0], image.pitch[1]), (4096, 300, 0));
        assert!(image.channel[1..].iter().all(|channel| channel.is_null()));
    }

    #[test]
    fn flags_have_the_documented_bits() {
        assert_eq!(Flags { interpolate: true, no_pipeline: false }.bits(), 32);
        assert_eq!(Flags { interpolate: true, no_pipeline: true }.bits(), 33);
        assert_eq!(Flags::default().bits(), 0);
    }

    #[test]
    fn a_status_is_named() {
        assert!(check("f", 0).is_ok());
        assert!(check("f", 3).unwrap_err().to_string().contains("bad JPEG"));
        assert!(check("f", 77).unwrap_err().to_string().contains("status 77"));
    }
}
