//! The table of all operators, which the families list, and that of their kernels. It must not know what any of them
//! does.

use std::sync::LazyLock;

use super::*;
use crate::gpu::KernelSpec;
use crate::operator::{Args, Fusion, OpDef};
use crate::tensor::{Device, ValueType};

/// What bounds the work that a request's values ask of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Each element that is read or written is looked at a number of times that no request decides.
    Elements,
    /// It moves nothing.
    View,
    /// A named limit of what its arguments may ask for.
    Limit,
    /// It says what it takes, and stops in the middle: `bounded.rs` has a case of it.
    Told,
    /// It decodes files: `cpu::decode`, `cpu::audio` and `cpu::video` have tests of their own.
    Decodes,
    /// Who runs the pipeline feeds it, or it runs on a device alone.
    Elsewhere,
}

/// An operator in the list of its family.
pub type Row = (&'static OpDef, Bound);

/// The operators by their families, the folders here.
pub const FAMILIES: &[(&str, &[Row])] = &[
    ("decode", decode::OPERATORS),
    ("encode", encode::OPERATORS),
    ("geometry", geometry::OPERATORS),
    ("color", color::OPERATORS),
    ("filters", filters::OPERATORS),
    ("boxes", boxes::OPERATORS),
    ("math", math::OPERATORS),
    ("random", random::OPERATORS),
    ("audio", audio::OPERATORS),
    ("sequence", sequence::OPERATORS),
    ("structure", structure::OPERATORS),
    ("multimodal", multimodal::OPERATORS),
];

/// All operators, sorted by name.
pub static OPS: LazyLock<Vec<&'static OpDef>> = LazyLock::new(|| {
    let mut all: Vec<_> = FAMILIES.iter().flat_map(|(_, rows)| rows.iter().map(|(op, _)| *op)).collect();
    #[cfg(feature = "fault-injection")]
    all.push(&boom::DEF);
    all.sort_by_key(|op| op.name);
    all
});

/// Chains that become one operator.
fn fusions() -> impl Iterator<Item = &'static Fusion> {
    let decoders = decode::decode_resize::host::FUSIONS.iter().chain(&decode::decode_resize::device::FUSIONS);
    let others = [
        &decode::decoders_video::resized::FUSION,
        &geometry::resize_normalize::FUSION,
        &multimodal::normalize_patchify::FUSION,
    ];
    others.into_iter().chain(decoders)
}

/// The fusion of operators on `device` with their arguments, each the only reader of the one before, for inputs of
/// these types.
pub fn fusion(device: Device, chain: &[(&OpDef, &Args)], types: &[&ValueType]) -> Option<&'static Fusion> {
    fusions().find(|fusion| fusion.fits(device, chain, types))
}

/// The kernels of all operators and fusions, see [`OpDef::kernels`]; and those that copy for operators that have none.
pub fn kernels() -> Vec<KernelSpec> {
    let mut all: Vec<KernelSpec> = Vec::new();
    let of_operators = OPS.iter().flat_map(|op| op.kernels).flat_map(|kernels| kernels());
    for spec in of_operators.chain(fusions().flat_map(|fusion| (fusion.kernels)())) {
        if !all.contains(&spec) {
            all.push(spec);
        }
    }
    all
}

/// The operator with the schema name `name`, in any of its spellings.
pub fn find(name: &str) -> Option<&'static OpDef> {
    let plain = name.strip_prefix('_').filter(|rest| !rest.starts_with("conditional__")).unwrap_or(name);
    let known =
        OPS.iter().copied().find(|op| op.name == plain || op.name == name || op.aliases.contains(&name));
    known.or_else(|| custom::find(name))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::operator::args::Value;

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(OPS.is_sorted_by(|a, b| a.name < b.name) && OPS.len() > 120);
        let mut names = HashSet::new();
        for op in OPS.iter() {
            assert!(!op.name.starts_with('_'), "{} keeps its underscore", op.name);
            for name in op.aliases.iter().chain([&op.name]) {
                assert!(names.insert(*name), "{name} stands twice");
                assert_eq!(find(name).unwrap().name, op.name);
            }
        }
    }

    #[test]
    fn every_argument_is_documented_once() {
        for op in OPS.iter() {
            assert!(!op.doc.is_empty() && !op.devices.is_empty(), "{}", op.name);
            let mut names = HashSet::new();
            for arg in op.all_args() {
                let of = format!("{}: argument {}", op.name, arg.name);
                assert!(names.insert(arg.name), "{of} stands twice");
                assert!(arg.default_fits(), "{of} is a {:?} and has the default {:?}", arg.kind, arg.default);
                assert!(arg.tensor || !arg.per_frame, "{of} differs by frame, but not by sample");
                assert!(arg.doc.len() > 8, "{of} is not documented");
            }
        }
    }

    #[test]
    fn an_unknown_argument_is_an_error_that_names_it() {
        let args = Args::new([("angle".to_owned(), Value::Ints(vec![1]))].into(), [].into());
        let error = find("Flip").unwrap().instantiate(&args, 1).err().unwrap().to_string();
        assert!(error.contains("`angle`") && error.contains("`Flip`"), "{error}");
    }
}
