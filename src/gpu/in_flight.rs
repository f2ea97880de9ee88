//! The commands of a batch in their order, and everything that works for it: what has been started is waited for before
//! what it uses is freed, whatever went wrong in between. It must not know what a command does.

use std::sync::Arc;

use crate::error::Result;

/// Something that work runs in: a stream, or an event at the end of work.
pub(super) trait Timeline: Send + Sync {
    /// Waits until the work is done, if any was started.
    ///
    /// # Errors
    /// What failed there. There is nothing more to wait for then.
    fn settle(&self) -> Result<()>;
}

/// The commands of one batch at a time.
pub(super) struct Commands<C> {
    all: Vec<C>,
    /// How many are in the stream.
    submitted: usize,
    /// Where others work for the batch.
    others: Vec<Arc<dyn Timeline>>,
}

impl<C> Commands<C> {
    pub(super) fn new() -> Self {
        Self { all: Vec::new(), submitted: 0, others: Vec::new() }
    }

    /// Appends a command, and says which one it is.
    pub(super) fn push(&mut self, command: C) -> usize {
        self.all.push(command);
        self.all.len() - 1
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes those behind the first `len`, which are not in the stream.
    pub(super) fn split_off(&mut self, len: usize) -> Vec<C> {
        self.all.split_off(len.max(self.submitted).min(self.all.len()))
    }

    /// Says that others work for the batch in `timeline`, or may begin to.
    pub(super) fn work_in(&mut self, timeline: Arc<dyn Timeline>) {
        self.others.push(timeline);
    }

    /// Command `number` of the batch.
    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut C> {
        self.all.get_mut(number)
    }

    /// Lets the commands from `number` on run once more with the next [`Commands::submit`].
    pub(super) fn again_from(&mut self, number: usize) {
        self.submitted = self.submitted.min(number);
    }

    /// Puts the commands that are not there yet into the stream, which `enqueue` does. Every command stays, also after
    /// an error or a panic: those before it use what they own.
    ///
    /// # Errors
    /// The first of `enqueue`; what follows is not called.
    pub(super) fn submit(&mut self, enqueue: impl FnMut(&mut C) -> Result<()>) -> Result<()> {
        let first = self.submitted.min(self.all.len());
        self.submitted = self.all.len();
        self.all[first..].iter_mut().try_for_each(enqueue)
    }

    /// Waits for everything that may be under way: in `own`, the stream of the commands, and wherever others work.
    pub(super) fn settle(&self, own: &dyn Timeline) {
        for timeline in self.others.iter().map(|other| &**other).chain([own]) {
            // The others are waited for all the same; who asked for the work was told.
            let _ = timeline.settle();
        }
    }

    /// Forgets the batch, which was waited for.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.others.clear();
        self.submitted = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use parking_lot::Mutex;

    use super::*;
    use crate::error::Error;

    /// What happened, in order.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Log {
        fn note(&self, what: &str) {
            self.0.lock().push(what.to_owned());
        }

        fn notes(&self) -> Vec<String> {
            self.0.lock().clone()
        }
    }

    struct Line(&'static str, Log);

    impl Timeline for Line {
        fn settle(&self) -> Result<()> {
            self.1.note(&format!("wait for {}", self.0));
            Err(Error::internal("a broken device"))
        }
    }

    /// A call of others, with memory that their work uses.
    struct Call(&'static str, Log);

    impl Drop for Call {
        fn drop(&mut self) {
            self.1.note(&format!("free {}", self.0));
        }
    }

    /// A batch for which two engines and a stream work.
    fn begun(log: &Log) -> (Commands<Call>, Line) {
        let mut commands = Commands::new();
        for name in ["first", "second", "third"] {
            commands.push(Call(name, log.clone()));
        }
        commands.work_in(Arc::new(Line("engine 0", log.clone())));
        commands.work_in(Arc::new(Line("engine 1", log.clone())));
        (commands, Line("stream", log.clone()))
    }

    const WAITS: [&str; 3] = ["wait for engine 0", "wait for engine 1", "wait for stream"];
    const FREES: [&str; 3] = ["free first", "free second", "free third"];

    #[test]
    fn after_an_error_in_the_middle_everything_is_waited_for_before_anything_is_freed() {
        let log = Log::default();
        let (mut commands, stream) = begun(&log);
        let submitted = commands.submit(|Call(name, log)| {
            log.note(&format!("start {name}"));
            if *name == "second" { Err(Error::internal("no memory")) } else { Ok(()) }
        });
        assert_eq!(submitted.unwrap_err().to_string(), "no memory");
        commands.settle(&stream);
        commands.clear();
        assert_eq!(log.notes(), [&["start first", "start second"][..], &WAITS, &FREES].concat());
    }

    #[test]
    fn after_a_panic_too() {
        let log = Log::default();
        let (mut commands, stream) = begun(&log);
        let submitted = catch_unwind(AssertUnwindSafe(|| {
            commands.submit(|Call(name, log)| {
                log.note(&format!("start {name}"));
                assert!(*name != "third", "on purpose");
                Ok(())
            })
        }));
        assert!(submitted.is_err());
        commands.settle(&stream);
        commands.clear();
        let started = ["start first", "start second", "start third"];
        assert_eq!(log.notes(), [&started[..], &WAITS, &FREES].concat());
    }

    #[test]
    fn engines_that_started_before_anything_was_submitted_are_waited_for() {
        let log = Log::default();
        let (commands, stream) = begun(&log);
        commands.settle(&stream);
        drop(commands);
        assert_eq!(log.notes(), [&WAITS[..], &FREES].concat());
    }

    #[test]
    fn a_command_is_submitted_once_and_again_on_demand() {
        let mut commands = Commands::new();
        let mut seen = Vec::new();
        commands.push(1);
        let slot = commands.push(2);
        commands.push(3);
        for _ in 0..2 {
            commands
                .submit(|&mut number| {
                    seen.push(number);
                    Ok(())
                })
                .unwrap();
        }
        commands.again_from(slot);
        commands
            .submit(|&mut number| {
                seen.push(number);
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, [1, 2, 3, 2, 3]);
    }
}
