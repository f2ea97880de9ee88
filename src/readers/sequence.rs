//! `readers.Sequence`: sequences of frames, which are images in folders: each folder has those of one video.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::read_file;
use super::list::{check_count, names};
use super::{Dataset, ReaderDef, Tensor, count};
use crate::cpu::decode::{ColorSpace, DecodeOptions, Decoder, output_shape, probe};
use crate::cpu::encoded::Encoded;
use crate::cpu::formats::Formats;
use crate::error::{Context, Error, Layer, Result};
use crate::limits;
use crate::memory::{HostBuffer, HostPool};
use crate::operator::{ArgSpec, Args};
use crate::tensor::{DType, Layout, Sample, Shape, ValueType};

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers__Sequence",
    aliases: &["SequenceReader"],
    doc: "Sequences of frames, which are images in folders",
    args: &[
        ArgSpec::string("file_root", "folder with a folder for each video, whose frames are images")
            .required(),
        ArgSpec::int("sequence_length", "frames of a sequence").required(),
        ArgSpec::int("step", "frames from the beginning of a sequence to that of the next one").or_int(1),
        ArgSpec::int("stride", "from a frame of a sequence to the next one").or_int(1),
        ArgSpec::image_type("image_type", "0 RGB, 1 BGR, 2 gray, 3 YCbCr, 4 as in the file").or_int(0),
    ],
    outputs: |args| Options::new(args)?.outputs(),
    open,
    undecoded: None,
    behind: None,
    shuffles_list: true,
};

struct Options {
    length: usize,
    step: usize,
    stride: usize,
    color: ColorSpace,
}

impl Options {
    fn new(args: &Args) -> Result<Self> {
        let count = |name| count(args, name, 1, limits::MAX_VIDEO_FRAMES);
        let color = match args.int("image_type")? {
            0 => ColorSpace::Rgb,
            1 => ColorSpace::Bgr,
            2 => ColorSpace::Gray,
            3 => ColorSpace::YCbCr,
            4 => ColorSpace::Any,
            other => {
                return Err(Error::invalid(format!("argument `image_type` is {other}, expected 0 to 4")));
            }
        };
        Ok(Self { length: count("sequence_length")?, step: count("step")?, stride: count("stride")?, color })
    }

    fn outputs(&self) -> Result<Vec<ValueType>> {
        let channels = (self.color != ColorSpace::Any).then(|| self.color.channels(0));
        let dims = vec![Some(self.length), None, None, channels];
        let layout = Some(Layout::from_letters(b"FHWC"));
        Ok(vec![ValueType { dtype: Some(DType::U8), dims: Some(dims), layout }])
    }

    /// Where sequences begin in a folder of `count` frames.
    fn begins(&self, count: usize) -> impl Iterator<Item = usize> + use<> {
        let behind = (self.length - 1).saturating_mul(self.stride);
        (0..count.saturating_sub(behind)).step_by(self.step)
    }
}

fn open(args: &Args) -> Result<Box<dyn Dataset>> {
    let options = Options::new(args)?;
    let root = Path::new(args.string("file_root")?);
    let (mut folders, mut samples) = (Vec::new(), Vec::new());
    for name in names(root, true)? {
        let path = root.join(name);
        let frames = names(&path, false)?;
        samples.extend(options.begins(frames.len()).map(|begin| (folders.len(), begin)));
        folders.push(Folder { path, frames });
        check_count(samples.len())?;
    }
    Ok(Box::new(Sequences { folders, samples, options, decoder: Decoder::new(), formats: Formats::ALL }))
}

/// The frames of a video, in order.
struct Folder {
    path: PathBuf,
    frames: Vec<String>,
}

struct Sequences {
    folders: Vec<Folder>,
    /// The number of its folder, and its first frame.
    samples: Vec<(usize, usize)>,
    options: Options,
    decoder: Decoder,
    formats: Formats,
}

impl Sequences {
    /// The files of a sample's frames.
    fn paths(&self, index: usize) -> Result<Vec<PathBuf>> {
        let missing = || Error::internal("a sample that is not there");
        let &(folder, begin) = self.samples.get(index).ok_or_else(missing)?;
        let Folder { path, frames } = self.folders.get(folder).ok_or_else(missing)?;
        let (length, stride) = (self.options.length, self.options.stride);
        let frames = frames.iter().skip(begin).step_by(stride).take(length).map(|name| path.join(name));
        Ok(frames.collect())
    }

    /// The frames, decoded one behind the other. The first one says which size all have.
    fn pixels(&self, paths: &[PathBuf], memory: &Arc<HostPool>) -> Result<Tensor> {
        let source = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
        let mut made = None;
        for (number, path) in paths.iter().enumerate() {
            let added = read_file(path, memory).and_then(|file| {
                let added = self.add(file.bytes.bytes(), (number, paths.len()), &mut made, memory);
                added.context(|| Layer::File(path.display().to_string()))
            });
            added.context(|| format!("frame {number} of the sequence that begins with `{source}`"))?;
        }
        let Frames { buffer, size: [height, width, channels] } =
            made.ok_or_else(|| Error::internal("a sequence without frames"))?;
        let shape = Shape::from([paths.len(), height, width, channels]);
        let bytes = Sample::Pooled(Arc::new(buffer), 0..shape.bytes(1)?);
        Ok(Tensor { dtype: DType::U8, shape, bytes, source })
    }

    /// Decodes the file of frame `number` of `count`.
    fn add(
        &self,
        file: &[u8],
        (number, count): (usize, usize),
        made: &mut Option<Frames>,
        memory: &Arc<HostPool>,
    ) -> Result<()> {
        self.formats.check_file(Encoded::Picture, file)?;
        let options = DecodeOptions { color: self.options.color, ..DecodeOptions::default() };
        let size = output_shape(&probe(file, options.adjust_orientation)?, &options);
        if made.is_none() {
            let [height, width, channels] = size;
            let length = Shape::from([count, height, width, channels]).bytes(1)?;
            *made = Some(Frames { buffer: memory.take(length)?, size });
        }
        let Some(Frames { buffer, size: wanted }) = made else { return Ok(()) };
        if *wanted != size {
            return Err(Error::invalid(format!(
                "the shape {size:?}, expected {wanted:?}: all frames of a sequence have one"
            )));
        }
        let length: usize = size.iter().product();
        let to = buffer.bytes_mut().get_mut(number * length..(number + 1) * length);
        self.decoder.decode_into(file, &options, to.unwrap_or_default())
    }
}

/// Frames of one size, one behind the other.
struct Frames {
    buffer: HostBuffer,
    /// Rows, columns, channels.
    size: [usize; 3],
}

impl Dataset for Sequences {
    fn allow(&mut self, formats: Formats) {
        self.formats = formats;
    }

    fn count(&self) -> usize {
        self.samples.len()
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        Ok(vec![self.pixels(&self.paths(index)?, memory)?])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::operator::args::Value;

    /// An image of one gray, of such a size.
    fn image(value: u8, width: usize, height: usize) -> Vec<u8> {
        let front = format!("P5 {width} {height} 255\n").into_bytes();
        [front, vec![value; width * height]].concat()
    }

    fn root(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("gesso-sequence-{name}-{}", std::process::id()));
        for (folder, count) in [("b", 5), ("a", 3), ("none", 0)] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
            for i in 0..count {
                let value = 10 * u8::from(folder == "b") + i;
                std::fs::write(root.join(folder).join(format!("{i}.pgm")), image(value, 2, 1)).unwrap();
            }
        }
        std::fs::write(root.join("file"), b"").unwrap();
        root
    }

    fn opened(root: &Path, given: &[(&str, i64)]) -> Result<Box<dyn Dataset>> {
        let mut values: BTreeMap<_, _> =
            [("file_root".to_owned(), Value::Strings(vec![root.display().to_string()]))].into();
        values.extend(given.iter().map(|&(name, value)| (name.to_owned(), Value::Ints(vec![value]))));
        open(&DEF.arguments(values))
    }

    fn first_pixels(dataset: &dyn Dataset) -> Vec<Vec<u8>> {
        let read = |index| dataset.read(index, &Arc::default()).unwrap().remove(0);
        let pixels = |tensor: Tensor| {
            assert_eq!(tensor.shape[1..3], [1, 2]);
            tensor.bytes.bytes().chunks(2 * tensor.shape[3]).map(|frame| frame[0]).collect()
        };
        (0..dataset.count()).map(read).map(pixels).collect()
    }

    #[test]
    fn sequences_go_through_folders() {
        let root = root("order");
        let dataset = opened(&root, &[("sequence_length", 2)]).unwrap();
        let wanted = [[0, 1], [1, 2], [10, 11], [11, 12], [12, 13], [13, 14]];
        assert_eq!(first_pixels(&*dataset), wanted);
        let source = dataset.read(2, &Arc::default()).unwrap().remove(0).source;
        assert_eq!(source, root.join("b/0.pgm").display().to_string());
        let given = [("sequence_length", 2), ("step", 2), ("stride", 3), ("image_type", 2)];
        assert_eq!(first_pixels(&*opened(&root, &given).unwrap()), [[10, 13]]);
        assert_eq!(opened(&root, &[("sequence_length", 6)]).unwrap().count(), 0);
        let given = [("sequence_length", 1 << 20), ("stride", 1 << 20)];
        assert_eq!(opened(&root, &given).unwrap().count(), 0);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn frames_and_arguments_that_are_wrong_are_errors() {
        let root = root("wrong");
        let dataset = opened(&root, &[("sequence_length", 3)]).unwrap();
        for (bytes, wanted) in [
            (image(0, 1, 2), "the shape [2, 1, 3], expected [1, 2, 3]"),
            (b"P5 2 1 255\n".to_vec(), "`PNM` image"),
            (b"text".to_vec(), "1.pgm"),
            (Vec::new(), "1.pgm"),
            (b"P5 65000 65000 255\n".to_vec(), "1.pgm"),
        ] {
            std::fs::write(root.join("a/1.pgm"), bytes).unwrap();
            let error = dataset.read(0, &Arc::default()).err().unwrap().to_string();
            assert!(
                error.contains(wanted) && error.contains("a/1.pgm") && error.contains("a/0.pgm"),
                "{error}"
            );
        }
        std::fs::remove_file(root.join("a/1.pgm")).unwrap();
        assert!(dataset.read(0, &Arc::default()).is_err() && dataset.read(9, &Arc::default()).is_err());
        std::fs::write(root.join("a/0.pgm"), b"P5 9999 9999 255\n").unwrap();
        assert!(dataset.read(0, &Arc::default()).is_err());
        for name in ["sequence_length", "step", "stride"] {
            for value in [0, -1, 1 << 40] {
                let given = [("sequence_length", 2), (name, value)];
                let error = opened(&root, &given).err().unwrap().to_string();
                assert!(error.contains(name) && error.contains("expected 1 to"), "{error}");
            }
        }
        assert!(opened(&root, &[("image_type", 5)]).is_err());
        assert!(opened(Path::new("/nowhere"), &[]).is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
