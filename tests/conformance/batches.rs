//! One batch after another, as DALI answered them: random numbers follow from a seed and the place of a sample, so
//! batches in any order and on any instance are those of one instance that runs them in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use gesso::gpu::{self, Gpu};
use gesso::pipeline::{Instance, JpegPath, Keep, Pipeline, Preferences};
use gesso::tensor::{Batch, BatchDesc, Device, Sample, Shape, View};
use gesso::{operator, ops};

use crate::recording::{Case, Recording, dtype, folder, recordings_in};
use crate::skips::{Needs, skip};
use crate::{align, difference};

/// The bytes of every sample of a batch, output by output.
type Made = Vec<Vec<Vec<u8>>>;

/// A recorded case of several batches.
struct Run<'a> {
    recording: &'a Recording,
    case: &'a Case,
    pipeline: Pipeline,
    gpu: Option<&'a Arc<Gpu>>,
    /// The samples of each input, where elements of any type may lie.
    inputs: BTreeMap<&'a str, Vec<Vec<u64>>>,
    /// Which samples each batch has.
    batches: Vec<Range<usize>>,
}

impl<'a> Run<'a> {
    fn new(recording: &'a Recording, case: &'a Case, gpu: Option<&'a Arc<Gpu>>) -> Self {
        let file = recording.bytes(&case.pipeline);
        let pipeline = match gpu {
            None => Pipeline::load(file, Device::Cpu),
            Some(_) => Pipeline::load_moved_to_device(file),
        };
        let inputs = case.inputs.iter().map(|(name, samples)| {
            (name.as_str(), samples.iter().map(|sample| align(recording.bytes(sample))).collect())
        });
        let mut end = 0;
        let batches = case.batches.iter().map(|&size| {
            end += size;
            end - size..end
        });
        let (inputs, batches) = (inputs.collect(), batches.collect());
        Self { recording, case, pipeline: pipeline.unwrap(), gpu, inputs, batches }
    }

    fn instance(&self) -> Instance {
        // Where pictures are decoded is else a matter of speed, and the paths differ by a level.
        let preferences = Preferences { jpeg_path: Some(JpegPath::Threads), ..Preferences::default() };
        self.pipeline.instance_with(Some(2), self.gpu, &preferences).unwrap()
    }

    /// What `instance` makes of a batch: the next one, or that before which there were so many samples.
    fn run(&self, instance: &mut Instance, batch: &Range<usize>, first: Option<u64>) -> Made {
        let input = |input: &gesso::pipeline::Input| {
            let samples = &self.case.inputs[&input.name][batch.clone()];
            let shapes = samples.iter().map(|sample| Shape::new(sample.shape.clone())).collect();
            let bytes =
                samples.iter().zip(&self.inputs[input.name.as_str()][batch.clone()]).map(|(s, words)| {
                    Sample::Borrowed(&bytemuck::cast_slice(words)[..self.recording.bytes(s).len()])
                });
            Batch::new(BatchDesc::new(dtype(&samples[0]), input.layout, shapes), bytes.collect()).unwrap()
        };
        let inputs = self.pipeline.inputs().iter().map(input).collect();
        let outcome = match first {
            None => instance.run(batch.len(), inputs, &mut Keep),
            Some(first) => instance.run_at(first, batch.len(), inputs, &mut Keep),
        };
        let outcome = outcome.unwrap();
        assert!((0..batch.len()).all(|i| outcome.failures.get(i).is_none()), "{}", self.case.name);
        let outputs = outcome.outputs.iter().map(|output| {
            let output = instance.to_host(output).unwrap();
            (0..output.len()).map(|i| output.view(i).bytes.to_vec()).collect()
        });
        outputs.collect()
    }

    fn in_turn(&self) -> Vec<Made> {
        let mut instance = self.instance();
        self.batches.iter().map(|batch| self.run(&mut instance, batch, None)).collect()
    }

    /// The same batches on two instances that take turns, the last one first.
    fn out_of_turn(&self) -> Vec<Made> {
        let mut instances = [self.instance(), self.instance()];
        let backwards = self.batches.iter().enumerate().rev();
        let run = |(number, batch): (usize, &Range<usize>)| {
            self.run(&mut instances[number % 2], batch, Some(batch.start as u64))
        };
        let mut made: Vec<Made> = backwards.map(run).collect();
        made.reverse();
        made
    }

    /// How far the answers are from DALI's.
    fn farthest(&self, made: &[Made]) -> f64 {
        let mut farthest: f64 = 0.0;
        for (k, expected) in self.case.outputs.iter().enumerate() {
            let found = made.iter().flat_map(|batch| &batch[k]);
            for (array, found) in expected.iter().zip(found) {
                let (found, answer) = (align(found), align(self.recording.bytes(array)));
                let size = self.recording.bytes(array).len();
                let shape = Shape::new(array.shape.clone());
                let view = |words| View {
                    dtype: dtype(array),
                    layout: gesso::tensor::Layout::NONE,
                    shape: &shape,
                    bytes: &bytemuck::cast_slice::<u64, u8>(words)[..size],
                };
                farthest = farthest.max(difference(&view(&found), &view(&answer), 0.0).0);
            }
        }
        farthest
    }
}

fn check(gpu: Option<&Arc<Gpu>>) {
    let mut covered = BTreeSet::new();
    for path in recordings_in(&folder("conformance/batches")) {
        let recording = Recording::open(&path);
        for case in &recording.index.cases {
            let run = Run::new(&recording, case, gpu);
            let in_turn = run.in_turn();
            assert_ne!(in_turn[0], run.run(&mut run.instance(), &run.batches[0], Some(7)), "{}", case.name);
            if gpu.is_none() {
                let farthest = run.farthest(&in_turn);
                assert!(farthest <= case.tol, "{}: {farthest} from DALI's answers", case.name);
            }
            let ordered = case.name == "in_a_branch";
            assert_eq!(run.pipeline.needs_order(), ordered, "{}", case.name);
            if !ordered {
                assert_eq!(run.out_of_turn(), in_turn, "{}", case.name);
                covered.extend(run.pipeline.operators());
            }
        }
    }
    let draws = |op: &operator::OpDef| op.all_args().any(|spec| spec.name == "seed");
    let missing: Vec<_> =
        ops::OPS.iter().filter(|op| draws(op) && !covered.contains(op.name)).map(|op| op.name).collect();
    assert!(missing.is_empty(), "operators without a case of several batches: {missing:?}");
}

#[test]
fn batches_in_any_order_draw_the_numbers_of_dali() {
    check(None);
}

#[test]
fn batches_in_any_order_draw_the_same_numbers_on_the_device() {
    if let Err(error) = gpu::devices() {
        return skip(Needs::Gpu, format_args!("no GPU: {error}"));
    }
    check(Some(&Gpu::open(0).unwrap()));
}

/// Numbers per frame would be drawn by the frames before, which depend on the data.
#[test]
fn operators_that_draw_numbers_take_no_arguments_per_frame() {
    for op in ops::OPS.iter() {
        let has = |f: &dyn Fn(&operator::ArgSpec) -> bool| op.all_args().any(f);
        assert!(!has(&|spec| spec.name == "seed") || !has(&|spec| spec.per_frame), "{}", op.name);
    }
}
