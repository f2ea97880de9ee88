//! Outputs in memory that the caller offers, sample by sample.

use std::collections::HashMap;
use std::ffi::c_void;

use super::sample::{Described, Destination};
use super::size::Roomy;
use super::types::{Allocate, CPU, GPU, TargetMemory};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::memory::DeviceBytes;
use crate::pipeline::{Failures, OutputSink, Target};
use crate::tensor::{BatchDesc, Device};

/// Asks a caller's function for memory.
pub(super) struct CallersMemory {
    allocate: Allocate,
    user: *mut c_void,
    /// The instance's GPU.
    ordinal: i32,
    /// What it offered, by output and sample.
    pub(super) places: HashMap<(usize, usize), Destination>,
}

impl CallersMemory {
    pub(super) fn new(allocate: Allocate, user: *mut c_void, ordinal: i32) -> Self {
        Self { allocate, user, ordinal, places: HashMap::new() }
    }

    /// What the caller offers for one sample; `None`: nothing, so that it stays in our memory.
    fn ask(
        &mut self,
        output: usize,
        sample: usize,
        desc: &BatchDesc,
        made: Device,
    ) -> Result<Option<Destination>> {
        let Some(allocate) = self.allocate else { return Ok(None) };
        let Some(shape) = desc.shapes.get(sample) else { return Ok(None) };
        let bytes = shape.bytes(desc.dtype.size())?;
        let described = Described::new(desc, sample)?;
        let tensor = described.tensor(std::ptr::null_mut(), bytes, made, self.ordinal);
        let struct_size = size_of::<TargetMemory>();
        let mut target = Roomy::new(TargetMemory { struct_size, data: std::ptr::null_mut(), device: CPU });
        // SAFETY: the caller of the run vouches for the function; both structs live during the call.
        let refused =
            unsafe { allocate(self.user, output, sample, &raw const tensor, &raw mut target.value) };
        if refused != 0 {
            return Err(Error::invalid(format!("the caller has no memory for output {output}: {refused}")));
        }
        let target = target.written()?;
        if target.data.is_null() || bytes == 0 {
            return Ok(None);
        }
        let device = match target.device {
            CPU => Device::Cpu,
            GPU if made == Device::Gpu => Device::Gpu,
            GPU => {
                return Err(Error::invalid(format!(
                    "output {output} is made on the host, expected host memory for it"
                )));
            }
            other => {
                return Err(Error::invalid(format!(
                    "`device` of a target is {other}, expected a `gesso_device`"
                )));
            }
        };
        let address = target.data as usize;
        if !address.is_multiple_of(desc.dtype.size()) {
            return Err(Error::invalid(format!(
                "the caller's memory for output {output} is at an address that is no multiple of {}",
                desc.dtype.size()
            )));
        }
        let place = Destination { address, device };
        self.places.insert((output, sample), place);
        Ok(Some(place))
    }

    fn ask_all(
        &mut self,
        output: usize,
        desc: &BatchDesc,
        failures: &Failures,
        made: Device,
    ) -> Result<Vec<Option<(Destination, usize)>>> {
        let mut places = Vec::with_capacity(desc.shapes.len());
        for (sample, shape) in desc.shapes.iter().enumerate() {
            if failures.get(sample).is_some() {
                places.push(None);
                continue;
            }
            let place = self.ask(output, sample, desc, made).unwrap_or_else(|error| {
                failures.fail(sample, error);
                None
            });
            places.push(place.map(|place| Ok((place, shape.bytes(desc.dtype.size())?))).transpose()?);
        }
        Ok(places)
    }
}

/// # Safety
/// The caller gave `bytes` bytes at `place`, which nobody else uses until the run returns.
unsafe fn host<'r>(place: Destination, bytes: usize) -> &'r mut [u8] {
    // SAFETY: as the caller of this function says; the address is not null.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(place.address), bytes) }
}

impl<'r> OutputSink<'r> for CallersMemory {
    fn allocate(
        &mut self,
        output: usize,
        desc: &BatchDesc,
        failures: &Failures,
    ) -> Result<Vec<Option<&'r mut [u8]>>> {
        let places = self.ask_all(output, desc, failures, Device::Cpu)?;
        // SAFETY: the contract of `gesso_allocate`.
        Ok(places
            .into_iter()
            .map(|place| place.map(|(place, bytes)| unsafe { host(place, bytes) }))
            .collect())
    }

    fn allocate_on_device(
        &mut self,
        output: usize,
        desc: &BatchDesc,
        failures: &Failures,
        _gpu: &Gpu,
        _wanted: Device,
    ) -> Result<Vec<Option<Target<'r>>>> {
        let places = self.ask_all(output, desc, failures, Device::Gpu)?;
        let target = |(place, bytes): (Destination, usize)| match place.device {
            // SAFETY: the contract of `gesso_allocate`.
            Device::Cpu => Target::Host(unsafe { host(place, bytes) }),
            // SAFETY: as above; `ask` took memory of a GPU for what the instance's makes.
            Device::Gpu => Target::Device(unsafe { DeviceBytes::foreign(place.address as u64, bytes) }),
        };
        Ok(places.into_iter().map(|place| place.map(target)).collect())
    }
}
