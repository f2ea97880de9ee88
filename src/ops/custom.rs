//! Operators that are not ours: those that a library brought before the first pipeline was read. They are found like any
//! other. It must not know how a library is loaded.

use parking_lot::RwLock;

use super::{OPS, OpDef};
use crate::error::{Error, ErrorKind, Result};
use crate::limits;

static CUSTOM: RwLock<Vec<&'static OpDef>> = RwLock::new(Vec::new());

/// The custom operator called `name`.
pub(super) fn find(name: &str) -> Option<&'static OpDef> {
    CUSTOM.read().iter().copied().find(|op| op.name == name)
}

/// All custom operators.
pub(super) fn all() -> Vec<&'static OpDef> {
    CUSTOM.read().clone()
}

/// Adds operators, all or none; they stay until the process ends.
///
/// # Errors
/// Already exists, when a name is taken; invalid, when there are too many.
pub fn register(definitions: Vec<OpDef>) -> Result<()> {
    let mut custom = CUSTOM.write();
    let total = custom.len() + definitions.len();
    if total > limits::MAX_CUSTOM_OPERATORS {
        return Err(Error::invalid(format!(
            "{total} custom operators, more than the limit of {}",
            limits::MAX_CUSTOM_OPERATORS
        )));
    }
    for (i, definition) in definitions.iter().enumerate() {
        let others = OPS.iter().chain(custom.iter()).copied().chain(&definitions[..i]);
        let is_taken = |op: &OpDef| op.name == definition.name || op.aliases.contains(&definition.name);
        if others.into_iter().any(is_taken) {
            let text = format!("there is an operator called `{}` already", definition.name);
            return Err(Error::new(ErrorKind::AlreadyExists, text));
        }
    }
    custom.extend(definitions.into_iter().map(|definition| &*Box::leak(Box::new(definition))));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Device, OpDef, Operator, Result, one_output};
    use super::*;

    fn definition(name: &'static str) -> OpDef {
        fn build(_: &super::super::Args, _: usize) -> Result<Box<dyn Operator>> {
            Err(Error::unsupported("not to be built"))
        }
        OpDef {
            name,
            doc: "",
            devices: &[Device::Cpu],
            inputs: (1, 1),
            args: &[],
            build: &build,
            outputs: &one_output,
            ..OpDef::BASE
        }
    }

    #[test]
    fn a_name_is_given_once_and_nothing_is_added_by_halves() {
        register(vec![definition("CustomOne")]).unwrap();
        assert!(super::super::find("CustomOne").is_some());
        for taken in ["CustomOne", "Flip", "ImageDecoder"] {
            let error = register(vec![definition("CustomTwo"), definition(taken)]).unwrap_err();
            assert_eq!((error.kind(), error.to_string().contains(taken)), (ErrorKind::AlreadyExists, true));
        }
        assert!(register(vec![definition("CustomTwo"), definition("CustomTwo")]).is_err());
        assert!(super::super::find("CustomTwo").is_none());
        let many = (0..=limits::MAX_CUSTOM_OPERATORS).map(|_| definition("Many")).collect();
        assert!(register(many).unwrap_err().to_string().contains("limit"));
    }
}
