//! `experimental.readers.Video`, and the older `readers.Video`: sequences of frames of video files.

use std::sync::Arc;

use super::video_files::Files;
use super::video_list::{self, Bounds, Rounding};
use super::video_samples::{self, Sample as Chosen};
use super::{Dataset, ReaderDef, Step, Tensor, Undecoded, count, tensors};
use crate::cpu::formats::Formats;
use crate::cpu::video::{Budget, Idle, Padding, fill_color};
use crate::error::{Context, Error, Result};
use crate::limits;
use crate::memory::HostPool;
use crate::operator::args::Value;
use crate::operator::{ArgSpec, Args};
use crate::tensor::{DType, Layout, Sample, Shape, ValueType};

/// Red, green, blue.
const CHANNELS: usize = 3;

/// What both have.
const SEQUENCE_LENGTH: ArgSpec = ArgSpec::int("sequence_length", "frames of a sequence").required();
const FILENAMES: ArgSpec =
    ArgSpec::strings("filenames", "the videos; not together with `file_root` or `file_list`");
const FILE_ROOT: ArgSpec = ArgSpec::string("file_root", "folder with a folder for each label");
const FILE_LIST: ArgSpec =
    ArgSpec::string("file_list", "text file with `path label [start [end]]` in each line");
const LABELS: ArgSpec = ArgSpec::ints("labels", "a label for each of `filenames`");
const STEP: ArgSpec = ArgSpec::int("step", "frames from the beginning of a sequence to that of the next one")
    .or_computed("`sequence_length`");
const STRIDE: ArgSpec = ArgSpec::int("stride", "from a frame of a sequence to the next one").or_int(1);
const FRAME_NUM: ArgSpec = ArgSpec::string("enable_frame_num", "one more output: `scalar`: the number of the first frame; `sequence`: of each frame, -1 where there is none").or_string("none");
const TIMESTAMPS: ArgSpec = ArgSpec::bool(
    "enable_timestamps",
    "one more output: when each frame is shown, in seconds, -1 where there is none",
)
.or_bool(false);
const IMAGE_TYPE: ArgSpec = ArgSpec::image_type("image_type", "RGB").or_int(0);

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "experimental__readers__Video",
    aliases: &[],
    doc: "Sequences of frames of video files",
    args: &[
        SEQUENCE_LENGTH,
        FILENAMES,
        FILE_ROOT,
        FILE_LIST,
        LABELS,
        STEP,
        STRIDE,
        FRAME_NUM,
        TIMESTAMPS,
        IMAGE_TYPE,
        ArgSpec::string("file_list_format", "what `start` and `end` are: `timestamps` in seconds, or numbers of `frames`, negative ones from the end").or_string("timestamps"),
        ArgSpec::string("file_list_rounding", "to which frames they are rounded: `start_down_end_up`, `start_up_end_down`, `all_up` or `all_down`").or_string("start_down_end_up"),
        ArgSpec::bool("file_list_include_end", "a range ends before its end, as in DALI").or_bool(true).no_effect(),
        ArgSpec::string("pad_mode", "what fills up the last sequence of a video: `none`: it is left out; `constant`: `fill_value`; `edge`, `reflect_1001`, `reflect_101`: other frames of the range").or_string("none"),
        ArgSpec::ints("fill_value", "0 to 255, one value or one for each channel").or_ints(&[0]),
        ArgSpec::bool("uniform_sample", "one sequence a video, its frames spread evenly").or_bool(false),
    ],
    outputs: |args| Options::new(args)?.outputs(args),
    open: |args| open(args, Options::new(args)?),
    undecoded: Some(&Undecoded {
        outputs: |args| Ok(Options::new(args)?.undecoded_outputs(args)),
        open: |args| open_undecoded(args, Options::new(args)?),
        steps: |args| Ok(Options::new(args)?.steps()),
    }),
    behind: None,
    shuffles_list: true,
};

/// The line of the older one, which DALI has on a GPU alone.
pub(super) const OLDER: ReaderDef = ReaderDef {
    name: "readers__Video",
    aliases: &["VideoReader"],
    doc: "Sequences of frames of video files, as uint8 or float32",
    args: &[
        SEQUENCE_LENGTH,
        FILENAMES,
        FILE_ROOT,
        FILE_LIST,
        LABELS,
        STEP,
        STRIDE,
        FRAME_NUM,
        TIMESTAMPS,
        IMAGE_TYPE,
        ArgSpec::bool("file_list_frame_num", "`start` and `end` are numbers of frames, not seconds")
            .or_bool(false),
        ArgSpec::bool(
            "file_list_include_preceding_frame",
            "seconds are rounded to a longer range, not to a shorter one",
        )
        .or_bool(false),
        ArgSpec::bool("pad_sequences", "the last sequence of a video is filled up with zeros, not left out")
            .or_bool(false),
        ArgSpec::dtype("dtype", "uint8, or float32").or_int(0),
        ArgSpec::bool("normalized", "float32 from 0 to 1").or_bool(false),
        ArgSpec::int("channels", "3").or_int(3),
        ArgSpec::int("additional_decode_surfaces", "for DALI's decoder on a GPU").or_int(2).no_effect(),
        ArgSpec::bool("skip_vfr_check", "frames need not come evenly").or_bool(false).no_effect(),
    ],
    outputs: |args| Options::older(args)?.outputs(args),
    open: |args| open(args, Options::older(args)?),
    undecoded: Some(&Undecoded {
        outputs: |args| Ok(Options::older(args)?.undecoded_outputs(args)),
        open: |args| open_undecoded(args, Options::older(args)?),
        steps: |args| Ok(Options::older(args)?.steps()),
    }),
    behind: None,
    shuffles_list: true,
};

/// Numbers of frames as an output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameNumbers {
    None,
    First,
    Each,
}

struct Options {
    choice: video_samples::Choice,
    bounds: Bounds,
    fill: [u8; CHANNELS],
    numbers: FrameNumbers,
    has_timestamps: bool,
    /// What levels are multiplied by, where they become float32.
    scale: Option<f32>,
    /// Whether an empty list of labels stands for 0, 1, 2 and so on.
    counts_labels: bool,
}

impl Options {
    fn new(args: &Args) -> Result<Self> {
        let rounding = Rounding::new(args.string("file_list_rounding")?)?;
        let bounds = match args.string("file_list_format")? {
            "timestamps" => Bounds::Units(rounding),
            "frames" => Bounds::Frames(rounding),
            other => {
                return Err(Error::invalid(format!(
                    "argument `file_list_format` is `{other}`, expected `timestamps` or `frames`"
                )));
            }
        };
        let padding = Padding::new(args.string("pad_mode")?)?;
        let fill = fill_color(&args.ints("fill_value")?, padding)?;
        Ok(Self { fill, ..Self::shared(args, bounds, padding, args.bool("uniform_sample")?, false)? })
    }

    fn older(args: &Args) -> Result<Self> {
        let includes_preceding = args.bool("file_list_include_preceding_frame")?;
        let rounding = Rounding { start_up: !includes_preceding, end_up: includes_preceding };
        let bounds = match args.bool("file_list_frame_num")? {
            true => Bounds::Frames(Rounding { start_up: true, end_up: false }),
            false => Bounds::Seconds(rounding),
        };
        let channels = args.int("channels")?;
        if channels != CHANNELS as i64 {
            return Err(Error::unsupported(format!("argument `channels` is {channels}, expected 3")));
        }
        let padding = if args.bool("pad_sequences")? { Padding::Constant } else { Padding::None };
        let scale = match (args.dtype("dtype")?, args.bool("normalized")?) {
            (DType::U8, false) => None,
            (DType::F32, is_normalized) => Some(if is_normalized { 1.0 / 255.0 } else { 1.0 }),
            (dtype, is_normalized) => {
                return Err(Error::invalid(format!(
                    "`dtype` is {dtype} and `normalized` {is_normalized}, expected uint8, or float32 with or without it"
                )));
            }
        };
        let options =
            Self { scale, counts_labels: true, ..Self::shared(args, bounds, padding, false, true)? };
        let has_others = options.numbers != FrameNumbers::None || options.has_timestamps;
        if let (true, Some(root)) = (has_others, video_list::root(args)?) {
            return Err(Error::invalid(format!(
                "`enable_frame_num` or `enable_timestamps` is given with `file_root`, which is `{root}`, expected \
                 `filenames` or `file_list` with them"
            )));
        }
        Ok(options)
    }

    fn shared(
        args: &Args,
        bounds: Bounds,
        padding: Padding,
        is_uniform: bool,
        ends_with_last_frame: bool,
    ) -> Result<Self> {
        let length = count(args, "sequence_length", 1, limits::MAX_VIDEO_FRAMES)?;
        let step =
            args.given_int("step")?.and_then(|step| usize::try_from(step).ok()).filter(|&step| step > 0);
        let numbers = match args.string("enable_frame_num")? {
            "none" | "False" | "" => FrameNumbers::None,
            "scalar" | "True" => FrameNumbers::First,
            "sequence" => FrameNumbers::Each,
            other => {
                return Err(Error::invalid(format!(
                    "argument `enable_frame_num` is `{other}`, expected `none`, `scalar` or `sequence`"
                )));
            }
        };
        let kind = args.int("image_type")?;
        if kind != 0 {
            return Err(Error::unsupported(format!(
                "argument `image_type` is {kind}, expected 0: frames are RGB"
            )));
        }
        let stride = count(args, "stride", 1, usize::MAX)?;
        let step = step.unwrap_or(length);
        Ok(Self {
            choice: video_samples::Choice { length, step, stride, padding, is_uniform, ends_with_last_frame },
            bounds,
            fill: [0; CHANNELS],
            numbers,
            has_timestamps: args.bool("enable_timestamps")?,
            scale: None,
            counts_labels: false,
        })
    }

    fn outputs(&self, args: &Args) -> Result<Vec<ValueType>> {
        let pixels = if self.scale.is_some() { DType::F32 } else { DType::U8 };
        let dims = vec![Some(self.choice.length), None, None, Some(CHANNELS)];
        let layout = Some(Layout::from_letters(b"FHWC"));
        let frames = ValueType { dtype: Some(pixels), dims: Some(dims), layout };
        Ok([vec![frames], self.other_outputs(args)].concat())
    }

    /// The outputs when frames are decoded by operators: a file, and the numbers of its frames, -1 for the fill value.
    fn undecoded_outputs(&self, args: &Args) -> Vec<ValueType> {
        let first = vec![plain(DType::U8, None), plain(DType::I32, Some(self.choice.length))];
        [first, self.other_outputs(args)].concat()
    }

    /// What comes with the frames.
    fn other_outputs(&self, args: &Args) -> Vec<ValueType> {
        let length = Some(self.choice.length);
        let mut outputs = Vec::new();
        if video_list::has_labels(args) {
            outputs.push(plain(DType::I32, Some(1)));
        }
        match self.numbers {
            FrameNumbers::None => {}
            FrameNumbers::First => outputs.push(plain(DType::I32, Some(1))),
            FrameNumbers::Each => outputs.push(plain(DType::I32, length)),
        }
        if self.has_timestamps {
            outputs.push(plain(DType::F64, length));
        }
        outputs
    }

    /// The operators that decode the frames of [`Options::undecoded_outputs`].
    fn steps(&self) -> Vec<Step> {
        let fill = self.fill.map(i64::from).to_vec();
        let decode = Step {
            operator: "decoders__Video",
            values: [("fill_value".to_owned(), Value::Ints(fill))].into(),
            argument: Some("frames"),
        };
        let scale = self.scale.map(|scale| Step {
            operator: "ArithmeticGenericOp",
            values: [
                ("expression_desc".to_owned(), Value::Strings(vec!["mul(&0 $0:float32)".to_owned()])),
                ("real_constants".to_owned(), Value::Floats(vec![scale])),
            ]
            .into(),
            argument: None,
        });
        [decode].into_iter().chain(scale).collect()
    }
}

/// The type of a list.
fn plain(dtype: DType, extent: Option<usize>) -> ValueType {
    ValueType { dtype: Some(dtype), dims: Some(vec![extent]), layout: Some(Layout::NONE) }
}

fn open(args: &Args, options: Options) -> Result<Box<dyn Dataset>> {
    Ok(Box::new(Videos::open(args, options, true)?))
}

fn open_undecoded(args: &Args, options: Options) -> Result<Box<dyn Dataset>> {
    Ok(Box::new(Videos::open(args, options, false)?))
}

struct Videos {
    files: Files,
    labels: Vec<i32>,
    has_labels: bool,
    samples: Vec<Chosen>,
    options: Options,
    /// Whether frames are decoded here.
    decodes: bool,
    formats: Formats,
    /// Decoders from one sample to the next.
    idle: Arc<Idle>,
}

impl Videos {
    fn open(args: &Args, options: Options, decodes: bool) -> Result<Self> {
        let listed = video_list::listed(args, options.counts_labels)?;
        let has_labels = video_list::has_labels(args);
        let mut samples = Vec::new();
        for (number, entry) in listed.iter().enumerate() {
            let video = Files::read(&entry.path)?;
            let failed = || format!("the video `{}`", entry.path.display());
            let range = entry.range(&video, options.bounds).context(failed)?;
            options.choice.add(number, range, &mut samples).context(failed)?;
        }
        let labels = listed.iter().map(|entry| entry.label).collect();
        let files = Files::new(listed.into_iter().map(|entry| entry.path).collect());
        Ok(Self {
            files,
            labels,
            has_labels,
            samples,
            options,
            decodes,
            formats: Formats::ALL,
            idle: Arc::default(),
        })
    }

    /// Frames of file `file`, decoded.
    fn pixels(&self, file: usize, frames: &[Option<usize>], memory: &Arc<HostPool>) -> Result<Tensor> {
        let Options { fill, scale, .. } = &self.options;
        let video = self.files.open(file)?;
        self.formats.check(video.format())?;
        let shape = Shape::from([frames.len(), video.height(), video.width(), CHANNELS]);
        let (size, shape_bytes) = (shape.bytes(1)?, shape.bytes(if scale.is_some() { 4 } else { 1 })?);
        let mut buffer = memory.take(size)?;
        let pixels = buffer.bytes_mut().get_mut(..size).unwrap_or_default();
        let budget = Budget::default().keeping(&self.idle);
        video.write_all(frames, *fill, pixels, &budget, rayon::current_num_threads())?;
        let bytes = match scale {
            None => Sample::Pooled(Arc::new(buffer), 0..size),
            Some(scale) => {
                let mut floats = memory.take(shape_bytes)?;
                let scaled = bytemuck::cast_slice_mut::<u8, f32>(floats.bytes_mut());
                for (to, &level) in scaled.iter_mut().zip(&*pixels) {
                    *to = f32::from(level) * scale;
                }
                Sample::Pooled(Arc::new(floats), 0..shape_bytes)
            }
        };
        let dtype = if scale.is_some() { DType::F32 } else { DType::U8 };
        Ok(Tensor { dtype, shape, bytes, source: String::new() })
    }

    fn tensors(&self, sample: &Chosen, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let Options { choice, numbers, has_timestamps, .. } = &self.options;
        let frames = choice.frames(sample)?;
        let number = |frame: &Option<usize>| frame.map_or(-1, |frame| frame as i32);
        let each = || tensors::list(&frames.iter().map(number).collect::<Vec<_>>(), memory);
        let mut made = match self.decodes {
            true => vec![self.pixels(sample.file, &frames, memory)?],
            false => vec![self.files.encoded(sample.file, memory)?, each()?],
        };
        if self.has_labels {
            let label = self.labels.get(sample.file).copied().unwrap_or_default();
            made.push(tensors::list(&[label], memory)?);
        }
        match numbers {
            FrameNumbers::None => {}
            FrameNumbers::First => made.push(tensors::list(&[frames.first().map_or(-1, number)], memory)?),
            FrameNumbers::Each => made.push(each()?),
        }
        if *has_timestamps {
            let video = self.files.open(sample.file)?;
            let seconds = |frame: &Option<usize>| frame.map_or(-1.0, |frame| video.seconds(frame));
            made.push(tensors::list(&frames.iter().map(seconds).collect::<Vec<f64>>(), memory)?);
        }
        Ok(made)
    }
}

impl Dataset for Videos {
    fn allow(&mut self, formats: Formats) {
        self.formats = formats;
    }

    fn count(&self) -> usize {
        self.samples.len()
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let sample = self.samples.get(index).ok_or_else(|| Error::internal("a sample that is not there"))?;
        let path = self.files.path(sample.file);
        let mut made = self.tensors(sample, memory).context(|| format!("the video `{}`", path.display()))?;
        if let Some(first) = made.first_mut() {
            first.source = path.display().to_string();
        }
        Ok(made)
    }

    fn origin(&self, index: usize) -> Option<String> {
        let sample = self.samples.get(index).filter(|_| !self.decodes)?;
        Some(format!("the video `{}`", self.files.path(sample.file).display()))
    }
}

#[cfg(test)]
mod tests;
