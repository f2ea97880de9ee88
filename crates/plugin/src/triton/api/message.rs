//! JSON documents that go to and come from Triton.

use std::ffi::c_char;

use super::server::{Server, not_null};
use crate::triton::sys;
use gesso::error::{Error, Result};

/// A message that we own.
pub(super) struct Message<'s> {
    server: &'s Server,
    raw: std::ptr::NonNull<sys::TRITONSERVER_Message>,
}

impl<'s> Message<'s> {
    /// A message that holds `json`.
    pub(super) fn new(server: &'s Server, json: &str) -> Result<Self> {
        let raw = server.out(std::ptr::null_mut(), |out| {
            // SAFETY: the out pointer is valid, and `json` has as many bytes as we say; they are copied.
            unsafe {
                server.required.TRITONSERVER_MessageNewFromSerializedJson(
                    out,
                    json.as_ptr().cast::<c_char>(),
                    json.len(),
                )
            }
        })?;
        Ok(Self { server, raw: not_null(raw, "a message")? })
    }

    /// Takes a message that Triton gave us to delete.
    pub(super) fn from_raw(server: &'s Server, raw: *mut sys::TRITONSERVER_Message) -> Result<Self> {
        Ok(Self { server, raw: not_null(raw, "a message")? })
    }

    /// The object, for a call that leaves it with us.
    pub(super) fn as_ptr(&self) -> *mut sys::TRITONSERVER_Message {
        self.raw.as_ptr()
    }

    /// The document as text.
    pub(super) fn json(&self) -> Result<String> {
        // SAFETY: we own the message and did not delete it.
        unsafe { json_of(self.server, self.raw.as_ptr()) }
    }
}

impl Drop for Message<'_> {
    fn drop(&mut self) {
        // SAFETY: we own the message, and nothing uses it after `drop`.
        let deleted = unsafe { self.server.required.TRITONSERVER_MessageDelete(self.raw.as_ptr()) };
        if let Err(error) = self.server.check(deleted) {
            tracing::warn!("cannot delete a message: {error}");
        }
    }
}

/// The text of a message, whoever owns it.
///
/// # Safety
/// `raw` is null or a message that stays valid during the call.
pub(super) unsafe fn json_of(server: &Server, raw: *mut sys::TRITONSERVER_Message) -> Result<String> {
    let raw = not_null(raw, "a message")?;
    let (mut json, mut size) = (std::ptr::null(), 0);
    // SAFETY: the caller vouches for the message; both out pointers are valid.
    server.check(unsafe {
        server.required.TRITONSERVER_MessageSerializeToJson(raw.as_ptr(), &raw mut json, &raw mut size)
    })?;
    if json.is_null() {
        return Err(Error::internal("Triton returned a message without a text"));
    }
    // SAFETY: Triton says that `size` bytes are there, and they live as long as the message.
    let bytes = unsafe { std::slice::from_raw_parts(json.cast::<u8>(), size) };
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Error::invalid(format!("a message is not UTF-8: {error}")))?;
    Ok(text.to_owned())
}
