//! Kinds of instances and of memory. On a host without a GPU, most of it is what the plugin says of that.

use gesso::gpu;

use crate::host::objects::{KIND_GPU, drop_backend};
use crate::host::request::UINT8;
use crate::host::{Host, book, code};
use crate::library::Plugin;
use crate::ready;

/// A device that no host has.
const NOWHERE: i32 = 999;

#[test]
fn asks_for_the_kinds_that_the_host_has() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let backend = host.backend();
    plugin.backend_attribute(backend, host.attributes()).unwrap();
    let mut expected = vec!["kind 1 count 0 devices 0", "parallel true"];
    if gpu::devices().is_ok() {
        expected.insert(0, "kind 2 count 0 devices 0");
    }
    assert_eq!(book().attributes, expected);
    host.fail_next("TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup");
    let failed = plugin.backend_attribute(backend, host.attributes()).unwrap_err();
    assert_eq!(failed.code, code::UNAVAILABLE);
    drop_backend(backend);
    host.assert_clean();
}

#[test]
fn an_instance_on_a_device_that_is_not_there_says_what_to_do() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let model = host.model_of("convert", r#"{"instance_group":[{"kind":"KIND_GPU","gpus":[999]}]}"#);
    plugin.model_initialize(model).unwrap();
    let instance = host.instance_of(model, KIND_GPU, NOWHERE);
    let failed = plugin.instance_initialize(instance).unwrap_err();
    assert_eq!(failed.code, code::UNAVAILABLE);
    for word in ["model `convert`", "KIND_GPU on device 999", "kind: KIND_CPU"] {
        assert!(failed.text.contains(word), "`{word}` is not in `{}`", failed.text);
    }
    let said = if gpu::devices().is_ok() { "device 999 is not there" } else { "NVIDIA driver" };
    assert!(failed.text.contains(said), "{}", failed.text);
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    host.assert_clean();
}

#[test]
fn a_model_has_instances_of_both_kinds_and_plans_for_each() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let backend = host.backend();
    plugin.initialize(backend).unwrap();
    let model = host.model_of("convert", r#"{"instance_group":[{"kind":"KIND_GPU"},{"kind":"KIND_CPU"}]}"#);
    plugin.model_initialize(model).unwrap();
    let plans = || {
        let book = book();
        let lines = book.log.iter().filter(|(_, line)| line.contains("for instances of"));
        lines.map(|(_, line)| line.rsplit_once(" for ").unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(plans(), ["instances of KIND_GPU model=convert"]);
    // The host alone runs what was made for a GPU.
    let instance = host.instance(model);
    plugin.instance_initialize(instance).unwrap();
    assert_eq!(plans()[1..], ["instances of KIND_CPU model=convert"]);
    plugin.execute(instance, &mut [host.image("a", &[1, 2])]).unwrap();
    let book_ = book();
    assert_eq!(book_.answers[0].failure, None);
    assert_eq!(book_.answers[0].outputs[0].bytes, [1.0_f32, 2.0].map(f32::to_le_bytes).concat());
    drop(book_);
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    drop_backend(backend);
    host.assert_clean();
}

#[test]
fn a_pipeline_that_needs_no_device_runs_where_there_is_none() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let model = host.model();
    plugin.model_initialize(model).unwrap();
    let instance = host.instance_of(model, KIND_GPU, NOWHERE);
    plugin.instance_initialize(instance).unwrap();
    // The device is opened for the tensor that lies there, and that request alone suffers from it.
    let far = host.input("image", UINT8, &[1, 1, 2, 1], &[(2, &[0, 0])]);
    let mut requests = [host.request("far", vec![far]), host.image("near", &[1, 2])];
    plugin.execute(instance, &mut requests).unwrap();
    let book_ = book();
    let failure = book_.answers[0].failure.as_ref().unwrap();
    assert_eq!(failure.code, code::UNAVAILABLE);
    assert!(!failure.text.contains("expected host memory"), "{}", failure.text);
    assert_eq!(book_.answers[1].outputs[0].bytes, [2, 1]);
    assert_eq!(book_.wishes, [(0, 0)], "what is made on the host goes to the host");
    drop(book_);
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    host.assert_clean();
}

#[test]
fn an_output_that_the_client_wants_on_a_device_is_not_written_from_the_host() {
    for (kind, code, said) in [
        (1, code::UNSUPPORTED, "Triton offers memory `gpu 1`, expected host memory"),
        (KIND_GPU, code::UNAVAILABLE, ""),
    ] {
        let (host, plugin) = (Host::start(), Plugin::load());
        let model = host.model();
        plugin.model_initialize(model).unwrap();
        let instance = host.instance_of(model, kind, NOWHERE);
        plugin.instance_initialize(instance).unwrap();
        book().offered = 2;
        plugin.execute(instance, &mut [host.image("a", &[1, 2])]).unwrap();
        book().offered = 0;
        plugin.execute(instance, &mut [host.image("b", &[1, 2])]).unwrap();
        let answers = book().answers.clone();
        let failure = answers[0].failure.as_ref().unwrap();
        assert_eq!(failure.code, code, "{}", failure.text);
        assert!(failure.text.starts_with("output `pixels`: ") || kind == KIND_GPU, "{}", failure.text);
        assert!(failure.text.contains(said), "{}", failure.text);
        assert_eq!(answers[1].outputs[0].bytes, [2, 1]);
        plugin.instance_finalize(instance).unwrap();
        plugin.model_finalize(model).unwrap();
        host.assert_clean();
    }
}

#[test]
fn an_instance_on_the_host_refuses_a_tensor_on_a_device() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = ready(&host, &plugin);
    let far = host.input("image", UINT8, &[1, 1, 2, 1], &[(0, &[1]), (2, &[0])]);
    plugin.execute(instance, &mut [host.request("far", vec![far])]).unwrap();
    let failure = book().answers[0].failure.clone().unwrap();
    assert_eq!(failure.text, "input `image` is in memory `gpu 1`, expected host memory");
    assert_eq!(failure.code, code::UNSUPPORTED);
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    host.assert_clean();
}
