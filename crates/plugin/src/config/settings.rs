//! The model's `parameters`: free text in the configuration, typed here. It must not know pipelines.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde_json::{Map, Value};

use super::{ClientLimits, Fetching, Quota, Recording, in_config, read, spelling};
use gesso::cpu::formats::Formats;
use gesso::error::{Context, Error, Result};
use gesso::gpu::Allowance;
use gesso::limits;
use gesso::pipeline::{Arithmetic, JpegDecoder, JpegPath};

const NUM_THREADS: &str = "num_threads";
const MAX_BATCHES_IN_FLIGHT: &str = "max_batches_in_flight";
const JPEG_PATH: &str = "jpeg_path";
const JPEG_DECODER: &str = "jpeg_decoder";
const DETERMINISTIC: &str = "deterministic";
const JPEG_SCALED_DECODE: &str = "jpeg_scaled_decode";
const ARITHMETIC: &str = "arithmetic";
const FORMATS: &str = "formats";
const GPU_MEMORY_MB: &str = "gpu_memory_mb";
const GPU_MULTIPROCESSORS: &str = "gpu_multiprocessors";
const SPLIT_ALONG_OUTER_AXIS: &str = "split_along_outer_axis";
/// `default.NAME`: what an optional input `NAME` is where a request leaves it out.
const DEFAULT_PREFIX: &str = "default.";

/// `files.NAME`: the folder of the files that requests name in input `NAME`.
const FILES_PREFIX: &str = "files.";

/// Keys with this prefix are the server's own.
const SERVER_PREFIX: &str = "TRITON_";

/// What a model's `parameters` say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// `num_threads`: worker threads of an instance, 1 to [`limits::MAX_THREADS`]. `None` (-1 in the configuration, or
    /// absent): as many as the pipeline's file says.
    pub num_threads: Option<usize>,
    /// `max_batches_in_flight`: batches of an instance that are worked on at the same time, 1 to
    /// [`limits::MAX_BATCHES_IN_FLIGHT`]. `None`: the instance's kind decides.
    pub max_batches_in_flight: Option<usize>,
    /// `jpeg_path`: where a GPU instance decodes JPEGs, `engines`, `cores` or `threads`. `None` (`auto`, or absent):
    /// where it takes least time.
    pub jpeg_path: Option<JpegPath>,
    /// `jpeg_decoder`: who decodes JPEGs on host threads, `own` or `libjpeg-turbo`. `None`: our own decoder, which
    /// makes the same pixels.
    pub jpeg_decoder: Option<JpegDecoder>,
    /// `formats`: the formats of files that are decoded. `None`: all.
    pub formats: Option<Formats>,
    /// `deterministic`: whether a file becomes the same pixels in every run on a GPU; `jpeg_path` does not count then.
    pub deterministic: bool,
    /// `jpeg_scaled_decode`: whether a JPEG that a resize behind its decoder makes smaller anyway is decoded to 1/2,
    /// 1/4 or 1/8.
    pub jpeg_scaled_decode: bool,
    /// `arithmetic`: the `arithmetic` of operators that have this one and that the pipeline's file gives none. `None`
    /// (`dali`, or absent): DALI's.
    pub arithmetic: Option<Arithmetic>,
    /// `gpu_memory_mb`: bytes (in the configuration: 2^20 of them) of each GPU's memory that batches of the model may
    /// take, up to [`limits::MAX_GPU_MEMORY_MB`]. `None`: as much as there is.
    pub gpu_memory: Option<NonZeroUsize>,
    /// `gpu_multiprocessors`: how many multiprocessors of each GPU batches of the model may take, up to
    /// [`limits::MAX_GPU_MULTIPROCESSORS`]. `None`: all.
    pub gpu_multiprocessors: Option<NonZeroUsize>,
    /// What a request may take.
    pub quota: Quota,
    /// `split_along_outer_axis`: names of outputs, separated by `:`.
    pub split_along_outer_axis: Vec<String>,
    /// `default.NAME`: the elements of input `NAME` where a request leaves it out, as written, by name of the input.
    pub defaults: BTreeMap<String, String>,
    /// `files.NAME`: a folder. Requests name files below it in input `NAME`, in place of sending them; by name of the
    /// input.
    pub files: BTreeMap<String, String>,
    /// What is fetched by addresses that its requests name.
    pub fetching: Fetching,
    /// What is recorded of its requests.
    pub recording: Recording,
    /// What one client may have of it.
    pub clients: ClientLimits,
    /// Parameters that nobody reads, in lexicographic order.
    pub unknown: Vec<String>,
}

impl Settings {
    pub(super) fn parse(config: &Map<String, Value>) -> Result<Self> {
        let mut settings = Self::default();
        let Some(parameters) = read::object(config, "parameters").context(in_config)? else {
            return Ok(settings);
        };
        for (key, value) in parameters {
            match key.as_str() {
                key if Self::shared().any(|known| known == key) => settings.set(key, &text(key, value)?)?,
                key if Recording::KEYS.contains(&key) => settings.recording.set(key, &text(key, value)?)?,
                key if Fetching::KEYS.contains(&key) => settings.fetching.set(key, &text(key, value)?)?,
                key if ClientLimits::KEYS.contains(&key) => settings.clients.set(key, &text(key, value)?)?,
                DETERMINISTIC => settings.deterministic = truth(key, &text(key, value)?)?,
                JPEG_SCALED_DECODE => settings.jpeg_scaled_decode = truth(key, &text(key, value)?)?,
                ARITHMETIC => settings.arithmetic = arithmetic(&text(key, value)?)?,
                other if other.starts_with(DEFAULT_PREFIX) => {
                    let name = other.strip_prefix(DEFAULT_PREFIX).unwrap_or_default().to_owned();
                    settings.defaults.insert(name, text(key, value)?);
                }
                other if other.starts_with(FILES_PREFIX) => {
                    let name = other.strip_prefix(FILES_PREFIX).unwrap_or_default().to_owned();
                    settings.files.insert(name, text(key, value)?);
                }
                SPLIT_ALONG_OUTER_AXIS => {
                    let text = text(key, value)?;
                    let names = text.split(':').filter(|name| !name.is_empty());
                    settings.split_along_outer_axis = names.map(str::to_owned).collect();
                }
                other if other.starts_with(SERVER_PREFIX) => {}
                other => settings.unknown.push(other.to_owned()),
            }
        }
        settings.unknown.sort_unstable();
        settings.clients.check()?;
        Ok(settings)
    }

    /// The parameters that the backend has options for, too.
    pub fn shared() -> impl Iterator<Item = &'static str> {
        [
            NUM_THREADS,
            MAX_BATCHES_IN_FLIGHT,
            JPEG_PATH,
            JPEG_DECODER,
            FORMATS,
            GPU_MEMORY_MB,
            GPU_MULTIPROCESSORS,
        ]
        .into_iter()
        .chain(Quota::KEYS)
    }

    /// [`Settings::shared`], and those of which a model has several together.
    fn listed() -> impl Iterator<Item = &'static str> {
        Self::shared().chain(Recording::KEYS).chain(Fetching::KEYS).chain(ClientLimits::KEYS)
    }

    /// Sets one of [`Settings::shared`]; does nothing for another `key`.
    ///
    /// # Errors
    /// Invalid when the text is no value of the parameter.
    pub fn set(&mut self, key: &str, text: &str) -> Result<()> {
        match key {
            NUM_THREADS => self.num_threads = num_threads(text)?,
            MAX_BATCHES_IN_FLIGHT => self.max_batches_in_flight = Some(max_batches_in_flight(text)?),
            JPEG_PATH => self.jpeg_path = jpeg_path(text)?,
            JPEG_DECODER => self.jpeg_decoder = Some(jpeg_decoder(text)?),
            FORMATS => {
                let formats = Formats::parse(text.trim()).context(|| format!("parameter `{FORMATS}`"))?;
                self.formats = Some(formats);
            }
            GPU_MEMORY_MB => self.gpu_memory = Some(gpu_memory(text)?),
            GPU_MULTIPROCESSORS => self.gpu_multiprocessors = Some(gpu_multiprocessors(text)?),
            other => self.quota.set(other, text)?,
        }
        Ok(())
    }

    /// These settings, and where they say nothing, the backend's.
    #[must_use]
    pub fn or(self, backend: &Self) -> Self {
        Self {
            num_threads: self.num_threads.or(backend.num_threads),
            max_batches_in_flight: self.max_batches_in_flight.or(backend.max_batches_in_flight),
            jpeg_path: self.jpeg_path.or(backend.jpeg_path),
            jpeg_decoder: self.jpeg_decoder.or(backend.jpeg_decoder),
            formats: self.formats.or(backend.formats),
            gpu_memory: self.gpu_memory.or(backend.gpu_memory),
            gpu_multiprocessors: self.gpu_multiprocessors.or(backend.gpu_multiprocessors),
            quota: self.quota.or(&backend.quota),
            ..self
        }
    }

    /// What batches of the model may take of each GPU.
    pub fn allowance(&self) -> Allowance {
        Allowance { memory: self.gpu_memory, multiprocessors: self.gpu_multiprocessors }
    }

    /// What the author should know although the model loads; one line, or none.
    pub fn warning(&self) -> Option<String> {
        if self.unknown.is_empty() {
            return None;
        }
        let named = |name: &String| {
            let meant =
                Self::meant_by(name).map_or(String::new(), |name| format!(" (did you mean `{name}`?)"));
            format!("`{}`{meant}", name.escape_debug())
        };
        let names: Vec<String> = self.unknown.iter().map(named).collect();
        let shared: Vec<String> = Self::listed().map(|name| format!("`{name}`")).collect();
        Some(format!(
            "unknown parameters in the model configuration, without effect: {}; known are {}, `{DETERMINISTIC}`, \
             `{JPEG_SCALED_DECODE}`, `{ARITHMETIC}`, `{SPLIT_ALONG_OUTER_AXIS}`, `{FILES_PREFIX}NAME` and `{DEFAULT_PREFIX}NAME`",
            names.join(", "),
            shared.join(", ")
        ))
    }

    /// A parameter without effect that is spelt like a known one, and that one.
    pub fn misspelt(&self) -> Option<(&str, String)> {
        self.unknown.iter().find_map(|name| Some((name.as_str(), Self::meant_by(name)?)))
    }

    /// The known parameter that is spelt like `name`.
    fn meant_by(name: &str) -> Option<String> {
        if let Some((prefix, rest)) = name.split_once('.') {
            let known = [DEFAULT_PREFIX, FILES_PREFIX].map(|known| known.trim_end_matches('.'));
            return spelling::nearest(prefix, known.into_iter())
                .map(|known| format!("{known}.{}", rest.escape_debug()));
        }
        let own = [DETERMINISTIC, JPEG_SCALED_DECODE, ARITHMETIC, SPLIT_ALONG_OUTER_AXIS];
        let known = Self::listed().chain(own);
        spelling::nearest(name, known).map(str::to_owned)
    }

    /// Whether one of an output's names is to be split.
    pub(super) fn splits(&self, names: &[&str]) -> bool {
        self.split_along_outer_axis.iter().any(|split| names.contains(&split.as_str()))
    }
}

/// The text of `{"string_value": "text"}`; a bare text or number will do.
fn text(key: &str, value: &Value) -> Result<String> {
    let inner = value.as_object().map_or(Some(value), |fields| fields.get("string_value"));
    match inner {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(other) => {
            Err(Error::invalid(format!("parameter `{key}` is {}, expected a string", read::kind(other))))
        }
    }
}

fn num_threads(text: &str) -> Result<Option<usize>> {
    match text.trim().parse::<i64>() {
        Ok(-1) => return Ok(None),
        Ok(number) => {
            if let Some(threads) =
                usize::try_from(number).ok().filter(|n| (1..=limits::MAX_THREADS).contains(n))
            {
                return Ok(Some(threads));
            }
        }
        Err(_) => {}
    }
    Err(Error::invalid(format!(
        "parameter `{NUM_THREADS}` is `{}`, expected 1 to {}, or -1 for the number in the pipeline's file",
        text.escape_debug(),
        limits::MAX_THREADS
    )))
}

fn max_batches_in_flight(text: &str) -> Result<usize> {
    let number = text.trim().parse::<usize>().ok();
    number.filter(|n| (1..=limits::MAX_BATCHES_IN_FLIGHT).contains(n)).ok_or_else(|| {
        Error::invalid(format!(
            "parameter `{MAX_BATCHES_IN_FLIGHT}` is `{}`, expected 1 to {}",
            text.escape_debug(),
            limits::MAX_BATCHES_IN_FLIGHT
        ))
    })
}

fn gpu_memory(text: &str) -> Result<NonZeroUsize> {
    let number = text.trim().parse::<usize>().ok().filter(|number| *number <= limits::MAX_GPU_MEMORY_MB);
    number.and_then(|number| NonZeroUsize::new(number << 20)).ok_or_else(|| {
        Error::invalid(format!(
            "parameter `{GPU_MEMORY_MB}` is `{}`, expected 1 to {}",
            text.escape_debug(),
            limits::MAX_GPU_MEMORY_MB
        ))
    })
}

fn gpu_multiprocessors(text: &str) -> Result<NonZeroUsize> {
    let number =
        text.trim().parse::<usize>().ok().filter(|number| *number <= limits::MAX_GPU_MULTIPROCESSORS);
    number.and_then(NonZeroUsize::new).ok_or_else(|| {
        Error::invalid(format!(
            "parameter `{GPU_MULTIPROCESSORS}` is `{}`, expected 1 to {}",
            text.escape_debug(),
            limits::MAX_GPU_MULTIPROCESSORS
        ))
    })
}

fn truth(key: &str, text: &str) -> Result<bool> {
    match text.trim() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(Error::invalid(format!(
            "parameter `{key}` is `{}`, expected `true` or `false`",
            other.escape_debug()
        ))),
    }
}

fn jpeg_path(text: &str) -> Result<Option<JpegPath>> {
    match text.trim() {
        "auto" => Ok(None),
        "engines" => Ok(Some(JpegPath::Engines)),
        "sm" | "cores" => Ok(Some(JpegPath::Sm)),
        "threads" => Ok(Some(JpegPath::Threads)),
        other => Err(Error::invalid(format!(
            "parameter `{JPEG_PATH}` is `{}`, expected `engines`, `sm`, `threads` or `auto`",
            other.escape_debug()
        ))),
    }
}

fn jpeg_decoder(text: &str) -> Result<JpegDecoder> {
    match text.trim() {
        "own" => Ok(JpegDecoder::Own),
        "libjpeg-turbo" => Ok(JpegDecoder::LibjpegTurbo),
        other => Err(Error::invalid(format!(
            "parameter `{JPEG_DECODER}` is `{}`, expected `own` or `libjpeg-turbo`",
            other.escape_debug()
        ))),
    }
}

fn arithmetic(text: &str) -> Result<Option<Arithmetic>> {
    match text.trim() {
        "dali" => Ok(None),
        name => Arithmetic::ALL.into_iter().find(|known| known.name() == name).map(Some).ok_or_else(|| {
            let names = Arithmetic::ALL.map(|known| format!("`{}`", known.name()));
            Error::invalid(format!(
                "parameter `{ARITHMETIC}` is `{}`, expected `dali`, {}",
                name.escape_debug(),
                names.join(", ")
            ))
        }),
    }
}

#[cfg(test)]
mod tests;
