//! Errors, log and messages of the stand-in server.

use std::ffi::{CString, c_char, c_int};

use super::{Failure, at, book, c, call, end, is_to_fail, make, put, text};

pub(crate) struct Error {
    code: u32,
    text: CString,
}

pub(crate) struct Message {
    json: String,
}

pub(crate) fn error(code: u32, text: &str) -> *mut Error {
    make("error", Error { code, text: c(text) })
}

/// What an error says; null says nothing.
pub(crate) fn read(error: *mut Error) -> Option<Failure> {
    if error.is_null() {
        return None;
    }
    let error = at("error", error).unwrap();
    Some(Failure { code: error.code, text: error.text.to_str().unwrap().to_owned() })
}

/// Takes over an error that the plugin returned.
pub(crate) fn take(error: *mut Error) -> Result<(), Failure> {
    let failure = read(error);
    if failure.is_some() {
        end("error", error).unwrap();
    }
    failure.map_or(Ok(()), Err)
}

pub(crate) fn message(json: &str) -> *mut Message {
    make("message", Message { json: json.to_owned() })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_ErrorNew(code: u32, message: *const c_char) -> *mut Error {
    if is_to_fail("TRITONSERVER_ErrorNew") { std::ptr::null_mut() } else { error(code, &text(message)) }
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_ErrorDelete(error: *mut Error) {
    if let Err(violation) = end("error", error) {
        book().violations.push(violation);
    }
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_ErrorCode(error: *mut Error) -> u32 {
    read(error).unwrap().code
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_ErrorMessage(error: *mut Error) -> *const c_char {
    at("error", error).unwrap().text.as_ptr()
}

/// Verbose messages (3) are off.
#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_LogIsEnabled(level: u32) -> bool {
    level != 3
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_LogMessage(
    level: u32,
    file: *const c_char,
    line: c_int,
    message: *const c_char,
) -> *mut Error {
    call("TRITONSERVER_LogMessage", || {
        assert!(text(file).ends_with(".rs") && line > 0);
        book().log.push((level, text(message)));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_MessageNewFromSerializedJson(
    out: *mut *mut Message,
    json: *const c_char,
    size: usize,
) -> *mut Error {
    call("TRITONSERVER_MessageNewFromSerializedJson", || {
        // SAFETY: the plugin passes `size` bytes.
        let json = unsafe { std::slice::from_raw_parts(json.cast::<u8>(), size) };
        put(out, message(std::str::from_utf8(json).unwrap()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_MessageSerializeToJson(
    message: *mut Message,
    json: *mut *const c_char,
    size: *mut usize,
) -> *mut Error {
    call("TRITONSERVER_MessageSerializeToJson", || {
        let message = at("message", message)?;
        put(size, message.json.len())?;
        put(json, message.json.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
extern "C" fn TRITONSERVER_MessageDelete(message: *mut Message) -> *mut Error {
    call("TRITONSERVER_MessageDelete", || end("message", message))
}

#[unsafe(no_mangle)]
extern "C" fn TRITONBACKEND_ApiVersion(major: *mut u32, minor: *mut u32) -> *mut Error {
    call("TRITONBACKEND_ApiVersion", || {
        let version = book().version;
        put(major, version.0)?;
        put(minor, version.1)
    })
}

/// The text of a message.
pub(crate) fn json(message: *mut Message) -> Result<String, String> {
    Ok(at("message", message)?.json.clone())
}
