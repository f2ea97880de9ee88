//! Streams: sources in place of callers, through recorded pipelines. Whatever runs at the same time, what comes out is
//! what one instance makes of the same batches one after the other.

mod trouble;
mod videos;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gesso::error::{Error, Result};
use gesso::gpu::{self, Gpu};
use gesso::memory::HostPool;
use gesso::pipeline::{Keep, Pipeline, Stream, StreamSettings};
use gesso::source::{Interrupt, MakeSource, Pulled, Source};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, Shape, ValueType};

use crate::align;
use crate::recording::{Recording, folder};
use crate::skips::{Needs, skip};

/// Bytes of an image of the tests.
const IMAGE: [usize; 3] = [4, 5, 3];

/// A source that is a function, and what waits for it to end.
pub(crate) struct Scripted<F> {
    next: F,
    interrupt: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl<F: FnMut(usize, &Arc<HostPool>) -> Result<Option<Pulled>> + Send> Source for Scripted<F> {
    fn infer(&self) -> Result<Vec<ValueType>> {
        Ok(vec![ValueType::ranked(DType::U8, 3, Layout::hwc())])
    }

    fn next(&mut self, most: usize, memory: &Arc<HostPool>) -> Result<Option<Pulled>> {
        (self.next)(most, memory)
    }

    fn interrupter(&self) -> Option<Interrupt> {
        let interrupt = Arc::clone(self.interrupt.as_ref()?);
        Some(Box::new(move || interrupt()))
    }
}

/// Makes sources of what `script` makes.
pub(crate) fn scripted<F>(script: impl Fn() -> F + Send + Sync + 'static) -> MakeSource
where
    F: FnMut(usize, &Arc<HostPool>) -> Result<Option<Pulled>> + Send + 'static,
{
    Arc::new(move || Ok(Box::new(Scripted { next: script(), interrupt: None })))
}

/// The pixels of image `number`.
fn pixels(number: usize) -> Vec<u8> {
    (0..IMAGE.iter().product()).map(|i: usize| (number * 31 + i * 7) as u8).collect()
}

/// Images in the memory that sources get.
pub(crate) fn images(numbers: std::ops::Range<usize>, memory: &Arc<HostPool>) -> Result<Pulled> {
    let size = IMAGE.iter().product::<usize>();
    let mut buffer = memory.take(numbers.len() * size)?;
    for (to, number) in buffer.bytes_mut().chunks_exact_mut(size).zip(numbers.clone()) {
        to.copy_from_slice(&pixels(number));
    }
    let buffer = Arc::new(buffer);
    let sample = |i| Sample::Pooled(Arc::clone(&buffer), i * size..(i + 1) * size);
    let shapes = vec![Shape::from(IMAGE); numbers.len()];
    let desc = BatchDesc::new(DType::U8, Layout::hwc(), shapes);
    Ok(vec![Batch::new(desc, (0..numbers.len()).map(sample).collect())?].into())
}

/// Images up to `end`, as many at once as are asked for.
pub(crate) fn up_to(end: usize) -> MakeSource {
    scripted(move || {
        let mut next = 0;
        move |most, memory: &Arc<HostPool>| {
            let first = next;
            next = end.min(next + most);
            if first == next { Ok(None) } else { images(first..next, memory).map(Some) }
        }
    })
}

/// The recorded pipeline `name` of `module`.
pub(crate) fn file(module: &str, name: &str) -> Vec<u8> {
    let recording = Recording::open(&folder("conformance").join(module));
    let case = recording.index.cases.iter().find(|case| case.name == name).unwrap();
    recording.bytes(&case.pipeline).to_vec()
}

/// Three kinds of noise, which depend on how many images were before.
pub(crate) fn noises(source: MakeSource) -> Pipeline {
    let file = file("batches/several_batches.zip", "noises");
    Pipeline::load_with_sources(&file, Device::Cpu, &[(vec!["X".to_owned()], source)]).unwrap()
}

pub(crate) fn settings(batch_size: usize, lanes: usize) -> StreamSettings {
    StreamSettings {
        batch_size: Some(batch_size),
        prefetch: lanes + 1,
        lanes,
        num_threads: Some(1),
        to_host: true,
        ..StreamSettings::default()
    }
}

/// What a batch has: how many samples are before it, and the bytes of each output and sample.
type Bytes = (u64, Vec<Vec<Vec<u8>>>);

fn bytes(first: u64, outputs: &[Batch<'_>]) -> Bytes {
    let of = |output: &Batch<'_>| (0..output.len()).map(|i| output.view(i).bytes.to_vec()).collect();
    (first, outputs.iter().map(of).collect())
}

pub(crate) fn taken(stream: &mut Stream) -> Vec<Bytes> {
    let batches = stream.map(|delivered| {
        let delivered = delivered.unwrap();
        bytes(delivered.first, &delivered.outcome.outputs)
    });
    batches.collect()
}

/// What one instance makes of the images, `size` at a time.
fn one_by_one(file: &[u8], count: usize, size: usize, gpu: Option<&Arc<Gpu>>) -> Vec<Bytes> {
    let pipeline = match gpu {
        Some(_) => Pipeline::load_moved_to_device(file).unwrap(),
        None => Pipeline::load(file, Device::Cpu).unwrap(),
    };
    let mut instance = pipeline.instance(Some(1), gpu).unwrap();
    let memory = Arc::new(HostPool::default());
    let mut run = |first: usize| {
        let inputs = images(first..count.min(first + size), &memory).unwrap().batches;
        let outcome = instance.run(inputs[0].len(), inputs, &mut Keep).unwrap();
        let outputs: Vec<_> = outcome.outputs.iter().map(|o| instance.to_host(o).unwrap()).collect();
        bytes(first as u64, &outputs)
    };
    (0..count).step_by(size).map(&mut run).collect()
}

/// With a last batch that is not full.
#[test]
fn any_number_of_lanes_gives_the_same_batches_in_the_same_order() {
    let expected = one_by_one(&file("batches/several_batches.zip", "noises"), 50, 4, None);
    assert_eq!(expected.last().unwrap().1[0].len(), 2);
    let pipeline = noises(up_to(50));
    assert!(pipeline.inputs().is_empty());
    for lanes in [1, 2, 4] {
        let mut stream = pipeline.stream(&settings(4, lanes), None).unwrap();
        assert_eq!(taken(&mut stream), expected, "{lanes} lanes");
        assert!(stream.next().is_none(), "the end stays the end");
    }
}

#[test]
fn a_stream_runs_on_the_device() {
    if let Err(error) = gpu::devices() {
        return skip(Needs::Gpu, format_args!("no GPU: {error}"));
    }
    let gpu = Gpu::open(0).unwrap();
    // Shot noise has no form for a device.
    let file = file("data/random.zip", "noise_on_a_device_made_for_gpu");
    let pipeline =
        Pipeline::load_with_sources(&file, Device::Gpu, &[(vec!["X".to_owned()], up_to(50))]).unwrap();
    let expected = {
        let of_callers = Pipeline::load(&file, Device::Gpu).unwrap();
        assert!(of_callers.needs_gpu());
        one_by_one(&file, 50, 4, Some(&gpu))
    };
    for lanes in [1, 2, 4] {
        let mut stream = pipeline.stream(&settings(4, lanes), Some(&gpu)).unwrap();
        assert_eq!(taken(&mut stream), expected, "{lanes} lanes");
    }
}

/// What a branch draws depends on what went into it before, so its batches run one after the other; as DALI ran them.
#[test]
fn numbers_in_a_branch_are_those_of_dali_with_any_number_of_lanes() {
    let recording = Recording::open(&folder("conformance/batches/several_batches.zip"));
    let case = recording.index.cases.iter().find(|case| case.name == "in_a_branch").unwrap();
    let sources = case.inputs.iter().map(|(name, samples)| {
        let samples: Vec<_> = samples
            .iter()
            .map(|sample| {
                (
                    Shape::new(sample.shape.clone()),
                    align(recording.bytes(sample)),
                    recording.bytes(sample).len(),
                )
            })
            .collect();
        let dtype = crate::recording::dtype(&case.inputs[name][0]);
        let layout = if name == "X" { Layout::hwc() } else { Layout::NONE };
        (
            vec![name.clone()],
            recorded(samples, BatchDesc::new(dtype, layout, Vec::new()), case.batches.clone()),
        )
    });
    let sources: Vec<_> = sources.collect();
    let file = recording.bytes(&case.pipeline);
    let pipeline = Pipeline::load_with_sources(file, Device::Cpu, &sources).unwrap();
    assert!(pipeline.needs_order());
    let found = taken(&mut pipeline.stream(&settings(4, 4), None).unwrap());
    assert_eq!(found.iter().map(|(first, _)| *first).collect::<Vec<_>>(), [0, 2, 3]);
    for (k, expected) in case.outputs.iter().enumerate() {
        let found: Vec<&Vec<u8>> = found.iter().flat_map(|(_, outputs)| &outputs[k]).collect();
        let expected: Vec<&[u8]> = expected.iter().map(|sample| recording.bytes(sample)).collect();
        assert_eq!(found, expected, "output {k}");
    }
}

/// Recorded samples in batches of these sizes.
fn recorded(samples: Vec<(Shape, Vec<u64>, usize)>, desc: BatchDesc, batches: Vec<usize>) -> MakeSource {
    struct Recorded(Vec<(Shape, Vec<u64>, usize)>, BatchDesc, std::vec::IntoIter<usize>);
    impl Source for Recorded {
        fn infer(&self) -> Result<Vec<ValueType>> {
            Ok(vec![ValueType { dtype: Some(self.1.dtype), dims: None, layout: Some(self.1.layout) }])
        }

        fn next(&mut self, _most: usize, memory: &Arc<HostPool>) -> Result<Option<Pulled>> {
            let Some(size) = self.2.next() else { return Ok(None) };
            let (mut shapes, mut parts) = (Vec::new(), Vec::new());
            for (shape, words, bytes) in self.0.drain(..size) {
                let mut buffer = memory.take(bytes)?;
                buffer.bytes_mut()[..bytes].copy_from_slice(&bytemuck::cast_slice(&words)[..bytes]);
                shapes.push(shape);
                parts.push(Sample::Pooled(Arc::new(buffer), 0..bytes));
            }
            Ok(Some(vec![Batch::new(BatchDesc::new(self.1.dtype, self.1.layout, shapes), parts)?].into()))
        }
    }
    Arc::new(move || Ok(Box::new(Recorded(samples.clone(), desc.clone(), batches.clone().into_iter()))))
}

#[test]
fn a_pipeline_without_inputs_is_an_endless_stream_that_goes_on_where_another_stopped() {
    let file = file("data/random.zip", "uniform");
    let pipeline = Pipeline::load(&file, Device::Cpu).unwrap();
    let take = |first: u64, lanes| {
        let settings = StreamSettings { first, ..settings(3, lanes) };
        let stream = pipeline.stream(&settings, None).unwrap();
        let batches = stream.take(5).map(|delivered| {
            let delivered = delivered.unwrap();
            bytes(delivered.first, &delivered.outcome.outputs)
        });
        batches.collect::<Vec<_>>()
    };
    let whole = take(0, 1);
    assert_eq!(take(6, 2)[..3], whole[2..]);
    assert_ne!(whole[0].1, whole[1].1);
}

#[test]
fn no_more_batches_are_in_flight_than_are_prefetched() {
    const PREFETCH: usize = 3;
    let (pulled, wanted) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counted = {
        let (pulled, wanted) = (Arc::clone(&pulled), Arc::clone(&wanted));
        scripted(move || {
            let (pulled, wanted) = (Arc::clone(&pulled), Arc::clone(&wanted));
            move |_, memory: &Arc<HostPool>| {
                let number = pulled.fetch_add(1, Ordering::SeqCst);
                if number >= wanted.load(Ordering::SeqCst) + PREFETCH {
                    return Err(Error::internal(format!("batch {number} comes too early")));
                }
                if number == 40 { Ok(None) } else { images(number..number + 1, memory).map(Some) }
            }
        })
    };
    let settings = StreamSettings { prefetch: PREFETCH, ..settings(1, 2) };
    let mut stream = noises(counted).stream(&settings, None).unwrap();
    stream.resume().unwrap();
    // It works ahead before anybody asks.
    while pulled.load(Ordering::SeqCst) < PREFETCH {
        std::thread::yield_now();
    }
    let mut count = 0;
    loop {
        wanted.fetch_add(1, Ordering::SeqCst);
        let Some(delivered) = stream.next() else { break };
        assert_eq!(delivered.unwrap().first, count);
        count += 1;
    }
    assert_eq!(count, 40);
}

/// As a video of each request, which becomes many batches.
#[test]
fn a_source_is_fed_for_the_batches_to_come() {
    #[derive(Default)]
    struct Repeated {
        image: Option<Vec<u8>>,
        left: usize,
    }
    impl Source for Repeated {
        fn infer(&self) -> Result<Vec<ValueType>> {
            Ok(vec![ValueType::ranked(DType::U8, 3, Layout::hwc())])
        }

        fn feed(&mut self, input: &Batch<'_>) -> Result<()> {
            (self.image, self.left) = (Some(input.view(0).bytes.to_vec()), 5);
            Ok(())
        }

        fn next(&mut self, most: usize, memory: &Arc<HostPool>) -> Result<Option<Pulled>> {
            let size = most.min(self.left);
            self.left -= size;
            let Some(image) = self.image.as_ref().filter(|_| size > 0) else { return Ok(None) };
            let mut buffer = memory.take(image.len())?;
            buffer.bytes_mut()[..image.len()].copy_from_slice(image);
            let sample = Sample::Pooled(Arc::new(buffer), 0..image.len());
            let desc = BatchDesc::new(DType::U8, Layout::hwc(), vec![Shape::from(IMAGE); size]);
            Ok(Some(vec![Batch::new(desc, vec![sample; size])?].into()))
        }
    }
    let file = file("data/flip.zip", "default_is_horizontal");
    let source: MakeSource = Arc::new(|| Ok(Box::<Repeated>::default()));
    let pipeline =
        Pipeline::load_with_sources(&file, Device::Cpu, &[(vec!["X".to_owned()], source)]).unwrap();
    let mut stream = pipeline.stream(&settings(2, 2), None).unwrap();
    assert!(stream.next().is_none(), "nothing was fed");
    for number in [3, 8] {
        let image = pixels(number);
        let desc = BatchDesc::new(DType::U8, Layout::hwc(), vec![Shape::from(IMAGE)]);
        let batch = Batch::new(desc, vec![Sample::Borrowed(&image)]).unwrap();
        stream.feed("X", &batch).unwrap();
        let found = taken(&mut stream);
        assert_eq!(found.iter().map(|(_, outputs)| outputs[0].len()).collect::<Vec<_>>(), [2, 2, 1]);
        assert!(stream.feed("Y", &batch).unwrap_err().to_string().contains("`Y`"));
    }
}

#[test]
fn a_source_goes_on_after_its_end() {
    let epochs = scripted(|| {
        let mut next = 0;
        move |most, memory: &Arc<HostPool>| {
            let first = next;
            next = if first == 6 { 0 } else { 6.min(first + most) };
            if first == 6 { Ok(None) } else { images(first..next, memory).map(Some) }
        }
    });
    let mut stream = noises(epochs).stream(&settings(4, 2), None).unwrap();
    let sizes = |found: &[Bytes]| found.iter().map(|(first, o)| (*first, o[0].len())).collect::<Vec<_>>();
    assert_eq!(sizes(&taken(&mut stream)), [(0, 4), (4, 2)]);
    assert!(stream.next().is_none());
    stream.resume().unwrap();
    // The numbers go on from epoch to epoch.
    assert_eq!(sizes(&taken(&mut stream)), [(6, 4), (10, 2)]);
}
