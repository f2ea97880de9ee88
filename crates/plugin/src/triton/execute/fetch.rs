//! The tensors of requests as they arrived: in pieces, on the host or on a device. What is needed on the host is
//! brought there, for all requests of a batch at once. It must not know samples.

use std::collections::BTreeMap;

use crate::config::Tensor;
use crate::fetch::File;
use crate::triton::api::{Chunk, DataType, Input, Memory};
use crate::triton::exchange::Claim;
use crate::triton::folder::Folder;
use crate::triton::lane::Link;
use crate::triton::model::ModelState;
use gesso::error::{Error, ErrorKind, Result};
use gesso::limits;
use gesso::pipeline::{self, DeviceBytes, Fetch};
use gesso::tensor::Device;

/// One tensor of a request.
pub(super) struct Arrived<'r> {
    /// Its description.
    pub(super) input: Input<'r>,
    /// Its bytes. After [`to_host`] on the host, or one piece on the instance's device that the batch reads there.
    pub(super) chunks: Vec<Chunk<'r>>,
    /// Whether the batch reads it where it is.
    in_place: bool,
    /// Where the files are that its elements name, if they are not the files themselves.
    pub(super) folder: Option<&'r Folder>,
    /// Files that its samples name by address, by their numbers.
    pub(super) files: Option<&'r BTreeMap<usize, File>>,
}

/// The tensors of a request in the order of the pipeline's inputs; `None` for one whose default stands in for it.
///
/// # Errors
/// Invalid when another one is missing, unsupported when one is in memory that the instance cannot read, cancelled when
/// nobody waits for an answer.
pub(super) fn arrive<'r>(
    model: &'r ModelState,
    declared: &[pipeline::Input],
    claim: &'r Claim,
    link: Option<&Link>,
) -> Result<Vec<Option<Arrived<'r>>>> {
    let request = claim.request();
    if request.is_cancelled()? {
        return Err(cancelled());
    }
    let found = request.inputs()?;
    let tensors = model.tensors.inputs.iter().zip(declared).map(|(configured, declared)| {
        let name = &configured.name;
        let Some(input) = found.iter().find(|input| input.name == name) else {
            return if configured.default.is_some() { Ok(None) } else { Err(missing(configured)) };
        };
        let chunks = input.chunks()?;
        let own = link.map(|link| Memory::gpu(link.ordinal));
        for chunk in &chunks {
            if let Chunk::Device { memory, .. } = chunk
                && own.is_none_or(|own| own.kind != memory.kind)
            {
                return Err(Error::unsupported(format!(
                    "input `{name}` is in memory `{memory}`, expected host memory"
                )));
            }
        }
        let in_place = declared.device == Device::Gpu
            && matches!(input.dtype, DataType::Dense(_))
            && matches!(chunks.as_slice(), [Chunk::Device { memory, .. }] if Some(*memory) == own);
        let folder = model.folders.get(name);
        let files = claim.files().get(name);
        Ok(Some(Arrived { input: input.clone(), chunks, in_place, folder, files }))
    });
    tensors.collect()
}

/// The error of a request that nobody waits for.
pub(super) fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the client no longer waits")
}

fn missing(input: &Tensor) -> Error {
    let name = &input.name;
    Error::invalid(if input.optional {
        format!("input `{name}` is missing: it is optional, but has no default, {}", input.why_no_default())
    } else {
        format!("input `{name}` is missing")
    })
}

/// Brings what is needed on the host there, with one wait. A request whose tensors cannot be brought becomes an error.
pub(super) fn to_host<'r>(
    arrived: &mut [Result<Vec<Option<Arrived<'r>>>>],
    link: &Link,
    landing: &'r mut Option<Fetch>,
) {
    let mut sources = Vec::new();
    let mut total = 0usize;
    for request in &mut *arrived {
        let Ok(tensors) = request else { continue };
        let wanted: Vec<DeviceBytes<'r>> = remote(tensors)
            .filter_map(|chunk| match chunk {
                Chunk::Device { bytes, .. } => Some(bytes.clone()),
                Chunk::Host(_) => None,
            })
            .collect();
        let bytes = wanted.iter().fold(0usize, |sum, source| sum.saturating_add(source.len()));
        if total.saturating_add(bytes) > limits::MAX_BATCH_BYTES {
            *request = Err(Error::new(
                ErrorKind::Unavailable,
                format!(
                    "{bytes} bytes in device memory are needed on the host and do not fit into their batch any more, whose \
                     limit is {} bytes",
                    limits::MAX_BATCH_BYTES
                ),
            ));
            continue;
        }
        total += bytes;
        sources.extend(wanted);
    }
    if sources.is_empty() {
        return;
    }
    match fetch(link, landing, &sources) {
        Ok(fetched) => {
            let chunks = arrived.iter_mut().flatten().flat_map(|tensors| remote(tensors));
            for (chunk, bytes) in chunks.zip(fetched) {
                *chunk = Chunk::Host(bytes);
            }
        }
        Err(error) => {
            for request in arrived {
                if request.as_mut().is_ok_and(|tensors| remote(tensors).next().is_some()) {
                    *request = Err(error.clone());
                }
            }
        }
    }
}

fn fetch<'r>(
    link: &Link,
    landing: &'r mut Option<Fetch>,
    sources: &[DeviceBytes<'_>],
) -> Result<Vec<&'r [u8]>> {
    let fetch = match landing {
        Some(fetch) => fetch,
        None => landing.insert(Fetch::new(link.stream()?)),
    };
    fetch.fetch(sources)
}

/// The pieces that are on a device and needed on the host.
fn remote<'t, 'r>(tensors: &'t mut [Option<Arrived<'r>>]) -> impl Iterator<Item = &'t mut Chunk<'r>> {
    let tensors = tensors.iter_mut().flatten().filter(|tensor| !tensor.in_place);
    tensors.flat_map(|tensor| &mut tensor.chunks).filter(|chunk| matches!(chunk, Chunk::Device { .. }))
}
