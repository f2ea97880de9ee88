//! Every order of events, as far as few threads and few switches between them go: nothing is lost, nothing happens
//! twice, nobody waits for ever.

use std::sync::Arc;
use std::time::Duration;

use gesso_loom::host::HostPool;
use gesso_loom::lanes::{Background, Lanes, Places, Worker};
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

/// Switches away from a thread that could go on. More find no more in structures of one lock, and take hours.
const SWITCHES: usize = 3;

fn in_every_order(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(SWITCHES);
    builder.check(model);
}

fn count(number: &AtomicUsize) -> usize {
    number.fetch_add(1, Ordering::SeqCst)
}

fn read(number: &AtomicUsize) -> usize {
    number.load(Ordering::SeqCst)
}

#[test]
fn lanes_do_every_job_once_before_they_end() {
    in_every_order(|| {
        let done = Arc::new(AtomicUsize::new(0));
        let lane = |_| {
            let done = Arc::clone(&done);
            move |()| {
                count(&done);
            }
        };
        let lanes = Lanes::start((0..2).map(lane).collect()).unwrap();
        lanes.push(());
        lanes.submit((), 1);
        drop(lanes);
        assert_eq!(read(&done), 2);
    });
}

#[test]
fn submitting_returns_when_a_lane_is_free() {
    in_every_order(|| {
        let ended = Arc::new(AtomicUsize::new(0));
        let ends = Arc::clone(&ended);
        let lanes = Lanes::start(vec![move |()| {
            count(&ends);
        }])
        .unwrap();
        for job in 1..=2 {
            lanes.submit((), 1);
            assert_eq!(read(&ended), job, "the only lane had not ended its job");
        }
    });
}

#[test]
fn tickets_take_their_places_in_order_whoever_comes_first() {
    for dropped in 0..3 {
        in_every_order(move || {
            let places = Arc::new(Places::default());
            let tickets: Vec<_> = (0..3).map(|_| places.ticket()).collect();
            let threads: Vec<_> = tickets
                .into_iter()
                .enumerate()
                .map(|(i, ticket)| thread::spawn(move || (i != dropped).then(|| ticket.take(1 << i))))
                .collect();
            let firsts: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            let mut before = 0;
            for (i, first) in firsts.into_iter().enumerate().filter(|(i, _)| *i != dropped) {
                assert_eq!(first, Some(before));
                before += 1 << i;
            }
        });
    }
}

struct Counter(Arc<AtomicUsize>);

impl Worker<()> for Counter {
    fn work(&mut self, (): ()) {
        count(&self.0);
    }
}

#[test]
fn the_background_does_what_it_accepted_and_gives_back_the_rest() {
    in_every_order(|| {
        let done = Arc::new(AtomicUsize::new(0));
        let background = Background::start("test", 1, Duration::MAX, Counter(Arc::clone(&done))).unwrap();
        let background = Arc::new(background);
        let theirs = Arc::clone(&background);
        let other = thread::spawn(move || usize::from(theirs.push(Duration::ZERO, ()).is_ok()));
        let accepted = usize::from(background.push(Duration::ZERO, ()).is_ok()) + other.join().unwrap();
        drop(background);
        assert!(accepted >= 1);
        assert_eq!(read(&done), accepted);
    });
}

#[test]
fn a_pool_never_gives_more_than_its_limit() {
    in_every_order(|| {
        let pool = Arc::new(HostPool::within(10_000));
        let taken = Arc::new(AtomicUsize::new(0));
        let take = {
            let (pool, taken) = (Arc::clone(&pool), Arc::clone(&taken));
            move || {
                let Ok(buffer) = pool.take(6_000) else { return };
                assert_eq!(count(&taken), 0, "two buffers of 6,000 bytes in a pool of 10,000");
                taken.fetch_sub(1, Ordering::SeqCst);
                drop(buffer);
            }
        };
        let other = thread::spawn(take.clone());
        take();
        other.join().unwrap();
        assert_eq!(pool.room(), 10_000);
    });
}

#[test]
fn a_batch_beside_another_takes_its_part_until_the_other_ends() {
    in_every_order(|| {
        let places = Arc::new(Places::default());
        let first = Arc::new(HostPool::within(80_000));
        let second = Arc::new(first.beside());
        let (turn, next) = (first.in_turn(places.ticket()), second.in_turn(places.ticket()));
        let working = Arc::new(AtomicUsize::new(1));
        let other = {
            let working = Arc::clone(&working);
            thread::spawn(move || {
                let _next = next;
                let part = second.take(10_000).unwrap();
                let rest = second.take(20_000).unwrap();
                assert_eq!(read(&working), 0, "more than an eighth while the first batch is worked on");
                drop((part, rest));
            })
        };
        drop(first.take(80_000).unwrap());
        working.store(0, Ordering::SeqCst);
        drop(turn);
        other.join().unwrap();
    });
}
