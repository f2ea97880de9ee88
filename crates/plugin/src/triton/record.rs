//! Records the requests of a model, with their answers, into files of a folder: parameter `record_requests`. Who
//! answers a request copies it and goes on; a thread writes. What the thread cannot keep up with is left out, and
//! counted. It must not know what is in a request.

mod files;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use super::api::{Chunk, Counter, Request, Response, Server, Written};
use super::metrics::{self, Labels};
use crate::config::{DataType, ModelConfig, Recording, TensorConfig};
use crate::record::{Answer, ENDING, MAX_RECORD_BYTES, Recorded, Tensor};
use files::{Room, left, open, write};
use gesso::error::{Context, Error, ErrorKind, Result};
use gesso::memory::copied_once;

/// Requests that wait to be written.
const MAX_WAITING: usize = 64;
/// Their bytes.
const MAX_WAITING_BYTES: usize = 1 << 27;
/// Bytes of one output that are kept.
const MAX_OUTPUT_BYTES: usize = 1 << 25;

/// Records the requests of one model.
pub(super) struct Recorder {
    model: String,
    version: u64,
    shapes: Shapes,
    shared: Arc<Shared>,
    /// Both absent once the thread is to end.
    sender: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// What those who answer share with the thread.
struct Shared {
    /// Bytes that wait to be written.
    waiting: AtomicUsize,
    room: Mutex<Room>,
    written: Option<Counter>,
    dropped: Option<Counter>,
}

struct Job {
    recorded: Recorded,
    bytes: usize,
}

/// The tensors that clients see in another shape than the pipeline.
struct Shapes {
    batched: bool,
    reshaped: Vec<TensorConfig>,
    /// Names of the outputs, in the order of the pipeline.
    outputs: Vec<String>,
}

impl Recorder {
    /// Starts recording, if the model asks for it. `root` is the folder that the backend allows.
    ///
    /// # Errors
    /// Invalid where the backend allows none, and for a model that takes videos; not found for a folder that cannot be
    /// made or opened.
    pub(super) fn start(
        recording: &Recording,
        root: Option<&Path>,
        (config, outputs): (&ModelConfig, Vec<String>),
        (server, labels): (&'static Server, &Labels<'_>),
    ) -> Result<Option<Self>> {
        let Some(name) = &recording.folder else { return Ok(None) };
        let parameter = || "parameter `record_requests`".to_owned();
        let root = root.ok_or_else(|| {
            Error::invalid(
                "the backend allows no folder for records: `--backend-config=gesso,record_folder=/FOLDER` of the server names one",
            )
        });
        let root = root.context(parameter)?;
        if config.is_decoupled() {
            return Err(Error::unsupported("requests that bring videos are not recorded")).context(parameter);
        }
        let folder = open(root, name).context(parameter)?;
        let room = left(&folder, recording).context(parameter)?;
        let reshaped =
            config.inputs().iter().chain(config.outputs()).filter(|t| t.reshape.is_some()).cloned();
        let shapes = Shapes { batched: config.is_batched(), reshaped: reshaped.collect(), outputs };
        let [written, dropped] = metrics::recorded(server, labels);
        let shared =
            Arc::new(Shared { waiting: AtomicUsize::new(0), room: Mutex::new(room), written, dropped });
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("gesso-record".to_owned())
            .spawn(move || write_all(&folder, &receiver, &of_thread))
            .map_err(|error| {
                Error::new(ErrorKind::Unavailable, format!("cannot make a thread that records: {error}"))
            })?;
        let (model, version) = (labels.model.to_owned(), labels.version.parse().unwrap_or_default());
        tracing::warn!(
            model,
            version,
            folder = %root.join(name).display(),
            requests = room.count,
            bytes = room.bytes,
            "requests and their answers are recorded"
        );
        Ok(Some(Self { model, version, shapes, shared, sender: Some(sender), thread: Some(thread) }))
    }

    /// Records a request with the reply that it is about to get, or with an error.
    pub(super) fn take(&self, request: &Request, reply: &mut Response, error: Option<&Error>) {
        if self.shared.is_over() {
            return;
        }
        if let Err(error) = self.take_one(request, reply, error) {
            tracing::debug!(model = self.model, version = self.version, "a request is not recorded: {error}");
            count(self.shared.dropped.as_ref());
        }
    }

    /// Copies a request and its answer for the thread, if the folder has room for it.
    fn take_one(&self, request: &Request, reply: &mut Response, error: Option<&Error>) -> Result<()> {
        let mut bytes = request.inputs()?.iter().fold(0_usize, |sum, input| sum.saturating_add(input.bytes));
        if error.is_none() {
            let outputs = reply.written();
            let sizes = outputs.iter().filter_map(|output| kept(output.bytes).map(<[u8]>::len));
            bytes = sizes.fold(bytes, usize::saturating_add);
        }
        if bytes > MAX_RECORD_BYTES {
            return Err(Error::invalid(format!("{bytes} bytes, more than the limit of {MAX_RECORD_BYTES}")));
        }
        if !self.shared.reserve(bytes, (&self.model, self.version)) {
            return Ok(());
        }
        let sent = self.shared.begin(bytes).and_then(|()| {
            let recorded = self.copy(request, reply, error);
            let sent = recorded.and_then(|recorded| match &self.sender {
                Some(sender) => sender.try_send(Job { recorded, bytes }).map_err(|_| busy()),
                None => Err(busy()),
            });
            sent.inspect_err(|_| self.shared.end(bytes))
        });
        sent.inspect_err(|_| self.shared.give_back(bytes))
    }

    fn copy(&self, request: &Request, reply: &mut Response, error: Option<&Error>) -> Result<Recorded> {
        let mut inputs = Vec::new();
        for input in request.inputs()? {
            let mut bytes = Vec::with_capacity(input.bytes);
            for chunk in input.chunks()? {
                match chunk {
                    // A client may write to its own memory meanwhile.
                    Chunk::Host(host) => bytes.extend(copied_once(host)),
                    Chunk::Device { .. } => {
                        let text = format!("input `{}` is in memory of a device", input.name);
                        return Err(Error::unsupported(text));
                    }
                }
            }
            inputs.push(self.shapes.tensor(input.name, input.dtype, &input.shape, Some(bytes)));
        }
        let answer = match error {
            Some(error) => Answer::Failed(error.to_string()),
            None => {
                let output = |output: Written<'_>| {
                    let bytes = kept(output.bytes).map(copied_once);
                    let tensor = self.shapes.tensor(output.name, output.dtype, output.shape, bytes);
                    let index = self.shapes.outputs.iter().position(|name| name == output.name);
                    Tensor { index, ..tensor }
                };
                Answer::Outputs(reply.written().into_iter().map(output).collect())
            }
        };
        Ok(Recorded {
            model: self.model.clone(),
            version: self.version.to_string(),
            id: request.id().unwrap_or_default(),
            time_ms: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64),
            inputs,
            answer,
        })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // The thread writes what waits, and ends: its code is unloaded with the library.
        self.sender = None;
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!(model = self.model, version = self.version, "the thread that records has failed");
        }
    }
}

impl Shared {
    /// Takes room in the folder for a request; false where there is none, which ends the recording.
    fn reserve(&self, bytes: usize, (model, version): (&str, u64)) -> bool {
        let mut room = self.room.lock();
        if room.is_over {
            return false;
        }
        if let (Some(count), Some(left)) = (room.count.checked_sub(1), room.bytes.checked_sub(bytes as u64)) {
            (room.count, room.bytes) = (count, left);
            return true;
        }
        room.is_over = true;
        tracing::warn!(
            model,
            version,
            "recording has ended: the folder has as many requests or bytes as it may"
        );
        false
    }

    /// Whether nothing is recorded any more.
    fn is_over(&self) -> bool {
        self.room.lock().is_over
    }

    fn give_back(&self, bytes: usize) {
        let mut room = self.room.lock();
        room.count += 1;
        room.bytes += bytes as u64;
    }

    /// Notes that bytes wait to be written, if not too many do already.
    fn begin(&self, bytes: usize) -> Result<()> {
        let fits =
            |waiting: usize| waiting.checked_add(bytes).filter(|&sum| sum <= MAX_WAITING_BYTES.max(bytes));
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map(drop).map_err(|_| busy())
    }

    fn end(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Shapes {
    /// A tensor, in the shape of the pipeline; beside it the one that the client sees, if that is another.
    fn tensor(&self, name: &str, dtype: DataType, shape: &[usize], bytes: Option<Vec<u8>>) -> Tensor {
        let datatype = match dtype {
            DataType::Bytes => "BYTES".to_owned(),
            dense => dense.config_name().trim_start_matches("TYPE_").to_owned(),
        };
        let reshaped = self.reshaped.iter().find(|tensor| tensor.name == name);
        let sent = reshaped.map(|tensor| client_shape(tensor, self.batched, shape));
        Tensor { name: name.to_owned(), datatype, shape: shape.to_vec(), sent, index: None, bytes }
    }
}

/// The shape before `reshape`: variable extents are the same ones, in their order.
fn client_shape(tensor: &TensorConfig, batched: bool, shape: &[usize]) -> Vec<usize> {
    let (batch, sample) = shape.split_at(usize::from(batched).min(shape.len()));
    let reshape = tensor.reshape.as_deref().unwrap_or_default();
    let mut variable =
        sample.iter().zip(reshape).filter(|(_, configured)| **configured < 0).map(|(extent, _)| *extent);
    let extent = |&dim: &i64| usize::try_from(dim).unwrap_or_else(|_| variable.next().unwrap_or_default());
    batch.iter().copied().chain(tensor.dims.iter().map(extent)).collect()
}

/// The bytes of an output, if it is on the host and not too large.
fn kept(bytes: Option<&[u8]>) -> Option<&[u8]> {
    bytes.filter(|bytes| bytes.len() <= MAX_OUTPUT_BYTES)
}

fn busy() -> Error {
    Error::new(ErrorKind::Unavailable, "others wait to be written already")
}

fn count(counter: Option<&Counter>) {
    if let Some(Err(error)) = counter.map(|counter| counter.add(1.0)) {
        tracing::debug!("cannot count on the metrics port: {error}");
    }
}

/// What the thread does.
fn write_all(folder: &OwnedFd, jobs: &Receiver<Job>, shared: &Shared) {
    let mut is_told = false;
    for (number, Job { recorded, bytes }) in jobs.iter().enumerate() {
        let name = format!("{:013}-{}-{number:06}.{ENDING}", recorded.time_ms, recorded.version);
        match write(folder, &name, &recorded) {
            Ok(()) => count(shared.written.as_ref()),
            Err(error) => {
                count(shared.dropped.as_ref());
                shared.give_back(bytes);
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(model = recorded.model, "cannot record: {error}");
                }
            }
        }
        shared.end(bytes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn room_and_waiting_bytes_are_bounded() {
        let room = Room { count: 2, bytes: 100, is_over: false };
        let shared =
            Shared { waiting: AtomicUsize::new(0), room: Mutex::new(room), written: None, dropped: None };
        assert!(shared.reserve(60, ("m", 1)) && shared.reserve(40, ("m", 1)));
        shared.give_back(40);
        assert!(shared.reserve(40, ("m", 1)) && !shared.is_over());
        // From then on also what would fit is left out.
        shared.give_back(40);
        assert!(!shared.reserve(41, ("m", 1)) && shared.is_over() && !shared.reserve(1, ("m", 1)));
        shared.begin(MAX_WAITING_BYTES - 1).unwrap();
        assert!(shared.begin(2).is_err());
        shared.end(1);
        shared.begin(2).unwrap();
    }

    #[test]
    fn clients_see_the_shape_before_reshape() {
        let config = json!({ "backend": "gesso", "max_batch_size": 4, "input": [
            { "name": "A", "dims": [-1, 3, -1, 1], "reshape": { "shape": [-1, -1, 3] } },
            { "name": "B", "dims": [1], "reshape": {} },
        ] });
        let config = ModelConfig::parse(&config.to_string()).unwrap();
        let [a, b] = config.inputs() else { panic!() };
        assert_eq!(client_shape(a, true, &[2, 5, 7, 3]), [2, 5, 3, 7, 1]);
        assert_eq!(client_shape(b, true, &[2]), [2, 1]);
    }
}
