//! The optical flow engine of a device, as one instance of an operator uses it: what it takes, and sessions that are
//! kept. It must not know operators.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::handle::Handle;
use super::session::Session;
use super::settings::Settings;
use super::sys::{Cap, Functions};
use crate::error::{Error, ErrorKind, Result};
use crate::gpu::{Gpu, Stream};
use crate::limits;

/// The engine of a device, with settings.
pub struct Engine {
    functions: Arc<Functions>,
    gpu: Arc<Gpu>,
    settings: Settings,
    /// Columns and rows that it takes.
    sides: [RangeInclusive<u32>; 2],
    /// The one that was used last at the end.
    sessions: Vec<Arc<Session>>,
}

impl Engine {
    /// Opens the engine of `gpu`.
    ///
    /// # Errors
    /// Unavailable, when the library is not there, or the device has no such engine; unsupported, when it does not do
    /// what `settings` say.
    pub fn open(gpu: &Arc<Gpu>, settings: Settings) -> Result<Self> {
        let functions = Arc::new(Functions::open()?);
        let _bound = gpu.bind()?;
        let handle = Handle::new(&functions, gpu).map_err(|error| {
            let text =
                format!("no optical flow engine on device {} (`{}`): {error}", gpu.ordinal(), gpu.name());
            Error::new(ErrorKind::Unavailable, text)
        })?;
        let sides = asked(&handle, &settings)?;
        Ok(Self { functions, gpu: Arc::clone(gpu), settings, sides, sessions: Vec::new() })
    }

    /// What flow it computes.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A session for frames of `size`, columns and rows, whose work goes into `stream`: one that is there, or else a
    /// new one.
    ///
    /// # Errors
    /// Invalid for a size that the engine does not take; unavailable when there is no memory, or the sequences that are
    /// worked on are of more than [`limits::MAX_FLOW_SESSIONS`] sizes.
    pub fn session(&mut self, size: [usize; 2], stream: &Arc<Stream>) -> Result<Arc<Session>> {
        let size = self.checked(size)?;
        let place = self.sessions.iter().position(|session| session.is_for(size, stream));
        let session = match place {
            Some(place) => self.sessions.remove(place),
            None => {
                self.make_room()?;
                tracing::debug!(device = self.gpu.ordinal(), ?size, "an optical flow session is made");
                Arc::new(Session::new(&self.functions, &self.settings, size, stream)?)
            }
        };
        self.sessions.push(Arc::clone(&session));
        Ok(session)
    }

    fn checked(&self, size: [usize; 2]) -> Result<[u32; 2]> {
        let [width, height] = size.map(|side| u32::try_from(side).unwrap_or(u32::MAX));
        let [columns, rows] = &self.sides;
        if columns.contains(&width) && rows.contains(&height) {
            return Ok([width, height]);
        }
        Err(Error::invalid(format!(
            "frames of {width} x {height} pixels, expected {} to {} columns and {} to {} rows, which the optical flow engine of device {} takes",
            columns.start(),
            columns.end(),
            rows.start(),
            rows.end(),
            self.gpu.ordinal()
        )))
    }

    /// Lets the session go that was not used for longest, if there are as many as there may be.
    fn make_room(&mut self) -> Result<()> {
        if self.sessions.len() < limits::MAX_FLOW_SESSIONS {
            return Ok(());
        }
        // What the batch uses, it holds.
        let idle = self.sessions.iter().position(|session| Arc::strong_count(session) == 1);
        let idle = idle.ok_or_else(|| {
            Error::new(
                ErrorKind::Unavailable,
                format!(
                    "sequences of more than {} sizes in one batch, which is as many as optical flow is computed for at a time",
                    limits::MAX_FLOW_SESSIONS
                ),
            )
        })?;
        self.sessions.remove(idle);
        Ok(())
    }
}

/// What the device says: columns and rows that it takes.
fn asked(handle: &Handle, settings: &Settings) -> Result<[RangeInclusive<u32>; 2]> {
    check_grid("output_grid", settings.output_grid, &handle.caps(Cap::OutputGrids)?)?;
    if let Some(grid) = settings.hint_grid {
        check_grid("hint_grid", grid, &handle.caps(Cap::HintGrids)?)?;
        if handle.caps(Cap::TakesHints)?.first() == Some(&0) {
            return Err(Error::unsupported("the optical flow engine takes no hints"));
        }
    }
    let range = |least: Cap, most: Cap| Ok::<_, Error>(handle.cap(least)?..=handle.cap(most)?);
    Ok([range(Cap::LeastWidth, Cap::MostWidth)?, range(Cap::LeastHeight, Cap::MostHeight)?])
}

fn check_grid(name: &str, grid: u32, taken: &[u32]) -> Result<()> {
    if taken.contains(&grid) {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "argument `{name}` is {grid}, expected one of {taken:?}, which the device's optical flow engine takes"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_that_the_device_does_not_take_is_named() {
        assert!(check_grid("output_grid", 4, &[4]).is_ok());
        let text = check_grid("output_grid", 1, &[4]).unwrap_err().to_string();
        assert!(text.contains("`output_grid` is 1") && text.contains("[4]"), "{text}");
    }
}
