//! Videos that come in pieces: a sequence of requests brings one, each request its next bytes. What is kept from one
//! request to the next, and for how long. It must not know how a piece is answered.
//!
//! ```text
//! enter    first piece: a stream is open      in the order in which requests come; with it a place behind the pieces
//!                                             before
//! take     what the piece before has left     waits for those before, in the lane that is to answer it, until nobody
//!                                             wants it any more
//! leave    what the next piece goes on with   if all streams together do not hold too much
//! dropped  without that: an error, a client that has left, the last piece: nothing is kept
//! sweep    streams whose next piece does not come; where too many are open, a new one ends the one that waited longest
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::api::{Correlation, Request};
use super::model::ModelState;
use gesso::error::{Error, ErrorKind, Result};
use gesso::lanes::{Background, Places, Ticket, Worker};
use gesso::limits;
use gesso::pipeline::Feeding;

/// The streams of an instance.
pub(super) struct Streams {
    model: Arc<ModelState>,
    open: Arc<Open>,
    /// Forgets those whose next piece does not come; made with the first stream.
    sweeper: Arc<Mutex<Option<Background<()>>>>,
}

type Table = HashMap<Correlation, Arc<Stream>>;

struct Open {
    table: Mutex<Table>,
    /// How long a stream may wait for its next piece.
    idle: Duration,
}

/// A video of which not all came.
struct Stream {
    /// The pieces that came, in their order.
    row: Arc<Places>,
    state: Mutex<State>,
    /// When a piece came, or was answered.
    used: Mutex<Instant>,
    /// Bytes of memory that it took when a piece was answered last.
    held: AtomicUsize,
}

/// How long a piece waits for the one before until it asks whether somebody still waits for it.
const PAUSE: Duration = Duration::from_millis(50);

enum State {
    New,
    /// It goes on with this.
    Waiting(Box<Feeding>),
    /// A piece is worked on, or has failed.
    Gone,
}

/// One piece. Dropped without [`Piece::leave`], it ends its stream.
pub(super) struct Piece {
    id: Correlation,
    /// Whether nothing follows.
    pub(super) is_last: bool,
    stream: Arc<Stream>,
    ticket: Ticket,
    open: Arc<Open>,
    sweeper: Arc<Mutex<Option<Background<()>>>>,
    is_left: bool,
}

impl Streams {
    /// None yet.
    pub(super) fn new(model: &Arc<ModelState>) -> Self {
        let open = Arc::new(Open { table: Mutex::default(), idle: model.stream_idle() });
        Self { model: Arc::clone(model), open, sweeper: Arc::default() }
    }

    /// What a request is a piece of, if it belongs to a sequence. To be asked in the order in which requests come.
    ///
    /// # Errors
    /// Not found for a piece of a stream that is not open; those of [`make_place`] and [`ModelState::check_sequences`].
    pub(super) fn enter(&self, request: &Request) -> Result<Option<Piece>> {
        let Some(place) = request.sequence()? else { return Ok(None) };
        self.model.check_sequences()?;
        // A stream that another takes the place of ends behind the lock, as that may take a while.
        let _replaced;
        let mut table = self.open.table.lock();
        if place.is_first {
            let forgotten = make_place(&mut table, &place.id)?;
            self.start_sweeper()?;
            _replaced = (forgotten, table.insert(place.id.clone(), Arc::new(Stream::new())));
        }
        let found = if place.is_last { table.remove(&place.id) } else { table.get(&place.id).cloned() };
        let stream = found.ok_or_else(|| {
            Error::not_found(format!(
                "no video with correlation id `{}` is coming in pieces: its first request says that it starts the sequence; it ends with \
                 the last one, with an error, or when its next piece does not come for {} ms",
                place.id,
                self.open.idle.as_millis()
            ))
        })?;
        let ticket = stream.row.ticket();
        Ok(Some(Piece {
            id: place.id,
            is_last: place.is_last,
            stream,
            ticket,
            open: Arc::clone(&self.open),
            sweeper: Arc::clone(&self.sweeper),
            is_left: false,
        }))
    }

    /// Ends the video that a refused request is a piece of, as one without it would be another. No video begins.
    pub(super) fn skip(&self, request: &Request) {
        if request.sequence().is_ok_and(|place| place.is_some_and(|place| !place.is_first)) {
            drop(self.enter(request));
        }
    }

    fn start_sweeper(&self) -> Result<()> {
        let mut sweeper = self.sweeper.lock();
        if sweeper.is_none() {
            let worker = Sweeper(Arc::clone(&self.open));
            *sweeper = Some(Background::start("gesso-streams", 1, self.open.idle, worker)?);
        }
        Ok(())
    }
}

/// Makes a place for the stream `id` where too many are open: the one that has waited longest for its next piece is
/// taken from the table.
///
/// # Errors
/// Unavailable, when none has waited for [`limits::STREAM_REPLACED_MS`].
fn make_place(table: &mut Table, id: &Correlation) -> Result<Option<Arc<Stream>>> {
    if table.contains_key(id) || table.len() < limits::MAX_STREAMS {
        return Ok(None);
    }
    let least = Duration::from_millis(limits::STREAM_REPLACED_MS);
    // One that somebody works on does not wait.
    let waiting = table.iter().filter(|(_, stream)| Arc::strong_count(stream) == 1);
    let waited = waiting.map(|(id, stream)| (stream.used.lock().elapsed(), id));
    match waited.max_by_key(|(waited, _)| *waited) {
        Some((waited, id)) if waited >= least => {
            tracing::warn!(
                "the video with correlation id `{id}` has waited {waited:?} for its next piece and ends: {} are open, and another one begins",
                limits::MAX_STREAMS
            );
            let id = id.clone();
            Ok(table.remove(&id))
        }
        _ => Err(Error::new(
            ErrorKind::Unavailable,
            format!(
                "{} videos come in pieces already, which is the limit, and none of them has waited {} ms for its next piece",
                limits::MAX_STREAMS,
                limits::STREAM_REPLACED_MS
            ),
        )),
    }
}

impl Stream {
    fn new() -> Self {
        Self {
            row: Arc::default(),
            state: Mutex::new(State::New),
            used: Mutex::new(Instant::now()),
            held: AtomicUsize::new(0),
        }
    }
}

impl Piece {
    /// What the piece before has left, once it is answered; `None` for the first one. `is_wanted` is asked meanwhile.
    ///
    /// # Errors
    /// When a piece before has failed; cancelled, when nobody waits for this one any more.
    pub(super) fn take(&self, is_wanted: &dyn Fn() -> bool) -> Result<Option<Feeding>> {
        while !self.ticket.wait_for(PAUSE) {
            if !is_wanted() {
                return Err(Error::new(
                    ErrorKind::Cancelled,
                    "nobody waits for this piece of a video any more",
                ));
            }
        }
        match std::mem::replace(&mut *self.stream.state.lock(), State::Gone) {
            State::New => Ok(None),
            State::Waiting(feeding) => Ok(Some(*feeding)),
            State::Gone => Err(Error::invalid("a piece of the video before this one has failed")),
        }
    }

    /// Keeps what the next piece goes on with, if one follows.
    ///
    /// # Errors
    /// Unavailable, which ends the stream, when all of them would hold more than [`limits::MAX_STREAM_BYTES`].
    pub(super) fn leave(mut self, feeding: Feeding) -> Result<()> {
        if !self.is_last {
            self.open.hold(&self.stream, feeding.held())?;
            *self.stream.state.lock() = State::Waiting(Box::new(feeding));
        }
        self.is_left = true;
        Ok(())
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        *self.stream.used.lock() = Instant::now();
        if !self.is_left {
            let mut table = self.open.table.lock();
            // A client may have begun anew meanwhile.
            if table.get(&self.id).is_some_and(|stream| Arc::ptr_eq(stream, &self.stream)) {
                table.remove(&self.id);
            }
        }
        if let Some(sweeper) = self.sweeper.lock().as_ref() {
            // When one waits already, that one sees to it.
            let _ = sweeper.push(Duration::ZERO, ());
        }
    }
}

impl Open {
    /// Notes that `stream` holds so many bytes.
    fn hold(&self, stream: &Stream, bytes: usize) -> Result<()> {
        let table = self.table.lock();
        stream.held.store(0, Ordering::Relaxed);
        let held = |sum: usize, other: &Arc<Stream>| sum.saturating_add(other.held.load(Ordering::Relaxed));
        let others = table.values().fold(0, held);
        if others.saturating_add(bytes) > limits::MAX_STREAM_BYTES {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!(
                    "the video would take {bytes} bytes of memory until its next piece, beside {others} of other videos in pieces, of the limit of {}",
                    limits::MAX_STREAM_BYTES
                ),
            ));
        }
        stream.held.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Forgets streams whose next piece does not come.
    fn sweep(&self) {
        let mut gone = Vec::new();
        self.table.lock().retain(|id, stream| {
            // Nobody else gets hold of one while the table is locked.
            let stays = Arc::strong_count(stream) > 1 || stream.used.lock().elapsed() < self.idle;
            if !stays {
                gone.push((id.clone(), Arc::clone(stream)));
            }
            stays
        });
        for (id, stream) in gone {
            tracing::info!(
                "the video with correlation id `{id}` is forgotten: its next piece did not come for {:?}",
                self.idle
            );
            drop(stream);
        }
    }
}

struct Sweeper(Arc<Open>);

impl Worker<()> for Sweeper {
    fn work(&mut self, (): ()) {
        self.0.sweep();
    }

    fn rest(&mut self) {
        self.0.sweep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_streams_hold_together_is_bounded() {
        let open = Open { table: Mutex::default(), idle: Duration::ZERO };
        let streams = [(); 2].map(|()| Arc::new(Stream::new()));
        for (number, stream) in (0..).zip(&streams) {
            open.table.lock().insert(Correlation::Number(number), Arc::clone(stream));
        }
        let half = limits::MAX_STREAM_BYTES / 2;
        open.hold(&streams[0], half).unwrap();
        open.hold(&streams[1], half).unwrap();
        // What it held before is not counted once more.
        open.hold(&streams[1], half).unwrap();
        let error = open.hold(&streams[1], half + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains(&format!("beside {half} of other videos")), "{error}");
        open.table.lock().remove(&Correlation::Number(0));
        open.hold(&streams[1], 2 * half).unwrap();
    }

    /// As many streams as may be open, of which all but the first begin now.
    fn full(first_waited: Duration) -> Table {
        let id = |number| Correlation::Number(number);
        let table: Table =
            (1..=limits::MAX_STREAMS as u64).map(|n| (id(n), Arc::new(Stream::new()))).collect();
        let used = Instant::now().checked_sub(first_waited).unwrap();
        *table[&id(1)].used.lock() = used;
        table
    }

    #[test]
    fn a_stream_that_waits_gives_way_to_a_new_one() {
        let (long, new) =
            (Duration::from_millis(limits::STREAM_REPLACED_MS), Correlation::Text("new".into()));
        let mut table = full(long);
        let forgotten = make_place(&mut table, &new).unwrap();
        assert!(forgotten.is_some());
        assert!(table.len() < limits::MAX_STREAMS && !table.contains_key(&Correlation::Number(1)));
        // There is a place now.
        assert!(make_place(&mut table, &new).unwrap().is_none());
        // One that begins anew needs none.
        assert!(make_place(&mut full(long), &Correlation::Number(2)).unwrap().is_none());
    }

    #[test]
    fn no_stream_gives_way_whose_pieces_come_or_are_worked_on() {
        let new = Correlation::Text("new".into());
        let error = make_place(&mut full(Duration::ZERO), &new).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("none of them has waited"), "{error}");
        let mut table = full(Duration::from_millis(limits::STREAM_REPLACED_MS));
        let _at_work = Arc::clone(&table[&Correlation::Number(1)]);
        assert!(make_place(&mut table, &new).is_err());
    }
}
