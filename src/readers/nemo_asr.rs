//! `readers.NemoAsr`: speech with its texts, as NeMo's manifests list them: a JSON object a line.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::file::{read_file, strings};
use super::list::check_count;
use super::pieces::text;
use super::{Dataset, ReaderDef, Tensor, tensors};
use crate::cpu::audio::decode::header;
use crate::cpu::audio::level::{Stored, store, write};
use crate::cpu::audio::resample::Resampler;
use crate::cpu::audio::sound::Header;
use crate::cpu::encoded::Encoded;
use crate::cpu::formats::Formats;
use crate::deadline::Watch;
use crate::error::{Context, Error, Layer, Result};
use crate::limits;
use crate::memory::HostPool;
use crate::operator::{ArgSpec, Args};
use crate::tensor::{DType, Element, Sample, Shape, ValueType};

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers__NemoAsr",
    aliases: &["NemoAsrReader"],
    doc: "Speech with its texts, as NeMo's manifests list them",
    args: &[
        ArgSpec::strings("manifest_filepaths", "text files with a JSON object in each line").required(),
        ArgSpec::bool("read_sample_rate", "one more output: the rate of the file").or_bool(true),
        ArgSpec::bool("read_text", "one more output: the text").or_bool(true),
        ArgSpec::bool("read_idxs", "one more output: the number of the line, of those that are read")
            .or_bool(false),
        ArgSpec::float("sample_rate", "samples a second of the output, 0 or less: the file's").or_float(-1.0),
        ArgSpec::float("quality", "of resampling, 0 to 100").or_float(50.0),
        ArgSpec::bool("downmix", "whether the mean of all channels is taken").or_bool(true),
        ArgSpec::dtype("dtype", "element type of the sound: float32, int16 or int32").or_dtype(DType::F32),
        ArgSpec::float("min_duration", "shorter entries, in seconds, are left out").or_float(0.0),
        ArgSpec::float("max_duration", "longer entries are left out, unless this is 0").or_float(0.0),
        ArgSpec::bool("normalize_text", "texts are given as they are").or_bool(false).no_effect(),
    ],
    outputs: |args| Options::new(args)?.outputs(),
    open,
    undecoded: None,
    behind: None,
    shuffles_list: true,
};

struct Options {
    has_rate: bool,
    has_text: bool,
    has_number: bool,
    mixes: bool,
    dtype: DType,
    /// Another rate than the file's, and what makes it.
    wanted: Option<(f32, Resampler)>,
}

impl Options {
    fn new(args: &Args) -> Result<Self> {
        let dtype = args.dtype("dtype")?;
        if !matches!(dtype, DType::F32 | DType::I16 | DType::I32) {
            return Err(Error::unsupported(format!(
                "argument `dtype` is {dtype}, expected float32, int16 or int32"
            )));
        }
        let quality = args.float("quality")?;
        let wanted = Some(args.float("sample_rate")?).filter(|&rate| rate > 0.0);
        if wanted.is_some_and(f32::is_infinite) || wanted.is_some() && !(0.0..=100.0).contains(&quality) {
            return Err(Error::invalid(format!(
                "`sample_rate` is {wanted:?} and `quality` {quality}, expected a finite rate, and 0 to 100"
            )));
        }
        Ok(Self {
            has_rate: args.bool("read_sample_rate")?,
            has_text: args.bool("read_text")?,
            has_number: args.bool("read_idxs")?,
            mixes: args.bool("downmix")?,
            dtype,
            wanted: wanted.map(|rate| (rate, Resampler::new(f64::from(quality)))),
        })
    }

    fn outputs(&self) -> Result<Vec<ValueType>> {
        let known = |dtype, dims: &[Option<usize>]| ValueType {
            dtype: Some(dtype),
            dims: Some(dims.to_vec()),
            layout: Some(Default::default()),
        };
        let mut types = vec![known(self.dtype, if self.mixes { &[None] } else { &[None, None] })];
        types.extend(self.has_rate.then(|| known(DType::F32, &[])));
        types.extend(self.has_text.then(|| known(DType::U8, &[None])));
        types.extend(self.has_number.then(|| known(DType::I64, &[Some(1)])));
        Ok(types)
    }

    /// The sound of a file, from `offset` on for `duration` seconds if that is more than 0.
    fn sound(&self, bytes: &[u8], header: &Header, entry: &Entry, memory: &Arc<HostPool>) -> Result<Tensor> {
        let window = window(header, entry)?;
        match self.dtype {
            DType::I16 => self.samples::<i16>(bytes, header, window, memory),
            DType::I32 => self.samples::<i32>(bytes, header, window, memory),
            _ => self.samples::<f32>(bytes, header, window, memory),
        }
    }

    fn samples<T: Stored + Element>(
        &self,
        bytes: &[u8],
        header: &Header,
        window: Range<usize>,
        memory: &Arc<HostPool>,
    ) -> Result<Tensor> {
        let (channels, watch) = (if self.mixes { 1 } else { header.channels }, Watch::forever());
        let rates =
            [f64::from(header.rate as f32), self.wanted.as_ref().map_or(0.0, |&(rate, _)| rate.into())];
        let resampler = self.wanted.as_ref().filter(|_| rates[0] != rates[1]).map(|(_, resampler)| resampler);
        let frames = match resampler {
            Some(_) if header.rate == 0 => return Err(Error::invalid("a sampling rate of 0")),
            Some(_) => Resampler::length(window.len(), rates[0], rates[1]),
            None => window.len() as f64,
        };
        if frames > limits::MAX_SAMPLE_BYTES as f64 {
            return Err(Error::invalid(format!("a signal of {frames} samples, more than a sample may have")));
        }
        let shape = vec![frames as usize, channels];
        let shape = Shape::new(if self.mixes { vec![frames as usize] } else { shape });
        let length = shape.bytes(size_of::<T>())?;
        let mut buffer = memory.take(length)?;
        let dst: &mut [T] =
            bytemuck::cast_slice_mut(buffer.bytes_mut().get_mut(..length).unwrap_or_default());
        match resampler {
            None => write(bytes, header, self.mixes, window, &watch, dst)?,
            Some(resampler) => {
                Shape::from([window.len(), channels]).bytes(size_of::<f32>())?;
                let mut signal = vec![0.0; window.len() * channels];
                write(bytes, header, self.mixes, window, &watch, &mut signal)?;
                let mut resampled = vec![0.0; dst.len()];
                if !resampled.is_empty() {
                    resampler.run(&signal, &mut resampled, channels, rates, &watch)?;
                }
                store(&resampled, dst);
            }
        }
        let bytes = Sample::Pooled(Arc::new(buffer), 0..length);
        Ok(Tensor { dtype: T::DTYPE, shape, bytes, source: String::new() })
    }
}

/// The frames of a file that an entry is.
fn window(header: &Header, entry: &Entry) -> Result<Range<usize>> {
    let rate = f64::from(header.rate as f32);
    let begin = (entry.offset * rate).floor();
    let left = header.frames as f64 - begin;
    let count = if entry.duration > 0.0 { (entry.duration * rate).floor().min(left) } else { left };
    if begin >= 0.0 && count >= 0.0 {
        return Ok(begin as usize..begin as usize + count as usize);
    }
    let (Entry { offset, duration, .. }, frames) = (entry, header.frames);
    Err(Error::invalid(format!(
        "it has {frames} samples of a channel, {rate} a second, expected {duration} seconds from {offset} on"
    )))
}

/// A line of a manifest.
#[derive(Deserialize)]
struct Entry {
    audio_filepath: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    offset: f64,
    #[serde(default)]
    duration: f64,
    /// Of those of its manifest that are read.
    #[serde(skip)]
    number: i64,
}

fn open(args: &Args) -> Result<Box<dyn Dataset>> {
    let seconds = |name| Ok::<_, Error>(f64::from(args.float(name)?));
    let (shortest, longest) = (seconds("min_duration")?, seconds("max_duration")?);
    let mut entries = Vec::new();
    for path in strings(args, "manifest_filepaths").unwrap_or_default() {
        let mut number = 0;
        for (i, line) in text(&path)?.split('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let mut entry: Entry = serde_json::from_str(line).map_err(|error| {
                let line = i + 1;
                Error::invalid(format!(
                    "line {line} of the manifest `{path}`: {error}, expected an object with `audio_filepath`"
                ))
            })?;
            let is_long = 0.0 < longest && longest < entry.duration;
            if is_long || 0.0 < entry.duration && entry.duration < shortest {
                continue;
            }
            entry.number = number;
            number += 1;
            entries.push(entry);
        }
        check_count(entries.len())?;
    }
    Ok(Box::new(Speech { entries, options: Options::new(args)?, formats: Formats::ALL }))
}

struct Speech {
    entries: Vec<Entry>,
    options: Options,
    formats: Formats,
}

impl Dataset for Speech {
    fn allow(&mut self, formats: Formats) {
        self.formats = formats;
    }

    fn count(&self) -> usize {
        self.entries.len()
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let entry = self.entries.get(index).ok_or_else(|| Error::internal("a sample that is not there"))?;
        let source = entry.audio_filepath.clone();
        let file = read_file(Path::new(&source), memory)?;
        let bytes = file.bytes.bytes();
        let header = self.formats.check_file(Encoded::Sound, bytes).and_then(|()| header(bytes));
        let sound =
            header.and_then(|header| Ok((header, self.options.sound(bytes, &header, entry, memory)?)));
        let (header, sound) = sound.context(|| Layer::File(source.clone()))?;
        let mut made = vec![Tensor { source: source.clone(), ..sound }];
        if self.options.has_rate {
            let rate = tensors::shaped(Shape::default(), &[header.rate as f32], memory)?;
            made.push(Tensor { source, ..rate });
        }
        if self.options.has_text {
            made.push(tensors::list(entry.text.as_bytes(), memory)?);
        }
        if self.options.has_number {
            made.push(tensors::list(&[entry.number], memory)?);
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests;
