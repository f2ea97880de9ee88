//! What a client sent: its tensors as borrowed bytes, and which tensors it wants back.

use std::ffi::CStr;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::error::not_null;
use super::memory::{Memory, MemoryKind};
use super::server::Server;
use crate::config::DataType;
use crate::triton::sys;
use gesso::error::{Context, Error, Result};
use gesso::pipeline::DeviceBytes;

/// A request that we own; dropping it gives it back to Triton.
pub struct Request {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_Request>,
}

// SAFETY: Triton lets any thread handle a request, one at a time; that it is not `Sync` keeps it to one.
unsafe impl Send for Request {}

impl Request {
    /// Takes a request over.
    ///
    /// # Safety
    /// `raw` is a valid request that nobody else releases.
    pub unsafe fn from_raw(server: &'static Server, raw: NonNull<sys::TRITONBACKEND_Request>) -> Self {
        Self { server, raw }
    }

    /// The server that it came from.
    pub(super) fn server(&self) -> &'static Server {
        self.server
    }

    /// The object, for a call that leaves it with us.
    pub(super) fn as_ptr(&self) -> *mut sys::TRITONBACKEND_Request {
        self.raw.as_ptr()
    }

    /// As [`Request::as_ptr`].
    pub(super) fn as_non_null(&self) -> NonNull<sys::TRITONBACKEND_Request> {
        self.raw
    }

    /// What the client calls the request; often empty.
    ///
    /// # Errors
    /// What Triton says.
    pub fn id(&self) -> Result<String> {
        let id = self.server.out(std::ptr::null(), |out| {
            // SAFETY: we own the request and did not release it.
            unsafe { self.server.required.TRITONBACKEND_RequestId(self.raw.as_ptr(), out) }
        })?;
        if id.is_null() {
            return Ok(String::new());
        }
        // SAFETY: the text ends with NUL and lives as long as the request.
        let id = unsafe { CStr::from_ptr(id) };
        Ok(id.to_string_lossy().into_owned())
    }

    /// The tensors of the request. Their order may differ between requests: go by name.
    ///
    /// # Errors
    /// `Unsupported` for a type of element that we cannot hold, `InvalidArg` for a shape with a negative extent; else
    /// what Triton says.
    pub fn inputs(&self) -> Result<Vec<Input<'_>>> {
        let count = self.server.out(0, |out| {
            // SAFETY: we own the request and did not release it.
            unsafe { self.server.required.TRITONBACKEND_RequestInputCount(self.raw.as_ptr(), out) }
        })?;
        (0..count)
            .map(|index| {
                let raw = self.server.out(std::ptr::null_mut(), |out| {
                    // SAFETY: we own the request and did not release it.
                    unsafe {
                        self.server.required.TRITONBACKEND_RequestInputByIndex(self.raw.as_ptr(), index, out)
                    }
                })?;
                // SAFETY: the input belongs to the request, which is borrowed for `'_`.
                unsafe { Input::from_raw(self.server, raw) }
            })
            .collect()
    }

    /// The names of the tensors that the client wants back.
    ///
    /// # Errors
    /// What Triton says.
    pub fn requested_outputs(&self) -> Result<Vec<String>> {
        let count = self.server.out(0, |out| {
            // SAFETY: we own the request and did not release it.
            unsafe { self.server.required.TRITONBACKEND_RequestOutputCount(self.raw.as_ptr(), out) }
        })?;
        (0..count)
            .map(|index| {
                self.server.text("name of a requested output", |out| {
                    // SAFETY: we own the request and did not release it.
                    unsafe {
                        self.server.required.TRITONBACKEND_RequestOutputName(self.raw.as_ptr(), index, out)
                    }
                })
            })
            .collect()
    }

    /// Where it stands in a sequence of requests; `None` for one that is in none, and where the server is too old to
    /// say.
    ///
    /// # Errors
    /// What Triton says.
    pub fn sequence(&self) -> Result<Option<InSequence>> {
        let newer = &self.server.newer;
        let (Ok(number), Ok(flags)) =
            (&newer.TRITONBACKEND_RequestCorrelationId, &newer.TRITONBACKEND_RequestFlags)
        else {
            return Ok(None);
        };
        // SAFETY: we own the request and did not release it.
        let id = match self.server.out(0, |out| unsafe { number(self.raw.as_ptr(), out) }) {
            Ok(0) => return Ok(None),
            Ok(id) => Correlation::Number(id),
            // It is a text.
            Err(error) => match self.correlation_text()? {
                Some(text) if text.is_empty() => return Ok(None),
                Some(text) => Correlation::Text(text),
                None => return Err(error),
            },
        };
        // SAFETY: as above.
        let flags = self.server.out(0, |out| unsafe { flags(self.raw.as_ptr(), out) })?;
        let has = |flag: sys::TRITONSERVER_RequestFlag| flags & flag.0 != 0;
        Ok(Some(InSequence {
            id,
            is_first: has(sys::TRITONSERVER_RequestFlag::TRITONSERVER_REQUEST_FLAG_SEQUENCE_START),
            is_last: has(sys::TRITONSERVER_RequestFlag::TRITONSERVER_REQUEST_FLAG_SEQUENCE_END),
        }))
    }

    /// The text that names its sequence; `None` where the server is too old to say.
    fn correlation_text(&self) -> Result<Option<String>> {
        let Ok(text) = &self.server.newer.TRITONBACKEND_RequestCorrelationIdString else { return Ok(None) };
        // SAFETY: we own the request and did not release it.
        self.server.text("correlation id", |out| unsafe { text(self.raw.as_ptr(), out) }).map(Some)
    }

    /// The text of the parameter with this name, in small or large letters. The last of several: the headers that the
    /// server hands on are behind what the client calls so itself. `None` where there is none, or the server is too old
    /// to say.
    ///
    /// # Errors
    /// What Triton says.
    pub fn parameter(&self, wanted: &str) -> Result<Option<&[u8]>> {
        let newer = &self.server.newer;
        let (Ok(count), Ok(parameter)) =
            (&newer.TRITONBACKEND_RequestParameterCount, &newer.TRITONBACKEND_RequestParameter)
        else {
            return Ok(None);
        };
        // SAFETY: we own the request and did not release it.
        let count = self.server.out(0, |out| unsafe { count(self.raw.as_ptr(), out) })?;
        for index in (0..count).rev() {
            let (mut name, mut value) = (std::ptr::null(), std::ptr::null());
            let text = sys::TRITONSERVER_ParameterType::TRITONSERVER_PARAMETER_STRING;
            let mut kind = text;
            // SAFETY: as above; every out pointer is valid for the call.
            self.server.check(unsafe {
                parameter(self.raw.as_ptr(), index, &raw mut name, &raw mut kind, &raw mut value)
            })?;
            if name.is_null() || value.is_null() || kind != text {
                continue;
            }
            // SAFETY: the name ends with NUL and lives as long as the request, which is borrowed.
            let name = unsafe { CStr::from_ptr(name) };
            if name.to_bytes().eq_ignore_ascii_case(wanted.as_bytes()) {
                // SAFETY: as above; the value of this type is a text.
                return Ok(Some(unsafe { CStr::from_ptr(value.cast()) }.to_bytes()));
            }
        }
        Ok(None)
    }

    /// Whether the client no longer waits. `false` where the server is too old to say.
    ///
    /// # Errors
    /// What Triton says.
    pub fn is_cancelled(&self) -> Result<bool> {
        self.client().has_left()
    }

    /// The client, to be asked by any thread whether it waits.
    pub fn client(&self) -> Client<'_> {
        Client { server: self.server, raw: self.raw, request: PhantomData }
    }
}

/// What a client calls a sequence of requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Correlation {
    /// A number that is not 0.
    Number(u64),
    /// A text that is not empty.
    Text(String),
}

impl fmt::Display for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Correlation::Number(number) => write!(f, "{number}"),
            Correlation::Text(text) => f.write_str(&text.escape_debug().to_string()),
        }
    }
}

/// Where a request stands in a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InSequence {
    /// Which one.
    pub id: Correlation,
    /// Whether it begins the sequence.
    pub is_first: bool,
    /// Whether it ends the sequence.
    pub is_last: bool,
}

/// Who sent a request.
#[derive(Clone, Copy)]
pub struct Client<'r> {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_Request>,
    request: PhantomData<&'r Request>,
}

// SAFETY: all that it does is to ask whether the request is cancelled. Triton reads an atomic for that, which clients
// set from their own threads while a backend works.
unsafe impl Sync for Client<'_> {}

impl Client<'_> {
    /// Whether the client no longer waits. `false` where the server is too old to say.
    ///
    /// # Errors
    /// What Triton says.
    pub fn has_left(&self) -> Result<bool> {
        let Ok(is_cancelled) = &self.server.newer.TRITONBACKEND_RequestIsCancelled else {
            return Ok(false);
        };
        // SAFETY: the request is borrowed, so it is ours and not released.
        self.server.out(false, |out| unsafe { is_cancelled(self.raw.as_ptr(), out) })
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let all = sys::TRITONSERVER_RequestReleaseFlag::TRITONSERVER_REQUEST_RELEASE_ALL;
        // SAFETY: we own the request, and nothing uses it after `drop`: what came from it is borrowed from it.
        let released = unsafe { self.server.required.TRITONBACKEND_RequestRelease(self.raw.as_ptr(), all.0) };
        if let Err(error) = self.server.check(released) {
            // It is still ours, and there is nobody left to try again.
            tracing::error!("cannot release a request: {error}");
        }
    }
}

/// One tensor of a request.
#[derive(Debug, Clone)]
pub struct Input<'r> {
    /// The name.
    pub name: &'r str,
    /// The type of its elements.
    pub dtype: DataType,
    /// Extents, outermost first. The batch dimension comes first when the model is batched.
    pub shape: Vec<usize>,
    /// Bytes that arrived, over all chunks.
    pub bytes: usize,
    chunks: u32,
    handle: Handle<'r>,
}

/// Where the chunks of an input are asked for.
#[derive(Clone, Copy)]
struct Handle<'r> {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_Input>,
    request: PhantomData<&'r Request>,
}

impl std::fmt::Debug for Handle<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.raw.fmt(f)
    }
}

/// One piece of an input: where it is, and its bytes when the CPU can read them.
#[derive(Clone)]
pub enum Chunk<'r> {
    /// Host memory. A client that sends its tensor in shared memory can still write there while we read: nothing may
    /// be checked once and then relied on.
    Host(&'r [u8]),
    /// Memory of a GPU, or of a kind that we do not know: an address for that device.
    Device {
        /// Where it is.
        bytes: DeviceBytes<'r>,
        /// What kind of memory of which device.
        memory: Memory,
    },
}

impl<'r> Input<'r> {
    /// Describes an input.
    ///
    /// # Safety
    /// `raw` is null or an input of a request that is not released during `'r`.
    unsafe fn from_raw(server: &'static Server, raw: *mut sys::TRITONBACKEND_Input) -> Result<Self> {
        let raw = not_null(raw, "an input")?;
        let (mut name, mut shape) = (std::ptr::null(), std::ptr::null());
        let mut dtype = sys::TRITONSERVER_DataType::TRITONSERVER_TYPE_INVALID;
        let (mut dims, mut bytes, mut chunks) = (0, 0, 0);
        // SAFETY: the caller vouches for the input; every out pointer is valid for the call.
        server.check(unsafe {
            server.required.TRITONBACKEND_InputProperties(
                raw.as_ptr(),
                &raw mut name,
                &raw mut dtype,
                &raw mut shape,
                &raw mut dims,
                &raw mut bytes,
                &raw mut chunks,
            )
        })?;
        if name.is_null() || (shape.is_null() && dims > 0) {
            return Err(Error::internal("Triton returned an input without a name or shape"));
        }
        // SAFETY: the name ends with NUL and lives as long as the request, so at least for `'r`.
        let name: &'r CStr = unsafe { CStr::from_ptr(name) };
        let name = name.to_str().map_err(|_| Error::invalid("the name of an input is not UTF-8"))?;
        let shape = if dims == 0 {
            &[]
        } else {
            // SAFETY: Triton says that `dims` extents are there; they live as long as the request.
            unsafe { std::slice::from_raw_parts(shape, dims as usize) }
        };
        let shape = shape.iter().map(|&extent| usize::try_from(extent)).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            name,
            dtype: DataType::from_raw(dtype).context(|| format!("input `{name}`"))?,
            shape: shape
                .map_err(|_| Error::invalid(format!("input `{name}` has a shape with a negative extent")))?,
            bytes: usize::try_from(bytes).map_err(|_| {
                Error::invalid(format!("input `{name}` of {bytes} bytes does not fit into memory"))
            })?,
            chunks,
            handle: Handle { server, raw, request: PhantomData },
        })
    }

    /// The pieces that the tensor arrived in, in order. Host memory is asked for; where Triton holds the tensor
    /// elsewhere, it stays there.
    ///
    /// # Errors
    /// What Triton says.
    pub fn chunks(&self) -> Result<Vec<Chunk<'r>>> {
        (0..self.chunks)
            .map(|index| self.chunk(index))
            .collect::<Result<_>>()
            .context(|| format!("input `{}`", self.name))
    }

    fn chunk(&self, index: u32) -> Result<Chunk<'r>> {
        let Handle { server, raw, .. } = self.handle;
        let (mut buffer, mut bytes) = (std::ptr::null(), 0);
        let (mut kind, mut device) = (sys::TRITONSERVER_MemoryType::TRITONSERVER_MEMORY_CPU, 0);
        // SAFETY: the request is not released during `'r`; every out pointer is valid for the call.
        server.check(unsafe {
            server.required.TRITONBACKEND_InputBuffer(
                raw.as_ptr(),
                index,
                &raw mut buffer,
                &raw mut bytes,
                &raw mut kind,
                &raw mut device,
            )
        })?;
        let length = usize::try_from(bytes)
            .ok()
            .filter(|&length| isize::try_from(length).is_ok())
            .ok_or_else(|| Error::invalid(format!("a buffer of {bytes} bytes does not fit into memory")))?;
        let memory = Memory { kind: MemoryKind::from_raw(kind), device };
        if !memory.kind.is_host() {
            // SAFETY: Triton says that `length` bytes are there, on the device that it names, and keeps them until the
            // request is released, which is not during `'r`.
            let bytes = unsafe { DeviceBytes::foreign(buffer as usize as u64, length) };
            return Ok(Chunk::Device { bytes, memory });
        }
        if length == 0 {
            return Ok(Chunk::Host(&[]));
        }
        let buffer = not_null(buffer.cast_mut(), "an input buffer")?;
        // SAFETY: Triton says that `length` readable bytes are there, and keeps them until the request is released,
        // which is not during `'r`. Triton itself does not write there.
        Ok(Chunk::Host(unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), length) }))
    }
}
