//! The device's optical flow engine, through the library that comes with the driver: two frames on the device in, how
//! far each block of the one has moved out. It must not know operators or layouts.
//!
//! ```text
//! Engine: opened once, says what the device takes
//!   Session (one for each size of frames, kept)   2 frames, 1 field, 1 field of hints: the library's memory, with gaps
//!     frame ──[ kernel `flow_frame` ]──> Session ── execute ──> field ──[ kernel `flow_field` ]──> float32
//! ```
//!
//! Everything is put into one stream, that of the batch: the library lets it wait for the engine.

mod engine;
mod handle;
mod session;
mod settings;
mod sys;

pub use engine::Engine;
pub use handle::Plane;
pub use session::Session;
pub use settings::{Settings, Speed};
