//! What is fuzzed: a function for each parser and border. Each takes any bytes and must return: errors are fine, a
//! panic is not, also one that the engine would catch.

mod address;
mod arithmetic;
mod arrays;
mod bytes;
mod calls;
mod config;
#[path = "../../plugin/host/mod.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "the server of the plugin's tests")]
mod host;
mod image;
mod jpeg;
mod lists;
mod operator;
mod pipeline;
mod recorded;
mod records;
#[expect(clippy::unwrap_used, clippy::panic, reason = "a server that cannot begin is a failure")]
mod requests;
mod sound;
mod video;

/// A name, as `scripts/fuzz` takes it, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("arithmetic", arithmetic::run),
    ("calls", calls::run),
    ("address", address::run),
    ("config", config::run),
    ("device_jpeg", jpeg::on_device),
    ("image", image::run),
    ("index", lists::index),
    ("jpeg", jpeg::run),
    ("list", lists::list),
    ("npy", arrays::run),
    ("operator", operator::run),
    ("packets", video::packets),
    ("pipeline", pipeline::run),
    ("recorded", recorded::run),
    ("records", records::run),
    ("requests", requests::run),
    ("sound", sound::run),
    ("video", video::run),
];
