//! The scans of a progressive file: headers, tables and where the data of each is. It must not know who decodes.
//!
//! Taken is what our own decoder on the host takes (`cpu/decode/jpeg/multiscan.rs`): every bit of every coefficient
//! comes once, from the highest on.

use arrayvec::ArrayVec;
use memchr::memchr_iter;

use super::{COM, DHT, DQT, DRI, EOI, Header, Quantisation, Reader, SOS};
use crate::gpu::jpeg::huffman::Huffman;
use crate::limits;

/// Coefficients of a block.
const BLOCK: usize = 64;

/// The most bits that a first scan may leave out.
const MOST_LOW: u8 = 13;

/// A scan of a progressive file: a band of coefficients for the first time, or one bit more of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan<'a> {
    /// Places of its components in the frame, in that order.
    pub components: ArrayVec<usize, 3>,
    /// The table of each component; none where only bits come.
    pub tables: ArrayVec<Huffman<'a>, 3>,
    /// First and last coefficient, in the order of a zigzag.
    pub band: [u8; 2],
    /// The lowest bit that earlier scans have brought; 0: none did.
    pub high: u8,
    /// The lowest bit that this one brings.
    pub low: u8,
    /// MCUs between restarts; 0 without.
    pub restart_interval: u16,
    /// Entropy-coded segments, and the marker behind them.
    pub data: &'a [u8],
}

/// Of each coefficient the lowest bit that scans have brought.
type Known = [Option<u8>; BLOCK];

impl<'a> Reader<'a> {
    /// Reads on from the header of the first scan to the end of the file.
    pub(super) fn scans(mut self, payload: &'a [u8]) -> Option<Header<'a>> {
        let names = self.frame.as_ref()?.components.clone();
        let data = self.bytes.get(self.at..)?;
        let (jfif, adobe) = (self.jfif, self.adobe);
        let mut known = [[None; BLOCK]; 3];
        let mut quantisation: [Option<Quantisation<'a>>; 3] = [None; 3];
        let (mut scans, mut next) = (Vec::new(), Some(payload));
        while let Some(payload) = next {
            let scan = self.scan(payload)?;
            for &place in &scan.components {
                let (known, values) = (known.get_mut(place)?, quantisation.get_mut(place)?);
                goes_on(known, &scan)?;
                if values.is_none() {
                    // Later tables are for components that come later.
                    *values = Some((*self.quantisation.get(usize::from(names.get(place)?.table))?)?);
                }
            }
            scans.push(scan);
            if scans.len() > limits::MAX_SM_SCANS {
                return None;
            }
            next = self.next_scan()?;
        }
        // Where bits are missing libjpeg smooths between blocks.
        let complete = known.iter().take(names.len()).flatten().all(|&bits| bits == Some(0));
        let components = names.iter().zip(quantisation).map(|(name, values)| Some(name.with(values?, None)));
        let components = components.collect::<Option<ArrayVec<_, 3>>>()?;
        let frame = self.frame.take().filter(|_| complete)?;
        Some(Header {
            bytes: self.bytes,
            data,
            width: frame.width,
            height: frame.height,
            components,
            scans,
            restart_interval: 0,
            jfif,
            adobe,
            baseline: false,
        })
    }

    /// The header of the next scan. The inner `None`: the file's end comes first.
    fn next_scan(&mut self) -> Option<Option<&'a [u8]>> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            let marker = rest.iter().position(|&byte| byte != 0xFF).filter(|&fill| fill > 0)?;
            if *rest.get(marker)? == EOI {
                return Some(None);
            }
            match self.segment()? {
                (DQT, payload) => self.quantisation_tables(payload)?,
                (DHT, payload) => self.huffman_tables(payload)?,
                (DRI, payload) => self.restart_interval(payload)?,
                (SOS, payload) => return Some(Some(payload)),
                (0xE0..=0xEF | COM, _) => {}
                _ => return None,
            }
        }
    }

    /// The scan with this header, whose data come next.
    fn scan(&mut self, payload: &'a [u8]) -> Option<Scan<'a>> {
        let names = &self.frame.as_ref()?.components;
        let (&count, rest) = payload.split_first()?;
        let (selectors, &[first, last, bits]) = rest.split_last_chunk::<3>()?;
        let (selectors, []) = selectors.as_chunks::<2>() else { return None };
        if selectors.len() != usize::from(count) || !(1..=names.len()).contains(&selectors.len()) {
            return None;
        }
        let (high, low) = (bits >> 4, bits & 15);
        let (mut components, mut tables) = (ArrayVec::<usize, 3>::new(), ArrayVec::new());
        for &[id, own] in selectors {
            let place = names.iter().position(|name| name.id == id)?;
            // The blocks of an MCU are in the frame's order.
            if components.last().is_some_and(|&before| before >= place) {
                return None;
            }
            components.push(place);
            if first > 0 {
                tables.push((*self.ac.get(usize::from(own & 15))?)?.of_band());
            } else if high == 0 {
                tables.push((*self.dc.get(usize::from(own >> 4))?)?);
            }
        }
        let restart_interval = self.restart_interval;
        Some(Scan {
            components,
            tables,
            band: [first, last],
            high,
            low,
            restart_interval,
            data: self.data()?,
        })
    }

    /// Entropy-coded data, with the marker behind them, which is read next.
    fn data(&mut self) -> Option<&'a [u8]> {
        let data = self.bytes.get(self.at..)?;
        let is_end =
            |at: &usize| data.get(at + 1).is_some_and(|next| !matches!(next, 0 | 0xD0..=0xD7 | 0xFF));
        let end = memchr_iter(0xFF, data).find(is_end)?;
        self.at += end;
        data.get(..end + 2)
    }
}

/// Whether a scan is the next one for a component, by libjpeg's rules.
fn goes_on(known: &mut Known, scan: &Scan<'_>) -> Option<()> {
    let Scan { band: [first, last], high, low, ref components, .. } = *scan;
    let band = if first == 0 { last == 0 } else { first <= last && components.len() == 1 };
    let bits = if high == 0 { low <= MOST_LOW } else { low + 1 == high };
    if !band || !bits || (first > 0 && known[0].is_none()) {
        return None;
    }
    for bits in known.get_mut(usize::from(first)..=usize::from(last))? {
        if *bits != (high > 0).then_some(high) {
            return None;
        }
        *bits = Some(low);
    }
    Some(())
}
