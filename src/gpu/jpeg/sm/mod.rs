//! Decoding on the device's SMs: a batch is seven launches, up to two more when chroma is smooth or a picture is
//! reduced, and one more when a file is progressive. Whole pictures may be left as planes, for a reader that makes
//! pixels of them. It must not know operators.
//!
//! ```text
//! Header -> Coded       what the SMs take, and the tables that are in use
//! Coded -> Planned      how a part of it is made
//! Huffman -> Lookup     a table as the device reads it
//! data -> Scan          bits without stuffing and markers, in the staging slab: by the caller's threads
//! Sm::prepare           tables, meanwhile
//! Sm::record            the rest of them and launches; `kernels/jpeg.cuh` says what each does
//! ```
//!
//! That a picture is damaged shows on the device only. [`Sm::record`] returns where it will say so: such a picture
//! is for the CPU decoder, after the batch.

mod batch;
mod coded;
mod constants;
mod kernels;
mod part;
mod parts;
mod passes;
mod planned;
mod rows;
mod scan;
mod scratch;
mod steps;
mod tables;

use bytemuck::Pod;

use super::{Format, Huffman, Quantisation};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Grid, KernelSpec, Recorder, Report};
use crate::memory::DeviceBytes;
use kernels::{Kernels, Params};
use rows::Image;
use steps::Steps;

pub use batch::{Batch, Unmade};
pub use coded::{Coded, Colour, Component};
pub use part::{MAX_SHRINK, Part};
pub use parts::{Data, read, read_file};
pub use planned::{Planned, extra_table_bytes};
pub use rows::Cut;
pub use scan::{Layout, Scan, Segment, room};
pub use scratch::Scratch;
pub use steps::Planes;
pub use tables::Lookup;
use tables::Tables;

/// What [`Sm::record`] recorded.
pub struct Recorded {
    /// After the batch it has a number for each picture: 0 when it is right.
    pub report: Report,
    /// For each picture that was decoded and is left as planes, where `kernels/planes.cuh` finds them. The planes are
    /// scratch memory.
    pub planes: Vec<Option<DeviceBytes<'static>>>,
}

/// The SMs of a device, as one instance of an operator uses them.
pub struct Sm {
    format: Format,
    /// Whether chroma is upsampled smoothly.
    smooth: bool,
    kernels: Kernels,
    tables: Tables,
}

impl Sm {
    /// Compiles the kernels.
    ///
    /// # Errors
    /// When they do not compile.
    pub fn open(gpu: &Gpu, format: Format, smooth: bool) -> Result<Self> {
        for kernel in kernels() {
            gpu.kernel(&kernel)?;
        }
        Ok(Self { format, smooth, kernels: Kernels::new(), tables: Tables::default() })
    }

    /// Whether the kernels make of such a file what libjpeg does.
    pub fn takes(&self, coded: &Coded<'_>) -> bool {
        // Luma of RGB would have to be computed.
        !(self.format == Format::Gray && coded.colour == Colour::Rgb)
    }

    /// How a part of a picture would be decoded; whether its pixels may be left to who reads the planes.
    pub fn plan<'a>(&self, coded: Coded<'a>, part: Part, may_leave_planes: bool) -> Planned<'a> {
        let steps = self.steps(&coded, &part, may_leave_planes);
        Planned { coded, part, steps }
    }

    /// `None`: one step makes pixels of coefficients.
    fn steps(&self, coded: &Coded<'_>, part: &Part, may_leave_planes: bool) -> Option<Steps> {
        let fine =
            coded.components.iter().all(|component| [component.across, component.down] == coded.factors());
        let (at_once, channels) = (fine || !self.smooth, self.format.channels());
        if at_once && may_leave_planes && *part == Part::whole([coded.width, coded.height], 0) {
            return Some(Steps::of_planes(part, part.samples(coded, channels, false), coded.colour));
        }
        if part.shrink == 0 && at_once {
            return None;
        }
        Steps::of(part, part.samples(coded, channels, self.smooth))
    }

    /// Makes the tables of a batch as far as they do not depend on its data, which may not be there yet: pictures, and
    /// where their pixels go, rows without gaps. The data will be cut as `cut` says.
    ///
    /// # Errors
    /// Internal, when a target has not the size of its picture, or a picture that is not left as planes has none.
    pub fn prepare<'a: 'b, 'b>(
        &self,
        pictures: impl IntoIterator<Item = (&'b Planned<'a>, Option<&'b DeviceBytes<'b>>)>,
        cut: Cut,
    ) -> Result<Batch<'b>> {
        let mut batch = Batch::new(cut);
        for (planned, target) in pictures {
            batch.add(planned, target, self.format.channels(), &self.tables)?;
        }
        Ok(batch)
    }

    /// Makes the tables of a batch that are not known, by `all` if they are many: files that were encoded for the least
    /// bytes have their own.
    pub fn make_tables(&mut self, batch: &mut Batch<'_>, all: impl FnOnce(&mut [Unmade<'_, '_>])) {
        let mut unmade = batch.unmade();
        if unmade.len() > FEW_TABLES {
            all(&mut unmade);
        } else {
            for unmade in &mut unmade {
                unmade.make();
                self.tables.keep(unmade.table, unmade.lookup);
            }
        }
        batch.are_made();
    }

    /// Records what decodes a batch, of whose pictures `scans` says where their data will be and what was found in it.
    /// Those without a scan are left out. So many progressive images are in it and in batches that run `beside` it. It
    /// uses the part of `scratch` for the stream with that number, as what is recorded behind it there may do again.
    ///
    /// # Errors
    /// When there is no memory; internal, when data is missing.
    pub fn record(
        &self,
        recorder: &mut Recorder,
        (scratch, stream): (&mut Scratch, usize),
        (mut batch, beside): (Batch<'_>, usize),
        scans: &[(DeviceBytes<'_>, Option<&Scan>)],
    ) -> Result<Recorded> {
        batch.unmade().iter_mut().for_each(Unmade::make);
        batch.load(scans)?;
        let report = recorder.report(batch.images.len())?;
        let grid = |blocks: usize, threads: u32| {
            let blocks = u32::try_from(blocks).map_err(|_| Error::internal("too many pieces of JPEGs"))?;
            Ok(Grid { blocks: [blocks, 1, 1], threads })
        };
        // Other batches under way may have as many.
        let (at_a_time, multiprocessors) =
            (recorder.gpu().in_flight().max(1), recorder.gpu().multiprocessors());
        let of_a_warp = |threads: usize| rows::threads_of_a_warp(threads * at_a_time, multiprocessors);
        let of_guesses = of_a_warp(batch.images.iter().map(Image::guess_threads).sum());
        let pieces = batch.pieces as usize;
        // Notes of sections are no part of what a large batch takes (`Planned::scratch_bytes`).
        let halvings = if batch.is_small() { rows::halvings(pieces * at_a_time, multiprocessors) } else { 0 };
        let of_decodes = of_a_warp(pieces << halvings);
        let resolves = batch.numbered(Image::piece_runs);
        let dcs = batch.numbered(Image::dc_runs);
        let told = [2 * resolves.len(), dcs.len()];
        let (params, planes) =
            self.params(recorder, (scratch, stream), (&batch, halvings, told), report.address())?;
        let guesses = batch.work(|image, segments| image.guess_groups(segments, of_guesses));
        let decodes = batch.work(|image, segments| image.decode_groups(segments, of_decodes, halvings));
        let groups: usize = batch.at_once().map(|(_, image)| image.mcu_groups()).sum();
        let groups = groups + batch.in_steps().map(|(_, steps)| steps.groups()).sum::<usize>();
        let each = groups.div_ceil(constants::MAX_PIXELS_BLOCKS) as u32;
        let Kernels {
            pairs,
            guess,
            link,
            resolve,
            decode,
            progressive: [few, many],
            dc,
            pixels,
            planes: samples,
            upsample,
        } = &self.kernels;
        let parts = constants::PAIRS_PARTS as usize * batch.lookup_work.len();
        recorder.launch(pairs, grid(parts, constants::PAIRS_THREADS)?, &params, &batch.lookup_work)?;
        for kernel in [guess, link] {
            recorder.launch(kernel, grid(guesses.len(), constants::SKIP_THREADS)?, &params, &guesses)?;
        }
        let scanned = batch.progressive.len();
        let (progressive, blocks, scan_threads) = if shares_warps(beside, recorder.gpu()) {
            let blocks = scanned.div_ceil(constants::TOGETHER_IMAGES);
            (many, blocks, constants::TOGETHER_THREADS)
        } else {
            (few, scanned, constants::PROGRESSIVE_THREADS)
        };
        for (kernel, blocks, threads, work) in [
            (resolve, resolves.len(), constants::SCAN_THREADS, &resolves),
            (decode, decodes.len(), constants::DECODE_THREADS, &decodes),
            (progressive, blocks, scan_threads, &batch.progressive),
            (dc, dcs.len(), constants::SCAN_THREADS, &dcs),
        ] {
            recorder.launch(kernel, grid(blocks, threads)?, &params, work)?;
        }
        let [at_once, blocks, strips] = batch.pixel_work(each);
        for (kernel, work) in [(pixels, &at_once), (samples, &blocks), (upsample, &strips)] {
            recorder.launch(kernel, grid(work.len(), constants::PIXELS_THREADS)?, &params, work)?;
        }
        Ok(Recorded { report, planes })
    }

    /// Parameters of the kernels, and where the planes of pictures are described that are left as such.
    fn params(
        &self,
        recorder: &mut Recorder,
        (scratch, stream): (&mut Scratch, usize),
        (batch, halvings, told): (&Batch<'_>, u32, [usize; 2]),
        status: u64,
    ) -> Result<(Params, Vec<Option<DeviceBytes<'static>>>)> {
        let (pieces, blocks) = (batch.pieces as usize, batch.blocks as usize);
        let sizes = [
            batch.lookups.len() * kernels::PAIRS_BYTES,
            pieces * kernels::EXIT_BYTES,
            pieces * kernels::LINK_BYTES,
            pieces * kernels::PASSED_BYTES,
            pieces * kernels::note_bytes(halvings),
            (pieces * kernels::START_BYTES) << halvings,
            blocks * kernels::BLOCK_BYTES,
            blocks * kernels::DC_BYTES,
            told.iter().sum::<usize>() * kernels::TOLD_BYTES,
        ];
        let samples: usize = batch.in_steps().map(|(_, steps)| steps.bytes(ALIGNMENT)).sum();
        // One behind the other in one buffer: to allocate takes longer than to add.
        let mut end = 0;
        let offsets = sizes.map(|bytes| {
            let offset = end;
            end += bytes.next_multiple_of(ALIGNMENT);
            offset as u64
        });
        let scratch = scratch.fit(recorder, stream, end + samples)?;
        let samples = scratch + end as u64;
        let [pairs, exits, links, passed, notes, starts, coefficients, dcs, told_at] =
            offsets.map(|offset| scratch + offset);
        let planes = batch.planes(samples)?;
        let blue_first = self.format == Format::Bgr;
        let params = Params {
            images: stage(recorder, &batch.images)?,
            tables: stage(recorder, &batch.lookups)?,
            pairs,
            segments: stage(recorder, &batch.segments)?,
            quantisation: stage(recorder, &batch.values)?,
            exits,
            links,
            passed,
            notes,
            starts,
            coefficients,
            dcs,
            status,
            planes: stage(recorder, &planes)?,
            told: told_at,
            told_dcs: told_at + (told[0] * kernels::TOLD_BYTES) as u64,
            passes: stage(recorder, &batch.passes)?,
            channels: self.format.channels() as u32,
            blue_first: u32::from(blue_first),
            halvings,
            told_words: told.iter().sum::<usize>() as u32,
        };
        let left = batch.left_as_planes(&planes, blue_first);
        if left.iter().all(Option::is_none) {
            return Ok((params, vec![None; left.len()]));
        }
        let rows: Vec<Planes> = left.iter().copied().flatten().collect();
        let staged = recorder.stage(bytemuck::cast_slice(&rows))?;
        let mut offsets = (0..).step_by(size_of::<Planes>());
        let places = left.iter().map(|planes| {
            let offset = planes.and_then(|_| offsets.next());
            offset.map(|offset| staged.part(offset, size_of::<Planes>())).transpose()
        });
        Ok((params, places.collect::<Result<_>>()?))
    }
}

/// Whether the progressive images of a batch share warps, where there are so many; other batches under way may have as
/// many. Few images have a warp for each scan, and are done sooner.
fn shares_warps(images: usize, gpu: &Gpu) -> bool {
    let of_an_sm = (images * gpu.in_flight().max(1)).div_ceil(gpu.multiprocessors().max(1));
    of_an_sm > FEW_IMAGES_OF_AN_SM
}

/// Progressive images of an SM that it has enough warps for.
const FEW_IMAGES_OF_AN_SM: usize = 2;

/// Tables of a batch that are made at once and kept. Of more, no other batch has them.
const FEW_TABLES: usize = 16;

/// Alignment of scratch memory.
const ALIGNMENT: usize = 256;

/// Where `rows` will be; 0 when there are none.
fn stage<T: Pod>(recorder: &mut Recorder, rows: &[T]) -> Result<u64> {
    if rows.is_empty() {
        return Ok(0);
    }
    Ok(recorder.stage(bytemuck::cast_slice(rows))?.address())
}

/// Every kernel of the SMs.
pub fn kernels() -> Vec<KernelSpec> {
    Kernels::new().into_list()
}
