//! A thread for the crate: its functions are ones that C could call, where a panic that leaves them ends the process,
//! and cannot be caught. It must not know what they do.
//!
//! ```text
//! caller     call ----> waits -------------------> answer, or that there is none
//! thread            runs -> answer ------------------^        |
//!                        -> panics -> the hook, before anything is unwound: says so, and never returns
//! ```
//!
//! So a panic costs a thread and the memory of one decoder; after [`MOST_LOST`] of them nothing is decoded any more.
//! While such a thread waits, nobody may set another hook.

use std::cell::RefCell;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::error::{Error, ErrorKind, Result};

/// Threads that may be lost before no more are begun.
const MOST_LOST: usize = 8;

/// Threads that were lost.
static LOST: AtomicUsize = AtomicUsize::new(0);

/// Takes the words of a panic.
type Tell = Box<dyn Fn(String)>;

thread_local! {
    /// In a thread for the crate: how its panics are told of.
    static TELLS: RefCell<Option<Tell>> = const { RefCell::new(None) };
}

/// What is done with a state.
type Call<S> = Box<dyn FnOnce(&mut S) + Send>;

/// A state that lives in a thread of its own, and what is done with it there.
pub(super) struct Apart<S> {
    calls: Option<Sender<Call<S>>>,
    /// Something comes when a call has ended: the words of its panic, if it did so by one.
    ended: Receiver<Option<String>>,
    thread: Option<JoinHandle<()>>,
}

impl<S: 'static> Apart<S> {
    /// The state that `make` makes there.
    ///
    /// # Errors
    /// Those of `make`; unavailable when there is no thread, or no more may be lost.
    pub(super) fn new(make: impl FnOnce() -> Result<S> + Send + 'static) -> Result<Self> {
        install_hook();
        if LOST.load(Ordering::Relaxed) >= MOST_LOST {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "AV1 is not decoded any more: its decoder has failed too often since the process began",
            ));
        }
        let (calls, incoming) = channel::<Call<S>>();
        let (tell, ended) = channel();
        let (made, is_made) = channel();
        let work = move || {
            let failed = tell.clone();
            TELLS.with(|tells| {
                *tells.borrow_mut() = Some(Box::new(move |words| {
                    // Nobody hears it when the caller is gone.
                    let _ = failed.send(Some(words));
                }));
            });
            let mut state = match make() {
                Ok(state) => state,
                Err(error) => {
                    let _ = made.send(error);
                    return;
                }
            };
            // What waits for it goes on.
            drop(made);
            while let Ok(call) = incoming.recv() {
                call(&mut state);
                if tell.send(None).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("gesso-av1".to_owned()).spawn(work).map_err(|error| {
            Error::new(ErrorKind::Unavailable, format!("no thread for a decoder of AV1: {error}"))
        })?;
        let apart = Self { calls: Some(calls), ended, thread: Some(thread) };
        match is_made.recv() {
            Ok(error) => Err(error),
            Err(_) => Ok(apart),
        }
    }

    /// What `work` makes of the state.
    ///
    /// # Errors
    /// Internal when it has panicked, now or before.
    pub(super) fn call<R: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut S) -> R + Send + 'static,
    ) -> Result<R> {
        let (give, taken) = channel();
        let call: Call<S> = Box::new(move |state| {
            let _ = give.send(work(state));
        });
        let sent = self.calls.as_ref().is_some_and(|calls| calls.send(call).is_ok());
        let ended = if sent { self.ended.recv().ok() } else { None };
        match ended {
            Some(None) => taken.recv().map_err(|_| Error::internal("a call without an answer")),
            Some(Some(words)) => {
                self.forget();
                Err(Error::from_panic(&words))
            }
            None => Err(Error::internal("the decoder has failed before")),
        }
    }

    /// Leaves the thread where it is.
    fn forget(&mut self) {
        self.calls = None;
        self.thread = None;
    }
}

impl<S> Drop for Apart<S> {
    fn drop(&mut self) {
        self.calls = None;
        // Its memory is free behind this; if freeing it panics, somebody says so in place of ending.
        if let Some(thread) = self.thread.take()
            && self.ended.recv().is_err()
        {
            let _ = thread.join();
        }
    }
}

/// Lets panics in threads for the crate not go on.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let told = TELLS.try_with(|tells| {
                let Ok(tells) = tells.try_borrow() else { return false };
                tells.as_ref().is_some_and(|tell| {
                    LOST.fetch_add(1, Ordering::Relaxed);
                    tell(info.to_string());
                    true
                })
            });
            if told.unwrap_or(false) {
                loop {
                    thread::park();
                }
            }
            before(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the crate's: a panic that leaves it ends the process.
    extern "C" fn called_as_from_c(number: i32) -> i32 {
        assert!(number != 3, "a panic that must not be unwound");
        number + 1
    }

    /// Names the variable that tells the process of its own. Who runs tests takes the hook back when they have ended,
    /// and would wait for the threads that are lost.
    const ALONE: &str = "GESSO_TEST_LOST_THREADS";

    #[test]
    fn a_panic_that_cannot_be_caught_ends_a_call_and_not_the_process() {
        if std::env::var_os(ALONE).is_some() {
            lose_threads();
            std::process::exit(0);
        }
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let name = "cpu::av1::apart::tests::a_panic_that_cannot_be_caught_ends_a_call_and_not_the_process";
        let ended = command.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }

    fn lose_threads() {
        let mut apart = Apart::new(|| Ok(0)).unwrap();
        let add = |number| {
            move |state: &mut i32| {
                *state += called_as_from_c(number);
                *state
            }
        };
        assert_eq!(apart.call(add(1)).unwrap(), 2);
        assert_eq!(apart.call(add(2)).unwrap(), 5);
        for _ in 0..2 {
            let error = apart.call(add(3)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
            assert!(!error.to_string().contains("unwound"), "{error}");
        }
        drop(apart);
        // Others go on.
        let mut apart = Apart::new(|| Ok(0)).unwrap();
        assert_eq!(apart.call(add(4)).unwrap(), 5);
        let error =
            Apart::<i32>::new(|| Err(Error::invalid("not made"))).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("not made"));
    }
}
