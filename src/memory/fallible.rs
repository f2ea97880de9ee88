//! Memory of the process that may not be there: a file that asks for more than there is is an error, and does not end
//! the process as an allocation without an answer does.

use bytemuck::Zeroable;

use crate::error::{Error, ErrorKind, Result};

/// `count` zeros.
///
/// # Errors
/// Unavailable, when there is no memory for them.
pub(crate) fn zeroed<T: Zeroable>(count: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| no_memory::<T>(count))
}

/// Makes `values` so long, with `value` where there was none.
///
/// # Errors
/// Those of [`zeroed`].
pub(crate) fn grow<T: Clone>(values: &mut Vec<T>, count: usize, value: T) -> Result<()> {
    let more = count.saturating_sub(values.len());
    values.try_reserve_exact(more).map_err(|_| no_memory::<T>(count))?;
    values.resize(count, value);
    Ok(())
}

fn no_memory<T>(count: usize) -> Error {
    let bytes = count.saturating_mul(size_of::<T>());
    Error::new(ErrorKind::Unavailable, format!("no memory for {bytes} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_is_an_error() {
        assert_eq!(zeroed::<u16>(3).unwrap(), [0; 3]);
        let error = zeroed::<u64>(usize::MAX / 16).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let mut values = vec![1_u32; 2];
        grow(&mut values, 4, 7).unwrap();
        assert_eq!(values, [1, 1, 7, 7]);
        grow(&mut values, 1, 7).unwrap();
        assert_eq!(values, [1]);
        assert!(grow(&mut values, usize::MAX / 8, 7).unwrap_err().to_string().contains("no memory for"));
    }
}
