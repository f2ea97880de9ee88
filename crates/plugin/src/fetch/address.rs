//! Addresses of files: which ones an operator allows, and which one a client names. It must not know what is there, or
//! who asks.

use url::{Host, Url};

use super::failure::Failure;
use gesso::error::{Error, Result};

/// Bytes of an address. Signed ones have some hundreds.
pub const MAX_ADDRESS_BYTES: usize = 4_096;
/// Entries of the list. Each address is compared with all of them.
const MAX_ENTRIES: usize = 1_000;

/// How a file is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `http://`, which anybody on the way can read and change.
    Http,
    /// `https://`
    Https,
    /// `s3://`
    S3,
    /// `gs://`
    Gs,
}

impl Scheme {
    const ALL: [(Self, &str); 4] =
        [(Self::Http, "http://"), (Self::Https, "https://"), (Self::S3, "s3://"), (Self::Gs, "gs://")];

    /// The scheme that `text` begins with, and what follows.
    fn of(text: &[u8]) -> Option<(Self, &[u8])> {
        Self::ALL.into_iter().find_map(|(scheme, prefix)| {
            let (head, rest) = text.split_at_checked(prefix.len())?;
            head.eq_ignore_ascii_case(prefix.as_bytes()).then_some((scheme, rest))
        })
    }
}

/// The address of a file, which the list allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A page of the web.
    Web(Url),
    /// An object in a bucket.
    Object {
        /// Whose bucket: [`Scheme::S3`] or [`Scheme::Gs`].
        store: Scheme,
        /// Its name.
        bucket: String,
        /// The name of the object in it.
        key: String,
    },
}

impl Address {
    /// What is the same for the same file.
    pub fn name(&self) -> String {
        match self {
            Self::Web(url) => url.as_str().to_owned(),
            Self::Object { store, bucket, key } => {
                format!("{}://{bucket}/{key}", if *store == Scheme::S3 { "s3" } else { "gs" })
            }
        }
    }
}

/// What may be fetched: schemes, hosts or buckets, and how paths begin there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    scheme: Scheme,
    host: HostOf,
    /// 0 for a bucket.
    port: u16,
    /// Without the `/` in front.
    path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostOf {
    /// This host or bucket.
    Only(String),
    /// Those whose names end with a dot and this.
    Below(String),
}

impl Allowed {
    /// Entries such as `https://images.example.com/photos/, https://*.example.org/, s3://bucket/prefix/`.
    ///
    /// # Errors
    /// Invalid for what is no such entry.
    pub fn parse(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() || parts.len() > MAX_ENTRIES {
            return Err(Error::invalid(format!("{} entries, expected 1 to {MAX_ENTRIES}", parts.len())));
        }
        parts.into_iter().map(Entry::parse).collect::<Result<_>>().map(Self)
    }

    /// Whether bytes that a client sent in place of a file's are an address: they begin with a scheme of the list.
    pub fn is_address(&self, bytes: &[u8]) -> bool {
        Scheme::of(bytes).is_some_and(|(scheme, _)| self.0.iter().any(|entry| entry.scheme == scheme))
    }

    /// Whom downloads are counted for, so that one slow host does not hold up all others.
    pub fn owner(&self, address: &Address) -> String {
        match address {
            Address::Web(url) => self.owner_of(url.host_str().unwrap_or_default()),
            Address::Object { bucket, .. } => bucket.clone(),
        }
    }

    /// The same for a host. Who has a domain has all the names below it: where those are allowed, they are one.
    pub(super) fn owner_of(&self, host: &str) -> String {
        let hosts = || self.0.iter().map(|entry| &entry.host);
        let is_listed = hosts().any(|listed| matches!(listed, HostOf::Only(only) if only == host));
        let domain = hosts().find_map(|listed| match listed {
            HostOf::Below(domain) if !is_listed => is_below(host, domain).then_some(domain),
            _ => None,
        });
        domain.map_or(host.to_owned(), |domain| format!("*.{domain}"))
    }

    /// The address that a client names.
    ///
    /// # Errors
    /// Not allowed, where no entry has it.
    pub fn check(&self, text: &[u8]) -> Result<Address, Failure> {
        let (address, parts) = Parts::of(text).map_err(Failure::NotAllowed)?;
        if self.0.iter().any(|entry| entry.has(&parts)) {
            return Ok(address);
        }
        Err(Failure::NotAllowed("no entry has its scheme, host, port and path"))
    }
}

impl Entry {
    fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::invalid(format!(
                "`{}` is no entry: {why}; expected one such as `https://images.example.com/photos/`, \
                 `https://*.example.com/` or `s3://bucket/prefix/`",
                text.escape_debug()
            ))
        };
        let (below, plain) = match text.split_once("://*.") {
            Some((scheme, rest)) => (true, format!("{scheme}://{rest}")),
            None => (false, text.to_owned()),
        };
        if plain.contains(['*', '?', '#']) {
            return Err(wrong("it has `*`, `?` or `#`"));
        }
        // A whole bucket, or a host without a path.
        let after = plain.find("://").map_or(0, |at| at + 3);
        let is_whole = !plain.get(after..).unwrap_or_default().contains('/');
        let plain = if is_whole { plain + "/" } else { plain };
        let (address, parts) = Parts::of_entry(plain.as_bytes()).map_err(wrong)?;
        let is_name = match &address {
            Address::Web(url) => matches!(url.host(), Some(Host::Domain(_))),
            Address::Object { .. } => false,
        };
        if below && !(is_name && parts.host.contains('.')) {
            return Err(wrong("`*.` stands before the name of a domain with a dot"));
        }
        let host = if below { HostOf::Below(parts.host) } else { HostOf::Only(parts.host) };
        Ok(Self { scheme: parts.scheme, host, port: parts.port, path: parts.path })
    }

    fn has(&self, parts: &Parts) -> bool {
        let host = match &self.host {
            HostOf::Only(host) => *host == parts.host,
            HostOf::Below(domain) => parts.is_name && is_below(&parts.host, domain),
        };
        // A path ends where a part of it does: `photos` has `photos/a.jpg`, and not `photos-of-others`.
        let path = parts.path.strip_prefix(&self.path).is_some_and(|rest| {
            self.path.is_empty() || self.path.ends_with('/') || rest.is_empty() || rest.starts_with('/')
        });
        self.scheme == parts.scheme && self.port == parts.port && host && path
    }
}

fn is_below(host: &str, domain: &str) -> bool {
    let label = host.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.'));
    label.is_some_and(|label| !label.is_empty())
}

/// What of an address is compared with the list.
struct Parts {
    scheme: Scheme,
    host: String,
    /// Whether the host is a name, not numbers.
    is_name: bool,
    port: u16,
    path: String,
}

impl Parts {
    /// Takes apart what a client names.
    fn of(text: &[u8]) -> Result<(Address, Self), &'static str> {
        let (address, parts) = Self::of_entry(text)?;
        if parts.path.is_empty() {
            return Err("it names no file");
        }
        Ok((address, parts))
    }

    fn of_entry(text: &[u8]) -> Result<(Address, Self), &'static str> {
        if text.len() > MAX_ADDRESS_BYTES {
            return Err("it has more bytes than 4096");
        }
        let text = std::str::from_utf8(text).map_err(|_| "it is no text in UTF-8")?;
        match Scheme::of(text.as_bytes()) {
            Some((scheme @ (Scheme::S3 | Scheme::Gs), rest)) => object(scheme, rest),
            Some((scheme, _)) => page(scheme, text),
            None => Err("its scheme is unknown"),
        }
    }
}

fn page(scheme: Scheme, text: &str) -> Result<(Address, Parts), &'static str> {
    // What the parser would leave out or take for something else, other programs read in other ways.
    if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return Err(
            "it has a space, a `\\` or a character beyond ASCII, which are to be written as %20, %5C, ...",
        );
    }
    let authority = text.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next());
    if authority.is_none_or(|authority| authority.is_empty() || authority.contains('@')) {
        return Err("it has no host, or a user's name");
    }
    let mut url = Url::parse(text).map_err(|_| "it cannot be read")?;
    url.set_fragment(None);
    let host = url.host_str().ok_or("it has no host")?.to_owned();
    let port = url.port_or_known_default().ok_or("it has no port")?;
    let path = url.path().strip_prefix('/').unwrap_or_default().to_owned();
    if !path.split('/').all(is_plain) {
        return Err("its path has a part that servers read in different ways, such as `..;` or `%2F`");
    }
    let is_name = matches!(url.host(), Some(Host::Domain(_)));
    Ok((Address::Web(url), Parts { scheme, host, is_name, port, path }))
}

/// Whether a part of a path is the same one for everybody.
fn is_plain(part: &str) -> bool {
    let mut decoded = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).filter(|_| *first == b'%');
        let value = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match value {
            Some(value) => {
                decoded.push(value);
                rest = tail.get(2..).unwrap_or_default();
            }
            None if *first == b'%' => return false,
            None => {
                decoded.push(*first);
                rest = tail;
            }
        }
    }
    // Some servers take longer forms of UTF-8 than there are for `.` and `/`.
    let is_too_long =
        |pair: &[u8]| matches!(pair, [0xc0 | 0xc1, 0x80..=0xbf] | [0xe0, 0x80..=0x9f] | [0xf0, 0x80..=0x8f]);
    if decoded.windows(2).any(is_too_long) {
        return false;
    }
    let name = decoded.split(|byte| *byte == b';').next().unwrap_or_default();
    // `%` in what was decoded would be decoded once more by some.
    let is_odd = |byte: &u8| *byte < b' ' || *byte == 0x7f || b"/\\%".contains(byte);
    !decoded.iter().any(is_odd) && name != b"." && name != b".."
}

fn object(store: Scheme, rest: &[u8]) -> Result<(Address, Parts), &'static str> {
    let rest = std::str::from_utf8(rest).map_err(|_| "it is no text in UTF-8")?;
    let (bucket, key) = rest.split_once('/').ok_or("it names no file in the bucket")?;
    let fits = (3..=63).contains(&bucket.len())
        && bucket
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte))
        && bucket.starts_with(|c: char| c.is_ascii_alphanumeric())
        && bucket.ends_with(|c: char| c.is_ascii_alphanumeric())
        && !bucket.contains("..");
    if !fits {
        return Err("the name of its bucket is none");
    }
    if key.starts_with('/')
        || key.chars().any(char::is_control)
        || key.split('/').any(|part| [".", ".."].contains(&part))
    {
        return Err("the name of its object has a part `.` or `..`, a control character, or begins with `/`");
    }
    let parts =
        Parts { scheme: store, host: bucket.to_owned(), is_name: false, port: 0, path: key.to_owned() };
    Ok((Address::Object { store, bucket: bucket.to_owned(), key: key.to_owned() }, parts))
}

#[cfg(test)]
mod tests;
