//! Normalization with the arithmetic of a library of training: the argument `arithmetic`, and what goes with it. It
//! must not know how a library computes.

use crate::cpu::normalize::tables::Library;
use crate::error::{Error, Result};
use crate::operator::{ArgSpec, Args};
use crate::tensor::DType;

pub(super) const ARGS: &[ArgSpec] = &[ArgSpec::string(
    "arithmetic",
    "whose normalization, to the bit, of uint8 images: `dali`, `torchvision`, `torchvision-v2` or `transformers-fast`; \
     `mean` and `std` are then those of values from 0 to 1",
)
.or_string("dali")];

/// Arguments that only DALI has.
const DALI_ONLY: [&str; 2] = ["scale", "shift"];

/// The library whose arithmetic is asked for. `None` is DALI's.
///
/// # Errors
/// When there is no such arithmetic, or it has no such argument or type of output.
pub(super) fn asked(args: &Args, dtype: DType) -> Result<Option<Library>> {
    let name = args.string("arithmetic")?;
    if name == "dali" {
        return Ok(None);
    }
    let library = Library::ALL.into_iter().find(|library| library.name() == name).ok_or_else(|| {
        let names = Library::ALL.map(|library| format!("`{}`", library.name()));
        Error::invalid(format!("argument `arithmetic` is `{name}`, expected `dali`, {}", names.join(", ")))
    })?;
    if let Some(argument) = DALI_ONLY.iter().find(|argument| args.has(argument)) {
        return Err(Error::invalid(format!(
            "argument `{argument}` is DALI's: expected none where `arithmetic` is `{name}`"
        )));
    }
    if !matches!(dtype, DType::F32 | DType::F16) {
        return Err(Error::unsupported(format!(
            "argument `dtype` is {dtype}, expected float32 or float16 where `arithmetic` is `{name}`"
        )));
    }
    Ok(Some(library))
}

/// Whether images of a type are normalized.
///
/// # Errors
/// Unsupported for others than bytes.
pub(super) fn check_input(library: Library, dtype: DType) -> Result<()> {
    if dtype == DType::U8 {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "input of type {dtype}, expected uint8 where `arithmetic` is `{}`",
        library.name()
    )))
}
