//! Requests as nobody would write them: names, types, shapes, pieces of memory, outputs and failures of the server drawn at random,
//! beside good requests, which get their answer whatever the others are. More of them: `GESSO_HOSTILE_EXECUTIONS=50000`.

use crate::host::objects::Instance;
use crate::host::request::{Request, UINT8, cancel};
use crate::host::{Host, book};
use crate::library::Plugin;
use crate::ready_of;

/// Executions of each model, unless this environment variable names another number.
const EXECUTIONS: u64 = 400;
const COUNT: &str = "GESSO_HOSTILE_EXECUTIONS";
/// Models of `plugin/models`, their inputs and outputs.
const MODELS: [(&str, &[&str], &[&str]); 4] = [
    ("prepare", &["image"], &["pixels"]),
    ("noisy", &["image"], &["pixels"]),
    ("declared", &["image"], &["pixels"]),
    ("classify", &["encoded"], &["__CropMirrorNormalize_2"]),
];
/// The largest number of Triton's types, and one more.
const TYPES: u32 = 15;
const EXTENTS: [i64; 12] = [1, 2, 3, 4, 1, 16, 0, -1, 65_536, i32::MAX as i64 + 1, i64::MAX, i64::MIN];
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

/// Numbers of a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}

/// A request of which anything may be wrong.
fn hostile(host: &Host, draw: &mut Draw, inputs: &[&str], outputs: &[&str]) -> *mut Request {
    let mut made = Vec::new();
    for name in inputs {
        let copies = if draw.once_in(8) { draw.below(3) } else { 1 };
        for _ in 0..copies {
            let name = if draw.once_in(10) { draw.pick(&["", "images", "raw", "\u{e9}"]) } else { name };
            let dtype = if draw.once_in(5) { draw.below(TYPES as usize) as u32 } else { UINT8 };
            let any = draw.below(10);
            let rank = draw.pick(&[4, 4, 2, any]);
            let kinds = if draw.once_in(3) { EXTENTS.len() } else { 6 };
            let shape: Vec<i64> = (0..rank).map(|_| draw.pick(&EXTENTS[..kinds])).collect();
            let elements = shape.iter().try_fold(1_i64, |product, &extent| product.checked_mul(extent));
            let right =
                elements.and_then(|count| usize::try_from(count).ok()).filter(|count| *count < 10_000);
            let wanted = right.unwrap_or(7) + if draw.once_in(6) { draw.below(9) } else { 0 };
            let missing = usize::from(draw.once_in(6));
            let mut left = draw.bytes(wanted.saturating_sub(missing));
            let mut pieces: Vec<(u32, Vec<u8>)> = Vec::new();
            while !left.is_empty() {
                let memory = if draw.once_in(20) { draw.below(4) as u32 } else { draw.below(2) as u32 };
                let size = if draw.once_in(2) { left.len() } else { draw.below(left.len() + 1) };
                pieces.push((memory, left.drain(..size).collect()));
            }
            let pieces: Vec<(u32, &[u8])> =
                pieces.iter().map(|(memory, bytes)| (*memory, bytes.as_slice())).collect();
            made.push(host.input(name, dtype, &shape, &pieces));
        }
    }
    let outputs: Vec<&str> = match draw.below(8) {
        0 => Vec::new(),
        1 => vec!["far"],
        2 => outputs.repeat(2),
        3 => vec!["", "nothing"],
        _ => outputs.to_vec(),
    };
    let request = host.request_of("hostile", made, &outputs);
    if draw.once_in(12) {
        cancel(request);
    }
    request
}

/// Executes a batch until the server has none of its requests left.
fn execute(plugin: &Plugin, instance: *mut Instance, requests: &mut [*mut Request], host: &Host, seed: u64) {
    for _ in 0..TRIES {
        if plugin.execute(instance, requests).is_ok() {
            return;
        }
        assert_eq!(
            host.live("request"),
            requests.len(),
            "an error leaves all requests with the server, seed {seed}"
        );
    }
    panic!("no end of errors, seed {seed}");
}

#[test]
fn hostile_requests_are_answered_and_harm_nobody() {
    let executions = std::env::var(COUNT).ok().and_then(|text| text.parse().ok()).unwrap_or(EXECUTIONS);
    let (host, plugin) = (Host::start(), Plugin::load());
    for (model, inputs, outputs) in MODELS {
        let (model_handle, instance) = ready_of(&host, &plugin, model);
        for seed in 1..=executions {
            let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
            let faulty = draw.once_in(4);
            if faulty {
                host.fail_next(draw.pick(&FALLIBLE));
            }
            let mut requests: Vec<_> =
                (0..1 + draw.below(3)).map(|_| hostile(&host, &mut draw, inputs, outputs)).collect();
            let width = 1 + draw.below(64);
            let row = draw.bytes(width);
            let good = model == "prepare" && !faulty;
            if good {
                let place = draw.below(requests.len() + 1);
                requests.insert(place, host.image("good", &row));
            }
            let sent = requests.len();
            execute(&plugin, instance, &mut requests, &host, seed);
            host.wait_until("all requests are released", |book| book.released.len() >= sent);
            host.assert_clean();
            let mut book = book();
            assert_eq!(book.released.len(), sent, "each request once, `{model}`, seed {seed}");
            if good {
                let answer = book.answers.iter().find(|answer| answer.request == "good").unwrap();
                let mirrored: Vec<u8> = row.iter().rev().copied().collect();
                assert_eq!(answer.failure, None, "`{model}`, seed {seed}");
                assert_eq!(answer.outputs[0].bytes, mirrored, "`{model}`, seed {seed}");
            }
            book.faults.clear();
            book.released.clear();
            book.answers.clear();
            book.reports.clear();
            book.log.clear();
        }
        plugin.instance_finalize(instance).unwrap();
        plugin.model_finalize(model_handle).unwrap();
    }
    host.assert_clean();
}
