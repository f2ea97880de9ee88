//! How far long work has come, on the standard error: a bar on a terminal, elsewhere a line now and then.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Between two lines where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// A bar on a terminal.
pub(crate) fn bar(steps: usize, what: &'static str) -> ProgressBar {
    shown(ProgressBar::new(steps as u64), what, "{msg} [{bar:40}] {pos}/{len} {elapsed}")
}

fn shown(bar: ProgressBar, what: &'static str, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_message(what).with_style(style.progress_chars("=> ")),
        Err(_) => ProgressBar::hidden(),
    }
}

/// How many samples of a long run are done.
pub(crate) struct Progress {
    bar: ProgressBar,
    what: &'static str,
    total: Option<usize>,
    done: usize,
    begun: Instant,
    told: Option<Instant>,
}

impl Progress {
    /// Of so many of `what`, where that is known.
    pub(crate) fn new(total: Option<usize>, what: &'static str) -> Self {
        let (bar, template) = match total {
            Some(total) => {
                (ProgressBar::new(total as u64), "{msg} [{bar:40}] {pos}/{len} {elapsed} of about {duration}")
            }
            None => (ProgressBar::new_spinner(), "{msg} {spinner} {pos} {elapsed}"),
        };
        let bar = shown(bar, what, template);
        let begun = Instant::now();
        let told = (!std::io::stderr().is_terminal()).then_some(begun);
        Self { bar, what, total, done: 0, begun, told }
    }

    /// That many more are done.
    pub(crate) fn add(&mut self, count: usize) {
        self.done += count;
        self.bar.inc(count as u64);
        let Some(told) = self.told.as_mut().filter(|told| told.elapsed() >= BETWEEN_LINES) else { return };
        *told = Instant::now();
        let rate = self.done as f64 / self.begun.elapsed().as_secs_f64();
        let of = self.total.map_or(String::new(), |total| format!(" of {total}"));
        crate::terminal::tell(&format!("{}{of} {}, {rate:.1} a second\n", self.done, self.what));
    }

    /// Takes the bar away.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}
