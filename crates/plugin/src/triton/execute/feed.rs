//! Answers a request that brings a video, or the next piece of one: a reply for each batch that is made of it, the last
//! one marked as such. No more of the video is decoded ahead than a batch, and responses wait when too many were not
//! taken. It must not know what a video is.
//!
//! ```text
//! request   [ video, what stands beside it ]
//! feed      copied: what is decoded must not change meanwhile
//! batch     [ 0 ][ 1 ][ 2 ] -> reply      [ 3 ][ 4 ][ 5 ] -> reply      [ 6 ] -> last reply
//! piece     what can be made of it, then a last reply without outputs; the rest waits for the next piece (`streams`)
//! ```

use std::time::Duration;

use super::fetch::{self, cancelled};
use super::gather::separate;
use super::patience::{One, Until};
use super::respond::{RequestedOutputs, Responses};
use super::room::Room;
use super::spans;
use crate::triton::api::{Times, now};
use crate::triton::exchange::Claim;
use crate::triton::lane::Lane;
use crate::triton::streams::Piece;
use gesso::error::{Error, Result};
use gesso::pipeline::Feeding;

/// From when a client has left to the last response. Triton of 2024 frees the state of a cancelled stream twice, and
/// ends, when that response comes while it still takes the cancellation in: a quarter of the time without a pause,
/// never in 36 tries with this one.
const LEAVING: Duration = Duration::from_millis(100);

/// What one reply took.
struct Round {
    samples: usize,
    compute: (u64, u64),
}

/// What batches are made of, and the piece that it came with, if it comes in pieces.
type Fed = (Feeding, Option<Piece>);

/// Answers `claim`.
pub(super) fn answer(lane: &mut Lane, mut claim: Claim) {
    let (mut start, room) = (claim.start(), Room::new());
    let fed = claim.take_piece().and_then(|piece| feed(lane, &claim, piece));
    let error = match fed {
        Err(error) => error,
        Ok((mut feeding, piece)) => loop {
            let round = match (round(lane, &claim, &mut feeding), &piece) {
                (Ok(Some(round)), _) => round,
                (Ok(None), Some(_)) => match piece.map_or(Ok(()), |piece| piece.leave(feeding)) {
                    Ok(()) => return finish(claim),
                    Err(error) => break error,
                },
                (Ok(None), None) => break Error::internal("a video that ended twice"),
                (Err(error), _) => break error,
            };
            let times =
                Times { start, compute_start: round.compute.0, compute_end: round.compute.1, end: now() };
            start = times.end;
            if feeding.is_over() {
                claim.finish(round.compute);
                return report(lane, round.samples, &times);
            }
            if let Err(error) = claim.send(round.compute) {
                break error;
            }
            report(lane, round.samples, &times);
            if let Err(error) = room.wait(&|| is_wanted(&claim)) {
                break error;
            }
        },
    };
    lane.model.metrics.failed(&error);
    if !is_wanted(&claim) {
        std::thread::sleep(LEAVING);
    }
    claim.fail(&error);
}

/// Ends the answer to a piece of which no more can be made before the next one.
fn finish(claim: Claim) {
    let time = now();
    claim.finish((time, time));
}

fn report(lane: &Lane, samples: usize, times: &Times) {
    if let Err(error) = lane.instance.report_batch(samples as u64, times) {
        tracing::warn!("cannot report the statistics of a batch: {error}");
    }
}

/// Whether somebody waits for the answer.
fn is_wanted(claim: &Claim) -> bool {
    !claim.request().is_cancelled().unwrap_or(false)
}

/// Gives what the request brings to the pipeline.
fn feed(lane: &mut Lane, claim: &Claim, piece: Option<Piece>) -> Result<Fed> {
    // Before anything is copied: it may have to wait for the piece before.
    let before = piece.as_ref().map(|piece| piece.take(&|| is_wanted(claim))).transpose()?.flatten();
    let Lane { model, pipeline, runner, device, .. } = lane;
    let (link, landing) = device.as_mut().map(|device| (&device.link, &mut device.landing)).unzip();
    let mut arrived = vec![fetch::arrive(model, pipeline.inputs(), claim, link)];
    let tensors = arrived.iter().flatten().flatten().flatten();
    model.metrics.arrived(tensors.fold(0, |sum, tensor| sum.saturating_add(tensor.input.bytes)));
    if let (Some(link), Some(landing)) = (link, landing) {
        fetch::to_host(&mut arrived, link, landing);
    }
    let arrived = arrived.pop().ok_or_else(|| Error::internal("a request without inputs"))??;
    let until = Until::new(claim.start(), model.settings.quota.max_request());
    let client = claim.request().client();
    let inputs =
        separate(pipeline.inputs(), &model.tensors.inputs, &arrived, runner.memory(), &|| until.ask(client))?;
    let Some(piece) = piece else { return Ok((runner.feed(&inputs)?, None)) };
    let mut feeding = before.map_or_else(|| runner.feeding(), Ok)?;
    feeding.grow(&inputs, piece.is_last)?;
    Ok((feeding, Some(piece)))
}

/// Fills the open reply with the next batch; `None` where there is none.
fn round(lane: &mut Lane, claim: &Claim, feeding: &mut Feeding) -> Result<Option<Round>> {
    let Lane { model, pipeline, runner, seconds, device, .. } = lane;
    let link = device.as_ref().map(|device| &device.link);
    if !is_wanted(claim) {
        return Err(cancelled());
    }
    let asked = RequestedOutputs::of(model, claim)?;
    let start = now();
    // A video has as long as it has frames; each answer has the time of a request.
    let until = Until::new(start, model.settings.quota.max_request());
    let waiting = One { client: claim.request().client(), until };
    let mut samples = 0;
    let made = runner.run_fed(feeding, &waiting, |count| {
        samples = count;
        Responses::new(model, link, vec![Ok(asked)], &[Some(0..count)], until, None)
    })?;
    let Some((responses, outcome)) = made else { return Ok(None) };
    model.metrics.ran(seconds, runner.tally());
    responses.copy_late(&outcome);
    if spans::are_wanted(std::slice::from_ref(claim)) {
        spans::report(claim, &spans::of_batch(pipeline, runner.tally(), (start, now())));
    }
    match (0..samples).find_map(|i| outcome.failures.get(i)) {
        Some(error) => Err(error.clone()),
        None => Ok(Some(Round { samples, compute: (start, now()) })),
    }
}
