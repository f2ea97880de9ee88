//! A store of files that the program reads for readers. It must not know readers.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Arc;

use super::callback::Unwound;
use super::foreign;
use super::operator::Message;
use super::size::{self, Versioned};
use super::status::{Status, guard, guarded};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::{HostBuffer, HostPool};
use crate::readers::{Store, set_store};

/// Makes room for a file of so many bytes; null if there is none: then the function that asked fails.
pub type Room = Option<unsafe extern "C" fn(file: *mut c_void, length: usize) -> *mut u8>;

/// Takes the name of a file.
pub type AddName = Option<unsafe extern "C" fn(names: *mut c_void, name: *const c_char)>;

/// Functions of the program that read files which are not on this machine. Readers call them for paths that begin with
/// a scheme and `://`, several at a time and from any thread. Each returns 0, or the `gesso_status` to fail with, and
/// must not throw. Paths are texts that live during the call.
#[repr(C)]
pub struct StoreTable {
    /// `sizeof(gesso_store)`.
    pub struct_size: usize,
    /// Says how many bytes a file has.
    pub size: Option<
        unsafe extern "C-unwind" fn(
            user: *mut c_void,
            path: *const c_char,
            size: *mut u64,
            message: *mut Message,
        ) -> i32,
    >,
    /// Fills `to` with the `length` bytes of a file from byte `at` on.
    pub read: Option<
        unsafe extern "C-unwind" fn(
            user: *mut c_void,
            path: *const c_char,
            at: u64,
            to: *mut u8,
            length: usize,
            message: *mut Message,
        ) -> i32,
    >,
    /// Reads a whole file: calls `room` once with `file` and its length, and fills the room.
    pub get: Option<
        unsafe extern "C-unwind" fn(
            user: *mut c_void,
            path: *const c_char,
            room: Room,
            file: *mut c_void,
            message: *mut Message,
        ) -> i32,
    >,
    /// Calls `add` with `names` and the name of each file below `root`, relative to it.
    pub list: Option<
        unsafe extern "C-unwind" fn(
            user: *mut c_void,
            root: *const c_char,
            add: AddName,
            names: *mut c_void,
            message: *mut Message,
        ) -> i32,
    >,
    /// What they are called with. It must stay as long as the process.
    pub user: *mut c_void,
}

// SAFETY: numbers, pointers and functions that may be null, the first of which is the size.
unsafe impl Versioned for StoreTable {
    const NAME: &'static str = "gesso_store";
    const FIRST: usize = 48;
}

// SAFETY: the interface asks of the program that its functions may be called by any thread.
unsafe impl Send for StoreTable {}
// SAFETY: as above.
unsafe impl Sync for StoreTable {}

/// Lets readers of all pipelines read files that are not on this machine by functions of the program, in place of those
/// that were given before. `store` is copied. Any thread.
///
/// # Safety
/// `store` points at a struct of the size that it says, which keeps the promises of `gesso_store`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gesso_set_store(store: *const StoreTable) -> Status {
    guard(|| {
        // SAFETY: the caller vouches for the struct.
        let table = unsafe { size::read("store", store) }?;
        if table.size.is_none() || table.read.is_none() || table.get.is_none() || table.list.is_none() {
            return Err(Error::invalid("a store needs `size`, `read`, `get` and `list`"));
        }
        set_store(Arc::new(table));
        Ok(())
    })
}

/// Calls a function of the program with a path.
fn call(path: &str, function: impl FnOnce(*const c_char, *mut Message) -> i32) -> Result<()> {
    let path = CString::new(path).map_err(|_| Error::invalid("a path with a zero in it"))?;
    foreign::call(|message| {
        let unwound = Unwound;
        let code = function(path.as_ptr(), message);
        std::mem::forget(unwound);
        code
    })
}

fn missing() -> Error {
    Error::internal("a store without a function")
}

impl Store for StoreTable {
    fn size(&self, path: &str) -> Result<u64> {
        let (size, mut found) = (self.size.ok_or_else(missing)?, 0);
        // SAFETY: a function of the interface; the path and the number live during the call.
        call(path, |path, message| unsafe { size(self.user, path, &raw mut found, message) })?;
        Ok(found)
    }

    fn read(&self, path: &str, at: u64, to: &mut [u8]) -> Result<()> {
        let read = self.read.ok_or_else(missing)?;
        let (place, length) = (to.as_mut_ptr(), to.len());
        // SAFETY: a function of the interface; the path lives during the call, and so many bytes are there.
        call(path, |path, message| unsafe { read(self.user, path, at, place, length, message) })
    }

    fn get(&self, path: &str, memory: &Arc<HostPool>) -> Result<(HostBuffer, usize)> {
        let get = self.get.ok_or_else(missing)?;
        let mut file = File { memory, room: None };
        let place = (&raw mut file).cast();
        // SAFETY: a function of the interface; the path and the file live during the call.
        let read = call(path, |path, message| unsafe { get(self.user, path, Some(room), place, message) });
        match (read, file.room) {
            // Why there was no room says more.
            (_, Some(Err(error))) | (Err(error), _) => Err(error),
            (Ok(()), Some(Ok(found))) => Ok(found),
            (Ok(()), None) => Err(Error::invalid("the store gave no bytes")),
        }
    }

    fn list(&self, root: &str) -> Result<Vec<String>> {
        let list = self.list.ok_or_else(missing)?;
        let mut names = Names { found: Vec::new(), wrong: None };
        let place = (&raw mut names).cast();
        // SAFETY: a function of the interface; the path and the names live during the call.
        call(root, |root, message| unsafe { list(self.user, root, Some(add_name), place, message) })?;
        match names.wrong {
            Some(error) => Err(error),
            None => Ok(names.found),
        }
    }
}

/// A file that a program reads: memory, and the room that it asked for.
struct File<'a> {
    memory: &'a Arc<HostPool>,
    room: Option<Result<(HostBuffer, usize)>>,
}

/// # Safety
/// `file` is a [`File`] that no other uses.
unsafe extern "C" fn room(file: *mut c_void, length: usize) -> *mut u8 {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: the caller gives back what it was given.
        let Some(file) = (unsafe { file.cast::<File<'_>>().as_mut() }) else { return std::ptr::null_mut() };
        let room = match (file.room.is_none(), length <= limits::MAX_SAMPLE_BYTES) {
            (false, _) => Err(Error::invalid("room for a file was asked for twice")),
            (_, false) => {
                let most = limits::MAX_SAMPLE_BYTES;
                Err(Error::invalid(format!("it has {length} bytes, more than the limit of {most}")))
            }
            _ => file.memory.take(length).map(|buffer| (buffer, length)),
        };
        let room = file.room.insert(room).as_mut();
        room.map_or(std::ptr::null_mut(), |(buffer, _)| buffer.bytes_mut().as_mut_ptr())
    })
}

/// Names of files, and what is wrong with one.
struct Names {
    found: Vec<String>,
    wrong: Option<Error>,
}

/// # Safety
/// `names` is a [`Names`] that no other uses; `name` is a text.
unsafe extern "C" fn add_name(names: *mut c_void, name: *const c_char) {
    guarded((), || {
        // SAFETY: the caller gives back what it was given.
        let Some(names) = (unsafe { names.cast::<Names>().as_mut() }) else { return };
        if name.is_null() || names.wrong.is_some() {
            return;
        }
        // SAFETY: the caller vouches for the text.
        let name = unsafe { CStr::from_ptr(name) };
        if names.found.len() >= limits::MAX_DATASET_SAMPLES {
            let most = limits::MAX_DATASET_SAMPLES;
            names.wrong = Some(Error::invalid(format!("more than {most} files")));
            return;
        }
        match name.to_str() {
            Ok(name) => names.found.push(name.to_owned()),
            Err(_) => {
                let name = name.to_string_lossy();
                names.wrong =
                    Some(Error::unsupported(format!("the name `{name}` is no text, expected UTF-8")));
            }
        }
    });
}
