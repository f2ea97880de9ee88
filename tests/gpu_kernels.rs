//! Every kernel compiles for every architecture that we support. Needs NVRTC, not a GPU.

#[path = "common/skips.rs"]
mod skips;

use std::collections::HashSet;

use gesso::gpu::{Nvrtc, SOURCES, compile};
use gesso::ops;
use rayon::prelude::*;
use skips::{Needs, skip};

/// The oldest and the newest, and those between that people serve on: T4, A100, A10, L4, H100, B200, RTX 50.
const ARCHITECTURES: [(i32, i32); 7] = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)];

#[test]
fn every_kernel_compiles_for_every_architecture() {
    let Ok(nvrtc) = Nvrtc::open() else { return skip(Needs::Tool, "no NVRTC") };
    let specs = ops::kernels();
    // The first of each function for all architectures, the others, which differ in types, for the oldest and the
    // newest.
    let mut seen = HashSet::new();
    let mut jobs = Vec::new();
    for spec in &specs {
        let first = seen.insert((spec.source(), spec.entry()));
        let architectures = ARCHITECTURES.into_iter().enumerate();
        let wanted = architectures.filter(|&(i, _)| first || i == 0 || i + 1 == ARCHITECTURES.len());
        jobs.extend(wanted.map(|(_, arch)| (spec, arch)));
    }
    jobs.par_iter().for_each(|&(spec, arch)| {
        let code = compile(&nvrtc, spec, arch).unwrap();
        assert!(code.starts_with(b"\x7fELF"), "{spec:?} for {arch:?} is no machine code");
    });
    for source in SOURCES {
        assert!(
            specs.iter().any(|spec| spec.source() == source.name),
            "{} is compiled by no test",
            source.name
        );
    }
}
