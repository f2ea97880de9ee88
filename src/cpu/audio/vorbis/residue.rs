//! Residues of Vorbis: spectra divided by their floors, as sums of vectors. It must not know floors.

use super::codebook::Codebook;
use super::damaged;
use crate::cpu::audio::bits::LowFirst;
use crate::error::Result;

/// Times that vectors are added to one partition.
const PASSES: usize = 8;

#[derive(Debug)]
pub(crate) struct Residue {
    kind: u32,
    begin: usize,
    end: usize,
    partition: usize,
    /// The book whose entries hold the classes of several partitions, and how many there are.
    class_book: usize,
    /// What there may be of such entries.
    combinations: usize,
    classes: Vec<[Option<usize>; PASSES]>,
}

/// What decoding a block needs for a while.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Classes of partitions, those of a vector one after the other.
    classes: Vec<u8>,
    /// The spectra of several channels as one.
    joined: Vec<f32>,
}

impl Residue {
    pub(crate) fn read(bits: &mut LowFirst<'_>, kind: u32, books: &[Codebook]) -> Result<Self> {
        let mut read = |count| bits.read(count).ok_or_else(|| damaged("a residue is cut off"));
        if kind > 2 {
            return Err(damaged("a residue is of an unknown kind"));
        }
        let [begin, end, partition] = [read(24)? as usize, read(24)? as usize, read(24)? as usize + 1];
        let (count, class_book) = (read(6)? as usize + 1, read(8)? as usize);
        let cascade = |_| {
            let low = read(3)?;
            Ok(if read(1)? == 1 { read(5)? << 3 | low } else { low })
        };
        let cascades = (0..count).map(cascade).collect::<Result<Vec<_>>>()?;
        let mut book = |cascade: u32, pass: usize| {
            if cascade >> pass & 1 == 0 {
                return Ok(None);
            }
            let found = bits.read(8).ok_or_else(|| damaged("a residue is cut off"))? as usize;
            let is_known = books.get(found).is_some_and(Codebook::has_vectors);
            if is_known {
                Ok(Some(found))
            } else {
                Err(damaged("a residue names a codebook that has no vectors"))
            }
        };
        let mut classes = Vec::new();
        for cascade in cascades {
            let mut passes = [None; PASSES];
            for (pass, to) in passes.iter_mut().enumerate() {
                *to = book(cascade, pass)?;
            }
            classes.push(passes);
        }
        // As many digits as the book has dimensions. With one class there is one combination, however many digits it
        // has.
        let combinations = books.get(class_book).and_then(|book| {
            let digits = u32::try_from(book.dimensions).ok()?;
            count.checked_pow(digits).filter(|&combinations| combinations <= book.entries)
        });
        let combinations = combinations.filter(|_| begin <= end);
        let combinations =
            combinations.ok_or_else(|| damaged("a residue has a codebook that does not fit its classes"))?;
        Ok(Self { kind, begin, end, partition, class_book, combinations, classes })
    }

    /// Adds residues to the spectra `data`, each of `size` coefficients, of those channels that `is_used` says. Where
    /// the packet ends, what there is stays.
    pub(crate) fn decode(
        &self,
        bits: &mut LowFirst<'_>,
        books: &[Codebook],
        data: &mut [&mut [f32]],
        is_used: &[bool],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let size = data.first().map_or(0, |vector| vector.len());
        if !is_used.contains(&true) {
            return Ok(());
        }
        let Scratch { classes, joined } = scratch;
        if self.kind < 2 {
            let mut vectors: Vec<&mut [f32]> = data
                .iter_mut()
                .zip(is_used)
                .filter(|(_, is_used)| **is_used)
                .map(|(vector, _)| &mut **vector)
                .collect();
            return self.vectors(bits, books, &mut vectors, size, classes);
        }
        let count = data.len();
        super::reset(joined, size * count)?;
        self.vectors(bits, books, &mut [joined.as_mut_slice()], size * count, classes)?;
        for (channel, vector) in data.iter_mut().enumerate() {
            let mine = joined.iter().skip(channel).step_by(count);
            vector.iter_mut().zip(mine).for_each(|(to, from)| *to += from);
        }
        Ok(())
    }

    fn vectors(
        &self,
        bits: &mut LowFirst<'_>,
        books: &[Codebook],
        vectors: &mut [&mut [f32]],
        size: usize,
        classes: &mut Vec<u8>,
    ) -> Result<()> {
        let (begin, end) = (self.begin.min(size), self.end.min(size));
        let partitions = (end - begin) / self.partition;
        super::reset(classes, partitions * vectors.len())?;
        // The end of the packet.
        let _: Option<()> = self.passes(bits, books, vectors, partitions, classes);
        Ok(())
    }

    fn passes(
        &self,
        bits: &mut LowFirst<'_>,
        books: &[Codebook],
        vectors: &mut [&mut [f32]],
        partitions: usize,
        classes: &mut [u8],
    ) -> Option<()> {
        let class_book = books.get(self.class_book)?;
        let at_once = class_book.dimensions.min(partitions.max(1));
        for pass in 0..PASSES {
            for first in (0..partitions).step_by(at_once.max(1)) {
                if pass == 0 {
                    for vector in 0..vectors.len() {
                        let entry = class_book.entry(bits).filter(|&entry| entry < self.combinations)?;
                        let mine = classes.get_mut(vector * partitions..)?.get_mut(first..partitions)?;
                        self.spread(entry, class_book.dimensions, mine);
                    }
                }
                for partition in first..(first + at_once).min(partitions) {
                    let start = self.begin + partition * self.partition;
                    for (i, vector) in vectors.iter_mut().enumerate() {
                        let class = *classes.get(i * partitions + partition)?;
                        let Some(book) = self.classes.get(usize::from(class))?[pass] else { continue };
                        let to = vector.get_mut(start..)?.get_mut(..self.partition)?;
                        self.add(bits, books.get(book)?, to)?;
                    }
                }
            }
        }
        Some(())
    }

    /// Writes the classes that `entry` holds, the highest digit first.
    fn spread(&self, mut entry: usize, digits: usize, classes: &mut [u8]) {
        let base = self.classes.len().max(1);
        for place in (0..digits).rev() {
            if let Some(to) = classes.get_mut(place) {
                *to = (entry % base) as u8;
            }
            entry /= base;
        }
    }

    /// Adds the vectors of one partition.
    fn add(&self, bits: &mut LowFirst<'_>, book: &Codebook, to: &mut [f32]) -> Option<()> {
        if self.kind == 0 {
            let step = to.len() / book.dimensions;
            // Of a partition that is not whole libvorbis takes nothing.
            let mut ahead = *bits;
            (0..step).try_for_each(|_| book.entry(&mut ahead).map(|_| ()))?;
            for first in 0..step {
                let vector = book.vector(bits)?;
                to.iter_mut().skip(first).step_by(step).zip(vector).for_each(|(to, value)| *to += value);
            }
            return Some(());
        }
        for to in to.chunks_mut(book.dimensions) {
            let vector = book.vector(bits)?;
            to.iter_mut().zip(vector).for_each(|(to, value)| *to += value);
        }
        Some(())
    }
}
