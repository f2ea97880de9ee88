//! `readers.VideoResize`: what `readers.Video` reads, with `Resize` behind it. Its arguments are those of both.

use super::video::OLDER;
use super::{Behind, ReaderDef};

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers__VideoResize",
    aliases: &["VideoReaderResize"],
    doc: "Sequences of frames of video files, resized as by `Resize`",
    // `dtype` is that of the frames, and of what they are resized to.
    behind: Some(&Behind { operator: "Resize", without: &["save_attrs"] }),
    ..OLDER
};
