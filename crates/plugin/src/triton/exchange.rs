//! One execution's requests with their replies: each request gets replies of which exactly one is the last, and is
//! released once, whatever happens in between. It must not know what the replies are.
//!
//! ```text
//! run:     a reply for each request --- one fails: delete the others, return the error; Triton keeps the requests
//!          the requests are ours: answer
//! answer:  body(claims) --- send:     the reply goes out, the next one is open
//!                           finish:   the last reply goes out; report, release
//!                           fail:     an error is the last reply; report, release
//!                           dropped:  as fail
//!                           panic:    fail, without the panic's text, all that are left
//!                           taken:    another thread answers them, later
//! ```

use std::ptr::NonNull;

use super::addresses::Files;
use super::api::{Instance, NewResponse, Request, Response, Times, now};
use super::clients::Seat;
use super::guard::catch;
use super::streams::Piece;
use super::sys;
use gesso::error::{Error, Result};

/// A request of ours, until its last reply was sent.
pub struct Claim {
    /// Declared before the request, so that an unsent one answers before the request is released.
    replies: Replies,
    request: Request,
    instance: Instance,
    start: u64,
    /// Start of the first computation and end of the last.
    compute: Option<(u64, u64)>,
    /// What it is a piece of; or why it cannot be.
    piece: Result<Option<Piece>>,
    /// Files that it names by address.
    files: Files,
    /// That its client has it in flight, where that is counted.
    seat: Option<Seat>,
}

/// The replies to one request, one at a time. Until the last was sent one is open, so that the client can always be
/// told that nothing follows.
struct Replies {
    open: Option<Response>,
}

/// One reply to each of some requests.
pub struct Round {
    /// For each request: why there are no outputs, which ends it.
    pub errors: Vec<Option<Error>>,
    /// Start and end of the computation.
    pub compute: (u64, u64),
    /// Whether no replies follow.
    pub last: bool,
}

impl Replies {
    fn open(&self) -> Result<&Response> {
        self.open.as_ref().ok_or_else(|| Error::internal("the last reply was sent already"))
    }

    /// Sends the open reply as the last.
    fn send_last(&mut self) -> Result<()> {
        self.open.take().map_or(Ok(()), |reply| reply.send(true))
    }

    /// Sends the open reply, and leaves `next` open.
    fn send(&mut self, next: Response) -> Result<()> {
        self.open.replace(next).map_or(Ok(()), |reply| reply.send(false))
    }
}

impl Claim {
    /// What the client sent.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The reply that is to be filled and sent next.
    ///
    /// # Errors
    /// Never while the claim lives: only the functions that consume it send the last reply.
    pub fn reply(&self) -> Result<&Response> {
        self.replies.open()
    }

    /// The request, and the open reply once nobody fills it any more.
    pub(super) fn with_reply(&mut self) -> Option<(&Request, &mut Response)> {
        Some((&self.request, self.replies.open.as_mut()?))
    }

    /// When the request arrived, by [`now`].
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Takes the files that the request names by address.
    pub(super) fn set_files(&mut self, files: Files) {
        self.files = files;
    }

    /// The files that the request names by address, if it does.
    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    /// Notes whose request it is, where that is counted, until its last reply leaves.
    pub(super) fn set_seat(&mut self, seat: Option<Seat>) {
        self.seat = seat;
    }

    /// Whose request it is, where that is counted.
    pub(super) fn seat(&self) -> Option<&Seat> {
        self.seat.as_ref()
    }

    /// Notes what the request is a piece of.
    pub(super) fn set_piece(&mut self, piece: Result<Option<Piece>>) {
        self.piece = piece;
    }

    /// What the request is a piece of, for who answers it.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(super) fn take_piece(&mut self) -> Result<Option<Piece>> {
        std::mem::replace(&mut self.piece, Ok(None))
    }

    /// Sends the open reply with the outputs that it has. Others follow, and the next one is open. `compute` is when
    /// computing it started and ended. After an error the claim is to be failed.
    ///
    /// # Errors
    /// What Triton says. When it cannot make the next reply, nothing was sent.
    pub fn send(&mut self, compute: (u64, u64)) -> Result<()> {
        self.computed(compute);
        // Made first: without a reply to send, the client could not be told of a failure.
        let next = Response::to(&self.request)?;
        self.replies.send(next)
    }

    /// Sends the open reply as the last one, adds the request to the statistics and releases it. `compute` is when
    /// computing it started and ended.
    pub fn finish(mut self, compute: (u64, u64)) {
        self.computed(compute);
        // Its client may send the next one as soon as it has this reply.
        self.seat = None;
        let sent = self.replies.send_last();
        if let Err(error) = &sent {
            tracing::error!("cannot send a response: {error}");
        }
        self.report(sent.is_ok());
    }

    /// Sends `error` as the last reply, adds the request to the statistics as failed, and releases it.
    pub fn fail(mut self, error: &Error) {
        self.answer(error);
    }

    fn answer(&mut self, error: &Error) {
        let Some(reply) = self.replies.open.take() else { return };
        let model = self.instance.model();
        tracing::debug!(
            model = model.as_ref().ok().and_then(|model| model.name().ok()),
            version = model.as_ref().ok().and_then(|model| model.version().ok()),
            request = self.request.id().unwrap_or_default(),
            "request failed: {error}"
        );
        self.seat = None;
        if let Err(error) = reply.fail(error) {
            tracing::error!("cannot send a response: {error}");
        }
        self.report(false);
    }

    fn computed(&mut self, (start, end): (u64, u64)) {
        let start = self.compute.map_or(start, |(first, _)| first);
        self.compute = Some((start, end));
    }

    fn report(&self, success: bool) {
        let (compute_start, compute_end) =
            self.compute.filter(|_| success).unwrap_or((self.start, self.start));
        let times = Times { start: self.start, compute_start, compute_end, end: now() };
        if let Err(error) = self.instance.report_request(&self.request, success, &times) {
            tracing::warn!("cannot report the statistics of a request: {error}");
        }
        let trace = self.request.trace().filter(|_| success);
        if let Some(Err(error)) = trace.map(|trace| trace.span("answer", compute_end, times.end)) {
            tracing::debug!("cannot trace the answer to a request: {error}");
        }
    }
}

impl Drop for Claim {
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
    body: impl FnOnce(&mut Vec<Claim>),
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
    let claim = |(response, request): (NewResponse, _)| Claim {
        replies: Replies { open: Some(response.claim()) },
        // SAFETY: the caller gives the request away, and its array holds each one once.
        request: unsafe { Request::from_raw(server, request) },
        instance: *instance,
        start,
        compute: None,
        piece: Ok(None),
        files: Files::new(),
        seat: None,
    };
    answer(opened.into_iter().map(claim).collect(), body);
    Ok(())
}

/// Lets `body` answer `claims`; what it leaves in the vector is answered with an error, which after a panic holds the
/// panic's text.
pub fn answer(mut claims: Vec<Claim>, body: impl FnOnce(&mut Vec<Claim>)) {
    let outcome = catch(|| {
        body(&mut claims);
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
        claims.into_iter().for_each(|claim| claim.fail(&error));
        Ok(())
    });
    if let Err(error) = answered {
        tracing::error!("cannot answer the rest of the requests: {error}");
    }
}

/// Sends the replies of a round to `claims`. Those that get more replies stay.
pub fn reply(claims: &mut Vec<Claim>, round: Round) {
    let Round { errors, compute, last } = round;
    for (mut claim, error) in std::mem::take(claims).into_iter().zip(errors) {
        match error {
            Some(error) => claim.fail(&error),
            None if last => claim.finish(compute),
            None => match claim.send(compute) {
                Ok(()) => claims.push(claim),
                Err(error) => claim.fail(&error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Execution may answer from another thread, after the entry point returned.
    #[test]
    fn a_claim_can_change_threads() {
        fn sendable<T: Send>() {}
        sendable::<Claim>();
    }
}
