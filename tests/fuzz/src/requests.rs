//! Requests as nobody would write them, through the plugin's entry points: names, types, shapes, pieces of memory,
//! outputs and failures of the server, beside a good request, which gets its answer whatever the others are. The server
//! is that of the plugin's tests.
#![expect(unsafe_code, reason = "calls the plugin as a server does")]

use triton_gesso::triton;

use crate::bytes::Bytes;
use crate::host::objects::Instance;
use crate::host::request::{Request, UINT8, cancel};
use crate::host::server::take;
use crate::host::{Host, book};

/// Models of `tests/plugin/models`, their inputs and outputs.
const MODELS: [(&str, &[&str], &[&str]); 4] = [
    ("prepare", &["image"], &["pixels"]),
    ("noisy", &["image"], &["pixels"]),
    ("declared", &["image"], &["pixels"]),
    ("classify", &["encoded"], &["__CropMirrorNormalize_2"]),
];
/// The model that mirrors an image.
const MIRRORS: &str = "prepare";
const MAX_REQUESTS: usize = 3;
/// The largest number of Triton's types, and one more.
const TYPES: usize = 15;
const EXTENTS: [i64; 12] = [1, 2, 3, 4, 1, 16, 0, -1, 65_536, i32::MAX as i64 + 1, i64::MAX, i64::MIN];
/// How many of them make sense.
const USUAL: usize = 6;
/// Bytes that a shape may ask for so that they are sent.
const MAX_BYTES: usize = 10_000;
/// Functions of the server that fail now and then. What a request that cannot be released leaves is a test of its own.
const FALLIBLE: [&str; 8] = [
    "TRITONBACKEND_ResponseNew",
    "TRITONBACKEND_RequestInputByIndex",
    "TRITONBACKEND_RequestOutputName",
    "TRITONBACKEND_InputProperties",
    "TRITONBACKEND_InputBuffer",
    "TRITONBACKEND_ResponseOutput",
    "TRITONBACKEND_OutputBuffer",
    "TRITONBACKEND_ResponseSend",
];
/// A failure of the server can leave all requests with it, which then sends them again.
const TRIES: usize = 20;

/// A server with an instance of each model.
struct Served {
    host: Host,
    instances: Vec<*mut Instance>,
}

thread_local! {
    /// Loading is not what is tried.
    static SERVED: Served = Served::start();
}

pub(crate) fn run(input: &[u8]) {
    SERVED.with(|served| served.answer(&mut Bytes::new(input)));
}

impl Served {
    fn start() -> Self {
        let host = Host::start();
        let load = |(name, ..): (&str, &[&str], &[&str])| {
            let model = host.model_of(name, "{}");
            // SAFETY: the model is the stand-in server's.
            take(unsafe { triton::TRITONBACKEND_ModelInitialize(model.cast()) }.cast()).unwrap();
            let instance = host.instance(model);
            // SAFETY: so is the instance.
            take(unsafe { triton::TRITONBACKEND_ModelInstanceInitialize(instance.cast()) }.cast()).unwrap();
            instance
        };
        let instances = MODELS.into_iter().map(load).collect();
        Self { host, instances }
    }

    /// Sends a batch, and looks at what becomes of it.
    fn answer(&self, bytes: &mut Bytes<'_>) {
        let chosen = bytes.below(MODELS.len());
        let ((model, inputs, outputs), instance) = (MODELS[chosen], self.instances[chosen]);
        let fault = bytes.once_in(4).then(|| bytes.pick(&FALLIBLE)).flatten();
        fault.into_iter().for_each(|function| self.host.fail_next(function));
        let count = 1 + bytes.below(MAX_REQUESTS);
        let mut requests: Vec<_> = (0..count).map(|_| self.hostile(bytes, inputs, outputs)).collect();
        let row = [bytes.byte(), bytes.byte(), bytes.byte()];
        let has_good = model == MIRRORS && fault.is_none();
        if has_good {
            requests.insert(bytes.below(count + 1), self.host.image("good", &row));
        }
        self.execute(instance, &mut requests);
        let sent = requests.len();
        self.host.wait_until("all requests are released", |book| book.released.len() >= sent);
        self.host.assert_clean();
        let mut book = book();
        assert_eq!(book.released.len(), sent, "each request is released once");
        if has_good {
            let answer = book.answers.iter().find(|answer| answer.request == "good");
            let found = answer.map(|answer| (&answer.failure, &answer.outputs[0].bytes[..]));
            assert_eq!(found, Some((&None, &[row[2], row[1], row[0]][..])), "the answer to a good request");
        }
        book.faults.clear();
        book.released.clear();
        book.answers.clear();
        book.reports.clear();
        book.batches.clear();
        book.wishes.clear();
        book.log.clear();
        drop(book);
        self.host.bury();
    }

    /// Executes a batch until the server has none of its requests left.
    fn execute(&self, instance: *mut Instance, requests: &mut [*mut Request]) {
        for _ in 0..TRIES {
            let (first, count) = (requests.as_mut_ptr().cast(), requests.len());
            // SAFETY: instance and requests are the stand-in server's.
            let failed =
                unsafe { triton::TRITONBACKEND_ModelInstanceExecute(instance.cast(), first, count as u32) };
            if take(failed.cast()).is_ok() {
                return;
            }
            assert_eq!(self.host.live("request"), count, "an error leaves all requests with the server");
        }
        panic!("no end of errors");
    }

    /// A request of which anything may be wrong.
    fn hostile(&self, bytes: &mut Bytes<'_>, inputs: &[&str], outputs: &[&str]) -> *mut Request {
        let mut made = Vec::new();
        for name in inputs {
            let copies = if bytes.once_in(8) { bytes.below(3) } else { 1 };
            for _ in 0..copies {
                let other = bytes.once_in(10).then(|| bytes.pick(&["", "images", "raw", "\u{e9}"])).flatten();
                let dtype = if bytes.once_in(5) { bytes.below(TYPES) as u32 } else { UINT8 };
                let shape = shape(bytes);
                let pieces = pieces(bytes, &shape);
                let pieces: Vec<_> = pieces.iter().map(|(memory, bytes)| (*memory, &bytes[..])).collect();
                made.push(self.host.input(other.unwrap_or(name), dtype, &shape, &pieces));
            }
        }
        let outputs = match bytes.below(8) {
            4 => Vec::new(),
            5 => vec!["far"],
            6 => outputs.repeat(2),
            7 => vec!["", "nothing"],
            _ => outputs.to_vec(),
        };
        let request = self.host.request_of("hostile", made, &outputs);
        if bytes.once_in(12) {
            cancel(request);
        }
        request
    }
}

fn shape(bytes: &mut Bytes<'_>) -> Vec<i64> {
    let any = bytes.below(10);
    let rank = bytes.pick(&[4, 4, 2, any]).unwrap_or(0);
    let kinds = if bytes.once_in(3) { EXTENTS.len() } else { USUAL };
    (0..rank).filter_map(|_| bytes.pick(&EXTENTS[..kinds])).collect()
}

/// The bytes that a shape asks for, or a few more or less, in pieces of memory.
fn pieces(bytes: &mut Bytes<'_>, shape: &[i64]) -> Vec<(u32, Vec<u8>)> {
    let elements = shape.iter().try_fold(1_i64, |product, &extent| product.checked_mul(extent));
    let right = elements.and_then(|count| usize::try_from(count).ok()).filter(|count| *count < MAX_BYTES);
    let more = if bytes.once_in(6) { bytes.below(9) } else { 0 };
    let wanted = (right.unwrap_or(7) + more).saturating_sub(usize::from(bytes.once_in(6)));
    let some = bytes.some(64.min(wanted));
    let mut left: Vec<u8> = some.iter().copied().chain(std::iter::repeat(7)).take(wanted).collect();
    let mut pieces = Vec::new();
    while !left.is_empty() {
        let kinds = if bytes.once_in(20) { 4 } else { 2 };
        let memory = bytes.below(kinds) as u32;
        let size = if bytes.once_in(2) { bytes.below(left.len() + 1) } else { left.len() };
        pieces.push((memory, left.drain(..size).collect()));
    }
    pieces
}
