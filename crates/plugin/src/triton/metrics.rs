//! What a model counts on the server's metrics port. A server that shows no metrics costs nothing but a line in its
//! log.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::api::{Counter, Family, Server};
use crate::fetch::{Counts, Failure};
use gesso::error::{Error, ErrorKind, Result};
use gesso::pipeline::Tally;

/// Every kind of error as the label of a failure.
const KINDS: [(ErrorKind, &str); 8] = [
    (ErrorKind::Unknown, "unknown"),
    (ErrorKind::Internal, "internal"),
    (ErrorKind::NotFound, "not_found"),
    (ErrorKind::InvalidArg, "invalid_arg"),
    (ErrorKind::Unavailable, "unavailable"),
    (ErrorKind::Unsupported, "unsupported"),
    (ErrorKind::AlreadyExists, "already_exists"),
    (ErrorKind::Cancelled, "cancelled"),
];

/// The names on the metrics port, which all models of the process share.
struct Families {
    decoded: Family,
    frames: Family,
    failures: Family,
    slow: Family,
    bytes: Family,
    seconds: Family,
    recorded: Family,
    fetches: Family,
    fetched_bytes: Family,
    fetch_seconds: Family,
    client_refusals: Family,
}

impl Families {
    /// `None` where the server shows no metrics.
    fn get(server: &'static Server) -> Option<&'static Self> {
        static FAMILIES: OnceLock<Option<Families>> = OnceLock::new();
        let made = FAMILIES.get_or_init(|| {
            Self::new(server).inspect_err(|error| tracing::info!("no metrics of Gesso: {error}")).ok()
        });
        made.as_ref()
    }

    fn new(server: &'static Server) -> Result<Self> {
        let family = |name, help| Family::new(server, name, help);
        Ok(Self {
            decoded: family("gesso_images_decoded_total", "Images decoded, by the path that decoded them")?,
            frames: family(
                "gesso_frames_decoded_total",
                "Frames of videos decoded, by the path that decoded them",
            )?,
            failures: family("gesso_failures_total", "Requests answered with an error, by its kind")?,
            slow: family("gesso_slow_requests_total", "Requests that were handed to the slow lane")?,
            bytes: family("gesso_input_bytes_total", "Bytes of the inputs of all requests")?,
            seconds: family(
                "gesso_operator_seconds",
                "Seconds spent in each operator; `device` is the wait for a GPU at the end of each batch",
            )?,
            recorded: family("gesso_recorded_requests_total", "Requests to record, by what became of them")?,
            fetches: family(
                "gesso_fetches_total",
                "Files to fetch by their address, by what became of them",
            )?,
            fetched_bytes: family("gesso_fetched_bytes_total", "Bytes of files that were fetched")?,
            fetch_seconds: family("gesso_fetch_seconds", "Seconds that downloads took, failed ones too")?,
            client_refusals: family(
                "gesso_client_refusals_total",
                "Requests refused as their client has reached a limit, by the limit",
            )?,
        })
    }
}

/// The counters of one version of one model.
pub(super) struct Metrics(Option<Counters>);

struct Counters {
    engine: Counter,
    sms: Counter,
    cpu: Counter,
    frames: Counter,
    engine_frames: Counter,
    failures: Vec<(ErrorKind, Counter)>,
    slow: Counter,
    bytes: Counter,
}

/// Seconds of the operators of one kind of instance, in the order of its pipeline.
pub(super) struct OperatorSeconds {
    operators: Vec<Counter>,
    device: Option<Counter>,
}

/// How metrics are told apart.
pub(super) struct Labels<'m> {
    /// Name of the model.
    pub(super) model: &'m str,
    /// Version of the model.
    pub(super) version: &'m str,
}

impl Labels<'_> {
    fn counter(&self, family: &Family) -> Result<Counter> {
        family.counter(&[("model", self.model), ("version", self.version)])
    }

    fn counter_with(&self, family: &Family, label: (&str, &str)) -> Result<Counter> {
        family.counter(&[("model", self.model), ("version", self.version), label])
    }
}

impl Metrics {
    /// The counters of a model, all 0.
    pub(super) fn new(server: &'static Server, labels: &Labels<'_>) -> Self {
        Self(Families::get(server).and_then(|families| or_warn(Counters::new(families, labels))))
    }

    /// Counts a request that was answered with `error`.
    pub(super) fn failed(&self, error: &Error) {
        let Some(counters) = &self.0 else { return };
        if let Some((_, counter)) = counters.failures.iter().find(|(kind, _)| *kind == error.kind()) {
            add(counter, 1.0);
        }
    }

    /// Counts a request that the slow lane answers.
    pub(super) fn is_slow(&self) {
        if let Some(counters) = &self.0 {
            add(&counters.slow, 1.0);
        }
    }

    /// Counts what arrived for a batch.
    pub(super) fn arrived(&self, bytes: usize) {
        if let Some(counters) = &self.0 {
            add(&counters.bytes, bytes as f64);
        }
    }

    /// Counts what a batch took.
    pub(super) fn ran(&self, seconds: &OperatorSeconds, tally: &Tally) {
        if let Some(counters) = &self.0 {
            add(&counters.engine, tally.decoded.engine as f64);
            add(&counters.sms, tally.decoded.sms as f64);
            add(&counters.cpu, tally.decoded.cpu as f64);
            add(&counters.frames, tally.decoded.frames as f64);
            add(&counters.engine_frames, tally.decoded.engine_frames as f64);
        }
        for (counter, elapsed) in seconds.operators.iter().zip(&tally.operators) {
            add(counter, elapsed.as_secs_f64());
        }
        if let Some(device) = &seconds.device {
            add(device, tally.device.as_secs_f64());
        }
    }
}

impl Counters {
    fn new(families: &Families, labels: &Labels<'_>) -> Result<Self> {
        let failure = |(kind, name)| Ok((kind, labels.counter_with(&families.failures, ("kind", name))?));
        Ok(Self {
            engine: labels.counter_with(&families.decoded, ("path", "engine"))?,
            sms: labels.counter_with(&families.decoded, ("path", "sm"))?,
            cpu: labels.counter_with(&families.decoded, ("path", "cpu"))?,
            frames: labels.counter_with(&families.frames, ("path", "cpu"))?,
            engine_frames: labels.counter_with(&families.frames, ("path", "engine"))?,
            failures: KINDS.into_iter().map(failure).collect::<Result<_>>()?,
            slow: labels.counter(&families.slow)?,
            bytes: labels.counter(&families.bytes)?,
        })
    }
}

impl OperatorSeconds {
    /// A counter for each of `operators`, names in the order in which they run, and one for the device if there is one.
    pub(super) fn new(
        server: &'static Server,
        labels: &Labels<'_>,
        operators: &[String],
        device: bool,
    ) -> Self {
        let counter =
            |families: &Families, name: &str| labels.counter_with(&families.seconds, ("operator", name));
        let made = Families::get(server).and_then(|families| {
            let operators = operators.iter().map(|name| counter(families, name)).collect::<Result<_>>();
            or_warn(operators).map(|operators| Self {
                operators,
                device: device.then(|| or_warn(counter(families, "device"))).flatten(),
            })
        });
        made.unwrap_or(Self { operators: Vec::new(), device: None })
    }
}

/// Counters of the requests of a model that were recorded, and of those that were to be and are not.
pub(super) fn recorded(server: &'static Server, labels: &Labels<'_>) -> [Option<Counter>; 2] {
    ["written", "dropped"].map(|outcome| {
        let counter = |families: &Families| labels.counter_with(&families.recorded, ("outcome", outcome));
        Families::get(server).and_then(|families| or_warn(counter(families)))
    })
}

/// Counters of the requests of a model that were refused for their client, one for each of `limits`.
pub(super) fn client_refusals<const N: usize>(
    server: &'static Server,
    labels: &Labels<'_>,
    limits: [&str; N],
) -> [Option<Counter>; N] {
    limits.map(|limit| {
        let counter = |families: &Families| labels.counter_with(&families.client_refusals, ("limit", limit));
        Families::get(server).and_then(|families| or_warn(counter(families)))
    })
}

/// What a model counts of the files that it fetches.
#[derive(Clone, Default)]
pub(super) struct Fetches(Option<Arc<FetchCounters>>);

struct FetchCounters {
    outcomes: Vec<(&'static str, Counter)>,
    bytes: Counter,
    seconds: Counter,
}

impl Fetches {
    /// The counters of a model, all 0.
    pub(super) fn new(server: &'static Server, labels: &Labels<'_>) -> Self {
        let counters = |families: &Families| {
            let outcome = |name| Ok((name, labels.counter_with(&families.fetches, ("outcome", name))?));
            Ok(FetchCounters {
                outcomes: Failure::LABELS.into_iter().map(outcome).collect::<Result<_>>()?,
                bytes: labels.counter(&families.fetched_bytes)?,
                seconds: labels.counter(&families.fetch_seconds)?,
            })
        };
        Self(Families::get(server).and_then(|families| or_warn(counters(families))).map(Arc::new))
    }
}

impl Counts for Fetches {
    fn ended(&self, outcome: &'static str, bytes: usize, took: Duration) {
        let Some(counters) = &self.0 else { return };
        if let Some((_, counter)) = counters.outcomes.iter().find(|(name, _)| *name == outcome) {
            add(counter, 1.0);
        }
        add(&counters.bytes, bytes as f64);
        add(&counters.seconds, took.as_secs_f64());
    }
}

fn or_warn<T>(made: Result<T>) -> Option<T> {
    made.inspect_err(|error| tracing::warn!("cannot count on the metrics port: {error}")).ok()
}

fn add(counter: &Counter, value: f64) {
    if value > 0.0
        && let Err(error) = counter.add(value)
    {
        tracing::debug!("cannot count on the metrics port: {error}");
    }
}
