//! ADPCM: four bits a sample, of a difference to what the samples before let expect. IMA's kind, as WAV and as AIFF
//! have it, and Microsoft's. It must not know containers.

use super::fields::{Fields, Order};
use super::sound::{Block, Coding, Header, Stream};
use super::stored::{Format, Length, Sound};
use crate::error::{Error, Result};

/// Steps of IMA's kind: each a tenth more than the one before, by its table.
const STEPS: [i32; 89] = [
    7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88,
    97, 107, 118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658,
    724, 796, 876, 963, 1_060, 1_166, 1_282, 1_411, 1_552, 1_707, 1_878, 2_066, 2_272, 2_499, 2_749, 3_024,
    3_327, 3_660, 4_026, 4_428, 4_871, 5_358, 5_894, 6_484, 7_132, 7_845, 8_630, 9_493, 10_442, 11_487,
    12_635, 13_899, 15_289, 16_818, 18_500, 20_350, 22_385, 24_623, 27_086, 29_794, 32_767,
];
/// How far a code goes along them.
const MOVES: [i32; 8] = [-1, -1, -1, -1, 2, 4, 6, 8];
/// Weights of the two samples before, in 256ths, of Microsoft's kind, and how a code changes its step.
const WEIGHTS: [[i32; 2]; 7] = [[256, 0], [512, -256], [0, 0], [192, 64], [240, 0], [460, -208], [392, -232]];
const GROWTH: [i32; 9] = [230, 230, 230, 230, 307, 409, 512, 614, 768];
/// The least step of Microsoft's kind.
const LEAST_STEP: i32 = 16;
/// Bytes of a channel's start in a block: IMA's kind, and Microsoft's.
const IMA_START: usize = 4;
const MS_START: usize = 7;
/// Bytes of a channel in turn, and what AIFF has for each: a start of two bytes and 64 samples.
const IMA_TURN: usize = 4;
const QUICK_TIME: usize = 34;
const QUICK_TIME_FRAMES: usize = 64;

/// What expects the next sample of IMA's kind.
#[derive(Debug, Clone, Copy, Default)]
struct Ima {
    level: i32,
    step: i32,
}

impl Ima {
    fn next(&mut self, code: u8) -> i32 {
        let step = STEPS.get(self.step as usize).copied().unwrap_or_default();
        let code = i32::from(code & 0xf);
        let part = |bit: i32, shift: u32| if code & bit == 0 { 0 } else { step >> shift };
        let change = (step >> 3) + part(1, 2) + part(2, 1) + part(4, 0);
        let change = if code & 8 == 0 { change } else { -change };
        self.level = (self.level + change).clamp(i16::MIN.into(), i16::MAX.into());
        self.step = (self.step + MOVES[(code & 7) as usize]).clamp(0, STEPS.len() as i32 - 1);
        self.level
    }

    fn begins(level: i16, step: u8) -> Self {
        Self { level: level.into(), step: i32::from(step).min(STEPS.len() as i32 - 1) }
    }
}

/// What expects the next sample of Microsoft's kind.
#[derive(Debug, Clone, Copy, Default)]
struct Microsoft {
    weights: [i32; 2],
    step: i32,
    /// The last one and the one before.
    before: [i32; 2],
}

impl Microsoft {
    fn next(&mut self, code: u8) -> i32 {
        let [[a, b], [x, y]] = [self.weights, self.before];
        let code = code & 0xf;
        let signed = i32::from(code) - if code < 8 { 0 } else { 16 };
        let level = ((x * a + y * b) >> 8) + self.step.wrapping_mul(signed);
        let level = level.clamp(i16::MIN.into(), i16::MAX.into());
        let growth = GROWTH[signed.unsigned_abs() as usize];
        self.step = (self.step.saturating_mul(growth) >> 8).max(LEAST_STEP);
        self.before = [level, x];
        level
    }
}

/// How a block is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Ima,
    QuickTime,
    Microsoft,
}

struct Adpcm<'a> {
    layout: Layout,
    data: &'a [u8],
    channels: usize,
    /// Bytes of a block, and its frames.
    unit: usize,
    frames: usize,
    samples: Vec<i32>,
}

fn open<'a>(
    layout: Layout,
    format: Format,
    [unit, frames]: [usize; 2],
    data: &'a [u8],
    length: Length,
) -> Result<Sound<'a>> {
    let Format { channels, rate } = format.checked()?;
    let data = length.of_data(data, unit, frames)?;
    let header = Header {
        frames: (data.len() / unit.max(1)).saturating_mul(frames),
        channels,
        rate,
        coding: Coding::Adpcm,
        scratch: frames.saturating_mul(channels * size_of::<i32>()),
    };
    Ok(Sound {
        header,
        stream: Box::new(Adpcm { layout, data, channels, unit, frames, samples: Vec::new() }),
    })
}

fn wrong_block(unit: usize, channels: usize) -> Error {
    Error::invalid(format!("ADPCM audio of {channels} channels in blocks of {unit} bytes"))
}

/// IMA's kind in blocks of `unit` bytes, as WAV has it.
///
/// # Errors
/// Invalid, for blocks that are none.
pub(crate) fn ima(format: Format, unit: usize, data: &[u8], length: Length) -> Result<Sound<'_>> {
    let start = format.channels * IMA_START;
    let turns = unit.checked_sub(start).and_then(|codes| codes.checked_div(format.channels * IMA_TURN));
    let turns = turns.ok_or_else(|| wrong_block(unit, format.channels))?;
    open(Layout::Ima, format, [unit, turns * 2 * IMA_TURN + 1], data, length)
}

/// IMA's kind as AIFF has it.
///
/// # Errors
/// Invalid, when there is less than `length` says.
pub(crate) fn quick_time(format: Format, data: &[u8], length: Length) -> Result<Sound<'_>> {
    let format = format.checked()?;
    open(Layout::QuickTime, format, [format.channels * QUICK_TIME, QUICK_TIME_FRAMES], data, length)
}

/// Microsoft's kind in blocks of `unit` bytes.
///
/// # Errors
/// Invalid, for blocks that are none.
pub(crate) fn microsoft(format: Format, unit: usize, data: &[u8], length: Length) -> Result<Sound<'_>> {
    let codes = unit.checked_sub(format.channels * MS_START);
    let frames = codes.and_then(|codes| (codes * 2).checked_div(format.channels));
    let frames = frames.ok_or_else(|| wrong_block(unit, format.channels))? + 2;
    open(Layout::Microsoft, format, [unit, frames], data, length)
}

impl Stream for Adpcm<'_> {
    fn next(&mut self) -> Result<Option<(Block<'_>, usize)>> {
        if self.data.is_empty() {
            return Ok(None);
        }
        let (block, rest) = self.data.split_at(self.unit.min(self.data.len()));
        self.data = rest;
        self.samples.clear();
        let count = self.frames * self.channels;
        self.samples.try_reserve(count).map_err(|_| Error::invalid("no memory for a block of the audio"))?;
        self.samples.resize(count, 0);
        let decoded = match self.layout {
            Layout::Ima => self.ima_block(block),
            Layout::QuickTime => self.quick_time_block(block),
            Layout::Microsoft => self.microsoft_block(block),
        };
        decoded.ok_or_else(|| Error::invalid("the audio is damaged: a block of ADPCM has a wrong start"))?;
        self.samples.iter_mut().for_each(|sample| *sample <<= 16);
        Ok(Some((Block::Integers(&self.samples), block.len())))
    }
}

impl Adpcm<'_> {
    fn ima_block(&mut self, block: &[u8]) -> Option<()> {
        let (channels, mut fields) = (self.channels, Fields::new(block, Order::Little));
        let mut states = Vec::new();
        for to in self.samples.iter_mut().take(channels) {
            let (level, [step, _]) = (fields.u16()? as i16, fields.array()?);
            states.push(Ima::begins(level, step));
            *to = level.into();
        }
        let rows = self.samples.get_mut(channels..)?;
        for (turn, rows) in
            fields.bytes.chunks_exact(channels * IMA_TURN).zip(rows.chunks_mut(channels * 2 * IMA_TURN))
        {
            for (channel, (codes, state)) in turn.chunks_exact(IMA_TURN).zip(&mut states).enumerate() {
                let to = rows.iter_mut().skip(channel).step_by(channels);
                let codes = codes.iter().flat_map(|&code| [code, code >> 4]);
                to.zip(codes).for_each(|(to, code)| *to = state.next(code));
            }
        }
        Some(())
    }

    fn quick_time_block(&mut self, block: &[u8]) -> Option<()> {
        for (channel, block) in block.chunks_exact(QUICK_TIME).enumerate() {
            let (start, codes) = block.split_first_chunk::<2>()?;
            let start = u16::from_be_bytes(*start);
            let mut state = Ima::begins((start & 0xff80) as i16, (start & 0x7f) as u8);
            let to = self.samples.iter_mut().skip(channel).step_by(self.channels);
            let codes = codes.iter().flat_map(|&code| [code, code >> 4]);
            to.zip(codes).for_each(|(to, code)| *to = state.next(code));
        }
        Some(())
    }

    fn microsoft_block(&mut self, block: &[u8]) -> Option<()> {
        let (channels, mut fields) = (self.channels, Fields::new(block, Order::Little));
        let mut states = vec![Microsoft::default(); channels];
        for state in &mut states {
            let [weights] = fields.array()?;
            state.weights = *WEIGHTS.get(usize::from(weights))?;
        }
        for state in &mut states {
            state.step = (fields.u16()? as i16).into();
        }
        for which in 0..2 {
            for state in &mut states {
                state.before[which] = (fields.u16()? as i16).into();
            }
        }
        // The later one of the two comes first.
        for (which, rows) in [1, 0].into_iter().zip(self.samples.chunks_mut(channels)) {
            rows.iter_mut().zip(&states).for_each(|(to, state)| *to = state.before[which]);
        }
        let to = self.samples.get_mut(2 * channels..)?.iter_mut().enumerate();
        let codes = fields.bytes.iter().flat_map(|&code| [code >> 4, code]);
        for ((i, to), code) in to.zip(codes) {
            *to = states.get_mut(i % channels)?.next(code);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_without_room_are_refused() {
        let format = Format { channels: 2, rate: 8_000 };
        for unit in [0, 7] {
            assert!(ima(format, unit, &[], Length::Rest).is_err());
            assert!(microsoft(format, unit, &[], Length::Rest).is_err());
        }
        let none = Format { channels: 0, rate: 8_000 };
        for sound in [
            ima(none, 36, &[], Length::Rest),
            microsoft(none, 36, &[], Length::Rest),
            quick_time(none, &[], Length::Rest),
        ] {
            assert!(sound.is_err());
        }
    }

    #[test]
    fn a_step_never_leaves_its_table() {
        let mut state = Ima::begins(0, 255);
        for code in [7, 15, 0, 8].into_iter().cycle().take(1_000) {
            assert!((-32_768..=32_767).contains(&state.next(code)));
        }
        let mut state = Microsoft { weights: [512, -256], step: i32::MAX, before: [i16::MAX.into(); 2] };
        (0..1_000).for_each(|code| assert!((-32_768..=32_767).contains(&state.next(code as u8))));
    }
}
