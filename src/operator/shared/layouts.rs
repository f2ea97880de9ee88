//! Which layouts an operator takes: those it names, and for samples without a layout the first it names with as many
//! dimensions.

use crate::error::{Error, Result};
use crate::tensor::{BatchDesc, Layout, ValueType};

/// The layout that an operator sees in samples of `ndim` dimensions declared as `layout`.
///
/// # Errors
/// When it is none of `allowed`, or there is none and no allowed one has `ndim` letters.
pub(crate) fn accepted(layout: Layout, ndim: usize, allowed: &[&str]) -> Result<Layout> {
    let fits = |name: &&&str| if layout.is_none() { name.len() == ndim } else { **name == layout.as_str() };
    let found = if layout.is_none() {
        format!("a sample without a layout has {ndim} dimensions")
    } else {
        format!("the layout is `{layout}`")
    };
    allowed
        .iter()
        .find(fits)
        .map(|name| Layout::from_letters(name.as_bytes()))
        .ok_or_else(|| Error::invalid(format!("{found}, expected one of `{}`", allowed.join("`, `"))))
}

/// `layout`, or for samples of `ndim` dimensions without one the first of `defaults` with as many letters.
pub(crate) fn or_first(layout: Layout, ndim: usize, defaults: &[&str]) -> Layout {
    match defaults.iter().find(|name| layout.is_none() && name.len() == ndim) {
        Some(name) => Layout::from_letters(name.as_bytes()),
        None => layout,
    }
}

/// [`or_first`] as far as it is known at load.
pub(crate) fn of_type_or_first(ty: &ValueType, defaults: &[&str]) -> Option<Layout> {
    let layout = ty.layout?;
    match ty.ndim() {
        Some(ndim) => Some(or_first(layout, ndim, defaults)),
        None => Some(layout).filter(|layout| !layout.is_none()),
    }
}

/// [`accepted`] for a batch; one without samples keeps its layout.
pub(crate) fn of_batch(desc: &BatchDesc, allowed: &[&str]) -> Result<Layout> {
    desc.shapes.first().map_or(Ok(desc.layout), |shape| accepted(desc.layout, shape.len(), allowed))
}

/// [`accepted`] as far as it is known at load.
pub(crate) fn of_type(ty: &ValueType, allowed: &[&str]) -> Result<Option<Layout>> {
    match (ty.layout, ty.ndim()) {
        (Some(layout), Some(ndim)) => accepted(layout, ndim, allowed).map(Some),
        (Some(layout), None) if !layout.is_none() => {
            accepted(layout, layout.letters().len(), allowed).map(Some)
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_rank_stands_in() {
        let allowed = ["HWC", "FHWC", "DHWC"];
        assert_eq!(accepted(Layout::NONE, 4, &allowed).unwrap().as_str(), "FHWC");
        assert_eq!(accepted(Layout::from_letters(b"DHWC"), 4, &allowed).unwrap().as_str(), "DHWC");
        assert!(accepted(Layout::from_letters(b"CHW"), 3, &allowed).is_err());
        assert!(accepted(Layout::NONE, 2, &allowed).is_err());
    }
}
