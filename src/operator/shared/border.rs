//! What stands for elements outside of an input, as kernels know it.

use crate::cpu::{perspective, window};
use crate::gpu::layout::device_enum;

device_enum! {
    /// What stands for elements outside of an input.
    pub(crate) enum DeviceBorder as Border {
        Fill as FILL,
        Clamp as CLAMP,
        Reflect1001 as REFLECT_1001,
        Reflect101 as REFLECT_101,
        Wrap as WRAP,
    }
}

impl From<window::Outside> for DeviceBorder {
    fn from(outside: window::Outside) -> Self {
        match outside {
            window::Outside::Fill => Self::Fill,
            window::Outside::Border(window::Border::Clamp) => Self::Clamp,
            window::Outside::Border(window::Border::Reflect1001) => Self::Reflect1001,
            window::Outside::Border(window::Border::Reflect101) => Self::Reflect101,
            window::Outside::Border(window::Border::Wrap) => Self::Wrap,
        }
    }
}

impl From<perspective::Border> for DeviceBorder {
    fn from(border: perspective::Border) -> Self {
        match border {
            perspective::Border::Constant => Self::Fill,
            perspective::Border::Replicate => Self::Clamp,
            perspective::Border::Reflect => Self::Reflect1001,
            perspective::Border::Reflect101 => Self::Reflect101,
            perspective::Border::Wrap => Self::Wrap,
        }
    }
}
