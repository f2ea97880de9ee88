//! What operators of several families share: arguments that many have, the layouts and types that they take, windows of
//! samples.

pub(crate) mod axes;
pub(crate) mod border;
pub(crate) mod boxes;
pub(crate) mod dtypes;
pub(crate) mod gather;
pub(crate) mod layouts;
pub(crate) mod majority;
pub(crate) mod shape_arg;
pub(crate) mod slice_window;
pub(crate) mod window;
