//! Readers: sources that find, shuffle and read data sets, with DALI's names, arguments and order of samples. A reader
//! is a file that lists a data set and reads one sample; shards, shuffling, padding and going on in the middle are
//! written once. It must not know graphs.
//!
//! ```text
//! file.rs       files, with labels                                    list.rs     files of folders and lists
//! webdataset.rs samples of tar archives     tar.rs, tar_index.rs        where they are
//! tfrecord.rs   features of examples        features.rs, wire.rs          what is in one
//! mxnet.rs      images and labels of RecordIO files                   records.rs  records and their index
//! caffe.rs, caffe2.rs  images and labels of databases               lmdb.rs     where they are
//! csv.rs        files and labels of a table                        sequence.rs, nemo_asr.rs  frames of folders, speech
//! numpy.rs      arrays                    region.rs    parts of them
//! coco.rs       images with objects       annotations.rs, annotations_saved.rs  which    masks.rs  masks of pixels
//! pieces.rs     open files of many samples, and the bytes of one    pattern.rs  which names are wanted
//! order.rs      which sample comes next                               engines.rs  the random numbers that decide it
//! stored.rs     files that the program reads
//! video.rs      sequences of videos       video_list.rs, video_samples.rs  which    video_files.rs  open files
//! video_resize.rs  the same, resized
//! reader.rs     both together as a [`crate::source::Source`]
//! ```

mod annotations;
mod annotations_saved;
mod caffe;
mod caffe2;
mod coco;
mod csv;
mod engines;
mod features;
mod file;
mod list;
mod lmdb;
mod masks;
mod mxnet;
mod nemo_asr;
mod numpy;
mod order;
mod pattern;
mod pieces;
mod reader;
mod records;
mod region;
mod sequence;
mod stored;
mod tar;
mod tar_index;
mod tensors;
mod tfrecord;
mod video;
mod video_files;
mod video_list;
mod video_resize;
mod video_samples;
mod webdataset;
mod wire;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::cpu::formats::Formats;
use crate::error::{Error, Result};
use crate::memory::HostPool;
use crate::operator::args::Value;
use crate::operator::spec::ArgTable;
use crate::operator::{ArgSpec, Args, EVERYWHERE, OpDef};
use crate::ops;
use crate::source::MakeSource;
use crate::tensor::{DType, Sample, Shape, ValueType};
pub use stored::{Store, set_store};

/// A reader: its name in files, what it takes, what it gives.
pub struct ReaderDef {
    /// Its schema's name.
    pub name: &'static str,
    /// Other names for it in files.
    pub aliases: &'static [&'static str],
    /// What it reads, in a line.
    pub doc: &'static str,
    /// Its own arguments; those that all have are [`SHARED`].
    pub args: &'static [ArgSpec],
    /// What is known of its outputs.
    pub outputs: fn(&Args) -> Result<Vec<ValueType>>,
    /// Finds the samples.
    pub open: fn(&Args) -> Result<Box<dyn Dataset>>,
    /// How it leaves its first output to operators, which make it on a device; `None`: it makes all of them.
    pub undecoded: Option<&'static Undecoded>,
    /// The operator behind its first output that belongs to it.
    pub behind: Option<&'static Behind>,
    /// Whether `random_shuffle` also shuffles the list of samples.
    pub shuffles_list: bool,
}

/// An operator behind the first output of a reader, which takes the operator's arguments along with its own.
pub struct Behind {
    /// Its schema's name.
    pub operator: &'static str,
    /// Arguments of it that the reader does not take; nor does it give the operator those that it has itself.
    pub without: &'static [&'static str],
}

/// A reader that leaves its first output to operators: in its place it gives two others, what they read and what they
/// are told.
pub struct Undecoded {
    /// What is known of its outputs.
    pub outputs: fn(&Args) -> Result<Vec<ValueType>>,
    /// Finds the samples.
    pub open: fn(&Args) -> Result<Box<dyn Dataset>>,
    /// The operators, one behind the other.
    pub steps: fn(&Args) -> Result<Vec<Step>>,
}

/// An operator that makes what a reader leaves undone.
pub struct Step {
    /// Its schema's name.
    pub operator: &'static str,
    /// Its arguments.
    pub values: BTreeMap<String, Value>,
    /// The argument that the reader's second output feeds. Its input is the reader's first output, or what the step
    /// before made.
    pub argument: Option<&'static str>,
}

/// All readers, sorted by name.
pub const READERS: &[&ReaderDef] = &[
    &video::DEF,
    &coco::DEF,
    &caffe::DEF,
    &caffe2::DEF,
    &csv::DEF,
    &file::DEF,
    &mxnet::DEF,
    &nemo_asr::DEF,
    &numpy::DEF,
    &sequence::DEF,
    &video::OLDER,
    &video_resize::DEF,
    &webdataset::DEF,
    &tfrecord::DEF,
];

/// The arguments that all readers have.
pub const SHARED: &[ArgSpec] = &[
    ArgSpec::bool("random_shuffle", "samples come in random order, by a buffer").or_bool(false),
    ArgSpec::int("initial_fill", "samples in that buffer").or_int(1024),
    ArgSpec::int("num_shards", "parts of the data set, for several processes").or_int(1),
    ArgSpec::int("shard_id", "the part that is read first").or_int(0),
    ArgSpec::bool("stick_to_shard", "every epoch is of the same part").or_bool(false),
    ArgSpec::bool("pad_last_batch", "the last sample is repeated until all parts and the batch are full")
        .or_bool(false),
    ArgSpec::bool("shuffle_after_epoch", "the list of samples is shuffled before each epoch").or_bool(false),
    ArgSpec::int("shuffle_after_epoch_seed", "start of that shuffling").or_int(order::FIXED_SEED as i64),
    ArgSpec::int("tensor_init_bytes", "a hint for DALI's memory").or_int(1_048_576).no_effect(),
    ArgSpec::bool("read_ahead", "a hint for the system").or_bool(false).no_effect(),
    ArgSpec::int("prefetch_queue_depth", "a stream reads ahead by itself").or_int(1).no_effect(),
    ArgSpec::bool("skip_cached_images", "for DALI's cache of decoded images").or_bool(false).no_effect(),
    ArgSpec::bool("lazy_init", "samples are found when a stream begins").or_bool(false).no_effect(),
    ArgSpec::bool("dont_use_mmap", "files are read").or_bool(false).no_effect(),
];

/// The samples of a data set.
pub trait Dataset: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// Of a data set that is decoded as it is read: which formats may be. All are allowed until then.
    fn allow(&mut self, _formats: Formats) {}

    /// One tensor for each output, in memory of `memory`.
    ///
    /// # Errors
    /// Why it cannot be read; the message names the file.
    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>>;

    /// The same, with the values that a caller gives arguments for this sample.
    ///
    /// # Errors
    /// As there; unsupported in readers whose arguments are the same for all samples.
    fn read_fed(&self, index: usize, fed: Fed<'_>, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        match fed {
            [] => self.read(index, memory),
            [(name, _), ..] => Err(Error::unsupported(format!(
                "argument `{name}` has a value for each sample, expected one for all"
            ))),
        }
    }

    /// The samples of each file of many, one file behind the other, where `shuffle_after_epoch` shuffles the files;
    /// `None`: it shuffles the samples.
    fn groups(&self) -> Option<Vec<Range<usize>>> {
        None
    }

    /// Where a sample is from, of a data set whose samples are decoded by operators: their errors name it.
    fn origin(&self, _index: usize) -> Option<String> {
        None
    }
}

/// Arguments of one sample, with their values.
pub type Fed<'a> = &'a [(String, Vec<f64>)];

/// One output of a sample.
pub struct Tensor {
    /// Type of its elements: the output's own, where that is known beforehand.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    /// Its bytes.
    pub bytes: Sample<'static>,
    /// What is known as its source, in DALI's words; empty where nothing is.
    pub source: String,
}

/// The reader that is called `name` in a file.
pub fn find(name: &str) -> Option<&'static ReaderDef> {
    READERS.iter().copied().find(|reader| reader.name == name || reader.aliases.contains(&name))
}

/// A count among the arguments, from `least` to `most`.
fn count(args: &Args, name: &str, least: usize, most: usize) -> Result<usize> {
    let n = args.int(name)?;
    let found = usize::try_from(n).ok().filter(|n| (least..=most).contains(n));
    found.ok_or_else(|| match most {
        usize::MAX => Error::invalid(format!("argument `{name}` is {n}, expected {least} or more")),
        _ => Error::invalid(format!("argument `{name}` is {n}, expected {least} to {most}")),
    })
}

impl ReaderDef {
    /// The arguments that a file gives as `values`, with this reader's defaults.
    pub fn arguments(&self, values: BTreeMap<String, Value>) -> Args {
        let table = ArgTable { own: self.args, shared: &[SHARED] };
        Args::new(values, BTreeMap::new()).with_defaults(table)
    }

    /// Every argument that a file may have, but for those of all operators.
    pub fn all_args(&self) -> impl Iterator<Item = &'static ArgSpec> {
        self.args.iter().chain(self.args_behind()).chain(SHARED)
    }

    /// Those that are the operator's behind it.
    fn args_behind(&self) -> impl Iterator<Item = &'static ArgSpec> {
        let is_own = |name| self.args.iter().chain(SHARED).any(|own| own.name == name);
        self.behind.into_iter().flat_map(move |behind| {
            let args = ops::find(behind.operator).into_iter().flat_map(OpDef::all_args);
            args.filter(move |spec| !is_own(spec.name) && !behind.without.contains(&spec.name))
        })
    }

    /// The operators behind its first output, wherever that is made.
    pub fn steps_behind(&self, args: &Args) -> Vec<Step> {
        let step = |behind: &'static Behind| {
            let is_given = |name: &str| self.args_behind().any(|spec| spec.name == name);
            let values = args.values().filter(|(name, _)| is_given(name));
            let values = values.map(|(name, value)| (name.to_owned(), value.clone())).collect();
            Step { operator: behind.operator, values, argument: None }
        };
        self.behind.map(step).into_iter().collect()
    }

    /// What makes the source for the arguments of a file, whole or as `undecoded` says. Nothing is looked for on the
    /// disk yet.
    ///
    /// # Errors
    /// An argument that there is not, or whose value is wrong.
    pub fn source(&'static self, args: &Args, undecoded: Option<&'static Undecoded>) -> Result<MakeSource> {
        for name in args.names() {
            if !self.all_args().chain(EVERYWHERE).any(|spec| spec.name == name) {
                return Err(Error::unsupported(format!(
                    "argument `{name}` is not supported by reader `{}`",
                    self.name
                )));
            }
            if args.is_tensor(name) {
                return Err(Error::unsupported(format!(
                    "argument `{name}` is a tensor, expected a fixed value"
                )));
            }
        }
        order::Options::new(args, self.shuffles_list)?;
        let args = args.clone();
        let (outputs, open) = match undecoded {
            Some(undecoded) => (undecoded.outputs, undecoded.open),
            None => (self.outputs, self.open),
        };
        Ok(Arc::new(move || {
            let options = order::Options::new(&args, self.shuffles_list)?;
            Ok(Box::new(reader::Reader::new(open(&args)?, outputs(&args)?, options)?))
        }))
    }
}
