//! Requests and responses of the stand-in server.

use std::ffi::{CString, c_char, c_void};
use std::sync::atomic::AtomicU8;

use super::server::{self, Error};
use super::{Answer, Host, at, book, c, call, end, make, put, text};

/// Memory that the plugin must not follow: no such address exists.
const ELSEWHERE: usize = 0xdead_0000;

/// Triton's number of `TYPE_UINT8`.
pub(crate) const UINT8: u32 = 2;

pub(crate) struct Request {
    pub(crate) id: CString,
    inputs: Vec<*mut Input>,
    outputs: Vec<CString>,
    pub(crate) cancelled: bool,
    /// Name, type and value.
    pub(crate) parameters: Vec<(CString, u32, CString)>,
}

/// One tensor.
pub(crate) struct Input {
    name: CString,
    dtype: u32,
    shape: Vec<i64>,
    chunks: Vec<Chunk>,
}

/// A piece of a tensor: bytes with the type of their memory.
pub(crate) enum Chunk {
    /// Kept here. A GPU's (2) are on device 1, at an address that does not exist.
    Kept(u32, Vec<u8>),
    /// The host's memory that a client can still write to.
    Shared(&'static [AtomicU8]),
    /// So many bytes at an address of a device.
    Device { device: i64, address: u64, bytes: usize },
}

impl Chunk {
    fn len(&self) -> usize {
        match self {
            Chunk::Kept(_, bytes) => bytes.len(),
            Chunk::Shared(bytes) => bytes.len(),
            Chunk::Device { bytes, .. } => *bytes,
        }
    }
}

pub(crate) struct Response {
    request: String,
    outputs: Vec<*mut Output>,
}

#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) dtype: u32,
    pub(crate) shape: Vec<i64>,
    pub(crate) bytes: Vec<u8>,
    /// The type of memory that the client wants; 2 is a GPU's.
    memory: u32,
}

impl Host {
    /// A request that asks for the output `pixels`.
    pub(crate) fn request(&self, id: &str, inputs: Vec<*mut Input>) -> *mut Request {
        self.request_of(id, inputs, &["pixels"])
    }

    /// A request that asks for these outputs.
    pub(crate) fn request_of(&self, id: &str, inputs: Vec<*mut Input>, outputs: &[&str]) -> *mut Request {
        let outputs = outputs.iter().map(|name| c(name)).collect();
        make("request", Request { id: c(id), inputs, outputs, cancelled: false, parameters: Vec::new() })
    }

    /// A request with the input of the model that `Host::model` makes: one image of 1 x `row.len()` pixels, one
    /// channel.
    pub(crate) fn image(&self, id: &str, row: &[u8]) -> *mut Request {
        let input = self.input("image", UINT8, &[1, 1, row.len() as i64, 1], &[(0, row)]);
        self.request(id, vec![input])
    }

    pub(crate) fn input(&self, name: &str, dtype: u32, shape: &[i64], chunks: &[(u32, &[u8])]) -> *mut Input {
        let chunks = chunks.iter().map(|(memory, bytes)| Chunk::Kept(*memory, bytes.to_vec())).collect();
        self.input_in(name, dtype, shape, chunks)
    }

    pub(crate) fn input_in(&self, name: &str, dtype: u32, shape: &[i64], chunks: Vec<Chunk>) -> *mut Input {
        make("input", Input { name: c(name), dtype, shape: shape.to_vec(), chunks })
    }
}

fn id_of(request: *mut Request) -> Result<String, String> {
    Ok(at("request", request)?.id.to_str().unwrap().to_owned())
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_RequestId(request: *mut Request, out: *mut *const c_char) -> *mut Error {
    call("TRITONBACKEND_RequestId", || put(out, at("request", request)?.id.as_ptr()))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_RequestInputCount(request: *mut Request, out: *mut u32) -> *mut Error {
    call("TRITONBACKEND_RequestInputCount", || put(out, at("request", request)?.inputs.len() as u32))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_RequestInputByIndex(
    request: *mut Request,
    index: u32,
    out: *mut *mut Input,
) -> *mut Error {
    call("TRITONBACKEND_RequestInputByIndex", || put(out, at("request", request)?.inputs[index as usize]))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_RequestOutputCount(request: *mut Request, out: *mut u32) -> *mut Error {
    call("TRITONBACKEND_RequestOutputCount", || put(out, at("request", request)?.outputs.len() as u32))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_RequestOutputName(
    request: *mut Request,
    index: u32,
    out: *mut *const c_char,
) -> *mut Error {
    call("TRITONBACKEND_RequestOutputName", || {
        put(out, at("request", request)?.outputs[index as usize].as_ptr())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_RequestRelease(request: *mut Request, flags: u32) -> *mut Error {
    call("TRITONBACKEND_RequestRelease", || {
        assert_eq!(flags, 1);
        let id = id_of(request)?;
        end("request", request)?;
        book().released.push(id);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_InputProperties(
    input: *mut Input,
    name: *mut *const c_char,
    dtype: *mut u32,
    shape: *mut *const i64,
    dims: *mut u32,
    bytes: *mut u64,
    buffers: *mut u32,
) -> *mut Error {
    call("TRITONBACKEND_InputProperties", || {
        let input = at("input", input)?;
        put(name, input.name.as_ptr())?;
        put(dtype, input.dtype)?;
        put(shape, input.shape.as_ptr())?;
        put(dims, input.shape.len() as u32)?;
        put(bytes, input.chunks.iter().map(|chunk| chunk.len() as u64).sum())?;
        put(buffers, input.chunks.len() as u32)
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_InputBuffer(
    input: *mut Input,
    index: u32,
    buffer: *mut *const c_void,
    size: *mut u64,
    memory: *mut u32,
    memory_id: *mut i64,
) -> *mut Error {
    call("TRITONBACKEND_InputBuffer", || {
        let chunk = &at("input", input)?.chunks[index as usize];
        let (address, kind, device) = match chunk {
            Chunk::Kept(kind @ (0 | 1), bytes) if bytes.is_empty() => (std::ptr::null(), *kind, 0),
            Chunk::Kept(kind @ (0 | 1), bytes) => (bytes.as_ptr().cast(), *kind, 0),
            Chunk::Shared(bytes) => (bytes.as_ptr().cast(), 0, 0),
            Chunk::Kept(kind, _) => (ELSEWHERE as *const c_void, *kind, i64::from(*kind == 2)),
            Chunk::Device { device, address, .. } => (*address as usize as *const c_void, 2, *device),
        };
        put(buffer, address)?;
        put(size, chunk.len() as u64)?;
        put(memory, kind)?;
        put(memory_id, device)
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ResponseNew(out: *mut *mut Response, request: *mut Request) -> *mut Error {
    call("TRITONBACKEND_ResponseNew", || {
        let request = id_of(request)?;
        put(out, make("response", Response { request, outputs: Vec::new() }))
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ResponseDelete(response: *mut Response) -> *mut Error {
    call("TRITONBACKEND_ResponseDelete", || {
        end("response", response)?;
        book().deleted_responses += 1;
        Ok(())
    })
}

/// An output called `far` goes to a client that wants it on a GPU, as all do while `Book::offered` says so.
#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ResponseOutput(
    response: *mut Response,
    out: *mut *mut Output,
    name: *const c_char,
    dtype: u32,
    shape: *const i64,
    dims: u32,
) -> *mut Error {
    call("TRITONBACKEND_ResponseOutput", || {
        let name = text(name);
        let memory = if name == "far" { 2 } else { book().offered };
        // SAFETY: the plugin passes `dims` extents.
        let shape = unsafe { std::slice::from_raw_parts(shape, dims as usize) }.to_vec();
        let output = make("output", Output { name, dtype, shape, bytes: Vec::new(), memory });
        at("response", response)?.outputs.push(output);
        put(out, output)
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_OutputBuffer(
    output: *mut Output,
    buffer: *mut *mut c_void,
    size: u64,
    memory: *mut u32,
    memory_id: *mut i64,
) -> *mut Error {
    call("TRITONBACKEND_OutputBuffer", || {
        let output = at("output", output)?;
        // SAFETY: the plugin says here what it would like.
        let wish = unsafe { memory.read() };
        // SAFETY: as above.
        let device = unsafe { memory_id.read() };
        book().wishes.push((wish, device));
        output.bytes = vec![0; size as usize];
        if let Some((device, address)) = book().places.pop_front() {
            put(buffer, address as usize as *mut c_void)?;
            put(memory, 2)?;
            return put(memory_id, device);
        }
        let address = if size == 0 {
            std::ptr::null_mut()
        } else if output.memory == 2 {
            ELSEWHERE as *mut c_void
        } else {
            output.bytes.as_mut_ptr().cast()
        };
        put(buffer, address)?;
        put(memory, output.memory)?;
        put(memory_id, i64::from(output.memory == 2))
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ResponseSend(
    response: *mut Response,
    flags: u32,
    error: *mut Error,
) -> *mut Error {
    // The response is gone even when the call fails.
    let taken = at("response", response).map(|response| &*response);
    let gone = end("response", response);
    call("TRITONBACKEND_ResponseSend", || {
        let response = taken?;
        gone?;
        let outputs =
            response.outputs.iter().map(|output| at("output", *output).cloned()).collect::<Result<_, _>>()?;
        let answer =
            Answer { request: response.request.clone(), flags, failure: server::read(error), outputs };
        book().answers.push(answer);
        Ok(())
    })
}

/// The client, or the server for it, adds a parameter of type `kind`.
pub(crate) fn add_parameter(request: *mut Request, name: &str, kind: u32, value: &str) {
    at("request", request).unwrap().parameters.push((c(name), kind, c(value)));
}

/// The client gives up.
pub(crate) fn cancel(request: *mut Request) {
    at("request", request).unwrap().cancelled = true;
}
