//! What a client gets back: tensors whose memory Triton provides, or an error.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::rc::Rc;

use super::error::{ServerError, not_null};
use super::memory::{Memory, MemoryKind};
use super::request::Request;
use super::server::Server;
use super::words::c_string;
use crate::config::DataType;
use crate::triton::sys;
use gesso::error::{Error, Result};
use gesso::pipeline::DeviceBytes;

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

/// A response to a request of ours. It is sent exactly once: by [`Response::send`], by [`Response::fail`], or, as an
/// error that nothing follows, when it is dropped.
pub struct Response {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_Response>,
    /// The outputs so far. Two outputs of one name could get the same memory, so the second is refused.
    outputs: RefCell<Vec<Rc<Filled>>>,
}

/// An output of a response.
struct Filled {
    name: String,
    dtype: DataType,
    shape: Vec<usize>,
    /// Its memory and how many bytes that has, once it has some on the host.
    memory: Cell<Option<(NonNull<u8>, usize)>>,
}

/// An output of a response that is about to be sent.
pub struct Written<'s> {
    /// Its name.
    pub name: &'s str,
    /// The type of its elements.
    pub dtype: DataType,
    /// Its shape, the batch dimension first when the model is batched.
    pub shape: &'s [usize],
    /// Its bytes; `None` where they are on a device. A client may write to them, if they are in shared memory.
    pub bytes: Option<&'s [u8]>,
}

// SAFETY: Triton lets any thread fill and send a response, one at a time; that it is not `Sync` keeps it to one. What
// of its outputs is shared, an `Output` shares: that borrows it, and so stays in the thread that has it.
unsafe impl Send for Response {}

impl Response {
    /// A further response to a request of ours. Triton wants those before it to have all of their memory by now.
    ///
    /// # Errors
    /// What Triton says.
    pub fn to(request: &Request) -> Result<Self> {
        // SAFETY: the request is ours, and not released: it is borrowed.
        Ok(unsafe { NewResponse::to(request.server(), request.as_non_null()) }?.claim())
    }

    /// Whether a tensor was added.
    pub fn has_outputs(&self) -> bool {
        !self.outputs.borrow().is_empty()
    }

    /// Adds a tensor of `shape`, the batch dimension first when the model is batched.
    ///
    /// # Errors
    /// `Internal` when the response has an output of this name; else what Triton says, as for a name that the model's
    /// configuration does not have.
    pub fn output(&self, name: &str, dtype: DataType, shape: &[usize]) -> Result<Output<'_>> {
        if self.outputs.borrow().iter().any(|known| known.name == name) {
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
        let memory = Cell::new(None);
        let filled = Rc::new(Filled { name: name.to_owned(), dtype, shape: shape.to_vec(), memory });
        self.outputs.borrow_mut().push(Rc::clone(&filled));
        Ok(Output { server: self.server, raw, filled, response: PhantomData })
    }

    /// The outputs that were written, once nobody writes to them any more.
    pub fn written(&mut self) -> Vec<Written<'_>> {
        let outputs = self.outputs.get_mut().iter();
        let written = outputs.map(|filled| {
            let bytes = filled.memory.get().map(|(memory, bytes)| {
                // SAFETY: Triton has given `bytes` bytes there, and keeps them until the response is sent or deleted,
                // for which it must be had alone, as it is borrowed here. Those who wrote had borrowed it, too.
                unsafe { std::slice::from_raw_parts(memory.as_ptr().cast_const(), bytes) }
            });
            Written { name: &filled.name, dtype: filled.dtype, shape: &filled.shape, bytes }
        });
        written.collect()
    }

    /// Sends the outputs to the client; unless it is the `last`, other responses to the request follow.
    ///
    /// # Errors
    /// What Triton says. The response is gone all the same.
    pub fn send(self, last: bool) -> Result<()> {
        ManuallyDrop::new(self).send_with(last, None)
    }

    /// Sends `error` to the client in place of outputs; no response follows.
    ///
    /// # Errors
    /// What Triton says. The response is gone all the same.
    pub fn fail(self, error: &Error) -> Result<()> {
        ManuallyDrop::new(self).send_with(true, Some(error))
    }

    /// The one place that sends: the callers see to it that this is called once, and that the response is not used
    /// after it.
    fn send_with(&mut self, last: bool, error: Option<&Error>) -> Result<()> {
        // The names own memory that `ManuallyDrop` would leak.
        drop(self.outputs.take());
        let error = error.map(|error| ServerError::from_error(self.server, error));
        let raw_error = error.as_ref().map_or(std::ptr::null_mut(), ServerError::as_ptr);
        let complete = sys::TRITONSERVER_ResponseCompleteFlag::TRITONSERVER_RESPONSE_COMPLETE_FINAL;
        let flags = if last { complete.0 } else { 0 };
        // SAFETY: we own the response and did not send it before: outputs borrow it, so none is in use. The error is
        // valid until the end of this function, which deletes it: Triton leaves it with us.
        self.server.check(unsafe {
            self.server.required.TRITONBACKEND_ResponseSend(self.raw.as_ptr(), flags, raw_error)
        })
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        let error = Error::internal("the request was dropped without an answer");
        if let Err(error) = self.send_with(true, Some(&error)) {
            tracing::error!("cannot send a response: {error}");
        }
    }
}

/// One tensor of a response, before it has memory.
pub struct Output<'s> {
    server: &'static Server,
    raw: NonNull<sys::TRITONBACKEND_Output>,
    filled: Rc<Filled>,
    response: PhantomData<&'s Response>,
}

/// Memory that Triton provides for a tensor of a response.
pub enum OutputMemory<'s> {
    /// Host memory. What it holds is unspecified until it is written.
    Host(&'s mut [u8]),
    /// Memory of a GPU, or of a kind that we do not know: an address for that device.
    Device {
        /// Where it is.
        bytes: DeviceBytes<'s>,
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
            self.filled.memory.set(Some((NonNull::dangling(), 0)));
            return Ok(OutputMemory::Host(&mut []));
        }
        if isize::try_from(bytes).is_err() {
            return Err(Error::invalid(format!(
                "output `{}` of {bytes} bytes does not fit into memory",
                self.filled.name
            )));
        }
        if !memory.kind.is_host() {
            // SAFETY: as below, but that the bytes are on the device that Triton names.
            let bytes = unsafe { DeviceBytes::foreign(buffer as usize as u64, bytes) };
            return Ok(OutputMemory::Device { bytes, memory });
        }
        let buffer = not_null(buffer, "an output buffer")?;
        self.filled.memory.set(Some((buffer.cast::<u8>(), bytes)));
        // SAFETY: Triton says that `bytes` writable bytes are there for this output alone, and keeps them until the
        // response is sent or deleted, which is not during `'s`. This call consumed the output and names are unique,
        // so no second slice of the same memory is made.
        Ok(OutputMemory::Host(unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr().cast::<u8>(), bytes) }))
    }
}
