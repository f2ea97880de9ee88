//! A file as if its author had given an arithmetic to every operator that has it and that the file gives none.

use super::proto::{Argument, PipelineDef};
use crate::cpu::exact::Arithmetic;
use crate::ops;

/// The argument of operators.
const ARITHMETIC: &str = "arithmetic";

/// Gives the operators of `def` their `arithmetic`.
pub(super) fn give(def: &mut PipelineDef, arithmetic: Arithmetic) {
    for op in &mut def.op {
        let found = ops::find(op.name.as_deref().unwrap_or_default());
        let has_it = found.is_some_and(|found| found.arithmetics.contains(&arithmetic));
        if has_it && op.args.iter().all(|arg| arg.name.as_deref() != Some(ARITHMETIC)) {
            op.args.push(Argument {
                name: Some(ARITHMETIC.to_owned()),
                r#type: Some("string".to_owned()),
                strings: vec![arithmetic.name().to_owned()],
                ..Argument::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::OpDef;
    use super::*;
    use crate::ops::OPS;

    #[test]
    fn operators_that_are_given_it_have_it() {
        let mut given = 0;
        for def in OPS.iter().filter(|def| !def.arithmetics.is_empty()) {
            assert!(def.all_args().any(|arg| arg.name == ARITHMETIC), "{}", def.name);
            given += 1;
        }
        assert!(given > 5);
    }

    #[test]
    fn what_the_file_says_stays() {
        let op = |name: &str| OpDef { name: Some(name.to_owned()), ..OpDef::default() };
        let op_with = |name: &str, value: &str| {
            let mut def = PipelineDef { op: vec![op(name)], ..PipelineDef::default() };
            give(&mut def, Arithmetic::ALL.into_iter().find(|known| known.name() == value).unwrap());
            def.op.remove(0)
        };
        let resize = op_with("Resize", "opencv");
        assert_eq!(resize.args[0].strings, ["opencv"]);
        let mut def = PipelineDef { op: vec![resize.clone()], ..PipelineDef::default() };
        give(&mut def, Arithmetic::Pillow);
        assert_eq!(def.op[0], resize);
        assert_eq!(op_with("decoders__Image", "pillow13").args[0].strings, ["pillow13"]);
        for (name, value) in
            [("decoders__Image", "torchvision"), ("CropMirrorNormalize", "torchvision"), ("Flip", "pillow")]
        {
            assert!(op_with(name, value).args.is_empty(), "{name}");
        }
    }
}
