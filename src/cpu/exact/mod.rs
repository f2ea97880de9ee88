//! Resizing of images with the arithmetic of Pillow, torchvision and OpenCV, to the bit: what models are trained
//! behind. It must not know operators, or how an output size is computed.
//!
//! ```text
//! pillow, torchvision    columns by integer weights -> bytes -> rows by integer weights -> bytes
//! pillow13               the same; rows first where the height shrinks much more than the width
//! torchvision-float      columns by float32 weights -> rows by float32 weights -> bytes
//! opencv                 columns by weights of 11 bits -> rows by weights of 11 bits -> bytes; means
//! ```
//!
//! Pillow's images of words and floats have sums of float64.
//!
//! A [`Task`] describes one image's resize. It may make a window of the resized image only, mirrored.

mod alpha;
mod axis;
mod bounds;
mod filters;
mod floats;
mod libraries;
mod nearest;
mod opencv;
mod opencv_area;
mod passes;
mod reduce;
mod rows;
mod steps;
mod task;
mod turn;
mod wide;

pub use libraries::{Arithmetic, Elements, Filter};
pub use steps::{AxisTask, Steps, Sums, Table};
pub use task::{Scratch, Task};
