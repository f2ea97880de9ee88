//! `Reinterpret`: the same bytes as elements of another type, and [`super::reshape`] on the way.

use super::reshape::{ARGS, operator};
use crate::operator::{ArgSpec, InputSet, OpDef, gpu_io, one_output};
use crate::tensor::Device;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Reinterpret",
    doc: "The same bytes as elements of another type, shape or layout",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 2),
    args: &[ArgSpec::dtype("dtype", "element type of the output").or_computed("the input's")],
    shared_args: &[ARGS],
    build: &|args, inputs| operator(args, inputs, args.given_dtype("dtype")?),
    outputs: &one_output,
    kernels: &[gpu_io::kernels],
    sequences: true,
    reads_in_place: InputSet::First,
    ..OpDef::BASE
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    #[test]
    fn bytes_that_make_no_whole_elements_fail_their_sample_alone() {
        let x = [0u8, 1, 2, 3];
        let values = [("dtype", Value::Ints(vec![1]))];
        let outcome = run(&DEF, &args(&values, &[]), &[batch(&[(&[4], &x), (&[3], &x[..3])])], &[]).unwrap();
        assert_eq!(outcome.values::<u16>(0), [256, 770]);
        assert!(outcome.error(1).contains("does not fit"), "{}", outcome.error(1));
    }
}
