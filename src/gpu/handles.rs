//! What a recorder hands out for parts of its work, to ask about later. It must not know how that work runs.

/// Words on the host that kernels write; readable after [`super::Recorder::wait`].
#[derive(Debug, Clone, Copy)]
pub struct Report {
    pub(super) address: u64,
    pub(super) place: usize,
    pub(super) words: usize,
}

impl Report {
    /// Where kernels find it.
    pub fn address(&self) -> u64 {
        self.address
    }
}

/// A place in what is recorded that more can be put into later, see `Recorder::mend`.
#[derive(Debug, Clone, Copy)]
pub struct Slot(pub(super) usize);

/// A copy to the host that was asked for; readable after [`super::Recorder::wait`].
#[derive(Debug, Clone, Copy)]
pub struct Download {
    pub(super) from: u64,
    pub(super) offset: usize,
    pub(super) bytes: usize,
    /// Address of the buffer it is in; `None` for memory that is not ours.
    pub(super) buffer: Option<u64>,
}
