//! How much one client asks of a model at a time, where the server hands on whose a request is. A client above a limit
//! is refused at once, and nobody else is. Clients are known by a hash of their names, which nobody sees. It must not
//! know what becomes of a request.
//!
//! ```text
//! admit    the header names the client: a seat, or why there is none
//! Seat     dropped when the request is about to be answered
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::api::{Counter, Request, Server};
use super::metrics::{self, Labels};
use crate::config::ClientLimits;
use gesso::error::{Error, ErrorKind, Result};

/// Clients of a model that are known at a time. Each takes some 50 bytes.
const MAX_CLIENTS: usize = 16_384;
/// Of an address of version 6, the bytes that tell clients apart: each has all addresses that begin so.
const NETWORK_BYTES: usize = 8;

/// The clients of a model.
pub(super) struct Clients {
    /// The header, which is a parameter of requests.
    header: String,
    table: Arc<Table>,
    /// What was refused, in the order of [`Refusal::LABELS`].
    refused: [Option<Counter>; 3],
}

impl Clients {
    /// Nobody yet; `None` for a model without limits.
    ///
    /// # Errors
    /// Unsupported when the server does not hand headers on.
    pub(super) fn new(
        limits: &ClientLimits,
        server: &'static Server,
        labels: &Labels<'_>,
    ) -> Result<Option<Self>> {
        let Some(header) = limits.header.clone() else { return Ok(None) };
        if !server.has_parameters() {
            return Err(Error::unsupported(
                "parameter `client_header`: this server does not say what headers a request has; servers from 23.07 on do",
            ));
        }
        let refused = metrics::client_refusals(server, labels, Refusal::LABELS);
        Ok(Some(Self { header, table: Arc::new(Table::new(limits)), refused }))
    }

    /// The seat of the client that sent `request`.
    ///
    /// # Errors
    /// Unavailable when it has no more.
    pub(super) fn admit(&self, request: &Request) -> Result<Seat> {
        let value = request.parameter(&self.header)?;
        let whose = value.map_or(Whose::Nobody, Whose::named_by);
        self.table.enter(&whose).map_err(|refusal| {
            let counter = self.refused.get(refusal.number()).and_then(Option::as_ref);
            if let Some(Err(error)) = counter.map(|counter| counter.add(1.0)) {
                tracing::debug!("cannot count on the metrics port: {error}");
            }
            refusal.error(matches!(whose, Whose::Nobody).then_some(&self.header))
        })
    }
}

/// Whose a request is.
#[derive(Debug, Hash, PartialEq, Eq)]
enum Whose<'r> {
    /// It says nothing: all such are one client.
    Nobody,
    Name(&'r [u8]),
    V4(Ipv4Addr),
    Network([u8; NETWORK_BYTES]),
}

impl<'r> Whose<'r> {
    /// What the value of a header says. Of a list, as `X-Forwarded-For` is, the last entry: the proxy before the server
    /// has added it, those before it may be the client's own.
    fn named_by(value: &'r [u8]) -> Self {
        let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii();
        if last.is_empty() {
            return Self::Nobody;
        }
        match std::str::from_utf8(last).ok().and_then(address) {
            Some(IpAddr::V4(address)) => Self::V4(address),
            Some(IpAddr::V6(address)) => {
                let mut network = [0; NETWORK_BYTES];
                network.iter_mut().zip(address.octets()).for_each(|(to, from)| *to = from);
                Self::Network(network)
            }
            None => Self::Name(last),
        }
    }
}

/// The address that a text is, with a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let found: IpAddr =
        bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()))?;
    Some(found.to_canonical())
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// Its client has so many in flight.
    InFlight(usize),
    /// Its client has sent so many within a second.
    PerSecond(u64),
    /// There are too many clients.
    Clients,
}

impl Refusal {
    /// Names on the metrics port.
    const LABELS: [&str; 3] = ["max_requests_per_client", "max_requests_per_client_per_second", "clients"];

    fn number(self) -> usize {
        match self {
            Self::InFlight(_) => 0,
            Self::PerSecond(_) => 1,
            Self::Clients => 2,
        }
    }

    /// What the client is told. `nameless`: the header that its requests lack.
    fn error(self, nameless: Option<&String>) -> Error {
        let who = nameless.map_or("the client has".to_owned(), |header| {
            format!("requests without header `{header}` are those of one client, which has")
        });
        let limit = |text: String| {
            format!("{who} {text}, its limit (`{}`)", Self::LABELS.get(self.number()).unwrap_or(&""))
        };
        let text = match self {
            Self::InFlight(most) => limit(format!("{most} requests in flight already")),
            Self::PerSecond(most) => limit(format!("sent {most} requests within a second already")),
            Self::Clients => format!("{MAX_CLIENTS} clients have requests in flight already"),
        };
        Error::new(ErrorKind::Unavailable, text)
    }
}

/// Who has how much.
struct Table {
    in_flight: Option<usize>,
    per_second: Option<u64>,
    clients: Mutex<HashMap<u128, Client>>,
    /// Two keys that nobody outside knows.
    keys: [RandomState; 2],
    began: Instant,
}

#[derive(Default)]
struct Client {
    in_flight: usize,
    /// When its next request is due, were they all a second's part apart; since the table began.
    due: Duration,
}

impl Table {
    fn new(limits: &ClientLimits) -> Self {
        let ClientLimits { in_flight, per_second, .. } = *limits;
        let keys = [RandomState::new(), RandomState::new()];
        Self { in_flight, per_second, clients: Mutex::default(), keys, began: Instant::now() }
    }

    fn enter(self: &Arc<Self>, whose: &Whose<'_>) -> Result<Seat, Refusal> {
        self.enter_at(whose, self.began.elapsed())
    }

    fn enter_at(self: &Arc<Self>, whose: &Whose<'_>, now: Duration) -> Result<Seat, Refusal> {
        let [first, second] = &self.keys;
        let key = u128::from(first.hash_one(whose)) << 64 | u128::from(second.hash_one(whose));
        let mut clients = self.clients.lock();
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(&key) {
            make_room(&mut clients, now)?;
        }
        let client = clients.entry(key).or_default();
        let refused = self.refusal(client, now);
        if let Some(refusal) = refused {
            return Err(refusal);
        }
        client.in_flight += 1;
        if let Some(rate) = self.per_second {
            client.due = client.due.max(now) + part(rate);
        }
        Ok(Seat { table: Arc::clone(self), key })
    }

    fn refusal(&self, client: &Client, now: Duration) -> Option<Refusal> {
        if let Some(most) = self.in_flight.filter(|most| client.in_flight >= *most) {
            return Some(Refusal::InFlight(most));
        }
        let rate = self.per_second?;
        // A second's requests may come at once.
        let ahead = Duration::from_secs(1).saturating_sub(part(rate));
        (client.due > now + ahead).then_some(Refusal::PerSecond(rate))
    }

    fn leave(&self, key: u128) {
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get_mut(&key) {
            client.in_flight = client.in_flight.saturating_sub(1);
            if client.in_flight == 0 && client.due <= self.began.elapsed() {
                clients.remove(&key);
            }
        }
    }
}

/// A second's part for one request.
fn part(rate: u64) -> Duration {
    Duration::from_nanos(1_000_000_000 / rate.max(1))
}

/// Forgets those that could send a second's requests again; where these are not enough, all that have none in flight.
fn make_room(clients: &mut HashMap<u128, Client>, now: Duration) -> Result<(), Refusal> {
    clients.retain(|_, client| client.in_flight > 0 || client.due > now);
    if clients.len() >= MAX_CLIENTS {
        clients.retain(|_, client| client.in_flight > 0);
    }
    if clients.len() < MAX_CLIENTS { Ok(()) } else { Err(Refusal::Clients) }
}

/// That a client has a request in flight, until this is dropped.
pub(super) struct Seat {
    table: Arc<Table>,
    key: u128,
}

impl Seat {
    /// A number for the client, and of how many things of a kind it may have at a time, if that is limited.
    pub(super) fn share(&self) -> Option<(u128, usize)> {
        Some((self.key, self.table.in_flight?))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.leave(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn table(in_flight: Option<usize>, per_second: Option<u64>) -> Arc<Table> {
        Arc::new(Table::new(&ClientLimits { header: None, in_flight, per_second }))
    }

    fn known(table: &Table) -> usize {
        table.clients.lock().len()
    }

    #[test]
    fn each_client_has_its_own_seats() {
        let table = table(Some(2), None);
        let enter = |name: &'static str| table.enter(&Whose::named_by(name.as_bytes()));
        let seats: Vec<Seat> = ["a", "a", "b", "", ""].map(|name| enter(name).unwrap()).into();
        assert_eq!(enter("a").err(), Some(Refusal::InFlight(2)));
        assert_eq!(enter(" ").err(), Some(Refusal::InFlight(2)), "without a name");
        assert!(enter("b").is_ok() && enter("c").is_ok() && enter("A").is_ok());
        drop(seats);
        assert!(enter("a").is_ok());
        assert_eq!(known(&table), 0, "nobody is remembered");
    }

    #[test]
    fn a_second_s_requests_may_come_at_once_and_then_one_by_one() {
        let table = table(None, Some(4));
        let enter = |at: Duration| table.enter_at(&Whose::Name(b"a"), at).map(drop).err();
        for _ in 0..4 {
            assert_eq!(enter(SECOND), None);
        }
        assert_eq!(enter(SECOND), Some(Refusal::PerSecond(4)));
        assert_eq!(enter(SECOND * 5 / 4), None);
        assert_eq!(enter(SECOND * 5 / 4), Some(Refusal::PerSecond(4)));
        assert_eq!((0..9).filter(|_| enter(SECOND * 9).is_none()).count(), 4);
        let other = table.enter_at(&Whose::Name(b"b"), SECOND * 9);
        assert!(other.is_ok());
    }

    #[test]
    fn the_table_is_bounded() {
        let names = |from: usize| (from..).map(|i| i.to_string());
        let limited = table(Some(1), Some(1));
        for name in names(0).take(5 * MAX_CLIENTS) {
            drop(limited.enter_at(&Whose::Name(name.as_bytes()), SECOND));
            assert!(known(&limited) <= MAX_CLIENTS);
        }
        // Those with a request in flight are not forgotten.
        let full = table(Some(1), None);
        let seats: Vec<Seat> =
            names(0).take(MAX_CLIENTS).map(|n| full.enter(&Whose::Name(n.as_bytes())).unwrap()).collect();
        assert_eq!(full.enter(&Whose::Name(b"one more")).err(), Some(Refusal::Clients));
        assert_eq!(full.enter(&Whose::Name(b"7")).err(), Some(Refusal::InFlight(1)));
        drop(seats);
        assert!(full.enter(&Whose::Name(b"one more")).is_ok());
        // A name as long as may be is one of them.
        assert!(full.enter(&Whose::Name(&vec![b'x'; 1 << 20])).is_ok());
    }

    #[test]
    fn an_address_is_one_client_however_it_is_written() {
        let is_same = |a: &str, b: &str| Whose::named_by(a.as_bytes()) == Whose::named_by(b.as_bytes());
        for (a, b) in [
            ("10.0.0.1", "10.0.0.1:443"),
            ("10.0.0.1", "::ffff:10.0.0.1"),
            ("1.2.3.4, 10.0.0.1", "9.9.9.9,10.0.0.1 "),
            ("2001:db8::1", "[2001:db8:0:0:ffff::7]:80"),
            ("[2001:db8::1]", "2001:DB8::2"),
            ("", " , "),
            ("key", "a, key"),
        ] {
            assert!(is_same(a, b), "{a} {b}");
        }
        for (a, b) in
            [("10.0.0.1", "10.0.0.2"), ("2001:db8::1", "2001:db8:0:1::1"), ("key", "Key"), ("key", "")]
        {
            assert!(!is_same(a, b), "{a} {b}");
        }
        assert_eq!(Whose::named_by(b"\xff,\xfe"), Whose::Name(b"\xfe"));
    }

    #[test]
    fn who_is_refused_is_told_the_limit() {
        let text = |refusal: Refusal, header: Option<&String>| refusal.error(header).to_string();
        assert_eq!(
            text(Refusal::InFlight(2), None),
            "the client has 2 requests in flight already, its limit (`max_requests_per_client`)"
        );
        assert_eq!(
            text(Refusal::PerSecond(5), Some(&"x-api-key".to_owned())),
            "requests without header `x-api-key` are those of one client, which has sent 5 requests within a second already, its \
             limit (`max_requests_per_client_per_second`)"
        );
        assert!(text(Refusal::Clients, None).starts_with("16384 clients"));
        for refusal in [Refusal::InFlight(1), Refusal::PerSecond(1), Refusal::Clients] {
            assert_eq!(refusal.error(None).kind(), ErrorKind::Unavailable);
        }
    }
}
