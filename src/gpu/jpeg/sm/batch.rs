//! The tables of a batch of pictures, as `kernels/jpeg.cuh` has them. It must not know devices.

use std::collections::HashMap;
use std::hash::Hash;

use super::passes::{Pass, in_turn};
use super::planned::Planned;
use super::rows::{Cut, Image, Work};
use super::scan::{Scan, Segment};
use super::steps::{Plane, Planes, Steps};
use super::tables::Tables;
use super::{ALIGNMENT, Coded, Huffman, Lookup, Quantisation};
use crate::error::{Error, Result};
use crate::gpu::jpeg::huffman::Class;
use crate::memory::DeviceBytes;

/// How many tables are compared with one another before a hash is computed, which takes longer.
const RECENT: usize = 12;

/// Where tables are that were seen before.
struct Places<K> {
    /// The first of them: mostly there are no more.
    recent: Vec<(K, u32)>,
    others: HashMap<K, u32>,
}

impl<K> Default for Places<K> {
    fn default() -> Self {
        Self { recent: Vec::new(), others: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash> Places<K> {
    /// The place of `table`, which `add` gives it the first time.
    fn of(&mut self, table: K, add: impl FnOnce() -> Result<u32>) -> Result<u32> {
        let known = self.recent.iter().find(|(known, _)| *known == table).map(|&(_, place)| place);
        if let Some(place) = known.or_else(|| self.others.get(&table).copied()) {
            return Ok(place);
        }
        let place = add()?;
        match self.recent.len() {
            ..RECENT => self.recent.push((table, place)),
            _ => drop(self.others.insert(table, place)),
        }
        Ok(place)
    }
}

fn full() -> Error {
    Error::internal("too many JPEGs in a batch")
}

fn number(count: usize) -> Result<u32> {
    u32::try_from(count).map_err(|_| full())
}

/// Tables of a batch.
pub struct Batch<'a> {
    cut: Cut,
    pub(super) images: Vec<Image>,
    /// Of those whose pixels are made in two steps.
    steps: Vec<Option<&'a Steps>>,
    pub(super) segments: Vec<Segment>,
    /// Each once.
    pub(super) lookups: Vec<Lookup>,
    /// The number of each, and 1 for AC.
    pub(super) lookup_work: Vec<Work>,
    pub(super) values: Vec<[u16; 64]>,
    lookup_places: Places<Huffman<'a>>,
    /// Those that are not made yet, in ascending order.
    unmade: Vec<(usize, Huffman<'a>)>,
    value_places: Places<Quantisation<'a>>,
    /// Of each progressive image.
    image_passes: Vec<Vec<Pass>>,
    /// Of all that have a scan.
    pub(super) passes: Vec<Pass>,
    /// Which of those an image has.
    pub(super) progressive: Vec<Work>,
    pub(super) pieces: u32,
    pub(super) blocks: u32,
    planes: u32,
}

/// A table to be made.
pub struct Unmade<'b, 'a> {
    pub(super) lookup: &'b mut Lookup,
    pub(super) table: &'b Huffman<'a>,
}

impl Unmade<'_, '_> {
    /// Makes it.
    pub fn make(&mut self) {
        *self.lookup = Lookup::new(self.table);
    }
}

impl<'a> Batch<'a> {
    pub(super) fn new(cut: Cut) -> Self {
        Self {
            cut,
            images: Vec::new(),
            steps: Vec::new(),
            segments: Vec::new(),
            lookups: Vec::new(),
            lookup_work: Vec::new(),
            values: Vec::new(),
            lookup_places: Places::default(),
            unmade: Vec::new(),
            value_places: Places::default(),
            image_passes: Vec::new(),
            passes: Vec::new(),
            progressive: Vec::new(),
            pieces: 0,
            blocks: 0,
            planes: 0,
        }
    }

    pub(super) fn add(
        &mut self,
        planned: &'a Planned<'a>,
        target: Option<&DeviceBytes<'_>>,
        channels: usize,
        tables: &Tables,
    ) -> Result<()> {
        let Planned { coded, part, steps } = planned;
        let expected = if planned.is_left_as_planes() { 0 } else { part.width * part.height * channels };
        let found = target.map_or(0, DeviceBytes::len);
        if expected != found || !part.is_of(coded) {
            return Err(Error::internal(format!(
                "{part:?} of a picture of {} x {} x {channels} is decoded to {found} bytes",
                coded.width, coded.height
            )));
        }
        let mut image = Image::new(coded, part, self.cut)?;
        image.pixels = target.map_or(0, DeviceBytes::address);
        let passes = if coded.is_progressive() {
            self.add_passes(coded, tables)?
        } else {
            let first = coded.pairs.first().ok_or_else(full)?;
            let [dc, ac] = *first;
            let [other_dc, other_ac] = *coded.pairs.get(1).unwrap_or(first);
            for (place, table) in image.tables.iter_mut().zip([dc, ac, other_dc, other_ac]) {
                *place = self.lookup(table, tables)?;
            }
            Vec::new()
        };
        for (place, component) in image.quantisation.iter_mut().zip(&coded.components) {
            let table = *coded.quantisation.get(component.table).ok_or_else(full)?;
            *place = self.value_places.of(table, || {
                self.values.push(table.values());
                number(self.values.len() - 1)
            })?;
        }
        self.images.push(image);
        self.steps.push(steps.as_ref());
        self.image_passes.push(passes);
        Ok(())
    }

    /// The place of a Huffman table.
    fn lookup(&mut self, table: Huffman<'a>, tables: &Tables) -> Result<u32> {
        self.lookup_places.of(table, || {
            let next = number(self.lookups.len())?;
            let known = tables.known(&table);
            if known.is_none() {
                self.unmade.push((self.lookups.len(), table));
            }
            self.lookups.push(known.copied().unwrap_or_else(bytemuck::Zeroable::zeroed));
            // Progressive scans have one code at a time.
            if table.class() != Class::Band {
                self.lookup_work.push(Work::new(next, (u32::from(table.class() == Class::Ac), 0)));
            }
            Ok(next)
        })
    }

    /// Whether its data is cut as that of few images.
    pub(super) fn is_small(&self) -> bool {
        self.cut == Cut::SMALL
    }

    /// Says that there are none that are to be made.
    pub(super) fn are_made(&mut self) {
        self.unmade.clear();
    }

    /// Tables that are to be made before the batch is recorded.
    pub(super) fn unmade(&mut self) -> Vec<Unmade<'_, 'a>> {
        let mut wanted = self.unmade.iter().peekable();
        let lookups = self.lookups.iter_mut().enumerate().filter_map(|(place, lookup)| {
            wanted.next_if(|(wanted, _)| *wanted == place).map(|(_, table)| Unmade { lookup, table })
        });
        lookups.collect()
    }

    /// The scans of a progressive file.
    fn add_passes(&mut self, coded: &'a Coded<'a>, tables: &Tables) -> Result<Vec<Pass>> {
        let mut passes = Vec::with_capacity(coded.scans.len());
        for (number, scan) in coded.scans.iter().enumerate() {
            let mut pass = Pass::new(coded, number)?;
            for (&component, &table) in scan.components.iter().zip(&scan.tables) {
                *pass.tables.get_mut(component).ok_or_else(full)? = self.lookup(table, tables)?;
            }
            passes.push(pass);
        }
        Ok(passes)
    }

    /// Leaves images without a scan out, and says of the others where their data is, and how that is cut.
    pub(super) fn load(&mut self, scans: &[(DeviceBytes<'_>, Option<&Scan>)]) -> Result<()> {
        let (images, steps) = (std::mem::take(&mut self.images), std::mem::take(&mut self.steps));
        if images.len() != scans.len() {
            return Err(Error::internal(format!("{} scans of {} JPEGs", scans.len(), images.len())));
        }
        self.images.reserve(images.len());
        self.steps.reserve(images.len());
        let image_passes = std::mem::take(&mut self.image_passes);
        let images = images.into_iter().zip(steps).zip(image_passes);
        for (((mut image, steps), mut passes), (data, scan)) in images.zip(scans) {
            let Some(scan) = scan else { continue };
            if data.len() < scan.bytes() {
                let text = format!("{} bytes of a JPEG in {}", scan.bytes(), data.len());
                return Err(Error::internal(text));
            }
            (image.data, image.words) = (data.address(), number(scan.bytes() / 4)?);
            image.first_segment = number(self.segments.len())?;
            image.segments = number(scan.segments().len())?;
            image.first_piece = self.pieces;
            image.first_block = self.blocks;
            image.first_plane = self.planes;
            self.planes += steps.map_or(0, |steps| steps.samples.len() as u32);
            let is_progressive = !passes.is_empty();
            if is_progressive {
                let mut next = image.first_segment;
                let mut segments = scan.segments().iter();
                let mut bits = Vec::with_capacity(passes.len());
                for pass in &mut passes {
                    pass.first_segment = next;
                    next += pass.segments();
                    let own = segments.by_ref().take(pass.segments() as usize);
                    bits.push(own.map(|segment| u64::from(segment.bits)).sum());
                }
                let (first, count) = (number(self.passes.len())?, number(passes.len())?);
                self.progressive.push(Work::new(number(self.images.len())?, (first, count)));
                self.passes.extend(in_turn(&passes, &bits));
                self.segments.extend(scan.segments());
            }
            for &segment in scan.segments().iter().filter(|_| !is_progressive) {
                self.segments.push(Segment { first_piece: image.pieces, ..segment });
                let pieces = image.cut().pieces(segment.bits);
                image.pieces = image.pieces.checked_add(pieces).ok_or_else(full)?;
            }
            self.pieces = self.pieces.checked_add(image.pieces).ok_or_else(full)?;
            self.blocks = self.blocks.checked_add(image.blocks).ok_or_else(full)?;
            self.images.push(image);
            self.steps.push(steps);
        }
        Ok(())
    }

    /// Images whose pixels are made in one step, with their numbers.
    pub(super) fn at_once(&self) -> impl Iterator<Item = (u32, &Image)> {
        let images = (0..).zip(&self.images).zip(&self.steps);
        images.filter(|(_, steps)| steps.is_none()).map(|(image, _)| image)
    }

    /// The others.
    pub(super) fn in_steps(&self) -> impl Iterator<Item = (u32, &Steps)> {
        (0..).zip(&self.steps).filter_map(|(number, steps)| Some((number, (*steps)?)))
    }

    /// Planes of those, one behind the other from `address` on.
    pub(super) fn planes(&self, mut address: u64) -> Result<Vec<Plane>> {
        let mut planes = Vec::with_capacity(self.planes as usize);
        for needed in self.in_steps().flat_map(|(_, steps)| &steps.samples) {
            planes.push(Plane::new(needed, address)?);
            address += needed.bytes().next_multiple_of(ALIGNMENT) as u64;
        }
        Ok(planes)
    }

    /// For each image that is left as planes, of which of `planes`.
    pub(super) fn left_as_planes(&self, planes: &[Plane], blue_first: bool) -> Vec<Option<Planes>> {
        let of = |(image, steps): (&Image, &Option<&Steps>)| {
            let steps = (*steps)?;
            let first = image.first_plane as usize;
            let own = planes.get(first..first + steps.samples.len())?;
            Some(Planes::new(steps.left_as?, blue_first, own))
        };
        self.images.iter().zip(&self.steps).map(of).collect()
    }

    /// What blocks of threads work on that make pixels at once, samples, and pixels of those. Thousands of rows: loops,
    /// as iterators in iterators take several times as long.
    pub(super) fn pixel_work(&self, each: u32) -> [Vec<Work>; 3] {
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

    /// What blocks of threads work on that have neighbours of an image, as `runs` says, and a number among its own.
    pub(super) fn numbered<R: Iterator<Item = (u32, u32)>>(&self, runs: impl Fn(&Image) -> R) -> Vec<Work> {
        let images = (0..).zip(&self.images);
        let of_image = |(image, row)| {
            (0..).zip(runs(row)).map(move |(number, run)| Work::new(image, run).of_component(number))
        };
        images.flat_map(of_image).collect()
    }

    /// What blocks of threads work on, when `groups` says which neighbours of an image, by its segments, belong
    /// together.
    pub(super) fn work<G: IntoIterator<Item = (u32, u32)>>(
        &self,
        groups: impl Fn(&Image, &[Segment]) -> G,
    ) -> Vec<Work> {
        let mut work = Vec::new();
        for (number, image) in (0..).zip(&self.images) {
            if image.pieces == 0 {
                continue;
            }
            let (first, count) = (image.first_segment as usize, image.segments as usize);
            let segments = self.segments.get(first..first + count).unwrap_or_default();
            work.extend(groups(image, segments).into_iter().map(|group| Work::new(number, group)));
        }
        work
    }
}
