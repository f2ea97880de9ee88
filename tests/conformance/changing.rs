//! Inputs that change while a batch runs, as a client may change its shared memory: between what an operator looks at
//! to describe its outputs and what it looks at to write them.
#![expect(unsafe_code, reason = "memory that changes under a reader is no slice of safe code")]

use std::sync::atomic::{AtomicU64, Ordering};

use gesso::error::Result;
use gesso::graph::Plan;
use gesso::graph::import::PipelineFile;
use gesso::operator::{Failures, InputSet, OpDef, Preferences};
use gesso::ops::{self, custom};
use gesso::pipeline::{Keep, OutputSink, Pipeline};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, Shape};

use crate::recording::{Case, Recording, dtype, recordings};

/// The executor asks who has cancelled before each operator, and again when it has described its outputs.
const AFTER_SETUP: usize = 2;

/// Every byte of a recorded input becomes this: a number of every type, but no file.
const CHANGED: u8 = 0x3F;

/// Memory that others write to.
struct Shared {
    words: Vec<AtomicU64>,
    bytes: usize,
    /// What is there after the change.
    changed: Vec<u64>,
}

impl Shared {
    fn new(bytes: &[u8], changed: &[u8]) -> Self {
        let words = |bytes: &[u8]| crate::align(bytes);
        let mut after = words(changed);
        after.resize(bytes.len().div_ceil(8), 0);
        Self {
            words: words(bytes).into_iter().map(AtomicU64::new).collect(),
            bytes: bytes.len(),
            changed: after,
        }
    }

    fn sample(&self) -> Sample<'_> {
        // SAFETY: the memory lives as long as the result. It changes between two looks of this thread at it, or of
        // threads that this one waits for; what a server gives away does so at any time.
        Sample::Borrowed(unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.bytes) })
    }

    fn change(&self) {
        self.words.iter().zip(&self.changed).for_each(|(word, &new)| word.store(new, Ordering::Relaxed));
    }
}

/// Changes the inputs at a time that does not depend on any clock.
struct Changes<'a> {
    inputs: &'a [Vec<Shared>],
    looks: usize,
}

impl<'r> OutputSink<'r> for Changes<'_> {
    fn allocate(&mut self, _: usize, desc: &BatchDesc, _: &Failures) -> Result<Vec<Option<&'r mut [u8]>>> {
        Ok(desc.shapes.iter().map(|_| None).collect())
    }

    fn poll_cancelled(&mut self, _: &Failures) {
        self.looks += 1;
        if self.looks == AFTER_SETUP {
            self.inputs.iter().flatten().for_each(Shared::change);
        }
    }
}

/// The bytes of each sample of each output or the error, when the inputs change and when they do not.
fn answers(
    pipeline: &Pipeline,
    descs: &[BatchDesc],
    inputs: &[Vec<Shared>],
    changes: bool,
) -> Result<Vec<Result<Vec<Vec<u8>>>>> {
    let preferences = Preferences { inputs_may_change: true, ..Preferences::default() };
    let mut instance = pipeline.instance_with(Some(2), None, &preferences)?;
    let mut batches = Vec::with_capacity(inputs.len());
    for (desc, samples) in descs.iter().zip(inputs) {
        batches.push(Batch::new(desc.clone(), samples.iter().map(Shared::sample).collect())?);
    }
    let samples = descs.first().map_or(0, |desc| desc.shapes.len());
    let mut sink = Changes { inputs, looks: 0 };
    let outcome = if changes {
        instance.run(samples, batches, &mut sink)?
    } else {
        instance.run(samples, batches, &mut Keep)?
    };
    let sample = |i| match outcome.failures.get(i) {
        Some(error) => Err(error.clone()),
        None => Ok(outcome.outputs.iter().map(|output| output.view(i).bytes.to_vec()).collect()),
    };
    Ok((0..samples).map(sample).collect())
}

/// What is wrong with a recorded case whose inputs change; nothing of one without inputs.
fn fault(recording: &Recording, case: &Case) -> Option<String> {
    let file = recording.bytes(&case.pipeline);
    let pipeline = Pipeline::load(file, Device::Cpu).ok()?;
    if pipeline.inputs().is_empty() || !case.batches.is_empty() {
        return None;
    }
    let plan = Plan::new(PipelineFile::parse(file).ok()?.graph(Device::Cpu).ok()?).ok()?;
    let all_copied = plan.graph.inputs.iter().all(|input| plan.steers[input.value.0]);
    let descs: Vec<BatchDesc> = pipeline
        .inputs()
        .iter()
        .map(|input| {
            let samples = &case.inputs[&input.name];
            let shapes = samples.iter().map(|sample| Shape::new(sample.shape.clone())).collect();
            BatchDesc::new(dtype(&samples[0]), input.layout, shapes)
        })
        .collect();
    let shared = || -> Vec<Vec<Shared>> {
        let samples = pipeline.inputs().iter().map(|input| case.inputs[&input.name].iter());
        let ones = |bytes: &[u8]| Shared::new(bytes, &vec![CHANGED; bytes.len()]);
        samples.map(|samples| samples.map(|array| ones(recording.bytes(array))).collect()).collect()
    };
    let [expected, found] = [false, true].map(|changes| answers(&pipeline, &descs, &shared(), changes));
    let what = match (expected, found) {
        (expected, found) if all_copied => (format!("{found:?}") != format!("{expected:?}"))
            .then(|| "another answer of an input that is copied".to_owned()),
        (Ok(expected), Ok(found)) => {
            let fails = expected
                .iter()
                .zip(&found)
                .find_map(|(expected, found)| found.as_ref().err().filter(|_| expected.is_ok()));
            fails.map(|error| format!("bytes that decide values alone make a sample fail: {error}"))
        }
        (Err(_), _) => None,
        (Ok(_), Err(error)) => Some(format!("bytes that decide values alone make a batch fail: {error}")),
    };
    Some(format!("{}: {}", case.name, what?))
}

/// An operator gets a copy of what it looks at twice; of what it reads in place, no change makes it fail.
#[test]
fn inputs_that_change_between_two_looks_decide_values_alone() {
    // `DumpImage` writes where the process stands.
    std::env::set_current_dir(std::env::temp_dir()).unwrap();
    let mut faults = Vec::new();
    let mut cases = 0;
    for path in recordings() {
        let recording = Recording::open(&path);
        cases += recording.index.cases.len();
        faults.extend(recording.index.cases.iter().filter_map(|case| fault(&recording, case)));
    }
    assert!(cases > 0);
    assert!(faults.is_empty(), "{} of {cases} cases:\n{}", faults.len(), faults.join("\n"));
}

/// A file of numpy: one row of bytes.
fn array(values: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}", values.len());
    let header = format!("{header:<117}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), values].concat()
}

/// The race test finds a row of the table that says too much.
#[test]
fn an_operator_that_says_it_reads_in_place_and_does_not_is_found() {
    let numpy = ops::find("decoders__Numpy").unwrap();
    assert_eq!(OpDef::BASE.reads_in_place, InputSet::None);
    assert_eq!(numpy.reads_in_place, InputSet::None);
    custom::register(vec![OpDef {
        name: "NumpyInPlace",
        aliases: &[],
        reads_in_place: InputSet::All,
        ..*numpy
    }])
    .unwrap();
    let first = array(&[1, 2, 3, 4]);
    let second = array(&[5, 6, 7, 8]);
    let desc = BatchDesc::new(DType::U8, Layout::NONE, vec![Shape::from([first.len()])]);
    for (name, expected) in [("decoders__Numpy", [1, 2, 3, 4]), ("NumpyInPlace", [5, 6, 7, 8])] {
        let description = serde_json::json!({
            "max_batch_size": 1,
            "inputs": [{"name": "in", "dtype": "uint8", "ndim": 1}],
            "operators": [{"name": name, "instance": "numpy", "inputs": ["in"], "outputs": ["out"]}],
            "outputs": [{"name": "out"}],
        });
        let file = Pipeline::author(&serde_json::from_value(description).unwrap()).unwrap();
        let pipeline = Pipeline::load(&file, Device::Cpu).unwrap();
        let shared = [vec![Shared::new(&first, &second)]];
        let found = answers(&pipeline, std::slice::from_ref(&desc), &shared, true).unwrap();
        assert_eq!(found[0].as_ref().unwrap(), &[expected.to_vec()], "{name}");
    }
}
