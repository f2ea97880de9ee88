//! The model's `parameters`: free text in the configuration, typed here. It must not know pipelines.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde_json::{Map, Value};

use super::{Quota, in_config, read, spelling};
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
    /// `jpeg_path`: where a GPU instance decodes JPEGs, `engines`, `cores` or `threads`. `None` (`auto`, or absent): where it takes
    /// least time.
    pub jpeg_path: Option<JpegPath>,
    /// `jpeg_decoder`: who decodes JPEGs on host threads, `own` or `libjpeg-turbo`. `None`: our own decoder, which makes the same
    /// pixels.
    pub jpeg_decoder: Option<JpegDecoder>,
    /// `formats`: the formats of files that are decoded. `None`: all.
    pub formats: Option<Formats>,
    /// `deterministic`: whether a file becomes the same pixels in every run on a GPU; `jpeg_path` does not count then.
    pub deterministic: bool,
    /// `jpeg_scaled_decode`: whether a JPEG that a resize behind its decoder makes smaller anyway is decoded to 1/2, 1/4 or 1/8.
    pub jpeg_scaled_decode: bool,
    /// `arithmetic`: the `arithmetic` of operators that have this one and that the pipeline's file gives none. `None` (`dali`, or absent): DALI's.
    pub arithmetic: Option<Arithmetic>,
    /// `gpu_memory_mb`: bytes (in the configuration: 2^20 of them) of each GPU's memory that batches of the model may take, up to
    /// [`limits::MAX_GPU_MEMORY_MB`]. `None`: as much as there is.
    pub gpu_memory: Option<NonZeroUsize>,
    /// `gpu_multiprocessors`: how many multiprocessors of each GPU batches of the model may take, up to [`limits::MAX_GPU_MULTIPROCESSORS`].
    /// `None`: all.
    pub gpu_multiprocessors: Option<NonZeroUsize>,
    /// What a request may take.
    pub quota: Quota,
    /// `split_along_outer_axis`: names of outputs, separated by `:`.
    pub split_along_outer_axis: Vec<String>,
    /// `default.NAME`: the elements of input `NAME` where a request leaves it out, as written, by name of the input.
    pub defaults: BTreeMap<String, String>,
    /// `files.NAME`: a folder. Requests name files below it in input `NAME`, in place of sending them; by name of the input.
    pub files: BTreeMap<String, String>,
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
        let shared: Vec<String> = Self::shared().map(|name| format!("`{name}`")).collect();
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
        let known = Self::shared().chain(own);
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
        "cores" => Ok(Some(JpegPath::Cores)),
        "threads" => Ok(Some(JpegPath::Threads)),
        other => Err(Error::invalid(format!(
            "parameter `{JPEG_PATH}` is `{}`, expected `engines`, `cores`, `threads` or `auto`",
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
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(parameters: &Value) -> Result<Settings> {
        Settings::parse(json!({ "parameters": parameters }).as_object().unwrap())
    }

    #[test]
    fn threads_come_from_text() {
        let threads =
            |text: &str| parse(&json!({"num_threads": {"string_value": text}})).map(|s| s.num_threads);
        assert_eq!(threads("4").unwrap(), Some(4));
        assert_eq!(threads(" 16\n").unwrap(), Some(16));
        assert_eq!(threads("-1").unwrap(), None);
        assert_eq!(parse(&json!({})).unwrap(), Settings::default());
        assert_eq!(parse(&json!({"num_threads": 4})).unwrap().num_threads, Some(4));
        for wrong in ["", "four", "0", "-2", "1025", "4 threads", "99999999999999999999", "1e1", "0x4"] {
            let error = threads(wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("`num_threads` is `{wrong}`")), "{error}");
            assert!(error.contains("1 to 1024"), "{error}");
        }
        let error = parse(&json!({"num_threads": {"string_value": [4]}})).unwrap_err().to_string();
        assert_eq!(error, "parameter `num_threads` is a list, expected a string");
        assert!(parse(&json!([])).unwrap_err().to_string().contains("`parameters` is a list"));
    }

    #[test]
    fn batches_in_flight_are_a_small_number() {
        let batches = |text: &str| {
            parse(&json!({"max_batches_in_flight": {"string_value": text}})).map(|s| s.max_batches_in_flight)
        };
        assert_eq!(parse(&json!({})).unwrap().max_batches_in_flight, None);
        assert_eq!((batches("1").unwrap(), batches(" 16\n").unwrap()), (Some(1), Some(16)));
        for wrong in ["", "0", "-1", "17", "two"] {
            let error = batches(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("parameter `max_batches_in_flight` is `{wrong}`, expected 1 to 16"));
        }
    }

    #[test]
    fn memory_of_gpus_is_in_mebibytes() {
        let memory = |text: &str| parse(&json!({"gpu_memory_mb": text})).map(|s| s.gpu_memory.unwrap().get());
        assert_eq!(parse(&json!({})).unwrap().gpu_memory, None);
        assert_eq!((memory("1").unwrap(), memory(" 4096\n").unwrap()), (1 << 20, 4096 << 20));
        for wrong in ["", "0", "-1", "1.5", "1 GB", "16777217"] {
            let error = memory(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("parameter `gpu_memory_mb` is `{wrong}`, expected 1 to 16777216"));
        }
    }

    #[test]
    fn a_part_of_a_gpu_is_a_number_of_multiprocessors() {
        let part =
            |text: &str| parse(&json!({"gpu_multiprocessors": text})).map(|s| s.allowance().multiprocessors);
        assert_eq!(parse(&json!({})).unwrap().allowance().multiprocessors, None);
        assert_eq!(part(" 32\n").unwrap(), NonZeroUsize::new(32));
        for wrong in ["", "0", "-1", "4097", "a quarter"] {
            let error = part(wrong).unwrap_err().to_string();
            assert_eq!(error, format!("parameter `gpu_multiprocessors` is `{wrong}`, expected 1 to 4096"));
        }
    }

    #[test]
    fn jpegs_are_decoded_where_the_author_says() {
        let path = |text: &str| parse(&json!({"jpeg_path": {"string_value": text}})).map(|s| s.jpeg_path);
        assert_eq!(parse(&json!({})).unwrap().jpeg_path, None);
        let known = [
            ("auto", None),
            ("engines", Some(JpegPath::Engines)),
            ("cores", Some(JpegPath::Cores)),
            (" threads\n", Some(JpegPath::Threads)),
        ];
        for (text, expected) in known {
            assert_eq!(path(text).unwrap(), expected);
        }
        for wrong in ["", "gpu", "Engines"] {
            let error = path(wrong).unwrap_err().to_string();
            assert!(error.starts_with(&format!("parameter `jpeg_path` is `{wrong}`, expected")), "{error}");
        }
    }

    #[test]
    fn jpegs_are_decoded_by_whom_the_author_says() {
        let decoder = |text: &str| parse(&json!({"jpeg_decoder": text})).map(|s| s.jpeg_decoder);
        assert_eq!(parse(&json!({})).unwrap().jpeg_decoder, None);
        assert_eq!(decoder("own").unwrap(), Some(JpegDecoder::Own));
        assert_eq!(decoder(" libjpeg-turbo\n").unwrap(), Some(JpegDecoder::LibjpegTurbo));
        for wrong in ["", "Own", "libjpeg"] {
            let error = decoder(wrong).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("parameter `jpeg_decoder` is `{wrong}`, expected `own` or `libjpeg-turbo`")
            );
        }
    }

    #[test]
    fn resizes_have_the_arithmetic_that_the_author_names() {
        let arithmetic = |text: &str| parse(&json!({"arithmetic": text})).map(|s| s.arithmetic);
        assert_eq!(parse(&json!({})).unwrap().arithmetic, None);
        assert_eq!(arithmetic("dali").unwrap(), None);
        assert_eq!(arithmetic(" torchvision-float\n").unwrap(), Some(Arithmetic::TorchvisionFloat));
        assert_eq!(
            arithmetic("PIL").unwrap_err().to_string(),
            "parameter `arithmetic` is `PIL`, expected `dali`, `pillow`, `pillow13`, `torchvision`, `torchvision-float`, `opencv`"
        );
    }

    #[test]
    fn formats_are_a_list() {
        let formats = |text: &str| parse(&json!({"formats": text})).map(|s| s.formats);
        assert_eq!(parse(&json!({})).unwrap().formats, None);
        assert_eq!(formats(" -avif\n").unwrap(), Some(Formats::parse("-avif").unwrap()));
        let error = formats("jpg").unwrap_err().to_string();
        assert!(
            error.starts_with("parameter `formats`: `jpg` is no format, expected some of jpeg, "),
            "{error}"
        );
    }

    #[test]
    fn smaller_jpegs_are_an_authors_choice() {
        let repeatable = |text: &str| parse(&json!({"deterministic": text})).map(|s| s.deterministic);
        assert!(repeatable("true").unwrap() && !repeatable("false").unwrap() && repeatable("1").is_err());
        let scaled = |text: &str| parse(&json!({"jpeg_scaled_decode": text})).map(|s| s.jpeg_scaled_decode);
        assert!(!parse(&json!({})).unwrap().jpeg_scaled_decode);
        assert_eq!((scaled("true").unwrap(), scaled(" false\n").unwrap()), (true, false));
        for wrong in ["", "1", "yes", "True"] {
            let error = scaled(wrong).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("parameter `jpeg_scaled_decode` is `{wrong}`, expected `true` or `false`")
            );
        }
    }

    #[test]
    fn unknown_parameters_are_named_and_the_servers_are_not() {
        let settings = parse(&json!({
            "num_thread": {"string_value": "4"}, "Quality": {"string_value": ""},
            "TRITON_BATCH_STRATEGY_PATH": {"string_value": "/x.so"},
        }))
        .unwrap();
        let warning = settings.warning().unwrap();
        assert!(warning.contains("`Quality`, `num_thread` (did you mean `num_threads`?)"), "{warning}");
        assert_eq!(settings.misspelt(), Some(("num_thread", "num_threads".to_owned())));
        let meant = |name: &str| {
            parse(&json!({ name: {"string_value": "1"} })).unwrap().misspelt().map(|(_, meant)| meant)
        };
        assert_eq!(meant("defaults.SCALE"), Some("default.SCALE".to_owned()));
        assert_eq!(meant("arithmetics"), Some("arithmetic".to_owned()));
        assert_eq!(
            (meant("file.IMAGE"), meant("labels.IMAGE"), meant("Quality")),
            (Some("files.IMAGE".to_owned()), None, None)
        );
        assert!(!warning.contains("TRITON_"), "{warning}");
        assert_eq!(parse(&json!({"num_threads": {"string_value": "2"}})).unwrap().warning(), None);
    }

    #[test]
    fn outputs_to_split_stand_between_colons() {
        let split = |text: &str| parse(&json!({"split_along_outer_axis": {"string_value": text}})).unwrap();
        assert_eq!(split(":A::B:").split_along_outer_axis, ["A", "B"]);
        assert!(split("A:B").splits(&["x", "B"]) && !split("A:B").splits(&["C"]));
        assert!(!split("::").splits(&[""]));
    }

    #[test]
    fn defaults_are_kept_by_input() {
        let settings =
            parse(&json!({"default.SCALE": {"string_value": "1.5"}, "default.a.b": {"string_value": ""}}));
        let defaults = settings.unwrap().defaults;
        let defaults: Vec<_> = defaults.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(defaults, [("SCALE", "1.5"), ("a.b", "")]);
    }
}
