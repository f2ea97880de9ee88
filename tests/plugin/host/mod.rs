//! A server that exists only to be called by the plugin: it offers Triton's functions, counts what is made and freed,
//! and fails when a test says so. It does what a real server cannot be made to do. Everything is written from the
//! headers' text, not from the plugin's types, so that a wrong signature shows.
//!
//! To add a function of Triton: write it in the file of its object, wrapped in `call`.
#![expect(unsafe_code, reason = "this stands on the other side of the C boundary")]

pub(crate) mod objects;
pub(crate) mod request;
pub(crate) mod server;

use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, CString, c_char};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Numbers of Triton's error codes.
pub(crate) mod code {
    pub(crate) const INTERNAL: u32 = 1;
    pub(crate) const INVALID_ARG: u32 = 3;
    pub(crate) const UNAVAILABLE: u32 = 4;
    pub(crate) const UNSUPPORTED: u32 = 5;
    pub(crate) const CANCELLED: u32 = 7;
}

/// An error as the plugin sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: u32,
    pub(crate) text: String,
}

/// A response that was sent.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) request: String,
    pub(crate) flags: u32,
    pub(crate) failure: Option<Failure>,
    pub(crate) outputs: Vec<request::Output>,
}

/// Statistics of one request.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) request: String,
    pub(crate) success: bool,
    pub(crate) times: [u64; 4],
}

/// What the server knows and what happened to it.
#[derive(Default)]
pub(crate) struct Book {
    /// Every object that is not freed: its address, what it is, and how its memory is freed.
    live: HashMap<usize, (&'static str, Free)>,
    /// Objects that are freed, whose memory is not.
    ended: Vec<(usize, Free)>,
    calls: HashMap<&'static str, u32>,
    /// The call, counted from 1, at which a function fails.
    pub(crate) faults: HashMap<&'static str, u32>,
    /// The call, counted from 1, in which a function stays until the test lets it go.
    held: HashMap<&'static str, u32>,
    pub(crate) violations: Vec<String>,
    pub(crate) version: (u32, u32),
    pub(crate) log: Vec<(u32, String)>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) released: Vec<String>,
    pub(crate) deleted_responses: u32,
    pub(crate) reports: Vec<Report>,
    pub(crate) batches: Vec<u64>,
    pub(crate) attributes: Vec<String>,
    /// The type of memory that outputs get; 2 is a GPU's.
    pub(crate) offered: u32,
    /// Memory of devices that the next outputs get: a device and an address there.
    pub(crate) places: VecDeque<(i64, u64)>,
    /// The type of memory, and its device, that the plugin asked for.
    pub(crate) wishes: Vec<(u32, i64)>,
    /// What was counted, by name and labels.
    pub(crate) metrics: HashMap<String, f64>,
}

/// Frees the memory at an address.
type Free = fn(usize);

static BOOK: LazyLock<Mutex<Book>> = LazyLock::new(Mutex::default);
static ONE_TEST: Mutex<()> = Mutex::new(());
static CHANGED: Condvar = Condvar::new();

/// A test that waits this long for another thread has failed.
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) fn book() -> MutexGuard<'static, Book> {
    BOOK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Book {
    /// Calls of a function so far.
    pub(crate) fn calls_of(&self, function: &str) -> u32 {
        self.calls.get(function).copied().unwrap_or(0)
    }
}

/// One test's server. Tests of a process take turns, as there is one set of functions.
pub(crate) struct Host {
    _turn: MutexGuard<'static, ()>,
}

impl Host {
    pub(crate) fn start() -> Host {
        let turn = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
        *book() = Book { version: (1, 19), ..Book::default() };
        Host { _turn: turn }
    }

    /// Lets call number `nth` (from 1) of `function` fail with `UNAVAILABLE`.
    pub(crate) fn fail(&self, function: &'static str, nth: u32) {
        book().faults.insert(function, nth);
    }

    /// Lets the next call of `function` fail with `UNAVAILABLE`.
    pub(crate) fn fail_next(&self, function: &'static str) {
        let mut book = book();
        let calls = book.calls.get(function).copied().unwrap_or(0);
        book.faults.insert(function, calls + 1);
    }

    /// Holds the next call of `function` until [`Host::let_go`].
    pub(crate) fn hold_next(&self, function: &'static str) {
        let mut book = book();
        let calls = book.calls.get(function).copied().unwrap_or(0);
        book.held.insert(function, calls + 1);
    }

    /// Holds call number `nth` (from 1) of `function` until [`Host::let_go`].
    pub(crate) fn hold(&self, function: &'static str, nth: u32) {
        book().held.insert(function, nth);
    }

    pub(crate) fn let_go(&self, function: &'static str) {
        book().held.remove(function);
        CHANGED.notify_all();
    }

    /// Waits until the plugin has done something in another thread.
    pub(crate) fn wait_until(&self, what: &str, done: impl Fn(&Book) -> bool) {
        let waited = CHANGED.wait_timeout_while(book(), PATIENCE, |book| !done(book));
        let (_book, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "waited in vain until {what}");
    }

    /// Objects of a kind that are not freed.
    pub(crate) fn live(&self, what: &str) -> usize {
        book().live.values().filter(|(kind, _)| *kind == what).count()
    }

    /// Frees the memory of all that has ended, for those who make millions of requests. Tensors end with their requests
    /// and responses, of which there must be none.
    pub(crate) fn bury(&self) {
        let Book { live, ended, .. } = &mut *book();
        let tensors = live.extract_if(|_, (what, _)| ["input", "output"].contains(what));
        for (address, free) in tensors.map(|(address, (_, free))| (address, free)).chain(ended.drain(..)) {
            free(address);
        }
    }

    /// Asserts that the plugin freed what it owned and used nothing that was gone.
    pub(crate) fn assert_clean(&self) {
        assert_eq!(book().violations, Vec::<String>::new());
        for what in ["error", "message", "request", "response", "buffer attributes", "parameter"] {
            assert_eq!(self.live(what), 0, "objects left: {what}");
        }
    }
}

/// Makes an object that the plugin sees as an address. Its memory is not reused before [`Host::bury`], so that a use
/// after the end shows.
pub(crate) fn make<T>(what: &'static str, value: T) -> *mut T {
    let object = Box::into_raw(Box::new(value));
    // SAFETY: called once with the address of this object, after which nobody has it.
    let free = |address| drop(unsafe { Box::from_raw(address as *mut T) });
    book().live.insert(object as usize, (what, free));
    object
}

/// Ends the life of an object.
pub(crate) fn end<T>(what: &'static str, object: *mut T) -> Result<(), String> {
    let mut book = book();
    match book.live.remove(&(object as usize)) {
        Some((found, free)) if found == what => {
            book.ended.push((object as usize, free));
            Ok(())
        }
        found => Err(format!("expected a live {what} to free, found {:?}", found.map(|(what, _)| what))),
    }
}

/// The object at an address, when it is alive and of that kind.
pub(crate) fn at<'a, T>(what: &'static str, object: *mut T) -> Result<&'a mut T, String> {
    match book().live.get(&(object as usize)) {
        // SAFETY: `make` put it there as a `T`, and only what has ended is deallocated.
        Some((found, _)) if *found == what => Ok(unsafe { &mut *object }),
        found => Err(format!("expected a live {what}, found {:?}", found.map(|(what, _)| what))),
    }
}

/// Counts a call of a function of Triton, holds it while a test wants that, and says whether it is to fail.
pub(crate) fn is_to_fail(name: &'static str) -> bool {
    let mut book = book();
    let calls = book.calls.entry(name).or_default();
    *calls += 1;
    let calls = *calls;
    let fault = book.faults.get(name) == Some(&calls);
    CHANGED.notify_all();
    let held = CHANGED.wait_while(book, |book| book.held.get(name) == Some(&calls));
    drop(held.unwrap_or_else(PoisonError::into_inner));
    fault
}

/// Runs a function of Triton: counts it, fails it when a test wants that, and notes what the plugin did wrong.
pub(crate) fn call(name: &'static str, body: impl FnOnce() -> Result<(), String>) -> *mut server::Error {
    if is_to_fail(name) {
        return server::error(code::UNAVAILABLE, &format!("{name} fails as the test wants"));
    }
    let done = body();
    CHANGED.notify_all();
    match done {
        Ok(()) => std::ptr::null_mut(),
        Err(violation) => {
            book().violations.push(format!("{name}: {violation}"));
            server::error(code::INTERNAL, &violation)
        }
    }
}

/// Writes to an out parameter.
pub(crate) fn put<T>(out: *mut T, value: T) -> Result<(), String> {
    if out.is_null() {
        return Err("an out parameter is null".to_owned());
    }
    // SAFETY: the plugin passes null or a valid out parameter.
    unsafe { out.write(value) };
    Ok(())
}

/// Reads a text of the plugin.
pub(crate) fn text(text: *const c_char) -> String {
    assert!(!text.is_null());
    // SAFETY: the plugin passes texts that end with NUL.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

/// A text for the plugin.
pub(crate) fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}
