//! Which element types an operator takes: those it names.

use crate::error::{Error, Result};
use crate::tensor::{DType, ValueType};

/// The output type of an operator whose output is like its first input, of an element type that `check` lets pass.
///
/// # Errors
/// Those of `check`, when the element type is known.
pub(crate) fn like_input(
    inputs: &[ValueType],
    check: impl Fn(DType) -> Result<()>,
) -> Result<Vec<ValueType>> {
    inputs[0].dtype.map_or(Ok(()), check)?;
    Ok(vec![inputs[0].clone()])
}

/// Checks that elements of `what` ("images", say), which are of type `dtype`, are of one of the types in `allowed`.
///
/// # Errors
/// Unsupported, naming all of `allowed`.
pub(crate) fn accepted(what: &str, dtype: DType, allowed: &[DType]) -> Result<()> {
    if allowed.contains(&dtype) {
        return Ok(());
    }
    let names: Vec<&str> = allowed.iter().map(|dtype| dtype.name()).collect();
    let expected = match names.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        names => names.concat(),
    };
    Err(Error::unsupported(format!("{what} of type {dtype}, expected {expected}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_what_is_allowed() {
        let text = |allowed: &[DType]| accepted("images", DType::F64, allowed).unwrap_err().to_string();
        assert_eq!(text(&[DType::U8]), "images of type float64, expected uint8");
        assert_eq!(text(&[DType::U8, DType::F32]), "images of type float64, expected uint8 or float32");
        assert!(text(&[DType::U8, DType::I16, DType::F32]).ends_with("expected uint8, int16 or float32"));
        assert!(accepted("images", DType::F64, &[DType::U8, DType::F64]).is_ok());
    }
}
