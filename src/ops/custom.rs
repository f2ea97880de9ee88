//! Operators that are not ours: those that a library brought before the first pipeline was read. They are found like
//! any other. It must not know how a library is loaded.

use parking_lot::RwLock;

use super::OPS;
use crate::error::{Error, ErrorKind, Result};
use crate::limits;
use crate::operator::OpDef;

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
    let names: Vec<&str> = definitions.iter().map(|definition| definition.name).collect();
    check_names(&names, &custom)?;
    custom.extend(definitions.into_iter().map(|definition| &*Box::leak(Box::new(definition))));
    Ok(())
}

/// Whether operators of these names can be added: what [`register`] asks first, for those who would keep something for
/// a definition.
///
/// # Errors
/// Those of [`register`].
pub fn check(names: &[&str]) -> Result<()> {
    check_names(names, &CUSTOM.read())
}

fn check_names(names: &[&str], custom: &[&OpDef]) -> Result<()> {
    let total = custom.len() + names.len();
    if total > limits::MAX_CUSTOM_OPERATORS {
        return Err(Error::invalid(format!(
            "{total} custom operators, more than the limit of {}",
            limits::MAX_CUSTOM_OPERATORS
        )));
    }
    for (i, name) in names.iter().enumerate() {
        let is_taken = |op: &&OpDef| op.name == *name || op.aliases.contains(name);
        if OPS.iter().chain(custom).any(is_taken) || names[..i].contains(name) {
            let text = format!("there is an operator called `{name}` already");
            return Err(Error::new(ErrorKind::AlreadyExists, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::operator::{OpDef, Operator, one_output};
    use crate::tensor::Device;

    fn definition(name: &'static str) -> OpDef {
        fn build(_: &crate::operator::Args, _: usize) -> Result<Box<dyn Operator>> {
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
