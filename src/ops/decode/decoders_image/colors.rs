//! Tables that make sRGB of the colours of files' profiles, as a device has them: those that were used last are kept.
//! It must not know pixels.

use std::sync::Arc;

use bytemuck::bytes_of;

use super::Job;
use super::finish::ColorHead;
use crate::cpu::decode::{ColorTable, ProfileKey, profile_key};
use crate::error::Result;
use crate::gpu::{DeviceBuffer, Recorder};
use crate::limits;
use crate::memory::{DeviceBytes, DeviceMemory};

/// See the module. The one that was used last is at the end.
#[derive(Default)]
pub(super) struct Colors(Vec<(ProfileKey, Option<Arc<DeviceBuffer>>)>);

impl Colors {
    /// The table for a file whose colours are to become sRGB, which stays until the batch is over. `None`: the host
    /// converts them.
    ///
    /// # Errors
    /// When there is no memory on the device.
    pub(super) fn table(&mut self, recorder: &mut Recorder, job: &Job, file: &[u8]) -> Result<Option<u64>> {
        let Ok(Some(key)) = profile_key(file, &job.info) else { return Ok(None) };
        let known = match self.0.iter().position(|(known, _)| *known == key) {
            Some(place) => self.0.remove(place),
            None => {
                if self.0.len() >= limits::MAX_COLOR_TABLES {
                    self.0.remove(0);
                }
                let table = ColorTable::of(file, job.info.format);
                (key, table.map(|table| uploaded(recorder, &table)).transpose()?)
            }
        };
        self.0.push(known);
        let table = self.0.last().and_then(|(_, table)| table.as_ref());
        Ok(table.map(|table| {
            let bytes = DeviceBytes::of(table, 0, table.len());
            recorder.keep(&bytes);
            bytes.address()
        }))
    }
}

fn uploaded(recorder: &Recorder, table: &ColorTable) -> Result<Arc<DeviceBuffer>> {
    let head = ColorHead { places: table.places, to_srgb: table.to_srgb, black: table.black, unused: [0; 6] };
    let bytes = [bytes_of(&head), bytemuck::cast_slice(&table.corners)].concat();
    let stream = recorder.stream();
    let buffer = Arc::new(DeviceBuffer::new(stream, bytes.len())?);
    stream.put(&[(DeviceBytes::of(&buffer, 0, bytes.len()), &bytes)])?;
    Ok(buffer)
}
