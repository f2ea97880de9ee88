//! What is fuzzed: a function for each parser and border. Each takes any bytes and must return: errors are fine, a panic is not,
//! also one that the engine would catch.

mod arithmetic;
mod arrays;
mod bytes;
mod config;
mod image;
mod jpeg;
mod operator;
mod pipeline;
mod sound;
mod video;

/// A name, as `scripts/fuzz` takes it, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("arithmetic", arithmetic::run),
    ("config", config::run),
    ("device_jpeg", jpeg::on_device),
    ("image", image::run),
    ("jpeg", jpeg::run),
    ("npy", arrays::run),
    ("operator", operator::run),
    ("pipeline", pipeline::run),
    ("sound", sound::run),
    ("video", video::run),
];
