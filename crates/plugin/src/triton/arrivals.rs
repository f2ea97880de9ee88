//! Requests that wait for files which they name by address: apart from others, until their files are there; then they
//! are batched and answered as if they had brought them. It must not know how files are fetched, or who answers.
//!
//! ```text
//! take     requests without addresses stay in their batch; the others wait here, and their files are fetched
//! live     a thread: files come, clients leave, time ends; requests that have all of their files go on together
//! drop     who still waits is told so; downloads end by themselves
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::addresses::{Files, Wanted, named};
use super::clients::Seat;
use super::exchange::{self, Claim};
use super::execute::Until;
use super::guard::catch;
use super::model::ModelState;
use crate::fetch::{Failure, File, Job};
use gesso::error::{Error, ErrorKind, Result};

/// Requests of an instance that wait for their files.
const MAX_WAITING: usize = 1_024;
/// Of these, those that wait for one host: a slow one leaves room for others.
const MAX_WAITING_FOR_ONE: usize = MAX_WAITING / 2;
/// How long until it is asked again whether clients still wait.
const PAUSE: Duration = Duration::from_millis(50);

/// Where requests wait.
pub(super) struct Arrivals {
    model: Arc<ModelState>,
    sender: Sender<Event>,
    thread: Option<JoinHandle<()>>,
    waiting: Arc<Mutex<Places>>,
    requests: AtomicU64,
}

enum Event {
    Come(u64, Box<Waiting>),
    Done(u64, usize, Result<File, Failure>),
    Close,
}

/// A request that waits.
struct Waiting {
    claim: Claim,
    /// The input and the sample of each file.
    places: Vec<(String, usize)>,
    files: Files,
    left: usize,
    samples: usize,
    abandoned: Arc<AtomicBool>,
    _place: Place,
}

/// How many requests wait, and for whose files.
#[derive(Default)]
struct Places {
    all: usize,
    by_owner: BTreeMap<String, usize>,
}

/// That a request waits, until this is dropped.
struct Place {
    places: Arc<Mutex<Places>>,
    owners: BTreeSet<String>,
}

impl Place {
    /// A place for a request that waits for files of `owners`.
    fn take(places: &Arc<Mutex<Places>>, owners: BTreeSet<String>) -> Result<Self> {
        let full = |text: String| Err(Error::new(ErrorKind::Unavailable, text));
        let mut taken = places.lock();
        if taken.all >= MAX_WAITING {
            return full(format!("{MAX_WAITING} requests wait for files at addresses already"));
        }
        let has_many = |owner| taken.by_owner.get(owner).is_some_and(|count| *count >= MAX_WAITING_FOR_ONE);
        if owners.iter().any(has_many) {
            return full(format!("{MAX_WAITING_FOR_ONE} requests wait for files of this host already"));
        }
        taken.all += 1;
        owners.iter().for_each(|owner| *taken.by_owner.entry(owner.clone()).or_default() += 1);
        drop(taken);
        Ok(Self { places: Arc::clone(places), owners })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all -= 1;
        for owner in &self.owners {
            if let Some(count) = taken.by_owner.get_mut(owner) {
                *count -= 1;
                if *count == 0 {
                    taken.by_owner.remove(owner);
                }
            }
        }
    }
}

impl Arrivals {
    /// Lets `run` answer the requests of `model` that have their files.
    ///
    /// # Errors
    /// Unavailable when the thread cannot be made.
    pub(super) fn start(
        model: &Arc<ModelState>,
        run: impl Fn(&mut Vec<Claim>) + Send + 'static,
    ) -> Result<Self> {
        let (sender, receiver) = channel();
        let desk = Desk { model: Arc::clone(model), waiting: BTreeMap::new(), run };
        let thread = std::thread::Builder::new()
            .name("gesso-arrivals".to_owned())
            .spawn(move || desk.live(&receiver))
            .map_err(|error| {
                Error::new(ErrorKind::Unavailable, format!("thread `gesso-arrivals`: {error}"))
            })?;
        Ok(Self {
            model: Arc::clone(model),
            sender,
            thread: Some(thread),
            waiting: Arc::default(),
            requests: AtomicU64::new(0),
        })
    }

    /// Takes those of `claims` that name files by address.
    pub(super) fn take(&self, claims: &mut Vec<Claim>) {
        let Some(pool) = &self.model.downloads else { return };
        let allow = &pool.client().rules().allow;
        for claim in std::mem::take(claims) {
            match named(allow, &self.model, claim.request()) {
                Ok((wanted, _)) if wanted.is_empty() => claims.push(claim),
                Ok((wanted, samples)) => self.begin(claim, wanted, samples),
                Err(error) => {
                    self.model.refused_address();
                    fail(&self.model, claim, &error);
                }
            }
        }
    }

    fn begin(&self, claim: Claim, wanted: Vec<Wanted>, samples: usize) {
        let Some(pool) = &self.model.downloads else { return };
        let allow = &pool.client().rules().allow;
        let owners = wanted.iter().map(|wanted| allow.owner(&wanted.address)).collect();
        let place = match Place::take(&self.waiting, owners) {
            Ok(place) => place,
            Err(error) => return fail(&self.model, claim, &error),
        };
        let share = claim.seat().and_then(Seat::share);
        let id = self.requests.fetch_add(1, Ordering::Relaxed);
        let abandoned = Arc::<AtomicBool>::default();
        let places = wanted.iter().map(|wanted| (wanted.input.clone(), wanted.sample)).collect();
        let waiting = Waiting {
            claim,
            places,
            files: Files::new(),
            left: wanted.len(),
            samples,
            abandoned: Arc::clone(&abandoned),
            _place: place,
        };
        // What cannot be sent is dropped, which answers it.
        let _ = self.sender.send(Event::Come(id, Box::new(waiting)));
        let job = |(number, wanted): (usize, Wanted)| {
            let sender = self.sender.clone();
            Job {
                address: wanted.address,
                share,
                abandoned: Arc::clone(&abandoned),
                done: Box::new(move |got| {
                    let _ = sender.send(Event::Done(id, number, got));
                }),
            }
        };
        pool.push(wanted.into_iter().enumerate().map(job).collect());
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        let _ = self.sender.send(Event::Close);
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!(model = self.model.name, "the thread of requests that wait for files has failed");
        }
    }
}

/// What the thread has.
struct Desk<R> {
    model: Arc<ModelState>,
    waiting: BTreeMap<u64, Waiting>,
    run: R,
}

impl<R: Fn(&mut Vec<Claim>)> Desk<R> {
    fn live(mut self, receiver: &Receiver<Event>) {
        let mut asked = Instant::now();
        loop {
            let first = if self.waiting.is_empty() {
                receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                receiver.recv_timeout(PAUSE)
            };
            if matches!(first, Err(RecvTimeoutError::Disconnected)) {
                return;
            }
            let mut ready = Vec::new();
            for event in first.into_iter().chain(receiver.try_iter()) {
                match event {
                    Event::Come(id, waiting) => drop(self.waiting.insert(id, *waiting)),
                    Event::Done(id, number, got) => ready.extend(self.arrived(id, number, got)),
                    Event::Close => {
                        ready.into_iter().for_each(|waiting: Waiting| self.end(waiting, &closed()));
                        return self.end_all();
                    }
                }
            }
            self.answer(ready);
            if asked.elapsed() >= PAUSE {
                self.ask();
                asked = Instant::now();
            }
        }
    }

    /// A file has come, or will not. The request, if it has all of its files.
    fn arrived(&mut self, id: u64, number: usize, got: Result<File, Failure>) -> Option<Waiting> {
        let waiting = self.waiting.get_mut(&id)?;
        let (input, sample) = waiting.places.get(number)?;
        match got {
            Ok(file) => {
                waiting.files.entry(input.clone()).or_default().insert(*sample, file);
                waiting.left -= 1;
                if waiting.left == 0 { self.waiting.remove(&id) } else { None }
            }
            Err(failure) => {
                let mut error = Error::from(&failure);
                if waiting.samples > 1 {
                    error = error.context(format!("sample {sample}"));
                }
                error = error.context(format!("input `{input}`"));
                if let Some(waiting) = self.waiting.remove(&id) {
                    self.end(waiting, &error);
                }
                None
            }
        }
    }

    /// Answers those that have their files, as many at a time as a batch may have samples.
    fn answer(&self, ready: Vec<Waiting>) {
        let (mut batch, mut samples) = (Vec::new(), 0);
        for waiting in ready {
            if samples + waiting.samples > self.model.max_batch && !batch.is_empty() {
                exchange::answer(std::mem::take(&mut batch), &self.run);
                samples = 0;
            }
            samples += waiting.samples;
            let Waiting { mut claim, files, .. } = waiting;
            claim.set_files(files);
            batch.push(claim);
        }
        if !batch.is_empty() {
            exchange::answer(batch, &self.run);
        }
    }

    /// Ends requests that nobody waits for any more.
    fn ask(&mut self) {
        let most = self.model.settings.quota.max_request();
        let over: Vec<(u64, Error)> = self
            .waiting
            .iter()
            .filter_map(|(id, waiting)| {
                let until = Until::new(waiting.claim.start(), most);
                Some((*id, until.ask(waiting.claim.request().client()).err()?))
            })
            .collect();
        for (id, error) in over {
            if let Some(waiting) = self.waiting.remove(&id) {
                self.end(waiting, &error);
            }
        }
    }

    fn end_all(&mut self) {
        let all = std::mem::take(&mut self.waiting);
        all.into_values().for_each(|waiting| self.end(waiting, &closed()));
    }

    fn end(&self, waiting: Waiting, error: &Error) {
        waiting.abandoned.store(true, Ordering::Relaxed);
        fail(&self.model, waiting.claim, error);
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Unavailable, "the model is unloaded")
}

fn fail(model: &ModelState, claim: Claim, error: &Error) {
    model.metrics.failed(error);
    // The thread goes on, whatever the server does.
    let failed = catch(|| {
        claim.fail(error);
        Ok(())
    });
    if let Err(error) = failed {
        tracing::error!("cannot answer a request: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_for_one_host_leave_room_for_others() {
        let places = Arc::<Mutex<Places>>::default();
        let take =
            |owners: &[&str]| Place::take(&places, owners.iter().map(|owner| (*owner).to_owned()).collect());
        let mut slow: Vec<Place> =
            (0..MAX_WAITING_FOR_ONE).map(|_| take(&["slow", "quick"]).unwrap()).collect();
        let said = |owners: &[&str]| take(owners).err().map(|error| error.to_string());
        assert_eq!(said(&["other", "slow"]).unwrap(), "512 requests wait for files of this host already");
        slow.pop();
        assert_eq!(said(&["slow"]), None);
        let others: Vec<Place> =
            (0..=MAX_WAITING_FOR_ONE).map(|i| take(&[&i.to_string()]).unwrap()).collect();
        assert_eq!(said(&["one more"]).unwrap(), "1024 requests wait for files at addresses already");
        drop((slow, others));
        let left = places.lock();
        assert_eq!((left.all, left.by_owner.len()), (0, 0));
    }
}
