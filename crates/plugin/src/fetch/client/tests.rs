//! Downloads from hosts of our own, in this process, whose answers and names are as they should not be.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Somebody waits, and has room for so many bytes.
struct Patient(usize);

impl Watch for Patient {
    fn goes_on(&self) -> bool {
        true
    }

    fn takes(&self, bytes: usize) -> bool {
        bytes <= self.0
    }
}

/// Names whose addresses are another time others.
#[derive(Debug)]
struct Changing(Mutex<VecDeque<Vec<IpAddr>>>);

impl Names for Changing {
    fn look_up(&self, host: &str, _: u16) -> io::Result<Vec<IpAddr>> {
        assert!(!host.is_empty());
        self.0.lock().unwrap().pop_front().ok_or_else(|| io::Error::other("no such name"))
    }
}

fn names(answers: &[&[&str]]) -> Arc<dyn Names> {
    let parse = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
    Arc::new(Changing(Mutex::new(answers.iter().map(parse).collect())))
}

/// Answers each connection with the next of `answers`, in which `PORT` is its own; counts connections. What it is asked
/// is kept.
struct HostOf {
    port: u16,
    connections: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl HostOf {
    fn new(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers: Vec<String> =
            answers.iter().map(|answer| answer.replace("PORT", &port.to_string())).collect();
        let host = Self { port, connections: Arc::default(), asked: Arc::default() };
        let (connections, asked) = (Arc::clone(&host.connections), Arc::clone(&host.asked));
        std::thread::spawn(move || {
            for answer in answers {
                let Ok((mut stream, _)) = listener.accept() else { return };
                connections.fetch_add(1, Ordering::SeqCst);
                asked.lock().unwrap().push(head(&mut stream));
                let _ = stream.write_all(answer.as_bytes());
                if answer.ends_with("hold") {
                    // Until the other side goes.
                    let _ = stream.read(&mut [0]);
                }
            }
        });
        host
    }

    fn get(&self, path: &str, rules: Rules) -> Result<Vec<u8>, Failure> {
        self.get_by(names(&[]), &format!("http://127.0.0.1:{}{path}", self.port), rules)
    }

    fn get_by(&self, names: Arc<dyn Names>, url: &str, rules: Rules) -> Result<Vec<u8>, Failure> {
        let client = Client::new(rules, names).unwrap();
        let address = client.rules().allow.check(url.as_bytes())?;
        match client.get(&address, None, &Patient(usize::MAX))? {
            Answer::File { bytes, .. } => Ok(bytes),
            Answer::Same => panic!("nothing was known"),
        }
    }

    fn rules(&self) -> Rules {
        let port = self.port;
        let allow = format!(
            "http://127.0.0.1:{port}/ok/, http://a.example.com:{port}/, http://127.0.0.2:{port}/ok/, https://b.example.com/"
        );
        Rules {
            allow: Allowed::parse(&allow).unwrap(),
            networks: Networks::parse("127.0.0.1/32").unwrap(),
            max_bytes: 1_000,
            time: 5 * SECOND,
            redirects: 2,
        }
    }
}

/// The lines of a request.
fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn file(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn to(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

#[test]
fn a_file_comes_as_it_is() {
    let host = HostOf::new(&[
        &file("bytes"),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ]);
    assert_eq!(host.get("/ok/a?b=c#d", host.rules()).unwrap(), b"bytes");
    assert_eq!(host.get("/ok/a", host.rules()).unwrap(), b"abc");
    let asked = host.asked.lock().unwrap().join("").to_lowercase();
    assert!(
        asked.starts_with("get /ok/a?b=c http/1.1\r\n") && asked.contains("accept-encoding: identity"),
        "{asked}"
    );
}

#[test]
fn answers_are_bounded() {
    let large = "x".repeat(1_001);
    let hold = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhold";
    let header = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEADER_BYTES));
    for (answer, expected) in [
        (file(&large), Failure::TooLarge(1_000)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\nx".to_owned(), Failure::TooLarge(1_000)),
        (format!("HTTP/1.1 200 OK\r\n\r\n{large}"), Failure::TooLarge(1_000)),
        (
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n{large}\r\n0\r\n\r\n"),
            Failure::TooLarge(1_000),
        ),
        // Less than it says, or in no form.
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort".to_owned(), Failure::Broken),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc".to_owned(), Failure::Broken),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc".to_owned(), Failure::Broken),
        (
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx".to_owned(),
            Failure::Broken,
        ),
        ("nonsense".to_owned(), Failure::Broken),
        (String::new(), Failure::Broken),
        (header, Failure::Broken),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(), Failure::Status(404)),
        ("HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(), Failure::Status(304)),
        ("HTTP/1.1 206 Partial\r\nContent-Length: 1\r\n\r\nx".to_owned(), Failure::Status(206)),
        (hold.to_owned(), Failure::Late(SECOND)),
        ("HTTP/1.1 200 OK\r\nX-hold".to_owned(), Failure::Late(SECOND)),
    ] {
        let host = HostOf::new(&[&answer]);
        let rules = Rules { time: SECOND, ..host.rules() };
        let found = host.get("/ok/a", rules);
        assert_eq!(found, Err(expected), "{:.80}", answer.escape_debug());
    }
    // More than it says: what follows is not part of the file, nor of another.
    let host = HostOf::new(&["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef"]);
    assert_eq!(host.get("/ok/a", host.rules()).unwrap(), b"abc");
}

#[test]
fn there_is_no_room_or_nobody_who_waits() {
    struct Gone;
    impl Watch for Gone {
        fn goes_on(&self) -> bool {
            false
        }
        fn takes(&self, _: usize) -> bool {
            true
        }
    }
    let host = HostOf::new(&[&file("bytes"), &file("bytes")]);
    let client = Client::new(host.rules(), names(&[])).unwrap();
    let address =
        client.rules().allow.check(format!("http://127.0.0.1:{}/ok/a", host.port).as_bytes()).unwrap();
    let got = |watch: &dyn Watch| client.get(&address, None, watch).err();
    assert_eq!(got(&Patient(4)), Some(Failure::Full("memory for files")));
    assert_eq!(got(&Gone), Some(Failure::Abandoned));
}

#[test]
fn each_redirect_is_checked() {
    let host = HostOf::new(&[&to("/ok/b"), &to("http://127.0.0.1:PORT/ok/c"), &file("bytes")]);
    assert_eq!(host.get("/ok/a", host.rules()).unwrap(), b"bytes");
    const NOT_ALLOWED: &str = "a redirect leads to an address that is not allowed by `fetch_allow`";
    for location in [
        "http://127.0.0.1:PORT/secret",
        "/ok/../secret",
        "/ok/..%2fsecret",
        "//127.0.0.1/ok/a",
        "http://user@127.0.0.1:PORT/ok/a",
        "http://169.254.169.254/ok/a",
        "http://localhost:PORT/ok/a",
        "file:///etc/passwd",
        "s3://bucket/key",
    ] {
        let host = HostOf::new(&[&to(location), &file("bytes")]);
        assert_eq!(host.get("/ok/a", host.rules()), Err(Failure::Redirect(NOT_ALLOWED)), "{location}");
        assert_eq!(host.connections.load(Ordering::SeqCst), 1);
    }
    // Allowed by the list, but not by its network.
    let host = HostOf::new(&[&to("http://127.0.0.2:PORT/ok/a"), &file("bytes")]);
    assert_eq!(host.get("/ok/a", host.rules()), Err(Failure::Network));
    let host = HostOf::new(&[&to("/ok/a"), &to("/ok/a"), &to("/ok/a"), &file("bytes")]);
    assert_eq!(host.get("/ok/a", host.rules()), Err(Failure::Redirect("there are too many redirects")));
    let host = HostOf::new(&[&to("/ok/a"), &file("bytes")]);
    let none = Rules { redirects: 0, ..host.rules() };
    assert_eq!(host.get("/ok/a", none), Err(Failure::Redirect("there are too many redirects")));
    let host = HostOf::new(&["HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"]);
    assert_eq!(host.get("/ok/a", host.rules()), Err(Failure::Broken));
    // From a private conversation to an open one.
    let client = Client::new(host.rules(), names(&[])).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, format!("http://a.example.com:{}/x", host.port).parse().unwrap());
    let from = Url::parse("https://b.example.com/x").unwrap();
    assert_eq!(
        client.next(&from, &headers),
        Err(Failure::Redirect("a redirect leads from `https` to another scheme"))
    );
}

#[test]
fn every_address_of_a_name_is_checked_each_time() {
    let answers = [file("bytes"), to("http://a.example.com:PORT/x"), file("bytes")];
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let host = HostOf::new(&answers);
    let url = format!("http://a.example.com:{}/x", host.port);
    let get = |answers: &[&[&str]]| host.get_by(names(answers), &url, host.rules());
    for closed in
        ["127.0.0.2", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "0.0.0.0"]
    {
        assert_eq!(get(&[&[closed]]), Err(Failure::Network), "{closed}");
        assert_eq!(get(&[&["127.0.0.1", closed]]), Err(Failure::Network), "{closed}");
    }
    assert_eq!(get(&[]), Err(Failure::Unreachable("its host has no address")));
    assert_eq!(get(&[&[]]), Err(Failure::Unreachable("its host has no address")));
    assert_eq!(host.connections.load(Ordering::SeqCst), 0, "nothing was connected to");
    // The first answer counts: it is not asked a second time for the connection, but is for a redirect.
    assert_eq!(get(&[&["127.0.0.1"], &["127.0.0.2"]]).unwrap(), b"bytes");
    assert_eq!(get(&[&["127.0.0.1"], &["127.0.0.2"]]), Err(Failure::Network));
    assert_eq!(host.connections.load(Ordering::SeqCst), 2);
}

#[test]
fn a_slow_server_of_names_is_not_waited_for() {
    #[derive(Debug)]
    struct Slow;
    impl Names for Slow {
        fn look_up(&self, _: &str, _: u16) -> io::Result<Vec<IpAddr>> {
            std::thread::sleep(30 * SECOND);
            Ok(Vec::new())
        }
    }
    let host = HostOf::new(&[]);
    let rules = Rules { time: SECOND, ..host.rules() };
    let url = format!("http://a.example.com:{}/x", host.port);
    assert_eq!(host.get_by(Arc::new(Slow), &url, rules), Err(Failure::Late(SECOND)));
}

#[test]
fn a_file_that_is_the_same_is_not_sent_again() {
    let tagged = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nLast-Modified: yesterday\r\nContent-Length: 1\r\n\r\nx";
    let secret =
        "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nCache-Control: private, no-store\r\nContent-Length: 1\r\n\r\nx";
    let host = HostOf::new(&[tagged, "HTTP/1.1 304 Not Modified\r\n\r\n", secret, &file("x")]);
    let client = Client::new(host.rules(), names(&[])).unwrap();
    let address =
        client.rules().allow.check(format!("http://127.0.0.1:{}/ok/a", host.port).as_bytes()).unwrap();
    let get = |known: Option<&Validators>| client.get(&address, known, &Patient(9)).unwrap();
    let Answer::File { validators: Some(known), .. } = get(None) else { panic!("no validators") };
    assert!(matches!(get(Some(&known)), Answer::Same));
    let asked = host.asked.lock().unwrap().last().cloned().unwrap().to_lowercase();
    assert!(
        asked.contains("if-none-match: \"1\"\r\n") && asked.contains("if-modified-since: yesterday\r\n"),
        "{asked}"
    );
    for _ in 0..2 {
        assert!(matches!(get(None), Answer::File { validators: None, .. }), "not to be kept");
    }
}

#[test]
fn what_tells_versions_apart_goes_to_the_first_host_alone() {
    let tagged = "HTTP/1.1 200 OK\r\nETag: \"secret\"\r\nLast-Modified: today\r\nContent-Length: 1\r\n\r\nx";
    let same = "HTTP/1.1 304 Not Modified\r\n\r\n";
    let host = HostOf::new(&[tagged, &to("/ok/b"), &file("other"), &to("/ok/b"), same, same]);
    let client = Client::new(host.rules(), names(&[])).unwrap();
    let address =
        client.rules().allow.check(format!("http://127.0.0.1:{}/ok/a", host.port).as_bytes()).unwrap();
    let get = |known: Option<&Validators>| client.get(&address, known, &Patient(9));
    let Ok(Answer::File { validators: Some(known), .. }) = get(None) else { panic!("no validators") };
    let asks = || {
        let last = host.asked.lock().unwrap().last().cloned().unwrap().to_lowercase();
        (last.contains("get /ok/b"), last.contains("if-none-match") || last.contains("if-modified-since"))
    };
    // Behind a redirect it is another's file, of which nothing is known.
    let Ok(Answer::File { bytes, validators }) = get(Some(&known)) else { panic!("no file") };
    assert_eq!((bytes.as_slice(), validators, asks()), (b"other".as_slice(), None, (true, false)));
    assert_eq!(get(Some(&known)).err(), Some(Failure::Status(304)), "nobody asked by a version");
    assert_eq!(asks(), (true, false));
    assert!(matches!(get(Some(&known)), Ok(Answer::Same)));
    assert_eq!(asks(), (false, true));
}

#[test]
fn no_store_counts_in_any_letters_and_line() {
    for control in
        ["No-Store", "max-age=9, NO-STORE", "public\r\nCache-Control: no-store", "\u{ff}, no-store"]
    {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nCache-Control: {control}\r\nContent-Length: 1\r\n\r\nx"
        );
        let host = HostOf::new(&[&answer]);
        let client = Client::new(host.rules(), names(&[])).unwrap();
        let address = client.rules().allow.check(format!("http://127.0.0.1:{}/ok/a", host.port).as_bytes());
        let got = client.get(&address.unwrap(), None, &Patient(9));
        assert!(matches!(got, Ok(Answer::File { validators: None, .. })), "{control}");
    }
}

#[test]
fn the_body_of_a_redirect_is_not_waited_for() {
    let location = "HTTP/1.1 302 Found\r\nLocation: /ok/b\r\nContent-Length: 99999999\r\n\r\nhold";
    let host = HostOf::new(&[location, &file("bytes")]);
    assert_eq!(host.get("/ok/a", host.rules()).unwrap(), b"bytes");
}

#[test]
fn answers_without_an_end_end_in_time() {
    let many = |part: &str| part.repeat(200_000 / part.len());
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for answer in [
        many("HTTP/1.1 100 Continue\r\n\r\n") + "hold",
        many("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n") + "hold",
        format!("{chunked}3\r\nabc\r\n0\r\n{}hold", many("X: y\r\n")),
        format!("{chunked}3;{}hold", many("x=y;")),
        format!("{chunked}{}hold", many("0")),
        format!("{chunked}fffffffffffffffff\r\n{}hold", many("x")),
        format!("HTTP/1.1 200 OK{}hold", many("x")),
    ] {
        let host = HostOf::new(&[&answer]);
        let rules = Rules { time: SECOND, ..host.rules() };
        match host.get("/ok/a", rules) {
            // Nothing counts behind the last part of a file.
            Ok(bytes) => assert_eq!(bytes, b"abc", "{:.80}", answer.escape_debug()),
            Err(failure) => assert!(
                [Failure::Broken, Failure::Late(SECOND), Failure::Status(103)].contains(&failure),
                "{failure:?} {:.80}",
                answer.escape_debug()
            ),
        }
    }
}

#[test]
fn who_is_not_trusted_by_tls_is_not_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(file("no TLS").as_bytes());
        let _ = stream.read(&mut [0; 9_999]);
    });
    let host = HostOf::new(&[]);
    let rules =
        Rules { allow: Allowed::parse(&format!("https://127.0.0.1:{port}/")).unwrap(), ..host.rules() };
    let got = host.get_by(names(&[]), &format!("https://127.0.0.1:{port}/a"), rules);
    assert_eq!(got, Err(Failure::Unreachable("its host is not who it should be, by TLS")));
}
