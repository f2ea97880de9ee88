//! The crate's `tracing` events as lines of the server's log: text, or a JSON object each. It must not know what is
//! logged.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use super::api::{Level, Server};

/// What a line of this library is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Format {
    /// The message, then the fields as ` key=value`.
    #[default]
    Text,
    /// An object with `level`, `message` and the fields.
    Json,
}

/// Sends events to the server; spans are not shown.
struct ServerLog(&'static Server);

/// Whether lines are objects. One for the process, as its subscriber is.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Lets the server's log show this library's events from now on. Does nothing when that was done before.
pub(super) fn install(server: &'static Server) {
    // An error means that a subscriber is there already: ours, from an earlier load of the backend.
    let _ = tracing::subscriber::set_global_default(ServerLog(server));
}

/// Says what lines are from now on.
pub(super) fn set_format(format: Format) {
    IS_JSON.store(format == Format::Json, Ordering::Relaxed);
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

/// How an object names a level.
fn name_of(level: tracing::Level) -> &'static str {
    match level {
        tracing::Level::ERROR => "error",
        tracing::Level::WARN => "warning",
        tracing::Level::INFO => "info",
        _ => "verbose",
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
        let format = if IS_JSON.load(Ordering::Relaxed) { Format::Json } else { Format::Text };
        let file = metadata.file().unwrap_or_else(|| metadata.target());
        self.0.log(level_of(*metadata.level()), file, metadata.line().unwrap_or(0), &line(event, format));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// An event as a line of the log.
fn line(event: &Event<'_>, format: Format) -> String {
    match format {
        Format::Text => {
            let mut line = Line::default();
            event.record(&mut line);
            line.message + &line.fields
        }
        Format::Json => {
            let mut object = Object(Map::new());
            object.0.insert("level".to_owned(), name_of(*event.metadata().level()).into());
            event.record(&mut object);
            Value::Object(object.0).to_string()
        }
    }
}

/// The message of an event, then its fields as ` key=value`.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
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

/// The fields of an event, its message among them. Numbers stay numbers; what JSON cannot hold is text.
struct Object(Map<String, Value>);

impl Object {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Object {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps the lines that `ServerLog` would send.
    struct Kept(Arc<Mutex<Vec<String>>>, Format);

    impl Subscriber for Kept {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn event(&self, event: &Event<'_>) {
            self.0.lock().unwrap().push(line(event, self.1));
        }
        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }
        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
        fn enter(&self, _: &span::Id) {}
        fn exit(&self, _: &span::Id) {}
    }

    fn kept(format: Format, log: impl FnOnce()) -> Vec<String> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        tracing::subscriber::with_default(Kept(Arc::clone(&lines), format), log);
        std::mem::take(&mut *lines.lock().unwrap())
    }

    #[test]
    fn fields_follow_the_message() {
        let lines = kept(Format::Text, || {
            tracing::info!(model = "m", version = 3, path = ?"a b", "loaded {}", "it");
        });
        assert_eq!(lines, [r#"loaded it model=m version=3 path="a b""#]);
    }

    #[test]
    fn an_object_has_level_message_and_fields() {
        let lines = kept(Format::Json, || {
            tracing::warn!(model = "m \"1\"", version = 3, share = 0.5, late = true, path = %"a b", "line\none");
        });
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(!line.contains('\n'), "{line}");
        let found: Value = serde_json::from_str(line).unwrap();
        let expected = serde_json::json!({
            "level": "warning", "message": "line\none", "model": "m \"1\"", "version": 3, "share": 0.5, "late": true,
            "path": "a b",
        });
        assert_eq!(found, expected);
    }
}
