//! The plugin in servers that lack functions: one of backend API 1.0, and a process that is no Triton server.
#![expect(unsafe_code, reason = "calls the plugin as C does")]
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

#[expect(dead_code, reason = "shared with `plugin.rs`, which uses all of it")]
#[path = "plugin/host/mod.rs"]
mod host;
#[expect(dead_code, reason = "shared with `plugin.rs`, which uses all of it")]
#[path = "plugin/library.rs"]
mod library;

use host::{Host, book, objects};
use library::Plugin;
use triton_gesso::triton::api::{self, Server};
use triton_gesso::triton::exchange;

#[test]
fn loads_and_answers_without_newer_functions() {
    let (host, plugin) = (Host::start(), Plugin::load());
    book().version = (1, 0);
    let backend = host.backend();
    plugin.initialize(backend).unwrap();
    let model = host.model();
    plugin.model_initialize(model).unwrap();
    let instance = host.instance(model);
    plugin.instance_initialize(instance).unwrap();
    plugin.execute(instance, &mut [host.image("a", &[1, 2, 3])]).unwrap();
    assert_eq!(book().answers[0].failure, None);
    assert_eq!(book().answers[0].outputs[0].bytes, [3, 2, 1]);
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    objects::drop_backend(backend);
    host.assert_clean();
}

#[test]
fn does_without_what_is_missing() {
    let host = Host::start();
    let server = Server::get().unwrap();
    // SAFETY: the stand-in server's objects are never deallocated.
    let instance = unsafe { api::Instance::from_raw(server, host.instance(host.model()).cast()) }.unwrap();
    assert!(!server.has_parameters());
    let request = host.request("a", vec![]);
    host::request::cancel(request);
    let body = |claims: &mut Vec<exchange::Claim>| {
        let claim = claims.pop().unwrap();
        assert!(!claim.request().is_cancelled().unwrap());
        assert_eq!(claim.request().parameter("x-api-key").unwrap(), None);
        claim.finish((1, 2));
    };
    // SAFETY: the request is alive and nobody else's.
    unsafe { exchange::run(&instance, &[request.cast()], body) }.unwrap();
    assert_eq!(book().answers[0].failure, None);
    host.assert_clean();
}
