//! Tensors that the C API exports from a device: their memory stays while their new owner's work reads it, also behind
//! his back.
#![expect(unsafe_code, reason = "this calls the C API")]

use std::ptr::{null, null_mut};
use std::sync::Arc;

use gesso::capi::dlpack::DLManagedTensor;
use gesso::capi::dlpack::gesso_result_dlpack;
use gesso::capi::instance::{gesso_instance_create, gesso_instance_free, gesso_instance_run};
use gesso::capi::pipeline::{gesso_pipeline_free, gesso_pipeline_load};
use gesso::capi::result::{ResultHandle, gesso_result_free};
use gesso::capi::status::Status;
use gesso::capi::types::{InputSample, InputTensor};
use gesso::gpu::{Event, Gpu, Recorder};
use gesso::memory::DeviceBytes;

use crate::gpu;
use crate::promises::photos;

/// As `promises::PIPELINE`, with the devices of a pipeline that was made for a GPU.
const PIPELINE: &[u8] = include_bytes!("../../benches/pipeline_gpu.dali");

/// `gesso_device` of a GPU.
const ON_GPU: i32 = 1;

/// A batch of one photo, decoded and resized on the device.
fn result() -> *mut ResultHandle {
    let (mut pipeline, mut instance, mut result) = (null_mut(), null_mut(), null_mut());
    // SAFETY: bytes of that length; a pointer to write to.
    let loaded = unsafe { gesso_pipeline_load(PIPELINE.as_ptr(), PIPELINE.len(), ON_GPU, &raw mut pipeline) };
    assert!(loaded == Status::Ok);
    // SAFETY: a valid pipeline, no options, a pointer to write to.
    let made = unsafe { gesso_instance_create(pipeline, null(), &raw mut instance) };
    assert!(made == Status::Ok);
    let photo = photos().remove(0);
    let extent = photo.len() as i64;
    // SAFETY: numbers and pointers, which are filled in next.
    let mut sample: InputSample = unsafe { std::mem::zeroed() };
    (sample.struct_size, sample.data) = (size_of::<InputSample>(), photo.as_ptr().cast());
    (sample.shape, sample.ndim) = (&raw const extent, 1);
    // SAFETY: as above.
    let mut input: InputTensor = unsafe { std::mem::zeroed() };
    (input.struct_size, input.name, input.samples) =
        (size_of::<InputTensor>(), c"IMAGE".as_ptr(), &raw const sample);
    // SAFETY: a valid instance and one input with one sample, all of which live during the call.
    let ran = unsafe { gesso_instance_run(instance, 1, &raw const input, 1, &raw mut result) };
    assert!(ran == Status::Ok);
    // SAFETY: made above, freed once.
    unsafe { gesso_instance_free(instance) };
    // SAFETY: as above.
    unsafe { gesso_pipeline_free(pipeline) };
    result
}

/// Puts work that ends with reading `tensor` into a stream of its own; the event is at its end.
fn read_later(gpu: &Arc<Gpu>, recorder: &mut Recorder, tensor: &DLManagedTensor) -> Event {
    const BYTES: usize = 256 << 20;
    let [a, b] = [(); 2].map(|()| DeviceBytes::of(&recorder.allocate(BYTES).unwrap(), 0, BYTES));
    for _ in 0..100 {
        recorder.copy(&a, &b).unwrap();
    }
    // SAFETY: a tensor of more bytes, which is deleted later.
    let exported = unsafe { DeviceBytes::foreign(tensor.dl_tensor.data as u64, 1_000) };
    recorder.copy(&a.part(0, 1_000).unwrap(), &exported).unwrap();
    recorder.submit().unwrap();
    let event = Event::new(gpu).unwrap();
    event.record(recorder.stream()).unwrap();
    event
}

#[test]
fn memory_of_an_exported_tensor_is_not_freed_under_its_readers() {
    let Some(gpu) = gpu() else { return };
    for tensor_goes_first in [true, false] {
        let result = result();
        let mut tensor: *mut DLManagedTensor = null_mut();
        // SAFETY: a valid result and a pointer to write to.
        let exported = unsafe { gesso_result_dlpack(result, 0, 0, &raw mut tensor) };
        assert!(exported == Status::Ok);
        // SAFETY: just exported.
        let delete = unsafe { (*tensor).deleter }.unwrap();
        let mut recorder = Recorder::new(&gpu).unwrap();
        // SAFETY: as above.
        let event = read_later(&gpu, &mut recorder, unsafe { &*tensor });
        if tensor_goes_first {
            // SAFETY: deleted once.
            unsafe { delete(tensor) };
        }
        // SAFETY: from a run, freed once.
        unsafe { gesso_result_free(result) };
        if !tensor_goes_first {
            // SAFETY: deleted once.
            unsafe { delete(tensor) };
        }
        assert!(event.is_done().unwrap(), "the memory went under a reader");
    }
}
