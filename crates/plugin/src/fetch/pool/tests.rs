//! Downloads at the same time, from hosts in this process.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use super::super::address::Allowed;
use super::super::client::Rules;
use super::super::names::Names;
use super::super::networks::Networks;
use super::*;

#[derive(Default, Clone)]
struct Seen(Arc<Mutex<Vec<(&'static str, usize)>>>);

impl Counts for Seen {
    fn ended(&self, outcome: &'static str, bytes: usize, _: Duration) {
        self.0.lock().push((outcome, bytes));
    }
}

/// A host that answers with what `answer` makes of a connection, one thread each.
fn host(answer: impl Fn(TcpStream) + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || answer(stream));
        }
    });
    port
}

fn read_head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn fast(mut stream: TcpStream) {
    let head = read_head(&mut stream);
    let answer = if head.to_lowercase().contains("if-none-match") {
        "HTTP/1.1 304 Not Modified\r\n\r\n"
    } else {
        "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\nbytes"
    };
    let _ = stream.write_all(answer.as_bytes());
}

/// Says nothing, until the client goes.
fn silent(mut stream: TcpStream) {
    read_head(&mut stream);
    let _ = stream.read(&mut [0]);
}

/// Every name leads here.
#[derive(Debug)]
struct Loopback;

impl Names for Loopback {
    fn look_up(&self, _: &str, _: u16) -> std::io::Result<Vec<std::net::IpAddr>> {
        Ok(vec![[127, 0, 0, 1].into()])
    }
}

fn pool(seconds: u64, bounds: Bounds) -> (Pool, Seen) {
    let rules = Rules {
        allow: Allowed::parse("http://127.0.0.1:1/, http://*.slow.example.com/").unwrap(),
        networks: Networks::parse("127.0.0.0/8").unwrap(),
        max_bytes: 1_000,
        time: Duration::from_secs(seconds),
        redirects: 0,
    };
    let seen = Seen::default();
    (Pool::new(Client::new(rules, Arc::new(Loopback)).unwrap(), bounds, Box::new(seen.clone())), seen)
}

type Got = (usize, Result<Vec<u8>, Failure>);

fn push(pool: &Pool, urls: &[String]) -> (Receiver<Got>, Arc<AtomicBool>) {
    push_of(pool, urls, None)
}

fn push_of(pool: &Pool, urls: &[String], share: Option<(u128, usize)>) -> (Receiver<Got>, Arc<AtomicBool>) {
    let (sender, receiver) = channel();
    let abandoned = Arc::<AtomicBool>::default();
    let job = |(number, url): (usize, &String)| {
        let sender = sender.clone();
        let done = move |got: Result<File, Failure>| {
            let _ = sender.send((number, got.map(|file| file.bytes().to_vec())));
        };
        Job {
            address: Address::Web(url.parse().unwrap()),
            share,
            abandoned: Arc::clone(&abandoned),
            done: Box::new(done),
        }
    };
    pool.push(urls.iter().enumerate().map(job).collect());
    (receiver, abandoned)
}

const BOUNDS: Bounds = Bounds { at_once: 4, held: 1_000, cache: 0 };

#[test]
fn a_slow_host_holds_up_its_own_files_alone() {
    let (slow, quick) = (host(silent), host(fast));
    let (pool, seen) = pool(30, BOUNDS);
    let (slow, abandoned) = push(&pool, &vec![format!("http://127.0.0.2:{slow}/a"); 20]);
    // Hosts are told apart by their names.
    let urls = vec![format!("http://127.0.0.1:{quick}/a"); 20];
    let (quick, _) = push(&pool, &urls);
    let came: Vec<Got> = quick.iter().take(20).collect();
    assert!(came.iter().all(|(_, got)| *got == Ok(b"bytes".to_vec())));
    assert!(slow.try_recv().is_err());
    abandoned.store(true, Ordering::Relaxed);
    drop(pool);
    // Those that no thread had begun with end with the pool.
    assert!(slow.iter().take(18).all(|(_, got)| got == Err(Failure::Abandoned)));
    let seen = seen.0.lock();
    assert_eq!(seen.iter().filter(|one| **one == ("downloaded", 5)).count(), 20);
}

#[test]
fn many_names_of_one_domain_are_one_host() {
    let (slow, quick) = (host(silent), host(fast));
    let (pool, _) = pool(30, BOUNDS);
    let urls: Vec<String> = (0..20).map(|i| format!("http://a{i}.slow.example.com:{slow}/a")).collect();
    let (slow, abandoned) = push(&pool, &urls);
    let (quick, _) = push(&pool, &vec![format!("http://127.0.0.1:{quick}/a"); 20]);
    assert!(quick.iter().take(20).all(|(_, got)| got == Ok(b"bytes".to_vec())));
    assert!(slow.try_recv().is_err());
    abandoned.store(true, Ordering::Relaxed);
}

#[test]
fn a_host_has_at_most_half_of_the_places_to_wait() {
    let (slow, quick) = (host(silent), host(fast));
    let (pool, _) = pool(30, BOUNDS);
    let (slow, abandoned) = push(&pool, &vec![format!("http://127.0.0.2:{slow}/a"); MAX_WAITING]);
    let (quick, _) = push(&pool, &[format!("http://127.0.0.1:{quick}/a")]);
    assert_eq!(quick.recv().unwrap().1, Ok(b"bytes".to_vec()));
    let full = slow.try_iter().filter(|(_, got)| *got == Err(Failure::Full("places to wait"))).count();
    // Some may have had a thread already while the others came.
    assert!((MAX_WAITING / 2 - 4..=MAX_WAITING / 2).contains(&full), "{full}");
    abandoned.store(true, Ordering::Relaxed);
}

#[test]
fn a_client_has_its_share_of_the_threads() {
    let by_path = |mut stream: TcpStream| {
        if read_head(&mut stream).starts_with("GET /slow") {
            let _ = stream.read(&mut [0]);
        } else {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbytes");
        }
    };
    let port = host(by_path);
    let (pool, _) = pool(30, BOUNDS);
    let url = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    let (slow, abandoned) = push_of(&pool, &vec![url("slow"); 9], Some((1, 1)));
    // The host has two threads, of which the client takes one.
    let (quick, _) = push_of(&pool, &vec![url("quick"); 9], Some((2, 1)));
    assert!(quick.iter().take(9).all(|(_, got)| got == Ok(b"bytes".to_vec())));
    assert!(slow.try_recv().is_err());
    abandoned.store(true, Ordering::Relaxed);
}

#[test]
fn kept_files_that_requests_hold_have_bounded_bytes_too() {
    let port = host(fast);
    let (pool, seen) = pool(10, Bounds { held: 12, at_once: 1, cache: 1 << 20 });
    let held = Arc::new(Mutex::new(Vec::new()));
    let (sender, receiver) = channel();
    let get = |path: &str| {
        let (sender, held) = (sender.clone(), Arc::clone(&held));
        let done = move |got: Result<File, Failure>| {
            let failed = got.map(|file| held.lock().push(file)).err();
            let _ = sender.send(failed);
        };
        let address = Address::Web(format!("http://127.0.0.1:{port}/{path}").parse().unwrap());
        pool.push(vec![Job { address, share: None, abandoned: Arc::default(), done: Box::new(done) }]);
        receiver.recv().unwrap()
    };
    const FULL: Option<Failure> = Some(Failure::Full("memory for files"));
    for path in ["a", "b", "c"] {
        assert_eq!(get(path), None);
        held.lock().clear();
    }
    // Each counts once, however many hold it.
    assert_eq!([get("a"), get("a"), get("a"), get("b"), get("b")], [const { None }; 5]);
    assert_eq!(get("c"), FULL);
    held.lock().drain(3..);
    assert_eq!([get("c"), get("b")], [None, FULL]);
    assert_eq!(seen.0.lock().iter().filter(|one| **one == ("cached", 0)).count(), 6);
}

#[test]
fn files_are_kept_and_asked_for_again() {
    let port = host(fast);
    let (pool, seen) = pool(10, Bounds { cache: 1 << 20, at_once: 1, ..BOUNDS });
    let urls = vec![format!("http://127.0.0.1:{port}/a"); 3];
    let (got, _) = push(&pool, &urls);
    assert!(got.iter().take(3).all(|(_, got)| got == Ok(b"bytes".to_vec())));
    assert_eq!(*seen.0.lock(), [("downloaded", 5), ("cached", 0), ("cached", 0)]);
}

#[test]
fn files_that_are_held_have_bounded_bytes() {
    let port = host(fast);
    let (pool, _) = pool(10, Bounds { held: 12, at_once: 2, ..BOUNDS });
    let held = Arc::new(Mutex::new(Vec::new()));
    let (sender, receiver) = channel();
    let get = || {
        let (sender, held) = (sender.clone(), Arc::clone(&held));
        let done = move |got: Result<File, Failure>| {
            let failed = got.map(|file| held.lock().push(file)).err();
            let _ = sender.send(failed);
        };
        let address = Address::Web(format!("http://127.0.0.1:{port}/a").parse().unwrap());
        pool.push(vec![Job { address, share: None, abandoned: Arc::default(), done: Box::new(done) }]);
        receiver.recv().unwrap()
    };
    assert_eq!([get(), get(), get()], [None, None, Some(Failure::Full("memory for files"))]);
    held.lock().pop();
    assert_eq!([get(), get()], [None, Some(Failure::Full("memory for files"))]);
    held.lock().clear();
    assert_eq!(get(), None);
}
