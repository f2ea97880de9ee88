//! Decoding on the device's own cores: a batch is seven launches, or nine when chroma is smooth or a picture is reduced, whatever its
//! pictures are. Whole pictures may be left as planes, for a reader that makes pixels of them. It must not know operators.
//!
//! ```text
//! Header -> Coded       what the cores take, and the tables that are in use
//! Huffman -> Lookup     a table as the device reads it
//! data -> Scan          bits without stuffing and markers, in the staging slab: by the caller's threads
//! Cores::record         tables and launches; `kernels/jpeg.cuh` says what each does
//! ```
//!
//! That a picture is damaged shows on the device only. [`Cores::record`] returns where it will say so: such a picture is for the
//! CPU decoder, after the batch.

mod coded;
mod part;
mod parts;
mod rows;
mod scan;
mod steps;
mod tables;

use std::collections::HashMap;

use bytemuck::Pod;

use super::huffman::Class;
use super::{Format, Huffman, Quantisation};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Grid, KernelSpec, Recorder, Report};
use crate::memory::DeviceBytes;
use rows::{Image, Kernels, Params, Work};
use steps::{Plane, Planes, Steps};

pub use coded::{Coded, Colour, Component};
pub use part::{MAX_SHRINK, Part};
pub use parts::{Data, read};
pub use rows::Cut;
pub use scan::{Layout, Scan, Segment, room};
pub use steps::LIVE_BYTES;
pub use tables::Lookup;
use tables::Tables;

/// A picture to decode.
pub struct Job<'a> {
    /// What its file says.
    pub coded: &'a Coded<'a>,
    /// Its data.
    pub scan: &'a Scan,
    /// Where the bits of the data will be, from the start of a place that [`Scan::read`] wrote to.
    pub data: DeviceBytes<'a>,
    /// Which of its pixels are made.
    pub part: Part,
    /// Where these go: rows without gaps.
    pub target: DeviceBytes<'a>,
    /// Whether they may be left to who reads the planes.
    pub may_leave_planes: bool,
}

/// What [`Cores::record`] recorded.
pub struct Recorded {
    /// After the batch it has a number for each picture: 0 when it is right.
    pub report: Report,
    /// For each picture that is left as planes, where `kernels/planes.cuh` finds them; its target holds anything. Its first [`LIVE_BYTES`]
    /// can be set to 0.
    pub planes: Vec<Option<DeviceBytes<'static>>>,
}

/// The cores of a device, as one instance of an operator uses them.
pub struct Cores {
    format: Format,
    /// Whether chroma is upsampled smoothly.
    smooth: bool,
    kernels: Kernels,
    tables: Tables,
}

impl Cores {
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

    /// Bytes of scratch memory on the device for a part of a picture of a large batch, at most.
    pub fn scratch_bytes(&self, coded: &Coded<'_>, part: &Part, may_leave_planes: bool) -> usize {
        let samples = self.steps(coded, part, may_leave_planes).map_or(0, |steps| steps.bytes(ALIGNMENT));
        coded.mcus() * coded.blocks() * (rows::BLOCK_BYTES + rows::DC_BYTES)
            + most_pieces(coded, Cut::LARGE) * PIECE_BYTES
            + MOST_TABLES * rows::PAIRS_BYTES
            + samples
    }

    /// Bytes of tables that go to the device with the data of a picture, at most.
    pub fn table_bytes(&self, coded: &Coded<'_>, part: &Part, may_leave_planes: bool) -> usize {
        let tables = MOST_TABLES * (size_of::<Lookup>() + size_of::<Work>()) + 3 * size_of::<[u16; 64]>();
        let own = 3 * size_of::<Image>() + tables;
        let groups = rows::most_groups(most_pieces(coded, Cut::SMALL), coded.grid(), coded.blocks());
        let steps = self.steps(coded, part, may_leave_planes);
        let (planes, more) = steps.map_or((0, 0), |steps| (steps.samples.len(), steps.groups()));
        own + coded.segments() * size_of::<Segment>()
            + (groups + more) * size_of::<Work>()
            + planes * size_of::<Plane>()
            + size_of::<Planes>()
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

    /// Records what decodes `jobs`, their data cut as `cut` says.
    ///
    /// # Errors
    /// When there is no memory; internal, when a target has not the size of its picture.
    pub fn record(&mut self, recorder: &mut Recorder, jobs: &[Job<'_>], cut: Cut) -> Result<Recorded> {
        let mut batch = Batch::new(cut);
        for job in jobs {
            let steps = self.steps(job.coded, &job.part, job.may_leave_planes);
            batch.add(job, steps, self.format.channels(), &mut self.tables)?;
        }
        let report = recorder.report(jobs.len())?;
        let (params, planes) = self.params(recorder, &batch, report.address())?;
        let grid = |blocks: usize, threads: u32| {
            let blocks = u32::try_from(blocks).map_err(|_| Error::internal("too many pieces of JPEGs"))?;
            Ok(Grid { blocks: [blocks, 1, 1], threads })
        };
        let guesses = batch.work(Image::guess_groups);
        let decodes = batch.work(Image::decode_groups);
        let groups: usize = batch.at_once().map(|(_, image)| image.mcu_groups()).sum();
        let groups = groups + batch.in_steps().map(|(_, steps)| steps.groups()).sum::<usize>();
        let each = groups.div_ceil(rows::MAX_PIXELS_BLOCKS) as u32;
        let Kernels { pairs, guess, link, resolve, decode, dc, pixels, planes: samples, upsample } =
            &self.kernels;
        for (kernel, threads, work) in [
            (pairs, rows::PAIRS_THREADS, &batch.lookup_work),
            (guess, rows::SKIP_THREADS, &guesses),
            (link, rows::SKIP_THREADS, &guesses),
        ] {
            recorder.launch(kernel, grid(work.len(), threads)?, &params, work)?;
        }
        let of_images = grid(batch.images.len(), rows::SCAN_THREADS)?;
        recorder.launch(resolve, of_images, &params, &batch.images)?;
        recorder.launch(decode, grid(decodes.len(), rows::DECODE_THREADS)?, &params, &decodes)?;
        recorder.launch(dc, of_images, &params, &batch.images)?;
        let [at_once, blocks, strips] = batch.pixel_work(each);
        for (kernel, work) in [(pixels, &at_once), (samples, &blocks), (upsample, &strips)] {
            if !work.is_empty() {
                recorder.launch(kernel, grid(work.len(), rows::PIXELS_THREADS)?, &params, work)?;
            }
        }
        Ok(Recorded { report, planes })
    }

    /// Parameters of the kernels, and where the planes of pictures are described that are left as such.
    fn params(
        &self,
        recorder: &mut Recorder,
        batch: &Batch<'_>,
        status: u64,
    ) -> Result<(Params, Vec<Option<DeviceBytes<'static>>>)> {
        let (pieces, blocks) = (batch.pieces as usize, batch.blocks as usize);
        let sizes = [
            batch.lookups.len() * rows::PAIRS_BYTES,
            pieces * rows::EXIT_BYTES,
            pieces * rows::LINK_BYTES,
            pieces * rows::PASSED_BYTES,
            pieces * rows::START_BYTES,
            blocks * rows::BLOCK_BYTES,
            blocks * rows::DC_BYTES,
            batch.in_steps().map(|(_, steps)| steps.bytes(ALIGNMENT)).sum(),
        ];
        // One behind the other in one buffer: to allocate takes longer than to add.
        let mut end = 0;
        let offsets = sizes.map(|bytes| {
            let offset = end;
            end += bytes.next_multiple_of(ALIGNMENT);
            offset as u64
        });
        let scratch = recorder.allocate(end)?.address();
        let [pairs, exits, links, passed, starts, coefficients, dcs, samples] =
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
            starts,
            coefficients,
            dcs,
            status,
            planes: stage(recorder, &planes)?,
            channels: self.format.channels() as u32,
            blue_first: u32::from(blue_first),
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

/// Alignment of scratch memory.
const ALIGNMENT: usize = 256;

/// Scratch bytes of a piece.
const PIECE_BYTES: usize = rows::EXIT_BYTES + rows::LINK_BYTES + rows::PASSED_BYTES + rows::START_BYTES;

/// Huffman tables of a picture.
const MOST_TABLES: usize = 4;

fn most_pieces(coded: &Coded<'_>, cut: Cut) -> usize {
    coded.room() * 8 / cut.bits as usize + coded.segments()
}

/// Where `rows` will be; 0 when there are none.
fn stage<T: Pod>(recorder: &mut Recorder, rows: &[T]) -> Result<u64> {
    if rows.is_empty() {
        return Ok(0);
    }
    Ok(recorder.stage(bytemuck::cast_slice(rows))?.address())
}

/// Tables of a batch.
struct Batch<'a> {
    cut: Cut,
    images: Vec<Image>,
    /// Of those whose pixels are made in two steps.
    steps: Vec<Option<Steps>>,
    segments: Vec<Segment>,
    /// Each once.
    lookups: Vec<Lookup>,
    /// The number of each, and 1 for AC.
    lookup_work: Vec<Work>,
    values: Vec<[u16; 64]>,
    lookup_places: HashMap<Huffman<'a>, u32>,
    value_places: HashMap<Quantisation<'a>, u32>,
    /// Tables of the last image: mostly those of the next, and that is seen faster than a hash is computed.
    recent: Vec<(Huffman<'a>, u32)>,
    recent_values: Vec<(Quantisation<'a>, u32)>,
    pieces: u32,
    blocks: u32,
    planes: u32,
}

impl<'a> Batch<'a> {
    fn new(cut: Cut) -> Self {
        Self {
            cut,
            images: Vec::new(),
            steps: Vec::new(),
            segments: Vec::new(),
            lookups: Vec::new(),
            lookup_work: Vec::new(),
            values: Vec::new(),
            lookup_places: HashMap::new(),
            value_places: HashMap::new(),
            recent: Vec::new(),
            recent_values: Vec::new(),
            pieces: 0,
            blocks: 0,
            planes: 0,
        }
    }

    fn add(
        &mut self,
        job: &Job<'a>,
        steps: Option<Steps>,
        channels: usize,
        tables: &mut Tables,
    ) -> Result<()> {
        let Job { coded, scan, data, part, target, .. } = job;
        let (expected, found) = (part.width * part.height * channels, target.len());
        if expected != found || data.len() < scan.bytes() || !part.is_of(coded) {
            return Err(Error::internal(format!(
                "{part:?} of a picture of {} x {} x {channels} is decoded to {found} bytes",
                coded.width, coded.height
            )));
        }
        let full = || Error::internal("too many JPEGs in a batch");
        let number = |count: usize| u32::try_from(count).map_err(|_| full());
        let mut image = Image::new(coded, part, self.cut)?;
        (image.data, image.words) = (data.address(), number(scan.bytes() / 4)?);
        image.pixels = target.address();
        image.first_segment = number(self.segments.len())?;
        image.segments = number(scan.segments().len())?;
        image.first_piece = self.pieces;
        image.first_block = self.blocks;
        image.first_plane = self.planes;
        self.planes += steps.as_ref().map_or(0, |steps| steps.samples.len() as u32);
        for &segment in scan.segments() {
            self.segments.push(Segment { first_piece: image.pieces, ..segment });
            image.pieces = image.pieces.checked_add(image.cut().pieces(segment.bits)).ok_or_else(full)?;
        }
        self.pieces = self.pieces.checked_add(image.pieces).ok_or_else(full)?;
        self.blocks = self.blocks.checked_add(image.blocks).ok_or_else(full)?;
        let first = coded.pairs.first().ok_or_else(full)?;
        let [dc, ac] = *first;
        let [other_dc, other_ac] = *coded.pairs.get(1).unwrap_or(first);
        for (place, table) in image.tables.iter_mut().zip([dc, ac, other_dc, other_ac]) {
            let next = number(self.lookups.len())?;
            let recent = self.recent.iter().find(|(known, _)| *known == table);
            *place = recent.map(|&(_, place)| place).unwrap_or_else(|| {
                *self.lookup_places.entry(table).or_insert_with(|| {
                    self.lookups.push(*tables.get(&table));
                    self.lookup_work.push(Work::new(next, (u32::from(table.class() == Class::Ac), 0)));
                    next
                })
            });
        }
        self.recent = [dc, ac, other_dc, other_ac].into_iter().zip(image.tables).collect();
        for (place, component) in image.quantisation.iter_mut().zip(&coded.components) {
            let table = *coded.quantisation.get(component.table).ok_or_else(full)?;
            let next = number(self.values.len())?;
            let recent = self.recent_values.iter().find(|(known, _)| *known == table);
            *place = recent.map(|&(_, place)| place).unwrap_or_else(|| {
                *self.value_places.entry(table).or_insert_with(|| {
                    self.values.push(table.values());
                    next
                })
            });
        }
        let tables = coded.components.iter().filter_map(|component| coded.quantisation.get(component.table));
        self.recent_values.clear();
        self.recent_values.extend(tables.copied().zip(image.quantisation));
        self.images.push(image);
        self.steps.push(steps);
        Ok(())
    }

    /// Images whose pixels are made in one step, with their numbers.
    fn at_once(&self) -> impl Iterator<Item = (u32, &Image)> {
        let images = (0..).zip(&self.images).zip(&self.steps);
        images.filter(|(_, steps)| steps.is_none()).map(|(image, _)| image)
    }

    /// The others.
    fn in_steps(&self) -> impl Iterator<Item = (u32, &Steps)> {
        (0..).zip(&self.steps).filter_map(|(number, steps)| Some((number, steps.as_ref()?)))
    }

    /// Planes of those, one behind the other from `address` on.
    fn planes(&self, mut address: u64) -> Result<Vec<Plane>> {
        let mut planes = Vec::with_capacity(self.planes as usize);
        for needed in self.in_steps().flat_map(|(_, steps)| &steps.samples) {
            planes.push(Plane::new(needed, address)?);
            address += needed.bytes().next_multiple_of(ALIGNMENT) as u64;
        }
        Ok(planes)
    }

    /// For each image that is left as planes, of which of `planes`.
    fn left_as_planes(&self, planes: &[Plane], blue_first: bool) -> Vec<Option<Planes>> {
        let of = |(image, steps): (&Image, &Option<Steps>)| {
            let steps = steps.as_ref()?;
            let first = image.first_plane as usize;
            let own = planes.get(first..first + steps.samples.len())?;
            Some(Planes::new(steps.left_as?, blue_first, own))
        };
        self.images.iter().zip(&self.steps).map(of).collect()
    }

    /// What blocks of threads work on that make pixels at once, samples, and pixels of those. Thousands of rows: loops, as iterators in
    /// iterators take several times as long.
    fn pixel_work(&self, each: u32) -> [Vec<Work>; 3] {
        let [mut at_once, mut blocks, mut strips] = [const { Vec::new() }; 3];
        for (number, image) in self.at_once() {
            at_once.extend(image.mcu_runs(each).map(|run| Work::new(number, run)));
        }
        for (number, steps) in self.in_steps() {
            for (component, runs) in (0..).zip(steps.block_runs(each)) {
                blocks.extend(runs.map(|run| Work::new(number, run).of_component(component)));
            }
            strips.extend(steps.strip_runs(each).map(|run| Work::new(number, run)));
        }
        [at_once, blocks, strips]
    }

    /// What blocks of threads work on, when `groups` says which neighbours of an image, by its segments, belong together.
    fn work<G: IntoIterator<Item = (u32, u32)>>(
        &self,
        groups: impl Fn(&Image, &[Segment]) -> G,
    ) -> Vec<Work> {
        let mut work = Vec::new();
        for (number, image) in (0..).zip(&self.images) {
            let (first, count) = (image.first_segment as usize, image.segments as usize);
            let segments = self.segments.get(first..first + count).unwrap_or_default();
            work.extend(groups(image, segments).into_iter().map(|group| Work::new(number, group)));
        }
        work
    }
}

/// Every kernel of the cores.
pub fn kernels() -> Vec<KernelSpec> {
    Kernels::new().into_list()
}
