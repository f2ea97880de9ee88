//! Names of hosts to addresses that a connection may go to. Each that a name has is checked, and the connection goes
//! to one of those that were: what the name has a moment later does not count.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use parking_lot::Mutex;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use super::address::Allowed;
use super::failure::Failure;
use super::networks::Networks;

/// Names that are looked up at a time. The system cannot be told to stop: who waits for it may have gone.
const MAX_LOOKUPS: usize = 64;
/// Of these, those for names of one owner: who answers slowly for his holds up nobody else's.
const MAX_LOOKUPS_OF_ONE: usize = MAX_LOOKUPS / 2;
/// Addresses of a name that are tried.
const MAX_TRIED: usize = 16;

/// Who knows the addresses of names.
pub trait Names: Debug + Send + Sync + 'static {
    /// The addresses of a host; numbers are their own.
    ///
    /// # Errors
    /// What the system says.
    fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>>;
}

/// The system's names: its files, its servers.
#[derive(Debug)]
pub struct System;

impl Names for System {
    fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
        Ok((host, port).to_socket_addrs()?.map(|address| address.ip()).collect())
    }
}

/// Looks names up and refuses what is in no allowed network.
#[derive(Debug)]
pub(super) struct Checked {
    names: Arc<dyn Names>,
    networks: Networks,
    allow: Allowed,
    running: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// Carries a failure of ours through the client.
#[derive(Debug)]
pub(super) struct Carried(pub(super) Failure);

impl std::fmt::Display for Carried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.label())
    }
}

impl std::error::Error for Carried {}

impl From<Failure> for ureq::Error {
    fn from(failure: Failure) -> Self {
        ureq::Error::Other(Box::new(Carried(failure)))
    }
}

impl Checked {
    pub(super) fn new(names: Arc<dyn Names>, networks: Networks, allow: Allowed) -> Self {
        Self { names, networks, allow, running: Arc::default() }
    }

    /// The addresses of a host, all of which are allowed.
    fn allowed(&self, host: &str, port: u16, timeout: NextTimeout) -> Result<Vec<IpAddr>, ureq::Error> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let found = match bare.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.look_up(bare.to_owned(), port, timeout)?,
        };
        if found.is_empty() {
            return Err(Failure::Unreachable("its host has no address").into());
        }
        // One that is not allowed is enough: who controls the name may try again until it comes first.
        if !found.iter().all(|address| self.networks.allow(*address)) {
            return Err(Failure::Network.into());
        }
        Ok(found)
    }

    /// Looks a name up in a thread of its own, as nothing else ends in time.
    fn look_up(&self, host: String, port: u16, timeout: NextTimeout) -> Result<Vec<IpAddr>, ureq::Error> {
        let owner = self.allow.owner_of(&host);
        let running = Running::begin(&self.running, owner).ok_or(Failure::Full("lookups of names"))?;
        let names = Arc::clone(&self.names);
        let (sender, receiver) = sync_channel(1);
        let thread = std::thread::Builder::new().name("gesso-names".to_owned()).spawn(move || {
            let found = names.look_up(&host, port);
            drop(running);
            // Nobody may wait any more.
            let _ = sender.send(found);
        });
        thread.map_err(|_| Failure::Full("threads"))?;
        match receiver.recv_timeout(*timeout.after) {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::Unreachable("its host has no address").into())
            }
            Err(RecvTimeoutError::Timeout) => Err(ureq::Error::Timeout(timeout.reason)),
        }
    }
}

impl Resolver for Checked {
    fn resolve(
        &self,
        uri: &Uri,
        _: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().ok_or(Failure::NotAllowed("it has no host"))?;
        let default = if uri.scheme_str() == Some("http") { 80 } else { 443 };
        let port = uri.port_u16().unwrap_or(default);
        let mut addresses = self.empty();
        for address in self.allowed(host, port, timeout)?.into_iter().take(MAX_TRIED) {
            addresses.push(SocketAddr::new(address, port));
        }
        Ok(addresses)
    }
}

/// That a name is looked up, until this is dropped.
struct Running {
    all: Arc<Mutex<BTreeMap<String, usize>>>,
    owner: String,
}

impl Running {
    fn begin(all: &Arc<Mutex<BTreeMap<String, usize>>>, owner: String) -> Option<Self> {
        let mut running = all.lock();
        let own = running.get(&owner).copied().unwrap_or_default();
        if running.values().sum::<usize>() >= MAX_LOOKUPS || own >= MAX_LOOKUPS_OF_ONE {
            return None;
        }
        running.insert(owner.clone(), own + 1);
        drop(running);
        Some(Self { all: Arc::clone(all), owner })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = self.all.lock();
        if let Some(own) = running.get_mut(&self.owner) {
            *own -= 1;
            if *own == 0 {
                running.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_of_one_owner_leave_room_for_others() {
        let all = Arc::default();
        let begin = |owner: &str| Running::begin(&all, owner.to_owned());
        let mut slow: Vec<Running> = (0..MAX_LOOKUPS_OF_ONE).map(|_| begin("*.slow").unwrap()).collect();
        assert!(begin("*.slow").is_none());
        let others: Vec<Running> = (0..MAX_LOOKUPS_OF_ONE).map(|i| begin(&i.to_string()).unwrap()).collect();
        assert!(begin("one more").is_none());
        slow.pop();
        assert!(begin("one more").is_some() && begin("*.slow").is_some());
        drop((slow, others));
        assert!(all.lock().is_empty());
    }
}
