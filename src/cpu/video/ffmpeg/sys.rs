//! What is used of libavcodec and libavutil, FFmpeg's libraries: functions by name, and the few fields of structures
//! that have no functions. It must not know codecs, nor where the libraries are.
//!
//! | relied on | where | since when |
//! | --- | --- | --- |
//! | `AVPacket.pts`, `.data`, `.size` | bytes 8, 24, 32 | the same in FFmpeg 5 to 8 |
//! | `AVCodecContext.log_level_offset`, `.codec` | bytes 8, 16 | the same in FFmpeg 5 to 8 |
//! | `AVFrame.data`, `.linesize`, `.width`, `.height` | bytes 0, 64, 104, 108 | the same in FFmpeg 5 to 8 |
//! | `AVFrame.format`, `.pts` | bytes 116, 136 | the same in FFmpeg 5 to 8 |
//! | `AVFrame.flags`, `.decode_error_flags` | [`Version::of`] | FFmpeg keeps them within a major version of libavutil |
//! | numbers of errors, flags of frames | the constants here | the same in FFmpeg 5 to 8 |
//!
//! All else is set by the names of options (`av_opt_set`). `library` decodes a clip, whole and damaged, before it lets
//! these be used: libraries with other layouts do not pass.

#![expect(unsafe_code, reason = "a boundary to C; each block says what it relies on")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr::{NonNull, null, null_mut};

use libloading::Library;

use super::stored::Stored;
use crate::error::{Error, ErrorKind, Result};

/// Search options of children, too (`AV_OPT_SEARCH_CHILDREN`).
const CHILDREN: c_int = 1;
/// `EAGAIN` and `AVERROR_EOF`: there is no picture yet; there are no more.
const AGAIN: c_int = -11;
const END: c_int = -541_478_725;
/// `AV_FRAME_FLAG_CORRUPT`, `AV_FRAME_FLAG_DISCARD`.
const CORRUPT: c_int = 1;
const DISCARD: c_int = 1 << 2;
/// Added to the level of what a decoder logs: more than the highest, so it logs nothing.
const SILENT: c_int = 64;
/// Bytes of a text of FFmpeg's.
const TEXT: usize = 128;

/// Where fields are.
mod at {
    pub(super) const PACKET_PTS: usize = 8;
    pub(super) const PACKET_DATA: usize = 24;
    pub(super) const PACKET_SIZE: usize = 32;
    pub(super) const CONTEXT_LOG: usize = 8;
    pub(super) const CONTEXT_CODEC: usize = 16;
    pub(super) const FRAME_DATA: usize = 0;
    pub(super) const FRAME_LINES: usize = 64;
    pub(super) const FRAME_WIDTH: usize = 104;
    pub(super) const FRAME_HEIGHT: usize = 108;
    pub(super) const FRAME_FORMAT: usize = 116;
    pub(super) const FRAME_PTS: usize = 136;
}

/// A version that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    /// Major versions of libavcodec and libavutil.
    pub(super) codec: u32,
    pub(super) util: u32,
    /// Of FFmpeg.
    pub(super) release: u32,
    flags: usize,
    errors: usize,
}

impl Version {
    /// All of them, the newest first.
    pub(super) const ALL: [Self; 4] = [
        Self { codec: 62, util: 60, release: 8, flags: 276, errors: 320 },
        Self { codec: 61, util: 59, release: 7, flags: 292, errors: 344 },
        Self { codec: 60, util: 58, release: 6, flags: 316, errors: 376 },
        Self { codec: 59, util: 57, release: 5, flags: 316, errors: 376 },
    ];

    /// That of these libraries.
    fn of(codec: u32, util: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.codec == codec && version.util == util)
    }
}

type Raw = *mut c_void;

/// Declares the functions as a table of pointers, with their types.
macro_rules! functions {
    ($($name:ident: ($($argument:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Those of libavcodec, and of libavutil, which it brings.
            ///
            /// # Safety
            /// `library` is libavcodec, and stays loaded as long as they are used.
            unsafe fn of(library: &Library) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: the types are those of FFmpeg's headers, the same in all versions that are let pass.
                Ok(unsafe { Self { $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)* } })
            }
        }
    };
}

functions! {
    avcodec_version: () -> c_uint;
    avutil_version: () -> c_uint;
    avcodec_find_decoder_by_name: (*const c_char) -> *const c_void;
    avcodec_alloc_context3: (*const c_void) -> Raw;
    avcodec_free_context: (*mut Raw);
    avcodec_open2: (Raw, *const c_void, *mut Raw) -> c_int;
    avcodec_send_packet: (Raw, *const c_void) -> c_int;
    avcodec_receive_frame: (Raw, Raw) -> c_int;
    av_opt_set: (Raw, *const c_char, *const c_char, c_int) -> c_int;
    av_packet_alloc: () -> Raw;
    av_packet_free: (*mut Raw);
    av_packet_unref: (Raw);
    av_new_packet: (Raw, c_int) -> c_int;
    av_frame_alloc: () -> Raw;
    av_frame_free: (*mut Raw);
    av_get_pix_fmt_name: (c_int) -> *const c_char;
    av_strerror: (c_int, *mut c_char, usize) -> c_int;
}

/// The libraries, for as long as the process lives.
pub(super) struct Api {
    functions: Functions,
    /// Which they are.
    pub(super) version: Version,
    /// Their versions in words.
    pub(super) text: String,
}

/// The field `at` bytes into a structure.
///
/// # Safety
/// The structure is alive and has a field of this type there.
unsafe fn field<T: Copy>(structure: NonNull<c_void>, at: usize) -> T {
    // SAFETY: it is inside of the structure.
    let place = unsafe { structure.byte_add(at) };
    // SAFETY: the caller says that such a field is there; the allocator aligns structures, and C their fields.
    unsafe { place.cast::<T>().read() }
}

/// Writes that field.
///
/// # Safety
/// As [`field`]; nobody else uses the structure.
unsafe fn set_field<T: Copy>(structure: NonNull<c_void>, at: usize, value: T) {
    // SAFETY: it is inside of the structure.
    let place = unsafe { structure.byte_add(at) };
    // SAFETY: as in `field`, and the caller says that nobody else uses it.
    unsafe { place.cast::<T>().write(value) }
}

/// A memory that C has given.
fn given(pointer: Raw) -> Result<NonNull<c_void>> {
    NonNull::new(pointer).ok_or_else(|| Error::new(ErrorKind::Unavailable, "FFmpeg has no memory"))
}

/// Loads a library for good.
///
/// # Errors
/// The loader's text.
pub(super) fn load(path: &Path) -> std::result::Result<Library, String> {
    // SAFETY: who runs the process names the folder, or it is the loader's; FFmpeg's libraries and what they need set
    // up nothing but their own state when they are loaded.
    unsafe { Library::new(path) }.map_err(|error| error.to_string())
}

impl Api {
    /// The functions of `library`, which is libavcodec.
    ///
    /// # Errors
    /// A version that is not known, a function that is missing.
    pub(super) fn of(library: Library) -> Result<Self> {
        // Frames and their buffers may outlive everything else.
        let library = ManuallyDrop::new(library);
        // SAFETY: the caller says which it is; it is never unloaded.
        let functions = unsafe { Functions::of(&library) };
        let functions = functions.map_err(|error| Error::unsupported(format!("no FFmpeg: {error}")))?;
        // SAFETY: a function without arguments that returns a constant.
        let codec = unsafe { (functions.avcodec_version)() };
        // SAFETY: likewise.
        let util = unsafe { (functions.avutil_version)() };
        let text = |version: u32| format!("{}.{}.{}", version >> 16, version >> 8 & 255, version & 255);
        let (text, version) = (text(codec), Version::of(codec >> 16, util >> 16));
        let version = version.ok_or_else(|| {
            let [codec, util] = [codec >> 16, util >> 16];
            Error::unsupported(format!(
                "libavcodec {codec} with libavutil {util}, expected 59 to 62 with 57 to 60 (FFmpeg 5 to 8)"
            ))
        })?;
        Ok(Self { functions, version, text })
    }

    /// What a number of FFmpeg's means.
    fn error(&self, code: c_int) -> String {
        let mut text = [0_u8; TEXT];
        // SAFETY: it writes at most as many bytes as the buffer has, with a zero at the end.
        unsafe { (self.functions.av_strerror)(code, text.as_mut_ptr().cast(), text.len()) };
        CStr::from_bytes_until_nul(&text).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// A decoder of FFmpeg's.
pub(super) struct Context {
    api: &'static Api,
    context: NonNull<c_void>,
    packet: NonNull<c_void>,
}

// SAFETY: a context, with its threads, may be used by any thread, if by one at a time: all that uses it is `&mut`.
unsafe impl Send for Context {}

impl Context {
    /// The decoder called `name` with these options.
    ///
    /// # Errors
    /// When the library has none, or does not take an option; when it cannot begin.
    pub(super) fn new(api: &'static Api, name: &str, options: &[(&str, String)]) -> Result<Self> {
        let functions = &api.functions;
        let text = |text: &str| CString::new(text).map_err(|_| Error::internal("a zero in a name"));
        let codec_name = text(name)?;
        // SAFETY: a string that ends with a zero; what comes back is FFmpeg's own and constant.
        let codec = unsafe { (functions.avcodec_find_decoder_by_name)(codec_name.as_ptr()) };
        if codec.is_null() {
            return Err(Error::unsupported(format!("FFmpeg without its decoder `{name}`")));
        }
        // SAFETY: the codec is one of FFmpeg's.
        let context = given(unsafe { (functions.avcodec_alloc_context3)(codec) })?;
        // SAFETY: it takes nothing. If there is no packet, the context is lost, as is all else without memory.
        let packet = given(unsafe { (functions.av_packet_alloc)() })?;
        let made = Self { api, context, packet };
        // SAFETY: the structure goes on far behind these fields in all versions.
        let found: *const c_void = unsafe { field(made.context, at::CONTEXT_CODEC) };
        if found != codec {
            return Err(Error::unsupported("FFmpeg whose `AVCodecContext` is laid out in another way"));
        }
        // SAFETY: it stands before the field that was just found in its place.
        unsafe { set_field(made.context, at::CONTEXT_LOG, SILENT) };
        for (name, value) in options {
            let (option, value) = (text(name)?, text(value)?);
            // SAFETY: a context begins with its class; the strings end with a zero and are copied.
            let code = unsafe {
                (functions.av_opt_set)(context.as_ptr(), option.as_ptr(), value.as_ptr(), CHILDREN)
            };
            if code < 0 {
                return Err(Error::unsupported(format!("FFmpeg's option `{name}`: {}", api.error(code))));
            }
        }
        // SAFETY: a context of this codec that was not opened; there are no further options.
        let code = unsafe { (functions.avcodec_open2)(context.as_ptr(), codec, null_mut()) };
        if code < 0 {
            let text = format!("FFmpeg's decoder `{name}` does not begin: {}", api.error(code));
            return Err(Error::new(ErrorKind::Unavailable, text));
        }
        Ok(made)
    }

    /// Gives it the bytes of a frame; `place` comes back with the picture.
    ///
    /// # Errors
    /// FFmpeg's words.
    pub(super) fn send(&mut self, bytes: &[u8], place: i64) -> std::result::Result<(), String> {
        let (functions, packet) = (&self.api.functions, self.packet.as_ptr());
        if bytes.is_empty() {
            return Ok(());
        }
        let size = c_int::try_from(bytes.len()).map_err(|_| "a frame of too many bytes".to_owned())?;
        // SAFETY: the packet is empty. It gets a buffer of `size` bytes with zeros behind it.
        let code = unsafe { (functions.av_new_packet)(packet, size) };
        if code < 0 {
            return Err(self.api.error(code));
        }
        // SAFETY: a field of the packet that was just filled.
        let data: *mut u8 = unsafe { field(self.packet, at::PACKET_DATA) };
        // SAFETY: likewise.
        let found: c_int = unsafe { field(self.packet, at::PACKET_SIZE) };
        let code = if data.is_null() || found != size {
            None
        } else {
            // SAFETY: the buffer has `size` bytes, and is nobody else's.
            unsafe { data.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            // SAFETY: a field of the packet, which is ours.
            unsafe { set_field(self.packet, at::PACKET_PTS, place) };
            // SAFETY: the context is open, and the packet is whole.
            Some(unsafe { (functions.avcodec_send_packet)(self.context.as_ptr(), packet) })
        };
        // SAFETY: the decoder has a reference of its own to what it needs.
        unsafe { (functions.av_packet_unref)(packet) };
        match code {
            Some(0..) => Ok(()),
            Some(code) => Err(self.api.error(code)),
            None => Err("`AVPacket` is laid out in another way".to_owned()),
        }
    }

    /// Says that there are no more packets.
    pub(super) fn end(&mut self) {
        // SAFETY: the context is open; no packet means the end. That it ended before is no harm.
        unsafe { (self.api.functions.avcodec_send_packet)(self.context.as_ptr(), null()) };
    }

    /// The next picture, if there is one yet.
    ///
    /// # Errors
    /// FFmpeg's words.
    pub(super) fn receive(&mut self) -> std::result::Result<Option<Frame>, String> {
        let functions = &self.api.functions;
        // SAFETY: it takes nothing.
        let raw = given(unsafe { (functions.av_frame_alloc)() }).map_err(|error| error.to_string())?;
        let mut frame = Frame { api: self.api, raw, stored: None };
        // SAFETY: an open context, and a frame of ours that holds nothing.
        match unsafe { (functions.avcodec_receive_frame)(self.context.as_ptr(), frame.raw.as_ptr()) } {
            0.. => {
                frame.stored = Stored::named(frame.format());
                Ok(Some(frame))
            }
            AGAIN | END => Ok(None),
            code => Err(self.api.error(code)),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let (mut context, mut packet) = (self.context.as_ptr(), self.packet.as_ptr());
        // SAFETY: it is ours, and used no more; frames have references of their own to their buffers.
        unsafe { (self.api.functions.avcodec_free_context)(&raw mut context) };
        // SAFETY: likewise.
        unsafe { (self.api.functions.av_packet_free)(&raw mut packet) };
    }
}

/// A picture of FFmpeg's.
pub(super) struct Frame {
    api: &'static Api,
    raw: NonNull<c_void>,
    stored: Option<Stored>,
}

// SAFETY: its buffers are counted in a way that threads may share, and decoders do not write to those that were given.
unsafe impl Send for Frame {}

impl Frame {
    fn number(&self, at: usize) -> c_int {
        // SAFETY: a field of a frame that `av_frame_alloc` made; the places are those of its version.
        unsafe { field(self.raw, at) }
    }

    /// What was given with its packet.
    pub(super) fn place(&self) -> i64 {
        // SAFETY: as in `number`.
        unsafe { field(self.raw, at::FRAME_PTS) }
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> [usize; 2] {
        [at::FRAME_WIDTH, at::FRAME_HEIGHT].map(|at| usize::try_from(self.number(at)).unwrap_or(0))
    }

    /// The name of how its samples are stored.
    pub(super) fn format(&self) -> &'static str {
        // SAFETY: it takes any number, and returns nothing or a constant that ends with a zero.
        let name = unsafe { (self.api.functions.av_get_pix_fmt_name)(self.number(at::FRAME_FORMAT)) };
        if name.is_null() {
            return "";
        }
        // SAFETY: as above; the library is never unloaded.
        unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("")
    }

    /// Whether the decoder made some of it up.
    pub(super) fn is_damaged(&self) -> bool {
        let Version { flags, errors, .. } = self.api.version;
        self.number(flags) & (CORRUPT | DISCARD) != 0 || self.number(errors) != 0
    }

    /// `bytes` of row `y` of a plane; nothing where there is no such plane.
    ///
    /// # Safety
    /// The picture's format has `bytes` in each row of that plane, and more rows than `y`.
    unsafe fn row(&self, plane: usize, y: usize, bytes: usize) -> &[u8] {
        let step = self.number(at::FRAME_LINES + plane * size_of::<c_int>());
        // SAFETY: `plane` is one of eight pointers, as all callers have it below 3.
        let data: *const u8 = unsafe { field(self.raw, at::FRAME_DATA + plane * size_of::<*const u8>()) };
        match usize::try_from(step) {
            Ok(step) if !data.is_null() && step >= bytes => {
                // SAFETY: rows lie `step` bytes apart, and the caller says that this one is there.
                let row = unsafe { data.add(y * step) };
                // SAFETY: the row has so many bytes, which nobody writes to while the frame holds its buffers.
                unsafe { std::slice::from_raw_parts(row, bytes) }
            }
            _ => &[],
        }
    }

    /// Samples of row `y` of plane 0 (luma), 1 or 2; nothing beyond, or of a format that is not known.
    pub(super) fn samples(&self, plane: usize, y: usize) -> &[u8] {
        let Some(Stored { depth, halved }) = self.stored else { return &[] };
        let ([width, height], [across, down]) = (self.size(), halved.unwrap_or_default());
        let (columns, rows) = match plane {
            0 => (width, height),
            1 | 2 if halved.is_some() => (width.div_ceil(1 << across), height.div_ceil(1 << down)),
            _ => return &[],
        };
        if y >= rows {
            return &[];
        }
        // SAFETY: FFmpeg's formats of the names that `Stored` knows have such planes.
        unsafe { self.row(plane, y, columns * if depth > 8 { 2 } else { 1 }) }
    }

    /// How its samples are stored, of a format that is known.
    pub(super) fn stored(&self) -> Option<Stored> {
        self.stored
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        let mut raw = self.raw.as_ptr();
        // SAFETY: it is ours, and used no more.
        unsafe { (self.api.functions.av_frame_free)(&raw mut raw) };
    }
}
