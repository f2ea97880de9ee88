//! One execution's requests with their responses: each request is answered once and released once, whatever happens in
//! between. It must not know what the answers are.
//!
//! ```text
//! run:     a response for each request --- one fails: delete the others, return the error; Triton keeps the requests
//!          the requests are ours: answer
//! answer:  body(exchanges) --- finish:   send, report, release
//!                              fail:     send an error, report, release
//!                              dropped:  as fail
//!                              panic:    fail, with the panic's text, for all that are left
//!                              taken:    another thread answers them, later
//! ```

use std::ptr::NonNull;

use super::api::{Instance, NewResponse, Request, Response, Times, now};
use super::guard::catch;
use super::sys;
use gesso::error::{Error, Result};

/// A request of ours and the response to it.
pub struct Exchange {
    /// Declared before the request, so that an unsent one answers before the request is released.
    response: Option<Response>,
    request: Request,
    instance: Instance,
    start: u64,
}

impl Exchange {
    /// What the client sent.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// What the client gets back.
    ///
    /// # Errors
    /// Never while the exchange lives: only the functions that consume it take the response.
    pub fn response(&self) -> Result<&Response> {
        self.response.as_ref().ok_or_else(|| Error::internal("the response was sent already"))
    }

    /// When the request arrived, by [`now`].
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Sends the response with the outputs that it has, adds the request to the statistics with `compute` as start and
    /// end of the computation, and releases it.
    pub fn finish(mut self, compute: (u64, u64)) {
        let sent = self.response.take().map_or(Ok(()), Response::send);
        if let Err(error) = &sent {
            tracing::error!("cannot send a response: {error}");
        }
        self.report(sent.is_ok(), compute);
    }

    /// Answers with `error`, adds the request to the statistics as failed, and releases it.
    pub fn fail(mut self, error: &Error) {
        self.answer(error);
    }

    fn answer(&mut self, error: &Error) {
        let Some(response) = self.response.take() else { return };
        tracing::debug!(request = self.request.id().unwrap_or_default(), "request failed: {error}");
        if let Err(error) = response.fail(error) {
            tracing::error!("cannot send a response: {error}");
        }
        self.report(false, (self.start, self.start));
    }

    fn report(&self, success: bool, (compute_start, compute_end): (u64, u64)) {
        let times = Times { start: self.start, compute_start, compute_end, end: now() };
        if let Err(error) = self.instance.report_request(&self.request, success, &times) {
            tracing::warn!("cannot report the statistics of a request: {error}");
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.answer(&Error::internal("the request was dropped without an answer"));
    }
}

/// Takes `requests` over and lets `body` answer them; what it leaves in the vector is answered with an error.
///
/// # Errors
/// When a response could not be made. Then the requests are still Triton's, and must not be touched.
///
/// # Safety
/// Each of `requests` is null or a valid request that nobody else uses, and that is the caller's to give away when the
/// result is `Ok`. The instance stays valid until all of them are answered.
pub unsafe fn run(
    instance: &Instance,
    requests: &[*mut sys::TRITONBACKEND_Request],
    body: impl FnOnce(&mut Vec<Exchange>),
) -> Result<()> {
    let start = now();
    let server = instance.server();
    let mut opened = Vec::with_capacity(requests.len());
    for &request in requests {
        let request = NonNull::new(request)
            .ok_or_else(|| Error::internal("expected a request, found a null pointer"))?;
        // SAFETY: the caller vouches for the request.
        opened.push((unsafe { NewResponse::to(server, request) }?, request));
    }
    // From here on nothing fails: the requests are ours.
    let claim = |(response, request): (NewResponse, _)| Exchange {
        response: Some(response.claim()),
        // SAFETY: the caller gives the request away, and its array holds each one once.
        request: unsafe { Request::from_raw(server, request) },
        instance: *instance,
        start,
    };
    answer(opened.into_iter().map(claim).collect(), body);
    Ok(())
}

/// Lets `body` answer `exchanges`; what it leaves in the vector is answered with an error, which after a panic holds the
/// panic's text.
pub fn answer(mut exchanges: Vec<Exchange>, body: impl FnOnce(&mut Vec<Exchange>)) {
    let outcome = catch(|| {
        body(&mut exchanges);
        Ok(())
    });
    let error = match outcome {
        Ok(()) => Error::internal("the request was not answered"),
        Err(error) => {
            tracing::error!("execution failed: {error}");
            error
        }
    };
    // The requests are ours: not even a panic may become an error of the caller's, which would give them back.
    let answered = catch(|| {
        exchanges.into_iter().for_each(|exchange| exchange.fail(&error));
        Ok(())
    });
    if let Err(error) = answered {
        tracing::error!("cannot answer the rest of the requests: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Execution may answer from another thread, after the entry point returned.
    #[test]
    fn an_exchange_can_change_threads() {
        fn sendable<T: Send>() {}
        sendable::<Exchange>();
    }
}
