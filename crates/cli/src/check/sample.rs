//! Runs one sample through a model that loads, since some mistakes show only then: one that `--sample` names, or a
//! picture or a sound made here for an input that goes into a decoder.

use std::io::Cursor;
use std::path::Path;

use gesso::error::{Context, Error, Result};
use gesso::pipeline::{Description, Input, Instance, Keep, Pipeline};
use gesso::tensor::{Batch, BatchDesc, DType, Sample, Shape};

use crate::inputs::Samples;

/// Pixels of the picture, which is larger than most windows that a pipeline cuts out.
const WIDTH: u32 = 2048;
const HEIGHT: u32 = 1536;
/// Of the sound, which has one channel and takes two seconds.
const RATE: u32 = 16_000;
const SECONDS: u32 = 2;

/// What became of it.
pub(super) enum Ran {
    /// It has answers. For each input of the pipeline: its name, and what was given to it.
    Yes(Vec<(String, Given)>),
    /// Nothing is known of these inputs but their types.
    No(Vec<String>),
}

/// One sample of an input.
pub(super) struct Given {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

/// The inputs that `--sample` names, and their files.
///
/// # Errors
/// Invalid for a word without a name, or a name that comes twice.
pub(super) fn given(words: &[String]) -> Result<Vec<(String, String)>> {
    let mut given: Vec<(String, String)> = Vec::new();
    for word in words {
        let (name, file) =
            word.split_once('=')
                .filter(|(name, file)| !name.is_empty() && !file.is_empty())
                .ok_or_else(|| Error::invalid(format!("`--sample {word}`, expected `NAME=FILE`")))?;
        if given.iter().any(|(other, _)| other == name) {
            return Err(Error::invalid(format!("`--sample {name}=` is given twice, expected one file")));
        }
        given.push((name.to_owned(), file.to_owned()));
    }
    Ok(given)
}

/// Runs a sample of `given`, or one made here.
///
/// # Errors
/// What the sample fails with.
pub(super) fn run(
    (bytes, pipeline, instance): (&[u8], &Pipeline, &mut Instance),
    given: &[(String, String)],
) -> Result<Ran> {
    if pipeline.reads() || pipeline.takes_videos() {
        return Ok(Ran::No(Vec::new()));
    }
    let description = Pipeline::describe(bytes)?;
    let (mut loaded, mut made, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for input in pipeline.inputs() {
        if let Some((_, file)) = given.iter().find(|(name, _)| *name == input.name) {
            let (sample, failed) = Samples::of_file(input, Path::new(file)).load([0]);
            failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))?;
            loaded.push(sample);
        } else if let Some(file) = file_for(input, &description)? {
            made.push((input, file));
        } else {
            unknown.push(input.name.clone());
        }
    }
    if !unknown.is_empty() {
        return Ok(Ran::No(unknown));
    }
    let told = || match made.first() {
        None => "loads, but the sample fails".to_owned(),
        Some((input, file)) => format!(
            "loads, but {} that was made for `{}` fails; `--sample {}=FILE` tries another",
            file.what, input.name, input.name
        ),
    };
    // In the order of the pipeline's inputs.
    let (mut loaded, mut files) = (loaded.iter(), made.iter().peekable());
    let mut batches = Vec::new();
    for input in pipeline.inputs() {
        if let Some((_, file)) = files.next_if(|(other, _)| other.name == input.name) {
            let desc = BatchDesc::new(DType::U8, input.layout, vec![Shape::from([file.bytes.len()])]);
            batches.push(Batch::new(desc, vec![Sample::Borrowed(&file.bytes)])?);
        } else if let Some(sample) = loaded.next() {
            batches.extend(sample.batches()?);
        }
    }
    let given = |(input, batch): (&Input, &Batch<'_>)| {
        let view = batch.view(0);
        let given = Given { dtype: view.dtype, shape: view.shape.to_vec(), bytes: view.bytes.to_vec() };
        (input.name.clone(), given)
    };
    let sent = pipeline.inputs().iter().zip(&batches).map(given).collect();
    let outcome = instance.run_at(0, 1, batches, &mut Keep).context(told)?;
    outcome.failures.get(0).map_or(Ok(Ran::Yes(sent)), |error| Err(error.clone().context(told())))
}

/// A file that was made here.
struct Made {
    what: &'static str,
    bytes: Vec<u8>,
}

/// A file for an input that goes into a decoder of pictures or of sounds.
fn file_for(input: &Input, description: &Description) -> Result<Option<Made>> {
    let edge = description.inputs.iter().find(|other| other.name == input.name).map(|other| &other.edge);
    let mut readers = description.operators.iter().filter(|op| op.inputs.first() == edge);
    let Some(reader) = readers.next() else { return Ok(None) };
    let name = reader.name.to_lowercase();
    if name.contains("decoder") && name.contains("image") {
        return Ok(Some(Made { what: "a PNG of 2,048 x 1,536", bytes: picture()? }));
    }
    let is_sound = name.contains("decoder") && name.contains("audio");
    Ok(is_sound.then(|| Made { what: "a WAV of 2 seconds", bytes: sound() }))
}

/// A PNG in which no two neighbours are equal.
fn picture() -> Result<Vec<u8>> {
    let pixel = |x: u32, y: u32| image::Rgb([(x ^ y) as u8, (x / 8) as u8, (y / 6) as u8]);
    let mut file = Cursor::new(Vec::new());
    image::RgbImage::from_fn(WIDTH, HEIGHT, pixel)
        .write_to(&mut file, image::ImageFormat::Png)
        .map_err(|error| Error::internal(format!("a picture is not encoded: {error}")))?;
    Ok(file.into_inner())
}

/// A WAV of 16 bits: a tone of 440 Hz.
fn sound() -> Vec<u8> {
    const BYTES: u32 = 2;
    let data = RATE * SECONDS * BYTES;
    let mut file = Vec::new();
    file.extend(b"RIFF");
    file.extend((36 + data).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    file.extend([1_u16, 1].map(u16::to_le_bytes).as_flattened());
    file.extend([RATE, RATE * BYTES].map(u32::to_le_bytes).as_flattened());
    file.extend([BYTES as u16, 16].map(u16::to_le_bytes).as_flattened());
    file.extend(b"data");
    file.extend(data.to_le_bytes());
    for i in 0..RATE * SECONDS {
        let tone = (std::f32::consts::TAU * 440.0 * i as f32 / RATE as f32).sin();
        file.extend(((tone * 8_192.0) as i16).to_le_bytes());
    }
    file
}
