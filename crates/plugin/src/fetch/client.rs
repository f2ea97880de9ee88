//! Downloads one file: the request, redirects, the answer within bounds. Each hop is checked as the first address was.
//! It must not know who waits.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ureq::config::AutoHeaderValue;
use ureq::http::{HeaderMap, Response, Uri, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::transport::{ConnectionDetails, Connector, RustlsConnector, TcpConnector, Transport};
use ureq::{Agent, Body};
use url::Url;

use super::address::{Address, Allowed};
use super::failure::Failure;
use super::names::{Carried, Checked, Names};
use super::networks::Networks;
use super::store::{Signed, Stores};
use gesso::error::Result;

/// Bytes of the headers of an answer.
const MAX_HEADER_BYTES: usize = 16 << 10;
/// Bytes of what tells one version of a file from another.
const MAX_VALIDATOR_BYTES: usize = 512;
/// Bytes that are read before it is asked again whether anybody waits.
const READ_AT_ONCE: usize = 64 << 10;

/// What may be fetched, and how.
#[derive(Debug, Clone)]
pub struct Rules {
    /// From where.
    pub allow: Allowed,
    /// Networks beside those for everybody.
    pub networks: Networks,
    /// Bytes of one file.
    pub max_bytes: usize,
    /// What one download may take, with its redirects.
    pub time: Duration,
    /// Redirects of one download.
    pub redirects: u32,
}

/// Who waits for a download.
pub trait Watch {
    /// Whether somebody still does.
    fn goes_on(&self) -> bool;

    /// Takes room for more bytes; false where there is none.
    fn takes(&self, bytes: usize) -> bool;
}

/// What tells one version of a file from another, in the words of its host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    etag: Option<String>,
    modified: Option<String>,
}

/// What a host answers.
pub enum Answer {
    /// The file.
    File {
        /// Its bytes.
        bytes: Vec<u8>,
        /// What to ask with next time, if it may be kept.
        validators: Option<Validators>,
    },
    /// It is what was asked with.
    Same,
}

/// Downloads files.
pub struct Client {
    agent: Agent,
    rules: Rules,
    stores: Stores,
}

impl Client {
    /// A client, with the certificates and the environment of the system, and whose `names` lead to addresses.
    ///
    /// # Errors
    /// Invalid for environment variables that name no endpoint.
    pub fn new(rules: Rules, names: Arc<dyn Names>) -> Result<Self> {
        let stores = Stores::new(&|name| std::env::var(name).ok())?;
        let found = rustls_native_certs::load_native_certs();
        if found.certs.is_empty() {
            tracing::warn!(
                "no certificates of authorities are found: nothing can be fetched by `https://`; `SSL_CERT_FILE` may name a file of them"
            );
        }
        let certificates = found.certs.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::Specific(Arc::new(certificates)))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            // Nobody on the way, whatever the environment says: addresses are checked here.
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            // A connection a file: what a host sends behind one is not the answer to another.
            .max_idle_connections(0)
            .max_response_header_size(MAX_HEADER_BYTES)
            .user_agent(concat!("gesso/", env!("CARGO_PKG_VERSION")))
            .accept_encoding(AutoHeaderValue::from("identity"))
            .build();
        let resolver = Checked::new(names, rules.networks.clone(), rules.allow.clone());
        let connector = ().chain(TcpConnector::default()).chain(Tls(RustlsConnector::default()));
        Ok(Self { agent: Agent::with_parts(config, connector, resolver), rules, stores })
    }

    /// What may be fetched.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The file at `address`, or that it is still the one of `known`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn get(
        &self,
        address: &Address,
        known: Option<&Validators>,
        watch: &dyn Watch,
    ) -> Result<Answer, Failure> {
        let end = Instant::now() + self.rules.time;
        let (mut url, authorization, follows) = match address {
            Address::Web(url) => (url.clone(), None, true),
            Address::Object { store, bucket, key } => {
                let Signed { url, authorization } = self.stores.request(*store, bucket, key)?;
                (url, authorization, false)
            }
        };
        let mut hops = 0;
        loop {
            // What the first host has called its file means nothing to another, and is none of its business.
            let known = known.filter(|_| hops == 0);
            let response = self.ask(&url, authorization.as_deref(), known, end)?;
            let status = response.status().as_u16();
            match status {
                200 => return self.read(response, hops == 0, end, watch),
                304 if known.is_some() => return Ok(Answer::Same),
                301 | 302 | 303 | 307 | 308 if follows => {
                    hops += 1;
                    if hops > self.rules.redirects {
                        return Err(Failure::Redirect("there are too many redirects"));
                    }
                    url = self.next(&url, response.headers())?;
                }
                _ => return Err(Failure::Status(status)),
            }
        }
    }

    fn ask(
        &self,
        url: &Url,
        authorization: Option<&str>,
        known: Option<&Validators>,
        end: Instant,
    ) -> Result<Response<Body>, Failure> {
        let uri: Uri = url.as_str().parse().map_err(|_| Failure::NotAllowed("it cannot be read"))?;
        // Two parsers have read it, and must have read the same.
        if uri.host() != url.host_str()
            || uri.port_u16() != url.port()
            || uri.scheme_str() != Some(url.scheme())
        {
            return Err(Failure::NotAllowed("it cannot be read"));
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.late());
        }
        let mut request = self.agent.get(uri).config().timeout_global(Some(left)).build();
        if let Some(text) = authorization {
            request = request.header(header::AUTHORIZATION, text);
        }
        if let Some(etag) = known.and_then(|known| known.etag.as_ref()) {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        if let Some(modified) = known.and_then(|known| known.modified.as_ref()) {
            request = request.header(header::IF_MODIFIED_SINCE, modified);
        }
        request.call().map_err(|error| self.failure(error))
    }

    /// Where an answer leads: to what is allowed itself, and not from a private conversation to an open one.
    fn next(&self, from: &Url, headers: &HeaderMap) -> Result<Url, Failure> {
        let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
        let target = location.and_then(|text| from.join(text).ok()).ok_or(Failure::Broken)?;
        if from.scheme() == "https" && target.scheme() != "https" {
            return Err(Failure::Redirect("a redirect leads from `https` to another scheme"));
        }
        match self.rules.allow.check(target.as_str().as_bytes()) {
            Ok(Address::Web(url)) => Ok(url),
            _ => {
                Err(Failure::Redirect("a redirect leads to an address that is not allowed by `fetch_allow`"))
            }
        }
    }

    fn read(
        &self,
        mut response: Response<Body>,
        is_direct: bool,
        end: Instant,
        watch: &dyn Watch,
    ) -> Result<Answer, Failure> {
        let headers = response.headers();
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let is_plain = |name| text(name).is_none_or(|coding| coding.trim().eq_ignore_ascii_case("identity"));
        if !is_plain(header::CONTENT_ENCODING) {
            return Err(Failure::Broken);
        }
        let said = text(header::CONTENT_LENGTH).and_then(|length| length.trim().parse::<u64>().ok());
        if said.is_some_and(|length| length > self.rules.max_bytes as u64) {
            return Err(Failure::TooLarge(self.rules.max_bytes));
        }
        let validator =
            |name| text(name).filter(|value| value.len() <= MAX_VALIDATOR_BYTES).map(str::to_owned);
        let validators =
            Validators { etag: validator(header::ETAG), modified: validator(header::LAST_MODIFIED) };
        let is_secret = headers.get_all(header::CACHE_CONTROL).iter().any(|control| {
            String::from_utf8_lossy(control.as_bytes()).to_ascii_lowercase().contains("no-store")
        });
        let keeps = is_direct && !is_secret && validators != Validators::default();
        let mut body = response.body_mut().as_reader();
        let mut bytes = Vec::new();
        let mut part = vec![0; READ_AT_ONCE];
        loop {
            if !watch.goes_on() {
                return Err(Failure::Abandoned);
            }
            if Instant::now() >= end {
                return Err(self.late());
            }
            let read = match body.read(&mut part) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failure(error.into())),
            };
            if bytes.len() + read > self.rules.max_bytes {
                return Err(Failure::TooLarge(self.rules.max_bytes));
            }
            if !watch.takes(read) {
                return Err(Failure::Full("memory for files"));
            }
            bytes.extend_from_slice(part.get(..read).unwrap_or_default());
        }
        if said.is_some_and(|length| length != bytes.len() as u64) {
            return Err(Failure::Broken);
        }
        bytes.shrink_to_fit();
        Ok(Answer::File { bytes, validators: keeps.then_some(validators) })
    }

    fn late(&self) -> Failure {
        Failure::Late(self.rules.time)
    }

    fn failure(&self, error: ureq::Error) -> Failure {
        use io::ErrorKind::{
            ConnectionRefused, HostUnreachable, InvalidData, NetworkDown, NetworkUnreachable, TimedOut,
            WouldBlock,
        };
        const NO_CONNECTION: Failure = Failure::Unreachable("its host takes no connection");
        const NOT_TRUSTED: Failure = Failure::Unreachable("its host is not who it should be, by TLS");
        match error {
            ureq::Error::Timeout(_) => self.late(),
            ureq::Error::Other(inner) => match inner.downcast::<Carried>() {
                Ok(carried) => carried.0,
                Err(_) => Failure::Broken,
            },
            ureq::Error::Io(error) => match error.kind() {
                TimedOut | WouldBlock => self.late(),
                ConnectionRefused | HostUnreachable | NetworkUnreachable | NetworkDown => NO_CONNECTION,
                InvalidData
                    if error
                        .get_ref()
                        .is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>) =>
                {
                    NOT_TRUSTED
                }
                _ => Failure::Broken,
            },
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => NO_CONNECTION,
            ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::TlsRequired => NOT_TRUSTED,
            _ => Failure::Broken,
        }
    }
}

/// TLS with one configuration for all requests: that each has its own time does not make another one.
#[derive(Debug)]
struct Tls(RustlsConnector);

impl<In: Transport> Connector<In> for Tls {
    type Out = <RustlsConnector as Connector<In>>::Out;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> std::result::Result<Option<Self::Out>, ureq::Error> {
        let details = ConnectionDetails {
            uri: details.uri,
            addrs: details.addrs.clone(),
            config: details.config,
            request_level: false,
            resolver: details.resolver,
            now: details.now,
            timeout: details.timeout,
            current_time: Arc::clone(&details.current_time),
            run_connector: Arc::clone(&details.run_connector),
            register_shutdown: Arc::clone(&details.register_shutdown),
        };
        self.0.connect(&details, chained)
    }
}

#[cfg(test)]
mod tests;
