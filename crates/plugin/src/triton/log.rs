//! The crate's `tracing` events as lines of the server's log. It must not know what is logged.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::span;
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use super::api::{Level, Server};

/// Sends events to the server; spans are not shown.
struct ServerLog(&'static Server);

/// Lets the server's log show this library's events from now on. Does nothing when that was done before.
pub(super) fn install(server: &'static Server) {
    // An error means that a subscriber is there already: ours, from an earlier load of the backend.
    let _ = tracing::subscriber::set_global_default(ServerLog(server));
}

/// The server has one level below information, so debugging and tracing share it.
fn level_of(level: tracing::Level) -> Level {
    match level {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warn,
        tracing::Level::INFO => Level::Info,
        _ => Level::Verbose,
    }
}

impl Subscriber for ServerLog {
    /// The server's levels can be changed while it runs, so no answer may be remembered.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.0.log_enabled(level_of(*metadata.level()))
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line::default();
        event.record(&mut line);
        let file = metadata.file().unwrap_or_else(|| metadata.target());
        self.0.log(level_of(*metadata.level()), file, metadata.line().unwrap_or(0), &line.finish());
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// The message of an event, then its fields as ` key=value`.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn finish(self) -> String {
        self.message + &self.fields
    }

    fn add(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => self.message.write_fmt(value),
            name => write!(self.fields, " {name}={value}"),
        };
    }
}

impl Visit for Line {
    /// Texts stay without the quotes that `Debug` puts around them.
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format_args!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps the lines that `ServerLog` would send.
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl Subscriber for Kept {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn event(&self, event: &Event<'_>) {
            let mut line = Line::default();
            event.record(&mut line);
            self.0.lock().unwrap().push(line.finish());
        }
        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }
        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
        fn enter(&self, _: &span::Id) {}
        fn exit(&self, _: &span::Id) {}
    }

    #[test]
    fn fields_follow_the_message() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        tracing::subscriber::with_default(Kept(Arc::clone(&lines)), || {
            tracing::info!(model = "m", version = 3, path = ?"a b", "loaded {}", "it");
        });
        assert_eq!(*lines.lock().unwrap(), [r#"loaded it model=m version=3 path="a b""#]);
    }
}
