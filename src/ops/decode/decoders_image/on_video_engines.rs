//! HEIC of a batch on the device's video engines: pixels as stored, of the whole picture. It must not know the other
//! paths.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Job;
use super::files::{File, missing_sample};
use crate::coded_video::factors_of;
use crate::cpu::decode::{Format as FileFormat, Tiles};
use crate::deadline::Watch;
use crate::error::{Error, Result};
use crate::gpu::jpeg::Format;
use crate::gpu::video::{Codec, Engines, Tiling, canvas_bytes, decode_tiles};
use crate::gpu::{Event, Gpu};
use crate::limits;
use crate::memory::DeviceBytes;
use crate::operator::GpuCx;
use crate::threads::call;

/// Most bits of a sample that they decode here.
const MOST_BITS: usize = 10;

/// The engines, from the first file on that they may take.
pub(super) struct OnVideoEngines {
    gpu: Arc<Gpu>,
    state: State,
    /// Recorded into the stream in which destinations were allocated.
    ready: Arc<Event>,
}

enum State {
    Unknown,
    Opened(Arc<Engines>),
    /// There are none, or they write no such pixels.
    Absent,
}

/// One file of a batch.
pub(super) struct Still<'a> {
    pub(super) job: &'a Job,
    pub(super) file: File<'a>,
    /// Where its pixels go: rows without gaps.
    pub(super) target: DeviceBytes<'a>,
    /// Whether somebody waits for it.
    pub(super) watch: Watch<'a>,
}

impl OnVideoEngines {
    /// Those of `gpu`, if `format` is what they write.
    ///
    /// # Errors
    /// What the driver says.
    pub(super) fn new(gpu: &Arc<Gpu>, format: Format) -> Result<Self> {
        let state = if format == Format::Rgb { State::Unknown } else { State::Absent };
        Ok(Self { gpu: Arc::clone(gpu), state, ready: Arc::new(Event::new(gpu)?) })
    }

    /// Whether they may decode a file, as far as its header tells: what they do not is seen when it is tried.
    pub(super) fn may_take(&self, job: &Job) -> bool {
        let info = &job.info;
        let (width, height) = info.stored_size();
        let is_usual = info.channels == 3 && info.bit_depth <= MOST_BITS && width % 2 == 0 && height % 2 == 0;
        // The host makes Pillow's of what are not bytes.
        let is_plain = job.options.shrink == 0 && !(job.options.as_pillow && info.bit_depth > 8);
        info.format == FileFormat::Heic && is_usual && is_plain && !matches!(self.state, State::Absent)
    }

    /// Bytes of the device that a file takes beside its pixels, while it is decoded.
    pub(super) fn scratch_bytes(job: &Job) -> usize {
        let (width, height) = job.info.stored_size();
        canvas_bytes([width, height], job.info.bit_depth as u32)
    }

    /// The engines, opened when they are first asked for; `None`, said once in the log: there are none.
    fn engines(&mut self) -> Option<Arc<Engines>> {
        if matches!(self.state, State::Unknown) {
            self.state = match Engines::open(&self.gpu) {
                Ok(engines) => State::Opened(Arc::new(engines)),
                Err(error) => {
                    tracing::info!("HEIC is decoded on the host: {error}");
                    State::Absent
                }
            };
        }
        match &self.state {
            State::Opened(engines) => Some(Arc::clone(engines)),
            State::Unknown | State::Absent => None,
        }
    }

    /// Decodes `stills`, several at a time, and returns the places of those that they refuse: all where there are none.
    /// Targets of the others are written when this returns.
    ///
    /// # Errors
    /// What a broken device answers, or one without memory.
    pub(super) fn decode(&mut self, cx: &mut GpuCx<'_>, stills: &[Still<'_>]) -> Result<Vec<usize>> {
        if stills.is_empty() {
            return Ok(Vec::new());
        }
        let Some(engines) = self.engines() else { return Ok((0..stills.len()).collect()) };
        let lanes = stills.len().min(limits::MAX_VIDEO_DECODERS);
        let most = stills.iter().map(|still| Self::scratch_bytes(still.job)).max().unwrap_or_default();
        let canvases = (0..lanes).map(|_| Ok(DeviceBytes::of(&cx.recorder.allocate(most)?, 0, most)));
        let canvases = Mutex::new(canvases.collect::<Result<Vec<_>>>()?);
        self.ready.record(cx.recorder.stream())?;
        let (next, refused) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            let Some(canvas) = canvases.lock().pop() else { return };
            while let Some((place, still)) = {
                let place = next.fetch_add(1, Ordering::Relaxed);
                stills.get(place).map(|still| (place, still))
            } {
                let decode = || decode(&engines, still, &canvas, &self.ready);
                let decoded = catch_unwind(AssertUnwindSafe(decode));
                let decoded = decoded.unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref())));
                if let Err(error) = decoded {
                    tracing::debug!("the video engines refuse a file: {error}");
                    refused.lock().push(place);
                }
            }
        };
        cx.cpu.pool.in_place_scope(|scope| {
            call(scope, &work, lanes - 1);
            work();
        });
        let mut refused = refused.into_inner();
        refused.sort_unstable();
        Ok(refused)
    }
}

fn decode(
    engines: &Arc<Engines>,
    still: &Still<'_>,
    canvas: &DeviceBytes<'_>,
    ready: &Arc<Event>,
) -> Result<()> {
    let tiles =
        Tiles::read(still.file.all).ok_or_else(|| Error::unsupported("a kind that the host decodes"))?;
    let (width, height) = still.job.info.stored_size();
    if tiles.size != [width, height] || tiles.depth as usize != still.job.info.bit_depth {
        return Err(missing_sample());
    }
    let tiling = Tiling {
        codec: Codec::H265,
        size: tiles.size,
        tile: tiles.tile,
        columns: tiles.columns,
        count: tiles.count,
        depth: tiles.depth,
        factors: factors_of(tiles.factors),
    };
    let frame = |place: usize, into: &mut Vec<u8>| {
        still.watch.check()?;
        tiles.frame(place, into)
    };
    decode_tiles(engines, &tiling, frame, [canvas, &still.target], ready)
}
