//! The part of nvJPEG2000's C interface that is called, loaded at run time, and owners of its handles. Written from the
//! public documentation. It must not know batches.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::result;

use crate::error::{Error, Result};
use crate::gpu::context::driver_error;
use crate::gpu::jpeg::{Format, check};
use crate::gpu::{Found, Gpu, Library, Stream};

type Status = c_int;
type Raw = *mut c_void;

/// `NVJPEG2K_UINT8`.
const UINT8: c_int = 0;

/// `NVJPEG2K_FORMAT_INTERLEAVED`.
const INTERLEAVED: c_int = 1;

/// Colour spaces that are stored as they are shown: not told, sRGB, gray.
const PLAIN_COLORS: std::ops::RangeInclusive<c_int> = 0..=2;

/// `nvjpeg2kImageInfo_t`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct ImageInfo {
    width: u32,
    height: u32,
    tile_width: u32,
    tile_height: u32,
    tiles_x: u32,
    tiles_y: u32,
    components: u32,
}

/// `nvjpeg2kImageComponentInfo_t`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct ComponentInfo {
    width: u32,
    height: u32,
    precision: u8,
    is_signed: u8,
}

/// `nvjpeg2kImage_t`.
#[derive(Debug)]
#[repr(C)]
struct Image {
    pixels: *mut *mut c_void,
    pitch: *mut usize,
    pixel_type: c_int,
    components: u32,
}

/// Makes something, and takes it apart.
type Create = unsafe extern "C" fn(*mut Raw) -> Status;
type Destroy = unsafe extern "C" fn(Raw) -> Status;

/// The library, loaded.
struct Functions {
    destroy: Destroy,
    state_create: unsafe extern "C" fn(Raw, *mut Raw) -> Status,
    state_destroy: Destroy,
    file_create: Create,
    file_destroy: Destroy,
    parse: unsafe extern "C" fn(Raw, *const u8, usize, c_int, c_int, Raw) -> Status,
    image_info: unsafe extern "C" fn(Raw, *mut ImageInfo) -> Status,
    component_info: unsafe extern "C" fn(Raw, *mut ComponentInfo, u32) -> Status,
    color_space: unsafe extern "C" fn(Raw, *mut c_int) -> Status,
    params_create: Create,
    params_destroy: Destroy,
    set_format: unsafe extern "C" fn(Raw, c_int) -> Status,
    decode: unsafe extern "C" fn(Raw, Raw, Raw, Raw, *mut Image, *mut c_void) -> Status,
    /// Keeps the functions above loaded. Never closed: the CUDA runtime inside of the library is not made for that.
    _library: ManuallyDrop<Found>,
}

/// A handle of the library for one device.
pub(super) struct Handle {
    raw: Raw,
    functions: Functions,
    gpu: Arc<Gpu>,
}

// SAFETY: the documentation calls the handle thread safe.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Opens the library for `gpu`.
    ///
    /// # Errors
    /// Unavailable, when it is not there or too old; what it says.
    pub(super) fn open(gpu: &Arc<Gpu>) -> Result<Arc<Self>> {
        let library = Library::NVJPEG2000.open()?;
        // SAFETY: the types of all functions here are those of nvJPEG2000's documentation.
        let create: Create = unsafe { library.function("nvjpeg2kCreateSimple") }?;
        let functions = Functions {
            // SAFETY: as above.
            destroy: unsafe { library.function("nvjpeg2kDestroy") }?,
            // SAFETY: as above.
            state_create: unsafe { library.function("nvjpeg2kDecodeStateCreate") }?,
            // SAFETY: as above.
            state_destroy: unsafe { library.function("nvjpeg2kDecodeStateDestroy") }?,
            // SAFETY: as above.
            file_create: unsafe { library.function("nvjpeg2kStreamCreate") }?,
            // SAFETY: as above.
            file_destroy: unsafe { library.function("nvjpeg2kStreamDestroy") }?,
            // SAFETY: as above.
            parse: unsafe { library.function("nvjpeg2kStreamParse") }?,
            // SAFETY: as above.
            image_info: unsafe { library.function("nvjpeg2kStreamGetImageInfo") }?,
            // SAFETY: as above.
            component_info: unsafe { library.function("nvjpeg2kStreamGetImageComponentInfo") }?,
            // SAFETY: as above.
            color_space: unsafe { library.function("nvjpeg2kStreamGetColorSpace") }?,
            // SAFETY: as above.
            params_create: unsafe { library.function("nvjpeg2kDecodeParamsCreate") }?,
            // SAFETY: as above.
            params_destroy: unsafe { library.function("nvjpeg2kDecodeParamsDestroy") }?,
            // SAFETY: as above. Libraries without it write planes alone.
            set_format: unsafe { library.function("nvjpeg2kDecodeParamsSetOutputFormat") }?,
            // SAFETY: as above.
            decode: unsafe { library.function("nvjpeg2kDecodeImage") }?,
            _library: ManuallyDrop::new(library),
        };
        let _bound = gpu.bind()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        check("nvjpeg2kCreateSimple", unsafe { create(&raw mut raw) })?;
        Ok(Arc::new(Self { raw, functions, gpu: Arc::clone(gpu) }))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _bound = self.gpu.bind();
        // SAFETY: created by `open`; every state holds the handle, so none is left.
        let _ = unsafe { (self.functions.destroy)(self.raw) };
    }
}

/// What the library needs to decode one file at a time. Belongs to one thread at a time.
pub(super) struct State {
    state: Raw,
    file: Raw,
    params: Raw,
    handle: Arc<Handle>,
}

// SAFETY: the documentation ties a state to one thread at a time, not to the one that made it.
unsafe impl Send for State {}

impl State {
    /// A state that decodes to interleaved pixels.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn new(handle: &Arc<Handle>) -> Result<Self> {
        let null = ptr::null_mut();
        let mut state = Self { state: null, file: null, params: null, handle: Arc::clone(handle) };
        let (functions, _bound) = (&handle.functions, handle.gpu.bind()?);
        // SAFETY: the handle is valid, and so is the pointer for the call.
        let status = unsafe { (functions.state_create)(handle.raw, &raw mut state.state) };
        check("nvjpeg2kDecodeStateCreate", status)?;
        // SAFETY: the pointer is valid for the call.
        check("nvjpeg2kStreamCreate", unsafe { (functions.file_create)(&raw mut state.file) })?;
        // SAFETY: as above.
        check("nvjpeg2kDecodeParamsCreate", unsafe { (functions.params_create)(&raw mut state.params) })?;
        // SAFETY: the parameters are valid, the number is a documented one.
        let status = unsafe { (functions.set_format)(state.params, INTERLEAVED) };
        check("nvjpeg2kDecodeParamsSetOutputFormat", status)?;
        Ok(state)
    }

    /// Puts the decoding of a file of `width` x `height` pixels into `stream`, which writes rows without gaps to
    /// `target` on the device.
    ///
    /// # Errors
    /// What the library says; unsupported, when what it finds is not of that size, of 8 bits, of the channels of
    /// `format`, stored as it is shown.
    ///
    /// # Safety
    /// The file can be read and the target written, with as many bytes as the pixels take, until the stream is done
    /// with this call. The last call's work is done.
    pub(super) unsafe fn decode(
        &mut self,
        bytes: &[u8],
        [width, height]: [usize; 2],
        format: Format,
        target: u64,
        stream: &Stream,
    ) -> Result<()> {
        let (functions, handle) = (&self.handle.functions, self.handle.raw);
        let _bound = self.handle.gpu.bind()?;
        // SAFETY: handle and file are valid; the caller keeps the bytes, which are so not copied, nor is what else is
        // in the file.
        let status = unsafe { (functions.parse)(handle, bytes.as_ptr(), bytes.len(), 0, 0, self.file) };
        check("nvjpeg2kStreamParse", status)?;
        let channels = format.channels();
        self.check_file([width, height], channels)?;
        let (mut pixels, mut pitch) = (target as *mut c_void, width * channels);
        // Of a damaged file it leaves out what it cannot decode.
        // SAFETY: the caller vouches for the target and its size until the stream is done.
        unsafe { result::memset_d8_async(target, 0, pitch * height, stream.raw()) }
            .map_err(|error| driver_error("filling memory with zeros", error))?;
        let mut image = Image {
            pixels: &raw mut pixels,
            pitch: &raw mut pitch,
            pixel_type: UINT8,
            components: channels as u32,
        };
        // SAFETY: all handles are valid, and so are the pointers for the call; the caller vouches for the target, whose
        // size the file has.
        let status = unsafe {
            (functions.decode)(handle, self.state, self.file, self.params, &raw mut image, stream.handle())
        };
        check("nvjpeg2kDecodeImage", status)
    }

    /// Fails unless the parsed file is one that can be written as it is stored.
    fn check_file(&self, size: [usize; 2], channels: usize) -> Result<()> {
        let functions = &self.handle.functions;
        let (mut info, mut color) = (ImageInfo::default(), 0);
        // SAFETY: the file was parsed, and the pointer is valid for the call.
        check("nvjpeg2kStreamGetImageInfo", unsafe { (functions.image_info)(self.file, &raw mut info) })?;
        // SAFETY: as above.
        check("nvjpeg2kStreamGetColorSpace", unsafe { (functions.color_space)(self.file, &raw mut color) })?;
        let same = |found: [u32; 2]| found.map(|side| side as usize) == size;
        let mut fits = same([info.width, info.height]) && info.components as usize == channels;
        fits &= PLAIN_COLORS.contains(&color);
        for number in 0..info.components.min(channels as u32) {
            let mut found = ComponentInfo::default();
            // SAFETY: as above.
            let status = unsafe { (functions.component_info)(self.file, &raw mut found, number) };
            check("nvjpeg2kStreamGetImageComponentInfo", status)?;
            fits &= same([found.width, found.height]) && (found.precision, found.is_signed) == (8, 0);
        }
        if fits {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "{} components of {} x {} pixels in colour space {color}, expected {channels} of {} x {}, of 8 bits each",
            info.components, info.width, info.height, size[0], size[1]
        )))
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let (functions, _bound) = (&self.handle.functions, self.handle.gpu.bind());
        let parts = [
            (self.params, functions.params_destroy),
            (self.file, functions.file_destroy),
            (self.state, functions.state_destroy),
        ];
        for (part, destroy) in parts.into_iter().filter(|(part, _)| !part.is_null()) {
            // SAFETY: created by `new`; who has the state waits for its stream first.
            let _ = unsafe { destroy(part) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn structs_have_the_documented_layouts() {
        assert_eq!((size_of::<ImageInfo>(), offset_of!(ImageInfo, components)), (28, 24));
        assert_eq!((size_of::<ComponentInfo>(), offset_of!(ComponentInfo, is_signed)), (12, 9));
        assert_eq!((size_of::<Image>(), offset_of!(Image, components)), (24, 20));
    }
}
