//! The C API's functions in any order, as the header allows it: handles live and are freed in any order, results
//! outlast their instances, exported tensors outlast their results, and every function gets null and places that are
//! out of range, too. What a result holds must stay what it was, and no call may answer with an internal error, or fail
//! without a word.
#![expect(unsafe_code, reason = "calls the library as C does")]

use std::collections::HashMap;
use std::ffi::CStr;
use std::ptr::{null, null_mut};
use std::sync::LazyLock;

use gesso::capi::dlpack::{DLManagedTensor, gesso_result_dlpack};
use gesso::capi::instance::{InstanceHandle, gesso_instance_create, gesso_instance_free, gesso_instance_run};
use gesso::capi::pipeline::{self, PipelineHandle};
use gesso::capi::result::{self, ResultHandle};
use gesso::capi::status::{Status, gesso_last_error};
use gesso::capi::stream::{self, StreamHandle};
use gesso::capi::types::{InputSample, InputTensor, InstanceOptions, StreamOptions, Tensor, TensorInfo};

use gesso::pipeline::Pipeline;

use crate::bytes::Bytes;
use crate::operator::{called, pipeline_of, set_outputs};

const MAX_CALLS: usize = 60;
const MAX_SAMPLES: usize = 3;
const MAX_EXTENT: usize = 12;
const MAX_RANK: u32 = 4;
/// Places far beyond any.
const OUT_OF_RANGE: [usize; 2] = [1 << 31, usize::MAX];
/// Pipelines and their inputs: mirrors, adds noise, passes through and mirrors, decodes and resizes.
const FILES: [(&[u8], &[&CStr]); 4] = [
    (include_bytes!("../../plugin/models/prepare/1/model.dali"), &[c"image"]),
    (include_bytes!("../../plugin/models/noisy/1/model.dali"), &[c"image"]),
    (include_bytes!("../../plugin/models/through/1/model.dali"), &[c"image", c"raw"]),
    (include_bytes!("../../plugin/models/classify/1/model.dali"), &[c"encoded"]),
];

/// A pipeline without inputs: streams give batches of it.
static RANDOM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut description = pipeline_of(called("random__CoinFlip", &[]), Vec::new());
    set_outputs(&mut description, 1);
    Pipeline::author(&description).unwrap_or_default()
});

/// Output `.0` of sample `.1`, and its bytes; `None` for one that is not there.
type Held = ((usize, usize), Option<Vec<u8>>);

/// What lives.
#[derive(Default)]
struct World {
    pipelines: Vec<*mut PipelineHandle>,
    instances: Vec<*mut InstanceHandle>,
    /// The names of the inputs of a pipeline and of an instance.
    names: HashMap<usize, &'static [&'static CStr]>,
    streams: Vec<*mut StreamHandle>,
    results: Vec<(*mut ResultHandle, Vec<Held>)>,
    exports: Vec<(*mut DLManagedTensor, Vec<u8>)>,
}

pub(crate) fn run(input: &[u8]) {
    let (mut world, mut bytes) = (World::default(), Bytes::new(input));
    for _ in 0..MAX_CALLS {
        if bytes.is_empty() {
            break;
        }
        world.step(&mut bytes);
    }
    while world.drop_one(&mut bytes, false) {}
}

/// Whether a call did what it should; it must say why it did not.
fn done(status: Status) -> bool {
    // SAFETY: the text ends with NUL, and no call comes between.
    let words = unsafe { CStr::from_ptr(gesso_last_error()) };
    assert_ne!(status, Status::Internal, "{words:?}");
    assert!(status == Status::Ok || !words.is_empty(), "{status:?} without a word");
    status == Status::Ok
}

/// One of them; now and then null, which is allowed everywhere.
fn pick<T>(pool: &[*mut T], bytes: &mut Bytes<'_>) -> *mut T {
    if bytes.once_in(16) { null_mut() } else { bytes.pick(pool).unwrap_or(null_mut()) }
}

/// The size of a struct, or one that no version of it has.
fn size_of_struct<T>(bytes: &mut Bytes<'_>) -> usize {
    if bytes.once_in(16) {
        bytes.pick(&[0, 8, size_of::<T>() - 1, usize::MAX]).unwrap_or(0)
    } else {
        size_of::<T>()
    }
}

/// A place, or one that is out of range.
fn place(bytes: &mut Bytes<'_>) -> usize {
    if bytes.once_in(8) { bytes.pick(&OUT_OF_RANGE).unwrap_or(0) } else { bytes.below(4) }
}

impl World {
    fn step(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.below(16) {
            0 | 1 => self.load(bytes),
            2 => self.ask(bytes),
            3 | 4 => self.create(bytes),
            5..=7 => self.run(bytes),
            8 => self.begin_stream(bytes),
            9 => self.next(bytes),
            10 | 11 => self.look(bytes),
            12 => self.export(bytes),
            13 => self.describe(bytes),
            _ => drop(self.drop_one(bytes, true)),
        }
    }

    fn load(&mut self, bytes: &mut Bytes<'_>) {
        let (file, names) =
            if bytes.once_in(4) { (&RANDOM[..], &[][..]) } else { bytes.pick(&FILES).unwrap_or_default() };
        let length = if bytes.once_in(8) { bytes.below(file.len()) } else { file.len() };
        let device = if bytes.once_in(8) { bytes.int() as i32 } else { 0 };
        let mut made = null_mut();
        // SAFETY: so many bytes are there, and a place for the handle.
        let loaded =
            done(unsafe { pipeline::gesso_pipeline_load(file.as_ptr(), length, device, &raw mut made) });
        assert_eq!(loaded, !made.is_null(), "a handle beside an error, or none");
        if loaded {
            self.names.insert(made.addr(), names);
            self.pipelines.push(made);
        }
    }

    fn ask(&self, bytes: &mut Bytes<'_>) {
        let (handle, index) = (pick(&self.pipelines, bytes), place(bytes));
        // SAFETY: a handle that lives, or null.
        let inputs = unsafe { pipeline::gesso_pipeline_input_count(handle) };
        // SAFETY: as above.
        let outputs = unsafe { pipeline::gesso_pipeline_output_count(handle) };
        // SAFETY: as above.
        let _ = unsafe { pipeline::gesso_pipeline_max_batch_size(handle) };
        // SAFETY: as above.
        let _ = unsafe { pipeline::gesso_pipeline_needs_gpu(handle) };
        let mut info = empty_info(size_of_struct::<TensorInfo>(bytes));
        let is_right = info.struct_size == size_of::<TensorInfo>();
        // SAFETY: as above, and a struct that has the size that it says, or says one that no version has.
        let known = done(unsafe { pipeline::gesso_pipeline_input(handle, index, &raw mut info) });
        assert_eq!(known, is_right && index < inputs);
        info.struct_size = size_of::<TensorInfo>();
        // SAFETY: as above.
        let known = done(unsafe { pipeline::gesso_pipeline_output(handle, index, &raw mut info) });
        assert_eq!(known, index < outputs);
    }

    fn create(&mut self, bytes: &mut Bytes<'_>) {
        let mut options = InstanceOptions {
            struct_size: size_of_struct::<InstanceOptions>(bytes),
            num_threads: 1 + bytes.below(2),
            inputs_may_change: i32::from(bytes.once_in(2)),
            ..InstanceOptions::default()
        };
        if bytes.once_in(16) {
            options.gpu = bytes.int() as i32;
        }
        let given = if bytes.once_in(8) { null() } else { &raw const options };
        let (handle, mut made) = (pick(&self.pipelines, bytes), null_mut());
        // SAFETY: a handle that lives, or null; options, or null; a place for the handle.
        if done(unsafe { gesso_instance_create(handle, given, &raw mut made) }) {
            self.names.insert(made.addr(), self.names.get(&handle.addr()).copied().unwrap_or_default());
            self.instances.push(made);
        }
    }

    fn run(&mut self, bytes: &mut Bytes<'_>) {
        let handle = pick(&self.instances, bytes);
        let batch = if bytes.once_in(16) { place(bytes) } else { 1 + bytes.below(MAX_SAMPLES) };
        let names = self.names.get(&handle.addr()).copied().unwrap_or_default();
        let (fed, other) =
            (Fed::new(batch, bytes), bytes.pick(&[&[][..], &[c"raw"], &[c"image", c"image"], &[c""]]));
        let (names, samples) = (other.filter(|_| bytes.once_in(8)).unwrap_or(names), fed.samples(bytes));
        let inputs: Vec<_> = names.iter().map(|name| input(name, &samples, bytes)).collect();
        let mut made = null_mut();
        // SAFETY: a handle that lives, or null; inputs whose samples are there; a place for the handle.
        let status =
            unsafe { gesso_instance_run(handle, batch, inputs.as_ptr(), inputs.len(), &raw mut made) };
        if done(status) {
            self.keep(made);
        }
    }

    fn begin_stream(&mut self, bytes: &mut Bytes<'_>) {
        let branch_samples = [u64::MAX - 1; 3];
        let options = StreamOptions {
            struct_size: size_of_struct::<StreamOptions>(bytes),
            batch_size: place(bytes),
            prefetch: place(bytes),
            lanes: place(bytes),
            num_threads: 1,
            first: 0,
            gpu: 0,
            outputs_on_host: 0,
            next_epoch: i32::from(bytes.once_in(4)),
            read: 0,
            gpu_multiprocessors: 0,
            deterministic: i32::from(bytes.once_in(2)),
            formats: if bytes.once_in(4) { c"-avif".as_ptr() } else { null() },
            branch_samples: branch_samples.as_ptr(),
            branch_count: bytes.below(8).saturating_sub(4).min(branch_samples.len()),
        };
        let given = if bytes.once_in(4) { null() } else { &raw const options };
        let mut made = null_mut();
        // SAFETY: a handle that lives, or null; options, or null; a place for the handle.
        if done(unsafe { stream::gesso_stream_create(pick(&self.pipelines, bytes), given, &raw mut made) }) {
            self.streams.push(made);
        }
    }

    fn next(&mut self, bytes: &mut Bytes<'_>) {
        let (mut made, mut first) = (null_mut(), 0);
        // SAFETY: a handle that lives, or null; places for a handle and a number.
        let status =
            unsafe { stream::gesso_stream_next(pick(&self.streams, bytes), &raw mut made, &raw mut first) };
        if done(status) && !made.is_null() {
            self.keep(made);
        }
    }

    /// Notes what is in a result.
    fn keep(&mut self, made: *mut ResultHandle) {
        // SAFETY: a handle that was just made.
        let samples = unsafe { result::gesso_result_batch_size(made) };
        let mut branches = 0;
        // SAFETY: a handle that was just made; a place for a number.
        let numbers = unsafe { result::gesso_result_branch_samples(made, &raw mut branches) };
        assert!(numbers.is_null() == (branches == 0));
        let places =
            (0..2).flat_map(|output| (0..samples.min(MAX_SAMPLES)).map(move |sample| (output, sample)));
        let held = places.map(|place| (place, read(made, place))).collect();
        self.results.push((made, held));
    }

    /// Looks again.
    fn look(&self, bytes: &mut Bytes<'_>) {
        let number = bytes.below(self.results.len());
        let Some((handle, held)) = self.results.get(number) else {
            assert_eq!(read(null_mut(), (0, 0)), None);
            return;
        };
        for (place, known) in held {
            assert!(read(*handle, *place) == *known, "output and sample {place:?} changed");
        }
        for far in OUT_OF_RANGE {
            assert!(
                read(*handle, (far, 0)).is_none() && read(*handle, (0, far)).is_none(),
                "a tensor out of range"
            );
        }
        let mut words = null();
        // SAFETY: a handle that lives; a place for a text.
        let status = unsafe { result::gesso_result_sample_status(*handle, place(bytes), &raw mut words) };
        assert_ne!(status, Status::Internal);
        let mut tensors: Vec<Tensor> =
            (0..bytes.below(4)).map(|_| empty_tensor(size_of_struct::<Tensor>(bytes))).collect();
        let (first, count) = (tensors.as_mut_ptr(), tensors.len());
        // SAFETY: a handle that lives; so many structs, whose sizes are right or of no version.
        let _ = done(unsafe { result::gesso_result_tensors(*handle, place(bytes), first, count) });
    }

    fn export(&mut self, bytes: &mut Bytes<'_>) {
        let number = bytes.below(self.results.len());
        let Some((handle, held)) = self.results.get(number) else { return };
        let Some(((output, sample), Some(known))) = held.get(bytes.below(held.len())) else { return };
        let mut made = null_mut();
        // SAFETY: a handle that lives; a place for a tensor.
        if done(unsafe { gesso_result_dlpack(*handle, *output, *sample, &raw mut made) }) {
            self.exports.push((made, known.clone()));
        }
    }

    fn describe(&self, bytes: &mut Bytes<'_>) {
        let (file, _) = bytes.pick(&FILES).unwrap_or_default();
        let length = if bytes.once_in(4) { bytes.below(file.len()) } else { file.len() };
        let mut json = null_mut();
        // SAFETY: so many bytes are there, and a place for the text.
        if !done(unsafe { pipeline::gesso_describe(file.as_ptr(), length, &raw mut json) }) {
            return;
        }
        // SAFETY: the text ends with NUL.
        let text = unsafe { CStr::from_ptr(json) }.to_bytes();
        let length = if bytes.once_in(4) { bytes.below(text.len()) } else { text.len() };
        let (mut made, mut made_length) = (null_mut(), 0);
        // SAFETY: so much text is there, and places for bytes and their number.
        let status = unsafe {
            pipeline::gesso_author(text.as_ptr().cast(), length, &raw mut made, &raw mut made_length)
        };
        if done(status) {
            // SAFETY: just made, with this length.
            unsafe { pipeline::gesso_bytes_free(made, made_length) };
        }
        // SAFETY: just made.
        unsafe { pipeline::gesso_string_free(json) };
    }

    /// Frees something, now and then nothing by its null. Whether there was something.
    fn drop_one(&mut self, bytes: &mut Bytes<'_>, may_be_null: bool) -> bool {
        let kinds = [
            self.pipelines.len(),
            self.instances.len(),
            self.streams.len(),
            self.results.len(),
            self.exports.len(),
        ];
        if may_be_null && bytes.once_in(16) {
            // SAFETY: null is all right.
            unsafe { pipeline::gesso_pipeline_free(null_mut()) };
            // SAFETY: as above.
            unsafe { gesso_instance_free(null_mut()) };
            // SAFETY: as above.
            unsafe { stream::gesso_stream_free(null_mut()) };
            // SAFETY: as above.
            unsafe { result::gesso_result_free(null_mut()) };
            return true;
        }
        let living: Vec<usize> = (0..kinds.len()).filter(|&kind| kinds[kind] > 0).collect();
        let Some(kind) = bytes.pick(&living) else { return false };
        let number = bytes.below(kinds[kind]);
        match kind {
            // SAFETY: a handle that lives, and is gone from here.
            0 => unsafe { pipeline::gesso_pipeline_free(self.pipelines.swap_remove(number)) },
            // SAFETY: as above.
            1 => unsafe { gesso_instance_free(self.instances.swap_remove(number)) },
            // SAFETY: as above.
            2 => unsafe { stream::gesso_stream_free(self.streams.swap_remove(number)) },
            // SAFETY: as above.
            3 => unsafe { result::gesso_result_free(self.results.swap_remove(number).0) },
            _ => release(self.exports.swap_remove(number)),
        }
        true
    }
}

/// The bytes of a tensor; `None` for one that failed or is not there.
fn read(handle: *mut ResultHandle, (output, sample): (usize, usize)) -> Option<Vec<u8>> {
    let mut tensor = empty_tensor(size_of::<Tensor>());
    // SAFETY: a handle that lives, or null; a struct of the size that it says.
    if !done(unsafe { result::gesso_result_tensor(handle, output, sample, &raw mut tensor) }) {
        return None;
    }
    if tensor.bytes == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the result says that so many bytes are there.
    Some(unsafe { std::slice::from_raw_parts(tensor.data.cast::<u8>(), tensor.bytes) }.to_vec())
}

/// Gives an exported tensor back, which is still what it was.
fn release((tensor, known): (*mut DLManagedTensor, Vec<u8>)) {
    // SAFETY: an exported tensor that was not given back.
    let managed = unsafe { &*tensor };
    if !known.is_empty() {
        // SAFETY: as many bytes as the result said.
        let found = unsafe { std::slice::from_raw_parts(managed.dl_tensor.data.cast::<u8>(), known.len()) };
        assert!(found == known, "an exported tensor changed");
    }
    assert!(managed.deleter.is_some(), "an exported tensor without a deleter");
    if let Some(deleter) = managed.deleter {
        // SAFETY: called once.
        unsafe { deleter(tensor) };
    }
}

fn empty_info(struct_size: usize) -> TensorInfo {
    let shape = [0; gesso::capi::types::GESSO_MAX_NDIM];
    TensorInfo { struct_size, name: null(), layout: null(), dtype: 0, device: 0, ndim: 0, shape }
}

fn empty_tensor(struct_size: usize) -> Tensor {
    let (data, shape, layout) = (null_mut(), null(), null());
    Tensor {
        struct_size,
        data,
        bytes: 0,
        dtype: 0,
        device: 0,
        device_id: 0,
        ndim: 0,
        shape,
        layout,
        origin: null(),
    }
}

/// What inputs are made of: samples of bytes, of any shape.
struct Fed {
    /// Enough for the largest sample of the largest type.
    content: Vec<u64>,
    shapes: Vec<Vec<i64>>,
}

impl Fed {
    fn new(batch: usize, bytes: &mut Bytes<'_>) -> Self {
        let rank = bytes.pick(&[3, 1, 3, 0, MAX_RANK]).unwrap_or(0);
        let shape = |bytes: &mut Bytes<'_>| (0..rank).map(|_| bytes.below(MAX_EXTENT) as i64).collect();
        let shapes = (0..batch.min(MAX_SAMPLES)).map(|_| shape(bytes)).collect();
        let mut content = vec![0_u64; MAX_EXTENT.pow(MAX_RANK)];
        let some = bytes.some(32);
        for (to, from) in
            bytemuck::cast_slice_mut::<u64, u8>(&mut content).iter_mut().zip(some.iter().cycle())
        {
            *to = *from;
        }
        Self { content, shapes }
    }

    fn samples(&self, bytes: &mut Bytes<'_>) -> Vec<InputSample> {
        let struct_size = size_of_struct::<InputSample>(bytes);
        let data = if bytes.once_in(16) { null() } else { self.content.as_ptr().cast() };
        let sample =
            |shape: &Vec<i64>| InputSample { struct_size, data, shape: shape.as_ptr(), ndim: shape.len() };
        self.shapes.iter().map(sample).collect()
    }
}

/// An input of these samples with this name.
fn input(name: &CStr, samples: &[InputSample], bytes: &mut Bytes<'_>) -> InputTensor {
    // Bytes mostly, else floats or a type that there is not. A truth value is 0 or 1, which who feeds it sees to.
    let dtype = bytes.pick(&[0, 0, 0, 9, 7, -1, 12]).unwrap_or(0);
    let layout =
        bytes.pick(&[null(), null(), c"HWC".as_ptr(), c"abcdefghijklmnopqrstuvw".as_ptr()]).unwrap_or(null());
    let device = if bytes.once_in(16) { bytes.int() as i32 } else { 0 };
    let name = if bytes.once_in(16) { null() } else { name.as_ptr() };
    let struct_size = size_of_struct::<InputTensor>(bytes);
    InputTensor { struct_size, name, dtype, device, samples: samples.as_ptr(), layout, origins: null() }
}
