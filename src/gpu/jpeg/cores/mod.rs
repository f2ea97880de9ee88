//! Decoding on the device's own cores: what they need to know of a file, and their data. It must not know operators.
//!
//! ```text
//! Header -> Coded     what the cores take, and the tables that are in use
//! Huffman -> Lookup   a table as the device reads it
//! data -> Segments    bits without stuffing and markers, in the staging slab
//! ```

mod coded;
mod scan;
mod tables;

pub use coded::{BLOCK, Coded, Colour, Component, MAX_BLOCKS, MAX_PAIRS};
pub use scan::{Layout, Segment, copy, room};
pub use tables::{Lookup, Tables};
