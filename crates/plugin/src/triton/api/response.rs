//! What a client gets back: tensors whose memory Triton provides, or an error.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::error::ServerError;
use super::memory::{Memory, MemoryKind};
use super::server::{Server, c_string, not_null};
use crate::config::DataType;
use crate::triton::sys;
use gesso::error::{Error, Result};

/// A response to a request that may not be ours yet; dropping it deletes it, and the client hears nothing from it.
pub struct NewResponse {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_Response>,
}

impl NewResponse {
    /// Makes a response to a request, whoever owns that.
    ///
    /// # Errors
    /// What Triton says.
    ///
    /// # Safety
    /// `request` is a valid request.
    pub unsafe fn to(server: &'static Server, request: NonNull<sys::TRITONBACKEND_Request>) -> Result<Self> {
        let raw = server.out(std::ptr::null_mut(), |out| {
            // SAFETY: the caller vouches for the request.
            unsafe { server.required.TRITONBACKEND_ResponseNew(out, request.as_ptr()) }
        })?;
        Ok(Self { server, raw: not_null(raw, "a response")? })
    }

    /// The response to a request that is now ours: it must be answered.
    pub fn claim(self) -> Response {
        let new = ManuallyDrop::new(self);
        Response { server: new.server, raw: new.raw, outputs: RefCell::new(Vec::new()) }
    }
}

impl Drop for NewResponse {
    fn drop(&mut self) {
        // SAFETY: we own the response, and nothing uses it after `drop`.
        let deleted = unsafe { self.server.required.TRITONBACKEND_ResponseDelete(self.raw.as_ptr()) };
        if let Err(error) = self.server.check(deleted) {
            tracing::error!("cannot delete a response: {error}");
        }
    }
}

/// The response to a request of ours. It is sent exactly once: by [`Response::send`], by [`Response::fail`], or, as an
/// error, when it is dropped.
pub struct Response {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_Response>,
    /// Names of the outputs so far. Two outputs of one name could get the same memory, so the second is refused.
    outputs: RefCell<Vec<String>>,
}

// SAFETY: Triton lets any thread fill and send a response, one at a time; that it is not `Sync` keeps it to one.
unsafe impl Send for Response {}

impl Response {
    /// Adds a tensor of `shape`, the batch dimension first when the model is batched.
    ///
    /// # Errors
    /// `Internal` when the response has an output of this name; else what Triton says, as for a name that the model's
    /// configuration does not have.
    pub fn output(&self, name: &str, dtype: DataType, shape: &[usize]) -> Result<Output<'_>> {
        if self.outputs.borrow().iter().any(|known| known == name) {
            return Err(Error::internal(format!("output `{name}` is in the response already")));
        }
        let extents = shape.iter().map(|&extent| i64::try_from(extent)).collect::<Result<Vec<_>, _>>();
        let extents = extents
            .map_err(|_| Error::invalid(format!("output `{name}` of shape {shape:?} is too large")))?;
        let dims = u32::try_from(extents.len())
            .map_err(|_| Error::invalid(format!("output `{name}` has too many dimensions")))?;
        let c_name = c_string(name);
        let raw = self.server.out(std::ptr::null_mut(), |out| {
            // SAFETY: we own the response and did not send it; the name ends with NUL, `extents` has `dims` elements,
            // and both are copied by the call.
            unsafe {
                self.server.required.TRITONBACKEND_ResponseOutput(
                    self.raw.as_ptr(),
                    out,
                    c_name.as_ptr(),
                    dtype.raw(),
                    extents.as_ptr(),
                    dims,
                )
            }
        })?;
        let raw = not_null(raw, "an output")?;
        self.outputs.borrow_mut().push(name.to_owned());
        Ok(Output { server: self.server, raw, name: name.to_owned(), response: PhantomData })
    }

    /// Adds a named text to the response. Does nothing where the server is older than this function.
    ///
    /// # Errors
    /// What Triton says.
    pub fn set_text(&self, name: &str, value: &str) -> Result<()> {
        let Ok(set) = &self.server.newer.TRITONBACKEND_ResponseSetStringParameter else { return Ok(()) };
        let (name, value) = (c_string(name), c_string(value));
        // SAFETY: we own the response and did not send it; both texts end with NUL and are copied by the call.
        self.server.check(unsafe { set(self.raw.as_ptr(), name.as_ptr(), value.as_ptr()) })
    }

    /// Adds a named integer to the response. Does nothing where the server is older than this function.
    ///
    /// # Errors
    /// What Triton says.
    pub fn set_integer(&self, name: &str, value: i64) -> Result<()> {
        let Ok(set) = &self.server.newer.TRITONBACKEND_ResponseSetIntParameter else { return Ok(()) };
        let name = c_string(name);
        // SAFETY: we own the response and did not send it; the name ends with NUL and is copied by the call.
        self.server.check(unsafe { set(self.raw.as_ptr(), name.as_ptr(), value) })
    }

    /// Adds a named truth value to the response. Does nothing where the server is older than this function.
    ///
    /// # Errors
    /// What Triton says.
    pub fn set_truth(&self, name: &str, value: bool) -> Result<()> {
        let Ok(set) = &self.server.newer.TRITONBACKEND_ResponseSetBoolParameter else { return Ok(()) };
        let name = c_string(name);
        // SAFETY: we own the response and did not send it; the name ends with NUL and is copied by the call.
        self.server.check(unsafe { set(self.raw.as_ptr(), name.as_ptr(), value) })
    }

    /// Sends the outputs to the client; none follow.
    ///
    /// # Errors
    /// What Triton says. The response is gone all the same.
    pub fn send(self) -> Result<()> {
        ManuallyDrop::new(self).send_final(None)
    }

    /// Sends `error` to the client in place of outputs; none follow.
    ///
    /// # Errors
    /// What Triton says. The response is gone all the same.
    pub fn fail(self, error: &Error) -> Result<()> {
        ManuallyDrop::new(self).send_final(Some(error))
    }

    /// The one place that sends: the callers see to it that this is called once, and that nothing follows.
    fn send_final(&mut self, error: Option<&Error>) -> Result<()> {
        // The names own memory that `ManuallyDrop` would leak.
        drop(self.outputs.take());
        let error = error.and_then(|error| ServerError::from_error(self.server, error));
        let raw_error = error.as_ref().map_or(std::ptr::null_mut(), ServerError::as_ptr);
        let last = sys::TRITONSERVER_ResponseCompleteFlag::TRITONSERVER_RESPONSE_COMPLETE_FINAL;
        // SAFETY: we own the response and did not send it before: outputs borrow it, so none is in use. The error is
        // valid until the end of this function, which deletes it: Triton leaves it with us.
        self.server.check(unsafe {
            self.server.required.TRITONBACKEND_ResponseSend(self.raw.as_ptr(), last.0, raw_error)
        })
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        let error = Error::internal("the request was dropped without an answer");
        if let Err(error) = self.send_final(Some(&error)) {
            tracing::error!("cannot send a response: {error}");
        }
    }
}

/// One tensor of a response, before it has memory.
pub struct Output<'s> {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_Output>,
    name: String,
    response: PhantomData<&'s Response>,
}

/// Memory that Triton provides for a tensor of a response.
pub enum OutputMemory<'s> {
    /// Host memory. What it holds is unspecified until it is written.
    Host(&'s mut [u8]),
    /// Memory of a GPU, or of a kind that we do not know: the address, for that device.
    Device {
        /// The address.
        address: u64,
        /// What kind of memory of which device.
        memory: Memory,
    },
}

impl<'s> Output<'s> {
    /// Memory for the whole tensor, where Triton likes; `preferred` says what we like.
    ///
    /// # Errors
    /// `InvalidArg` for more bytes than there can be; else what Triton says.
    pub fn memory(self, bytes: usize, preferred: Memory) -> Result<OutputMemory<'s>> {
        let mut buffer = std::ptr::null_mut();
        let (mut kind, mut device) = (preferred.kind.raw(), preferred.device);
        // SAFETY: the response is borrowed for `'s`, so it is not sent; every out pointer is valid for the call.
        self.server.check(unsafe {
            self.server.required.TRITONBACKEND_OutputBuffer(
                self.raw.as_ptr(),
                &raw mut buffer,
                bytes as u64,
                &raw mut kind,
                &raw mut device,
            )
        })?;
        let memory = Memory { kind: MemoryKind::from_raw(kind), device };
        if memory.kind.is_host() && bytes == 0 {
            return Ok(OutputMemory::Host(&mut []));
        }
        if isize::try_from(bytes).is_err() {
            return Err(Error::invalid(format!(
                "output `{}` of {bytes} bytes does not fit into memory",
                self.name
            )));
        }
        if !memory.kind.is_host() {
            return Ok(OutputMemory::Device { address: buffer as usize as u64, memory });
        }
        let buffer = not_null(buffer, "an output buffer")?;
        // SAFETY: Triton says that `bytes` writable bytes are there for this output alone, and keeps them until the
        // response is sent or deleted, which is not during `'s`. This call consumed the output and names are unique,
        // so no second slice of the same memory is made.
        Ok(OutputMemory::Host(unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr().cast::<u8>(), bytes) }))
    }

    /// Memory for the whole tensor, on the host. What it holds is unspecified until it is written.
    ///
    /// # Errors
    /// `Unsupported` when Triton provides another kind of memory than was asked for, naming it; else as
    /// [`Output::memory`].
    pub fn host_buffer(self, bytes: usize) -> Result<&'s mut [u8]> {
        let name = self.name.clone();
        match self.memory(bytes, Memory::HOST)? {
            OutputMemory::Host(buffer) => Ok(buffer),
            OutputMemory::Device { memory, .. } => Err(Error::unsupported(format!(
                "Triton offers memory `{memory}` for output `{name}`, expected host memory"
            ))),
        }
    }
}
