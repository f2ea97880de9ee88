//! Every kernel compiles for the architectures that we support. Needs NVRTC, not a GPU. With `GESSO_ALL_ARCHITECTURES`,
//! which `scripts/test --long` sets, each for each.

#[path = "common/skips.rs"]
mod skips;

use std::collections::HashSet;

use gesso::gpu::{Nvrtc, SOURCES, compile};
use gesso::ops;
use rayon::prelude::*;
use skips::{Needs, skip};

/// For these the first of each function is compiled always.
const USUAL: [(i32, i32); 3] = [(7, 5), (9, 0), (12, 0)];

/// The oldest and the newest, and those between that people serve on: T4, A100, A10, L4, H100, B200, RTX 50.
const ARCHITECTURES: [(i32, i32); 7] = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)];

#[test]
fn every_kernel_compiles() {
    let Ok(nvrtc) = Nvrtc::open() else { return skip(Needs::Tool, "no NVRTC") };
    let specs = ops::kernels();
    // The first of each function for the usual architectures; the others, which differ in types, in turn for the oldest
    // or the newest.
    let all = std::env::var_os("GESSO_ALL_ARCHITECTURES").is_some();
    let mut seen = HashSet::new();
    let mut jobs = Vec::new();
    for (i, spec) in specs.iter().enumerate() {
        let is_first = seen.insert((spec.source(), spec.entry()));
        let own = [ARCHITECTURES[0], ARCHITECTURES[ARCHITECTURES.len() - 1]][i % 2];
        let is_wanted = |arch| all || arch == own || is_first && USUAL.contains(&arch);
        jobs.extend(ARCHITECTURES.into_iter().filter(|&arch| is_wanted(arch)).map(|arch| (spec, arch)));
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
