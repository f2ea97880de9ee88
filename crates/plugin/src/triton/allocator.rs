//! A word to the process's allocator, glibc's, which is made for programs that live shorter than a server: it learns to
//! serve buffers of megabytes from arenas, of which each thread has one, and keeps what is freed there. With every
//! reload of a model, whose threads get other arenas, a process would grow by what an image takes.

/// Blocks from this size on are the system's, and go back to it when they are freed. Above the requests and answers of
/// most models, which are allocated all the time; below the pixels of a large image, which are kept for reuse.
#[cfg(target_env = "gnu")]
const OWN_MAPPING_BYTES: libc::c_int = 4 << 20;

/// Free bytes that an arena keeps at its end.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: libc::c_int = 8 << 20;

/// What the one who starts the server can say about it himself; then nothing is changed.
const ENVIRONMENT: [&str; 4] =
    ["GLIBC_TUNABLES", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_"];

/// Fixes what the allocator would learn.
pub(super) fn settle() {
    if let Some(variable) = ENVIRONMENT.iter().find(|name| std::env::var_os(name).is_some()) {
        tracing::debug!("`{variable}` is set, so the allocator stays as it is");
        return;
    }
    #[cfg(target_env = "gnu")]
    for (parameter, value) in
        [(libc::M_MMAP_THRESHOLD, OWN_MAPPING_BYTES), (libc::M_TRIM_THRESHOLD, KEPT_BYTES)]
    {
        // SAFETY: the call takes any numbers, and locks what it changes.
        unsafe { libc::mallopt(parameter, value) };
    }
}

/// Gives memory that is free back to the system.
pub(super) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes any number, and locks what it looks at.
    unsafe {
        libc::malloc_trim(0)
    };
}
