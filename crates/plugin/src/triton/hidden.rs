//! Keeps names of libraries that are linked into this one out of what it exports. It must not know what they do.

core::arch::global_asm!(include_str!("hidden.s"));
