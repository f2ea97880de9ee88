//! Instances on a real device, whose memory the stand-in server hands out as a real one does. Skipped where there is
//! none.

use std::sync::Arc;

use gesso::gpu::{DeviceBuffer, Fetch, Gpu, Stream};
use gesso::memory::DeviceBytes;

use crate::host::objects::{Instance, KIND_GPU, Model};
use crate::host::request::{Chunk, Request, UINT8};
use crate::host::{Host, book};
use crate::library::Plugin;
use crate::skips::{Needs, skip};

/// Memory of device 0 that plays what clients and other models hold there.
struct Far {
    stream: Arc<Stream>,
}

impl Far {
    /// `None`, and a line that says so, on a host without a GPU.
    fn find() -> Option<Self> {
        match Gpu::open(0).and_then(|gpu| gpu.stream()) {
            Ok(stream) => Some(Self { stream }),
            Err(error) => {
                skip(Needs::Gpu, format_args!("no GPU: {error}"));
                None
            }
        }
    }

    fn room(&self, bytes: usize) -> Arc<DeviceBuffer> {
        let buffer = Arc::new(DeviceBuffer::new(&self.stream, bytes).unwrap());
        self.stream.synchronize().unwrap();
        buffer
    }

    fn holding(&self, bytes: &[u8]) -> Arc<DeviceBuffer> {
        let buffer = self.room(bytes.len());
        self.stream.put(&[(DeviceBytes::of(&buffer, 0, bytes.len()), bytes)]).unwrap();
        buffer
    }

    fn read(&self, buffer: &Arc<DeviceBuffer>, offset: usize, bytes: usize) -> Vec<u8> {
        let mut fetch = Fetch::new(&self.stream);
        fetch.fetch(&[DeviceBytes::of(buffer, offset, bytes)]).unwrap()[0].to_vec()
    }
}

fn on_device(device: i64, buffer: &DeviceBuffer, offset: usize, bytes: usize) -> Chunk {
    Chunk::Device { device, address: buffer.address() + offset as u64, bytes }
}

/// A request with images of 1 x `width` pixels, one channel, in these pieces.
fn images(host: &Host, id: &str, count: usize, width: usize, chunks: Vec<Chunk>) -> *mut Request {
    let shape = [count as i64, 1, width as i64, 1];
    host.request(id, vec![host.input_in("image", UINT8, &shape, chunks)])
}

fn floats(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|&byte| f32::from(byte).to_le_bytes()).collect()
}

fn ready(host: &Host, plugin: &Plugin, name: &str) -> (*mut Model, *mut Instance) {
    let model = host.model_of(name, r#"{"instance_group":[{"kind":"KIND_GPU"}]}"#);
    plugin.model_initialize(model).unwrap();
    let instance = host.instance_of(model, KIND_GPU, 0);
    plugin.instance_initialize(instance).unwrap();
    (model, instance)
}

fn end(host: &Host, plugin: &Plugin, model: *mut Model, instance: *mut Instance) {
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    assert_eq!(failures(), Vec::<String>::new());
    host.assert_clean();
}

fn failures() -> Vec<String> {
    book().answers.iter().filter_map(|answer| Some(answer.failure.as_ref()?.text.clone())).collect()
}

/// What a request got on the host.
fn answer(id: &str) -> Vec<u8> {
    let book = book();
    let answer = book.answers.iter().find(|answer| answer.request == id).unwrap();
    assert_eq!(answer.failure, None);
    answer.outputs[0].bytes.clone()
}

#[test]
fn a_batch_comes_from_everywhere_and_goes_everywhere() {
    let Some(far) = Far::find() else { return };
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = ready(&host, &plugin, "convert");
    let source = far.holding(&[9, 1, 2, 3, 4, 5, 6, 7, 8]);
    let (even, odd) = (far.room(64), far.room(64));
    let mut requests = [
        // Two samples in place, to the device in place.
        images(&host, "a", 2, 2, vec![on_device(0, &source, 1, 4)]),
        // In pieces: by way of the host. To an address that floats cannot be written to.
        images(&host, "b", 1, 4, vec![on_device(0, &source, 1, 2), Chunk::Kept(0, vec![70, 80])]),
        // As if from and to another device.
        images(&host, "c", 1, 3, vec![on_device(1, &source, 3, 3)]),
        // From the host to the host.
        images(&host, "d", 1, 2, vec![Chunk::Kept(1, vec![200, 255])]),
    ];
    book().places.extend([(0, even.address()), (0, odd.address() + 1), (1, even.address() + 32)]);
    plugin.execute(instance, &mut requests).unwrap();
    host.wait_until("the batch is reported", |book| book.batches == [5]);
    assert_eq!(failures(), Vec::<String>::new());
    assert_eq!(far.read(&even, 0, 16), floats(&[1, 2, 3, 4]));
    assert_eq!(far.read(&odd, 1, 16), floats(&[1, 2, 70, 80]));
    assert_eq!(far.read(&even, 32, 12), floats(&[3, 4, 5]));
    assert_eq!(answer("d"), floats(&[200, 255]));
    assert_eq!(book().wishes, [(2, 0); 4], "what is made on the device stays there if it may");
    end(&host, &plugin, model, instance);
}

#[test]
fn what_the_host_reads_and_makes_is_copied() {
    let Some(far) = Far::find() else { return };
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = ready(&host, &plugin, "prepare");
    let (source, target) = (far.holding(&[1, 2, 3, 4]), far.room(16));
    let mut requests = [
        images(&host, "a", 2, 2, vec![on_device(0, &source, 0, 4)]),
        images(&host, "b", 1, 2, vec![on_device(0, &source, 2, 2)]),
        images(&host, "c", 1, 2, vec![Chunk::Kept(0, vec![5, 6])]),
    ];
    book().places.push_back((0, target.address()));
    plugin.execute(instance, &mut requests).unwrap();
    assert_eq!(far.read(&target, 0, 4), [2, 1, 4, 3]);
    assert_eq!((answer("b"), answer("c")), (vec![4, 3], vec![6, 5]));
    end(&host, &plugin, model, instance);
}

#[test]
fn batches_that_overlap_do_not_mix() {
    let Some(far) = Far::find() else { return };
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = ready(&host, &plugin, "convert");
    const WIDTH: usize = 5_000;
    let pixels = |i: usize| vec![(i % 251) as u8; WIDTH];
    let mut targets = Vec::new();
    for i in 0..60 {
        let near = images(&host, &format!("near {i}"), 1, WIDTH, vec![Chunk::Kept(0, pixels(i))]);
        let source = far.holding(&pixels(i + 1));
        let there = images(&host, &format!("far {i}"), 1, WIDTH, vec![on_device(0, &source, 0, WIDTH)]);
        plugin.execute(instance, &mut [near, there]).unwrap();
        targets.push(source);
    }
    plugin.instance_finalize(instance).unwrap();
    for i in 0..60 {
        assert_eq!(answer(&format!("near {i}")), floats(&pixels(i)));
        assert_eq!(answer(&format!("far {i}")), floats(&pixels(i + 1)));
    }
    assert_eq!(book().batches.len(), 60);
    assert_eq!(book().released.len(), 120);
    plugin.model_finalize(model).unwrap();
    host.assert_clean();
}

#[test]
fn a_request_that_fails_on_the_device_leaves_the_others() {
    let Some(far) = Far::find() else { return };
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = ready(&host, &plugin, "convert");
    let source = far.holding(&[1, 2, 3]);
    let mut requests = [
        images(&host, "short", 1, 4, vec![on_device(0, &source, 0, 3)]),
        images(&host, "none", 1, 3, vec![on_device(0, &source, 0, 3)]),
        images(&host, "good", 1, 3, vec![on_device(0, &source, 0, 3)]),
    ];
    host.fail("TRITONBACKEND_OutputBuffer", 1);
    plugin.execute(instance, &mut requests).unwrap();
    plugin.instance_finalize(instance).unwrap();
    assert_eq!(answer("good"), floats(&[1, 2, 3]));
    assert_eq!(failures().len(), 2);
    plugin.model_finalize(model).unwrap();
    host.assert_clean();
}
