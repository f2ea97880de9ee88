//! The library's parser: bytes of a stream in, calls back with what to decode and what to show. It runs on the calling
//! thread. It must not know what the calls do.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use super::sys::{
    self, DisplayInfo, END_OF_STREAM, Functions, ParserParams, PictureParams, RawParser, SourcePacket,
    TIMESTAMP, VideoFormat,
};
use crate::error::{Error, Result};

/// How many pictures may be decoded before the first of them must be shown: the engine works on them while one is
/// converted.
pub(super) const DISPLAY_DELAY: u32 = 4;

/// What is told of a stream.
pub(super) trait Events {
    /// Pictures of this format follow. Returns how many surfaces there are to decode to.
    ///
    /// # Errors
    /// When they are not decoded.
    fn begin(&mut self, format: &VideoFormat) -> Result<c_int>;

    /// A picture is to be decoded.
    ///
    /// # Errors
    /// When it cannot be.
    ///
    /// # Safety
    /// `params` is what the parser hands over, during that call.
    unsafe fn decode(&mut self, params: *mut PictureParams) -> Result<()>;

    /// A decoded picture is to be shown.
    ///
    /// # Errors
    /// When it cannot be.
    fn show(&mut self, display: &DisplayInfo) -> Result<()>;
}

/// Whoever is told, and the first error.
struct Listener<E> {
    events: E,
    failed: Option<Error>,
}

/// A parser of one stream, and whoever is told what is in it.
pub(super) struct Parser<E: Events> {
    raw: RawParser,
    functions: Arc<Functions>,
    /// Nobody waits for it: the library calls back within our calls, in which it is free.
    listener: Arc<Mutex<Listener<E>>>,
}

// SAFETY: the library's parser is memory that only calls with its handle touch, all of which need `&mut self`; it runs
// its callbacks on the thread that calls. What it tells goes along.
unsafe impl<E: Events + Send> Send for Parser<E> {}

impl<E: Events> Parser<E> {
    /// A parser for `codec`, a `cudaVideoCodec`, that tells `events`.
    ///
    /// # Errors
    /// What the library says.
    pub(super) fn new(functions: &Arc<Functions>, codec: c_int, events: E) -> Result<Self> {
        let listener = Arc::new(Mutex::new(Listener { events, failed: None }));
        let mut params = ParserParams {
            codec,
            // Until the first format says how many.
            decode_surfaces: 1,
            clock_rate: 0,
            error_threshold: 0,
            display_delay: DISPLAY_DELAY,
            flags: 0,
            reserved: [0; 4],
            user: Arc::as_ptr(&listener).cast_mut().cast(),
            sequence: Some(on_sequence::<E>),
            decode: Some(on_decode::<E>),
            display: Some(on_display::<E>),
            operating_point: ptr::null_mut(),
            reserved_too: [ptr::null_mut(); 6],
            extended: ptr::null_mut(),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: both pointers are valid for the call. What `user` points to is kept as long as the parser lives.
        let status = unsafe { (functions.create_parser)(&raw mut raw, &raw mut params) };
        sys::check("cuvidCreateVideoParser", status)?;
        Ok(Self { raw, functions: Arc::clone(functions), listener })
    }

    /// Whoever is told. Must be let go before the parser takes more.
    pub(super) fn events(&self) -> MappedMutexGuard<'_, E> {
        MutexGuard::map(self.listener.lock(), |listener| &mut listener.events)
    }

    /// Whoever was told; nothing more is. `None` never is, as nobody else keeps it.
    pub(super) fn into_events(self) -> Option<E> {
        let listener = Arc::clone(&self.listener);
        drop(self);
        Arc::into_inner(listener).map(|listener| listener.into_inner().events)
    }

    /// Takes the bytes of one frame; `time` comes back with its picture.
    ///
    /// # Errors
    /// Those of the events, and what the library says.
    pub(super) fn send(&mut self, packet: &[u8], time: i64) -> Result<()> {
        self.parse(SourcePacket {
            flags: TIMESTAMP,
            bytes: packet.len() as u64,
            payload: packet.as_ptr(),
            timestamp: time,
        })
    }

    /// Says that the stream has ended: all pictures come.
    ///
    /// # Errors
    /// As for [`Parser::send`].
    pub(super) fn finish(&mut self) -> Result<()> {
        self.parse(SourcePacket { flags: END_OF_STREAM, bytes: 0, payload: ptr::null(), timestamp: 0 })
    }

    fn parse(&mut self, mut packet: SourcePacket) -> Result<()> {
        // SAFETY: the parser is valid, and so are packet and payload for the call. The listener is not locked meanwhile
        // but by the functions below, which this call calls.
        let status = unsafe { (self.functions.parse)(self.raw, &raw mut packet) };
        match self.listener.lock().failed.take() {
            Some(error) => Err(error),
            None => sys::check("cuvidParseVideoData", status),
        }
    }
}

impl<E: Events> Drop for Parser<E> {
    fn drop(&mut self) {
        // SAFETY: created by `new`, and no call is under way.
        let _ = unsafe { (self.functions.destroy_parser)(self.raw) };
    }
}

/// What callbacks answer when something failed.
const FAILED: c_int = 0;
const DONE: c_int = 1;

/// Tells the listener at `user`; an error or a panic is kept for [`Parser::parse`], and nothing more is told.
///
/// # Safety
/// `user` is the pointer that [`Parser::new`] gave.
unsafe fn tell<E: Events>(user: *mut c_void, event: impl FnOnce(&mut E) -> Result<c_int>) -> c_int {
    // SAFETY: a listener that is kept as long as its parser lives.
    let listener = unsafe { &*user.cast::<Mutex<Listener<E>>>() };
    let Some(mut listener) = listener.try_lock() else { return FAILED };
    if listener.failed.is_some() {
        return FAILED;
    }
    let told = catch_unwind(AssertUnwindSafe(|| event(&mut listener.events)));
    match told.unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref()))) {
        Ok(answer) => answer,
        Err(error) => {
            listener.failed = Some(error);
            FAILED
        }
    }
}

/// # Safety
/// Called by the library as its documentation says.
unsafe extern "C" fn on_sequence<E: Events>(user: *mut c_void, format: *mut VideoFormat) -> c_int {
    // SAFETY: the library hands over a format, valid for the call.
    let Some(format) = (unsafe { format.as_ref() }) else { return FAILED };
    // SAFETY: `user` is what the parser was made with.
    unsafe { tell::<E>(user, |events| events.begin(format)) }
}

/// # Safety
/// Called by the library as its documentation says.
unsafe extern "C" fn on_decode<E: Events>(user: *mut c_void, params: *mut PictureParams) -> c_int {
    if params.is_null() {
        return FAILED;
    }
    let decode = |events: &mut E| {
        // SAFETY: `params` is what the library hands over, and this is that call.
        unsafe { events.decode(params) }.map(|()| DONE)
    };
    // SAFETY: `user` is what the parser was made with.
    unsafe { tell::<E>(user, decode) }
}

/// # Safety
/// Called by the library as its documentation says.
unsafe extern "C" fn on_display<E: Events>(user: *mut c_void, display: *mut DisplayInfo) -> c_int {
    // SAFETY: the library hands over a picture to show, valid for the call, or null at the end of the stream.
    let Some(display) = (unsafe { display.as_ref() }) else { return DONE };
    // SAFETY: `user` is what the parser was made with.
    unsafe { tell::<E>(user, |events| events.show(display).map(|()| DONE)) }
}
