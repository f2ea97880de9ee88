//! What must hold when something fails: nothing is freed under work that was started, and a caller's thread keeps the
//! context it had.
#![expect(unsafe_code, reason = "a caller's own context takes the driver's functions")]

use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::sys;
use gesso::error::Error;
use gesso::gpu::jpeg::{DevicePath, Engines, Format, Picture, Settings, Task};
use gesso::gpu::{Event, Fetch, Gpu, Recorder};
use gesso::memory::DeviceBytes;
use gesso::pipeline::{Keep, Pipeline};
use turbojpeg::Subsamp;

use crate::gpu;
use crate::pictures::Recipe;
use crate::promises::{PIPELINE, encoded, photos};
use crate::skips::{Needs, skip};

/// Records copies that keep the device busy for milliseconds.
fn keep_busy(recorder: &mut Recorder) {
    const BYTES: usize = 256 << 20;
    let buffers = [(); 2].map(|()| recorder.allocate(BYTES).unwrap());
    let [a, b] = buffers.map(|buffer| DeviceBytes::of(&buffer, 0, BYTES));
    for _ in 0..100 {
        recorder.copy(&a, &b).unwrap();
    }
}

/// Memory of a call that says, when it is freed, whether the work before it was done.
struct Witness {
    event: Arc<Event>,
    done: Arc<AtomicBool>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.done.store(self.event.is_done().unwrap(), Ordering::Relaxed);
    }
}

/// A batch that fails behind a call whose work is under way. Returns whether that was done when its memory was freed.
fn fail_behind_a_call(gpu: &Arc<Gpu>, fail: fn() -> Result<(), Error>) -> bool {
    let mut recorder = Recorder::new(gpu).unwrap();
    keep_busy(&mut recorder);
    let event = Arc::new(Event::new(gpu).unwrap());
    let done = Arc::new(AtomicBool::new(false));
    let witness = Witness { event: Arc::clone(&event), done: Arc::clone(&done) };
    recorder.call(Box::new(move |stream| witness.event.record(stream)));
    recorder.call(Box::new(move |_| fail()));
    let submitted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| recorder.submit()));
    assert!(!matches!(submitted, Ok(Ok(()))));
    recorder.abandon();
    done.load(Ordering::Relaxed)
}

#[test]
fn a_call_is_freed_when_its_work_is_done() {
    let Some(gpu) = gpu() else { return };
    assert!(fail_behind_a_call(&gpu, || Err(Error::internal("on purpose"))));
    assert!(fail_behind_a_call(&gpu, || panic!("on purpose")));
}

#[test]
fn a_batch_that_is_given_up_while_engines_work_waits_for_them() {
    let Some(gpu) = gpu() else { return };
    let files: Vec<Vec<u8>> =
        (0..64).map(|seed| Recipe::new(1920, 1080, Subsamp::Sub2x2, seed).jpeg()).collect();
    for lanes in [1, 4] {
        let settings = Settings { lanes: Some(lanes), ..Settings::new(Format::Rgb, false) };
        let mut engines = match Engines::open(&gpu, settings) {
            Ok(engines) => engines,
            Err(error) => return skip(Needs::Gpu, error),
        };
        let mut recorder = Recorder::new(&gpu).unwrap();
        for _ in 0..3 {
            let mut tasks = Vec::new();
            for file in &files {
                let picture = Picture::read(file).unwrap();
                let bytes = picture.frame().width * picture.frame().height * 3;
                let buffer = recorder.allocate(bytes).unwrap();
                tasks.push(Task { picture, target: DeviceBytes::of(&buffer, 0, bytes) });
            }
            let stream = Arc::clone(recorder.stream());
            let events = engines.prepare(&mut recorder, tasks.len()).unwrap();
            assert_eq!(events.len(), lanes);
            assert!(engines.start(&stream, &tasks).unwrap().is_empty());
            // As if there were no memory for what comes next: nothing is recorded behind the engines.
            recorder.abandon();
            assert!(events.iter().all(|event| event.is_done().unwrap()), "{lanes} lanes");
        }
    }
}

/// The calling thread's context.
fn current() -> sys::CUcontext {
    let mut context = null_mut();
    // SAFETY: the pointer is valid for the call.
    unsafe { sys::cuCtxGetCurrent(&raw mut context) }.result().unwrap();
    context
}

/// Everything that a caller does: opens a device, runs batches, copies, frees, also what is last to go.
fn use_everything(photos: &[Vec<u8>]) {
    let expected = current();
    let gpu = Gpu::open(0).unwrap();
    assert_eq!(current(), expected, "after opening the device");
    let pipeline = Pipeline::load_moved_to_device(PIPELINE).unwrap();
    let mut instance = pipeline.instance(Some(2), Some(&gpu)).unwrap();
    assert_eq!(current(), expected, "after making an instance");
    let photos: Vec<&Vec<u8>> = photos.iter().collect();
    let outcome = instance.run(photos.len(), vec![encoded(photos.iter().copied())], &mut Keep).unwrap();
    assert_eq!(current(), expected, "after a batch");
    let on_host = instance.to_host(&outcome.outputs[0]).unwrap();
    assert_eq!(current(), expected, "after copying a batch");
    assert!(!on_host.view(0).bytes.is_empty());
    // As a broken batch ends.
    let mut recorder = Recorder::new(&gpu).unwrap();
    recorder.stage(&[1; 100]).unwrap();
    recorder.abandon();
    assert_eq!(current(), expected, "after giving up a batch");
    let stream = gpu.stream().unwrap();
    let sample = outcome.outputs[0].device(0).unwrap().clone();
    assert_eq!(Fetch::new(&stream).fetch(std::slice::from_ref(&sample)).unwrap()[0], on_host.view(0).bytes);
    assert_eq!(current(), expected, "after fetching");
    drop((instance, outcome, recorder, stream, gpu));
    assert_eq!(current(), expected, "after freeing all but one sample");
    drop(sample);
    assert_eq!(current(), expected, "after freeing the last sample");
}

#[test]
fn a_thread_without_a_context_has_none_afterwards() {
    if gpu().is_none() {
        return;
    }
    let photos = photos();
    std::thread::spawn(move || {
        assert!(current().is_null());
        use_everything(&photos);
    })
    .join()
    .unwrap();
}

#[test]
fn a_thread_with_a_context_of_its_own_keeps_it() {
    if gpu().is_none() {
        return;
    }
    let photos = photos();
    std::thread::spawn(move || {
        let (mut device, mut own) = (0, null_mut());
        // SAFETY: the pointer is valid for the call.
        unsafe { sys::cuDeviceGet(&raw mut device, 0) }.result().unwrap();
        // SAFETY: as above; the device is from the driver.
        unsafe { sys::cuCtxCreate_v2(&raw mut own, 0, device) }.result().unwrap();
        assert_eq!(current(), own);
        use_everything(&photos);
        assert_eq!(current(), own);
        // SAFETY: made above, and nothing is left in it.
        unsafe { sys::cuCtxDestroy_v2(own) }.result().unwrap();
    })
    .join()
    .unwrap();
}
