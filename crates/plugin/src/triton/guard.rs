//! The fence around every function that C calls: no panic leaves it, and every error goes to the server, which says it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::api::{Server, ServerError};
use super::sys;
use gesso::error::{Error, Result};

/// Runs `body` and turns its result into what Triton expects: null, or an error that Triton prints into its log and
/// deletes.
pub(super) fn guard(
    entry: &str,
    body: impl FnOnce(&'static Server) -> Result<()>,
) -> *mut sys::TRITONSERVER_Error {
    let server = match Server::get() {
        Ok(server) => server,
        Err(error) => return Server::refusal(&error),
    };
    match catch(|| body(server)) {
        Ok(()) => std::ptr::null_mut(),
        Err(error) => {
            // A line of our own would be the second.
            tracing::debug!(entry, "{error}");
            ServerError::from_error(server, &error).into_raw()
        }
    }
}

/// Runs `body`; a panic becomes an `Internal` error, without the panic's text.
///
/// Nothing that `body` shares with the caller is looked at after a panic but to answer requests and to free it.
pub(super) fn catch<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(Error::from_panic(payload.as_ref())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gesso::error::ErrorKind;

    #[test]
    fn a_panic_is_an_error_without_its_text() {
        let number = 7;
        let error = catch::<()>(|| panic!("operator {number} broke")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(!error.to_string().contains("operator 7 broke"), "{error}");
    }

    #[test]
    fn a_panic_of_any_type_is_an_error() {
        let error = catch::<()>(|| std::panic::panic_any(3_u8)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
}
