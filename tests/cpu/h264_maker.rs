//! Streams of H.264 that no encoder makes: gray pictures with headers as a test wants them. Bits are written as ITU-T
//! H.264, 7.3 says.

/// How the pictures of a stream are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence {
    /// Columns and rows of macroblocks; rows of a frame.
    pub(crate) macroblocks: [u32; 2],
    pub(crate) references: u32,
    /// Whether pictures may be fields.
    pub(crate) has_fields: bool,
}

/// A picture, or a part of one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Picture {
    pub(crate) is_key: bool,
    pub(crate) is_reference: bool,
    pub(crate) number: u32,
    /// Which field, if it is one: the bottom one?
    pub(crate) field: Option<bool>,
    /// Commands, each with its numbers; empty for the sliding window.
    pub(crate) commands: Vec<(u32, Vec<u32>)>,
    /// The macroblock that it begins with.
    pub(crate) first: u32,
}

/// Bits of the number of a frame.
const NUMBER_BITS: u32 = 4;

#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        (0..count).rev().for_each(|bit| self.0.push(value >> bit & 1 == 1));
    }

    /// Exponential Golomb.
    fn number(&mut self, value: u32) {
        let length = (value + 1).ilog2();
        self.put(0, length);
        self.put(value + 1, length + 1);
    }

    /// A unit behind a start code.
    fn unit(mut self, head: u8) -> Vec<u8> {
        self.put(1, 1);
        self.0.resize(self.0.len().next_multiple_of(8), false);
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
        let mut unit = vec![0, 0, 0, 1, head];
        let mut zeros = 0;
        for byte in self.0.chunks(8).map(byte) {
            if zeros >= 2 && byte <= 3 {
                unit.push(3);
                zeros = 0;
            }
            unit.push(byte);
            zeros = if byte == 0 { zeros + 1 } else { 0 };
        }
        unit
    }
}

impl Sequence {
    /// The units of its parameters.
    pub(crate) fn parameters(&self) -> Vec<u8> {
        let [columns, rows] = self.macroblocks;
        let mut sequence = Bits::default();
        // Main profile, level 4.
        sequence.put(77, 8);
        sequence.put(0, 8);
        sequence.put(40, 8);
        sequence.number(0);
        sequence.number(NUMBER_BITS - 4);
        // Pictures are shown in the order in which they are decoded.
        sequence.number(2);
        sequence.number(self.references);
        // Numbers may be left out.
        sequence.put(1, 1);
        sequence.number(columns - 1);
        let fields = u32::from(self.has_fields);
        sequence.number((rows >> fields) - 1);
        sequence.put(1 - fields, 1);
        if self.has_fields {
            sequence.put(0, 1);
        }
        // Direct prediction of blocks of 8 x 8; no cropping, nothing beside.
        sequence.put(0b100, 3);
        let mut picture = Bits::default();
        picture.number(0);
        picture.number(0);
        picture.put(0, 2);
        picture.number(0);
        picture.number(0);
        picture.number(0);
        picture.put(0, 3);
        picture.number(0);
        picture.number(0);
        picture.number(0);
        // The filter of edges may be turned off.
        picture.put(0b100, 3);
        [sequence.unit(0x67), picture.unit(0x68)].concat()
    }

    /// The unit of a slice from its first macroblock to the end of the picture.
    pub(crate) fn slice(&self, picture: &Picture) -> Vec<u8> {
        let Picture { is_key, is_reference, number, field, commands, first } = picture;
        let mut slice = Bits::default();
        slice.number(*first);
        // One that copies what was before, or one that begins anew.
        slice.number(if *is_key { 7 } else { 5 });
        slice.number(0);
        slice.put(*number, NUMBER_BITS);
        if self.has_fields {
            slice.put(u32::from(field.is_some()), 1);
            if let Some(bottom) = field {
                slice.put(u32::from(*bottom), 1);
            }
        }
        if *is_key {
            slice.number(0);
        } else {
            // Lists of references as they are.
            slice.put(0, 2);
        }
        match (is_key, is_reference) {
            (true, _) => slice.put(0, 2),
            (false, true) => {
                slice.put(u32::from(!commands.is_empty()), 1);
                if !commands.is_empty() {
                    for (command, numbers) in commands {
                        slice.number(*command);
                        numbers.iter().for_each(|number| slice.number(*number));
                    }
                    slice.number(0);
                }
            }
            (false, false) => {}
        }
        slice.number(0);
        // Without the filter of edges.
        slice.number(1);
        let [columns, rows] = self.macroblocks;
        let all = columns * rows / if field.is_some() { 2 } else { 1 };
        let count = all.saturating_sub(*first);
        if *is_key {
            // Each predicted from its edges, without residuals.
            (0..count).for_each(|_| {
                slice.number(3);
                slice.put(0b111, 3);
            });
        } else {
            slice.number(count);
        }
        let reference = if *is_reference { 0x60 } else { 0 };
        slice.unit(reference | if *is_key { 5 } else { 1 })
    }
}
