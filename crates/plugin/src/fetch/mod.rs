//! Files by their address: which addresses an operator allows, and the download of a file within bounds. What a client
//! names is hostile, and so is what a host answers. It must not know requests, tensors or the server.
//!
//! ```text
//! address --> Allowed: scheme, host, port, path       names     --> each address of a host, in Networks
//! store   --> buckets as addresses of the web         client    --> redirects, each checked; bytes, time
//! pool    --> threads, and the memory of their files  cache     --> files that their hosts say are the same
//! ```

mod address;
mod cache;
mod client;
mod failure;
mod names;
mod networks;
mod pool;
mod room;
mod store;

pub use address::{Address, Allowed, MAX_ADDRESS_BYTES, Scheme};
pub use client::{Answer, Client, Rules, Validators, Watch};
pub use failure::Failure;
pub use names::{Names, System};
pub use networks::Networks;
pub use pool::{Bounds, Counts, File, Job, Pool};
